//! What every surface says alike, be it the command line, HTTP or MCP: answers
//! as JSON, the `runtime` tool's words, and text that is made for a model.
//!
//! Nothing here does I/O.

pub mod answer;
mod cursor;
mod error;
pub mod following;
mod signal;
pub mod text;
pub mod tool;

pub use cursor::{Cursor, InvalidCursor};
pub use error::{Error, ErrorCode, ErrorDetail, Result};
pub use signal::{UnknownSignal, signal_number};
