//! What a session's workspace looked like, and a session as one file.
//!
//! - [`files`]: the files of a workspace at a moment, stored once by content,
//!   and put back. A [`files::Depot`] is a directory on the local disk.
//! - [`bundle`]: one portable file of named parts, versioned, checksummed and
//!   compressed. A tree of a depot can be one of its parts.
//!
//! Both formats are described in `docs/snapshot-format.md`.
//!
//! Invariants: whatever is killed at whatever moment, a depot, a bundle and
//! each file of a workspace is as it was or as it should be, never half;
//! nothing is written outside of the directories that are named in a call,
//! whatever the names in a tree or a bundle are; what is read is checked
//! against its hash before it is used. Nothing here starts a process, prints
//! or reads the environment. All calls block: they are not for a keeper's loop.

pub mod bundle;
pub mod files;
