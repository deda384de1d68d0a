//! The files of one directory and nothing outside of it: read, written, listed,
//! moved, removed, as a tar both ways, and watched.
//!
//! Names come from the network, and what lies in the directory from code that
//! nobody trusts. So every path is resolved by the system beneath the directory
//! (`openat2`): no `..`, link, rename or race leads out, and what is then done is
//! done to descriptors and single names. A file is written aside and put in its
//! place as a whole. Nothing is held in memory that grows with a file or a tree.
//! Blocking; knows nothing of sessions.

mod archive;
mod entry;
mod error;
mod listing;
mod path;
mod reading;
mod removing;
mod root;
mod watching;
mod writing;

pub use archive::{Skipped, Unpacked};
pub use entry::{Entry, Kind};
pub use error::FileError;
pub use path::Inside;
pub use reading::Content;
pub use root::Root;
pub use watching::{Change, ChangeKind, Watcher};
pub use writing::{Draft, Replace, Writing, Written};

/// What every call here gives.
pub type Result<T, E = FileError> = std::result::Result<T, E>;
