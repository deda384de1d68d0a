//! A terminal without a screen: what programs draw on it, the keys that they
//! expect, pictures of it, and waiting for what it shows.
//!
//! Invariants: nothing here does I/O, reads a clock or starts a process.
//! Whatever a program prints, nothing panics and memory is bounded.

mod emulator;
mod keys;
mod palette;
pub mod render;
pub mod watch;
mod width;

pub use emulator::{Emulator, Fed, HISTORY_LINES, Modes};
pub use keys::{KeyError, encode, named, paste};
