//! The session directory: a public contract, readable by people and programs.
//!
//! ```text
//! .sessions/sess_…/        0700
//!   metadata.json          what the session is          (replaced atomically)
//!   state.json             last captured kernel states  (replaced atomically)
//!   history.log            one JSON object a line
//!   runs/7.stdout          what run 7 wrote, up to the cap
//!   runs/7.stdout.tail     the last bytes of it, when it wrote more
//!   keeper.sock            where the keeper listens
//!   keeper.lock            held by the keeper as long as it lives
//! .sessions/workspaces/    which session is a workspace's own
//! ```
//!
//! Invariants: directories are 0700 and files 0600; a reader that looks at any
//! instant, whatever was killed, finds whole JSON documents; nothing here
//! starts a process, and what is read from these files is never trusted to be
//! well formed.

mod atomic;
mod directory;
mod history;
mod metadata;
mod output;
mod workspaces;

pub use directory::{Directory, Liveness, Lock, Sessions, StoreError};
pub use history::{Entry, History};
pub use metadata::{Metadata, SavedKernel, SavedState, SessionStatus, timestamp};
pub use output::{Spool, StreamName};
pub use workspaces::Claim;

/// How many random cases a test has: its own number, or what was asked for.
#[cfg(test)]
fn cases(usual: u32) -> u32 {
    let asked = std::env::var("PROPTEST_CASES");
    asked.ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}
