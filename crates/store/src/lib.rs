//! The session directory: a public contract, readable by people and programs.
//!
//! ```text
//! .sessions/sess_…/        0700
//!   metadata.json          what the session is          (replaced atomically)
//!   state.json             last captured kernel states  (replaced atomically)
//!   saved.json             the same at the last save of a durable session, synced to the disk
//!   kernels/               files with states of kernels
//!   saves/                 a save on its way to a store
//!   history.log            one JSON object a line
//!   network.log            who was not let out of a sandbox, one JSON object a line
//!   keys.log               which run an order's key stands for
//!   runs/7.stdout          what run 7 wrote, up to the cap
//!   runs/7.stdout.tail     the last bytes of it, when it wrote more
//!   runs/7.value           its value, when that is too large for the history
//!   runs/7.cancelled       why it has no result
//!   runs/7.open            it was going when younger ones were dropped
//!   runs/accepted          how far the numbers have got
//!   keeper.sock            where the keeper listens
//!                          (a keeper holds a lock on the directory as long as it lives)
//! .sessions/workspaces/    which session is a workspace's own
//! .sessions/.gitignore     keeps all of it out of repositories
//! .sessions/CACHEDIR.TAG   and out of archives
//! ```
//!
//! Invariants: directories are 0700 and files 0600; a reader that looks at any
//! instant, whatever was killed, finds whole JSON documents; nothing here
//! starts a process, and what is read from these files is never trusted to be
//! well formed.

mod accepted;
mod atomic;
mod caller;
mod directory;
mod fingerprint;
mod history;
mod keys;
mod local;
mod manifest;
mod metadata;
mod output;
mod recorded;
mod refusals;
mod secret;
mod starting;
mod user_state;
mod workspaces;

pub use accepted::Accepted;
pub use directory::{
    Directory, LAST, Liveness, Lock, Scope, Sessions, StoreError, check_name, choose,
    new_session_id,
};
pub use fingerprint::Fingerprint;
pub use history::{Entry, History};
pub use keys::{Keyed, Keys};
pub use local::LocalPlace;
pub use manifest::{BundledKernel, FORMAT, Manifest, part};
pub use metadata::{
    Durable, DurableStore, ForkedFrom, Metadata, SaveState, SavedKernel, SavedState, SessionStatus,
    timestamp, timestamp_before, timestamp_of,
};
pub use output::{Spool, StreamName};
pub use recorded::{Absence, Remarks};
pub use refusals::RefusalEntry;
pub use starting::StartTurn;
pub use user_state::UserState;
pub use workspaces::Claim;
