//! The live view of what sessions do.

pub(crate) mod terminal;
pub(crate) mod view;
