//! Client of keepers: talks to them and launches them.
//!
//! It blocks and has no async runtime: the command line is one process per call, and a
//! caller mostly waits for the start of that process.

mod confined;
mod connection;
mod create;
mod ended;
mod launch;
mod layer;
mod network;
mod once;
mod port;
mod restore;
mod stopped;
mod takeover;
pub mod top;
mod workspace;

pub use connection::{Client, ClientError, Interruption};
pub use create::{NewSession, SavedTo};
pub use ended::{EndedSession, Next};
pub use launch::Launcher;
pub use layer::{COPIER, LayerRefused, SessionLayer, copy_layer_as_owner};
pub use once::{CreatedOnce, OnceClaim, StartOnce};
pub use port::{OpenPort, PortError};
pub use restore::{
    Bounds, Obstacle, RestoreError, RestoreOptions, RestoredSession, Trust, about_save,
};
pub use stopped::{
    KeeperStopped, LOOK, NoAnswer, PROBE, SilenceAction, SilenceTimer, probe, process as process_at,
};
pub use takeover::{
    AgentFiles, AgentStored, ContinueOptions, ContinuedSession, FETCHER, Fetch, Fetched,
    StoredThread,
};
pub use workspace::{NoView, Workspace};
