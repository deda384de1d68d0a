//! The command line, in a pipe and at a terminal.

mod attach;
mod commands;
mod completion;
mod delta;
mod files;
mod names;
mod people;
mod progress;
mod stopped;
mod top;
mod usage;
