//! The files of a workspace at a moment, stored once by content.
//!
//! ```text
//! depot/            0700
//!   format          "sessile depot 1"
//!   lock            held shared by users of the depot, exclusively by a sweep
//!   generation      changes with each sweep that may have removed something
//!   blobs/ab/cd…    contents of files, named by their hash
//!   trees/ab/cd…    directories, named by the hash of their listing
//!   index/…         what the last snapshot of a workspace saw, to read less
//!   tmp/            being written
//! ```
//!
//! A directory's listing names its children by hash, as git's trees do: unchanged content
//! is not stored again. Long listings are split into pages, so that this also holds for a
//! directory of many thousand files.

mod carry;
mod copy;
mod depot;
mod diff;
mod digest;
mod error;
mod ignores;
mod index;
mod listing;
mod place;
mod restore;
mod rules;
mod snapshot;
mod stream;
mod sweep;

pub use carry::{Exported, Imported};
pub use copy::{Copied, copy};
pub use depot::{Depot, Hold};
pub use diff::{Change, ChangedProperty, Difference, Rename};
pub use digest::{InvalidId, TreeId};
pub use error::Error;
pub use restore::{Failure, Restored};
pub use rules::{
    IgnoreFiles, LeftOut, Limits, Omission, OverLimit, Reason, Rules, SetIds, Special, TreeSize,
};
pub use snapshot::{Report, Snapshot};
pub use sweep::{Sweep, Swept};
