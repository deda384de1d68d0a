//! A terminal without a display: the screen that programs draw, the keys that they expect,
//! pictures of the screen, and waiting for its contents.
//!
//! Invariants: nothing here does I/O, reads a clock or starts a process. Whatever a program
//! prints, nothing panics and memory is bounded.

mod emulator;
mod keys;
mod palette;
pub mod render;
pub mod watch;
mod width;

pub use emulator::{Emulator, FeedResult, HISTORY_LINES, Modes};
pub use keys::{KeyError, encode, named, paste};
