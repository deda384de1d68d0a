//! Talks to keepers, and launches them.
//!
//! Blocking and without a runtime: the command line is a process per call, and
//! its start is most of what a caller waits for.

mod connection;
mod create;
mod launch;
mod restore;
mod stopped;
mod taking;
pub mod top;

pub use connection::{Client, ClientError, Interruption};
pub use create::{NewSession, SavedTo};
pub use launch::Launcher;
pub use restore::{Bounds, Obstacle, RestoreError, RestoredSession, Restoring, Trust, about_save};
pub use stopped::{KeeperStopped, LOOK, Patience};
pub use taking::{FETCHER, Fetch, Fetched, GoingOn, TakenUp};
