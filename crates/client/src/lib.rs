//! Talks to keepers, and launches them.
//!
//! Blocking and without a runtime: the command line is a process per call, and
//! its start is most of what a caller waits for.

mod confined;
mod connection;
mod create;
mod launch;
mod layer;
mod network;
mod once;
mod port;
mod restore;
mod stopped;
mod taking;
pub mod top;
mod workspace;

pub use connection::{Client, ClientError, Interruption};
pub use create::{NewSession, SavedTo};
pub use launch::Launcher;
pub use layer::{LayerRefused, SessionLayer};
pub use once::{Made, OnceTurn, StartOnce};
pub use port::{PortError, PortPlace};
pub use restore::{Bounds, Obstacle, RestoreError, RestoredSession, Restoring, Trust, about_save};
pub use stopped::{
    Doubt, KeeperStopped, LOOK, NoAnswer, PROBE, Patience, probe, process as process_at,
};
pub use taking::{AgentFiles, AgentKept, FETCHER, Fetch, Fetched, GoingOn, StoredThread, TakenUp};
pub use workspace::{NoView, Workspace};
