//! Depots and workspaces, on real directories.

mod copying;
mod depots;
mod failures;
mod hostile;
mod ignoring;
mod kills;
mod model;
mod restoring;
mod snapshots;
mod workspace;
