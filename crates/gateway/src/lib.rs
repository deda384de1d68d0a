//! What the command line, HTTP and MCP have in common: answers as types ([`answer`]),
//! errors with stable codes ([`Error`]), strict parsing of requests ([`input`]), the
//! requests and answers of the `runtime` tool ([`tool`]), and text for models ([`text`]).
//!
//! Nothing here does I/O.

pub mod answer;
mod cursor;
mod error;
pub mod following;
pub mod input;
mod signal;
pub mod text;
pub mod tool;

pub use cursor::{Cursor, InvalidCursor};
pub use error::{Error, ErrorCode, ErrorDetail, Result};
pub use signal::{SIGNALS, UnknownSignal, signal_number};
