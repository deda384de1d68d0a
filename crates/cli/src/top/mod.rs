//! What the sessions of a directory are doing: looked at now and then, and shown.
//!
//! Nothing here changes a session, and no keeper is waited for longer than a
//! moment: one that does not answer is shown as that.

pub(crate) mod processes;
pub(crate) mod sample;
pub(crate) mod terminal;
pub(crate) mod view;
