//! Failures whose cause depends on what was being done.

use sessile_protocol::{Code, Failure, Shortage};
use std::error::Error;
use std::fmt::Display;
use std::io;

/// Returns the failure of work with a kernel's files, which are in memory.
pub(crate) fn of_scratch(code: Code, what: impl Display, error: &(dyn Error + 'static)) -> Failure {
    let shortage = Shortage::behind(error).map(Shortage::in_scratch);
    Failure::because(code, what, error).with_shortage(shortage)
}

/// Returns the failure to start a process.
pub(crate) fn of_start(code: Code, what: impl Display, error: &io::Error) -> Failure {
    Failure::because(code, what, error).with_shortage(Shortage::of_start(error))
}

/// An error for a note, with what to do.
pub(crate) fn describe(error: &io::Error, place: impl Fn(Shortage) -> Shortage) -> String {
    match Shortage::of(error).map(place) {
        Some(shortage) => format!("{error}; {}", shortage.advice()),
        None => error.to_string(),
    }
}
