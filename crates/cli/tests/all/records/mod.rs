//! The files of a session, as others read them.

mod directory;
mod runs;
