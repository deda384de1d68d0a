//! What every surface says alike, be it the command line, HTTP or MCP: answers
//! as JSON, the `runtime` tool's words, and text that is made for a model.
//!
//! Nothing here does I/O.

mod branch;
mod cursor;
mod encoding;
pub mod following;
mod jobs;
mod render;
mod runs;
mod saved;
mod screen;
mod signal;
pub mod state;
pub mod text;
pub mod tool;

pub use branch::{checkpoint, forked, lefts, rewound};
pub use cursor::{Cursor, InvalidCursor};
pub use encoding::{Encoded, encode, text, whole_end};
pub use jobs::{cpu_percent, jobs};
pub use render::{completed, milliseconds, revival, running, so_far, started};
pub use runs::{output, runs};
pub use saved::{restored, saved};
pub use screen::{Awaited, screen};
pub use signal::{UnknownSignal, signal_number};
