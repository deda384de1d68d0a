//! MCP, over stdio and over HTTP: raw messages of every version, and the
//! clients that people use.

mod answers;
mod bounds;
mod branches;
mod clients;
mod http;
mod interaction;
mod long_runs;
pub(crate) mod peer;
mod pictures;
mod saving;
mod schemas;
mod server;
mod survival;
mod terminals;
mod versions;
mod watching;

use serde_json::Value;

/// The text of a tool's answer.
#[track_caller]
fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("no text in {result}"))
}

/// The exact form of a tool's answer.
fn exact(result: &Value) -> &Value {
    &result["structuredContent"]
}

/// A command that tells that it has begun, and then waits until it is let go.
fn gated(name: &str) -> String {
    format!("mkfifo {name}; echo begun; echo >{name}.begun; cat {name}; echo over")
}
