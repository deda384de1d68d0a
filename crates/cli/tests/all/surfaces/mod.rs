//! The ways to use a session: each passes on what it is asked, and what comes back.

mod cli;
mod http;
pub(crate) mod mcp;
mod tool;
