//! Snapshots of a session's workspace, and a session as one file.
//!
//! - [`files`]: the files of a workspace at a moment, stored once by content, and restored.
//!   A [`files::Depot`] is a directory on the local disk.
//! - [`bundle`]: one portable file of named parts, versioned, checksummed and compressed. A
//!   tree of a depot can be one of its parts.
//!
//! Both formats are described in `docs/snapshot-format.md`.
//!
//! Invariants: whichever process is killed at any moment, a depot, a bundle and each file
//! of a workspace is in its old or its new state, never half; nothing is written outside of
//! the directories that are named in a call, whatever the names in a tree or a bundle are;
//! data is checked against its hash before it is used. Nothing here starts a process,
//! prints or reads the environment. All calls block: they are not for a keeper's loop.

pub mod bundle;
pub mod files;
