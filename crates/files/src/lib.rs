//! Access to the files of one directory and nothing outside of it: read, write, list, move,
//! remove, pack and unpack as a tar, and watch.
//!
//! Names come from the network, and the contents of the directory from untrusted code. So
//! the system resolves every path beneath the directory (`openat2`): no `..`, link, rename
//! or race leads out, and all operations use descriptors and single names. A file is
//! written under a temporary name and put in its place as a whole. Memory use does not grow
//! with a file or a tree. The functions block, and know nothing about sessions.

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
pub use path::RelativePath;
pub use reading::Content;
pub use root::Root;
pub use watching::{Change, ChangeKind, Watcher};
pub use writing::{Draft, Replace, Writing, Written};

/// The result of every function here.
pub type Result<T, E = FileError> = std::result::Result<T, E>;
