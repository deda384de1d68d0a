//! The live view of sessions' activity.

pub(crate) mod terminal;
pub(crate) mod view;
