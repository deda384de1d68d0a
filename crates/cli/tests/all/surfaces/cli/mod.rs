//! The command line, in a pipe and at a terminal.

mod attach;
mod commands;
mod progress;
mod top;
mod usage;
