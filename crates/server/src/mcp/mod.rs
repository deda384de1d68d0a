//! MCP: the same sessions as tools for a model, over stdio and over HTTP.
//!
//! Nothing is kept for a client: sessions are named in the arguments of a call and live
//! in their keepers, so a client may vanish, and another one, or the same one later, goes
//! on. `tools` defines the tools; `runtime`, `sessions`, `terminals`, `branches`,
//! `saving` and `watching` perform the calls, `turns` orders them, `waiting` limits and
//! cancels them, and `answer` builds the replies.

mod answer;
mod branches;
mod calls;
#[cfg(test)]
mod conformance;
mod drawing;
mod handler;
mod http;
mod inspected_input;
mod interaction;
mod pictures;
mod progress;
mod runtime;
mod saving;
mod sessions;
mod stdio;
mod terminals;
mod tools;
mod turns;
mod waiting;
mod watching;
mod workspace_services;

pub use drawing::DRAWER;
pub use stdio::serve;
pub use tools::OfferedTools;
pub use workspace_services::WorkspaceServices;

pub(crate) use http::router;
