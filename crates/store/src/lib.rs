//! The session directory: a public contract, readable by people and programs.
//!
//! ```text
//! .sessions/sess_…/        0700
//!   metadata.json          the session's settings       (replaced atomically)
//!   state.json             last captured kernel states  (replaced atomically)
//!   saved.json             the same at the last save of a durable session, synced to the disk
//!   kernels/               files with states of kernels
//!   saves/                 a save on its way to a store
//!   history.log            one JSON object per line
//!   network.log            connections refused by a sandbox, one JSON object per line
//!   keys.log               idempotency keys and their runs
//!   runs/7.stdout          output of run 7, up to the cap
//!   runs/7.stdout.tail     its last bytes, if it wrote more
//!   runs/7.value           its value, if too large for the history
//!   runs/7.cancelled       why it has no result
//!   runs/7.open            it was active when younger runs were dropped
//!   runs/accepted          the last number given out
//!   keeper.sock            the keeper's socket
//!                          (a keeper holds a lock on the directory as long as it lives)
//! .sessions/workspaces/    the default session of each workspace
//! .sessions/.gitignore     keeps all of it out of repositories
//! .sessions/CACHEDIR.TAG   and out of archives
//! ```
//!
//! Invariants: directories are 0700 and files 0600; a reader finds complete JSON documents
//! at any instant, whichever process was killed; nothing here starts a process; the
//! contents of these files are never trusted to be well formed.

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
pub use keys::{KeyedRun, Keys};
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
