//! Output for people: pure functions from data to text of a given width.
//!
//! It is used if stdout is a terminal; otherwise JSON is printed. Only this file looks at
//! the terminal and the environment.

pub(crate) mod agents;
pub(crate) mod checkpoints;
pub(crate) mod files;
pub(crate) mod jobs;
pub(crate) mod outcome;
pub(crate) mod runs;
pub(crate) mod sessions;
pub(crate) mod state;
mod table;
pub(crate) mod words;

use crate::output;
use rustix::termios::tcgetwinsize;
use serde::Serialize;
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;

/// The target of text for people.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Page {
    pub(crate) width: usize,
    pub(crate) paint: Paint,
}

/// The form of a command's output.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Form {
    Json,
    Text(Page),
}

impl Form {
    /// Returns JSON if requested, or if stdout is not a terminal.
    pub(crate) fn of_stdout(is_json: bool) -> Self {
        let stdout = io::stdout();
        if is_json || !stdout.is_terminal() { Self::Json } else { Self::Text(Page::at(&stdout)) }
    }

    /// Prints one of the two.
    pub(crate) fn print<J: Serialize>(
        self,
        json: impl FnOnce() -> J,
        text: impl FnOnce(Page) -> String,
    ) -> anyhow::Result<()> {
        match self {
            Self::Json => output::json(&json()),
            Self::Text(page) => output::all(&mut io::stdout().lock(), text(page).as_bytes()),
        }
    }
}

impl Page {
    pub(crate) fn at(terminal: &(impl AsFd + IsTerminal)) -> Self {
        // One that does not tell its width gets whole lines: wrapped is better
        // than lost.
        let width = tcgetwinsize(terminal).map_or(0, |size| usize::from(size.ws_col));
        Self { width: if width == 0 { usize::MAX } else { width }, paint: Paint::at(terminal) }
    }
}

/// Whether text is coloured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Paint {
    Plain,
    Colours,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Colour {
    Bold,
    Dim,
    Red,
    Green,
    Yellow,
    Cyan,
}

impl Paint {
    /// Returns colours for a terminal, unless NO_COLOR is set or it is a dumb one.
    pub(crate) fn at(stream: &impl IsTerminal) -> Self {
        let is_unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        if stream.is_terminal() && !is_unwanted && !is_dumb { Self::Colours } else { Self::Plain }
    }

    pub(crate) fn text(self, colour: Colour, text: &str) -> String {
        let code = match colour {
            Colour::Bold => 1,
            Colour::Dim => 2,
            Colour::Red => 31,
            Colour::Green => 32,
            Colour::Yellow => 33,
            Colour::Cyan => 36,
        };
        match self {
            Self::Plain => text.to_owned(),
            Self::Colours => format!("\x1b[{code}m{text}\x1b[0m"),
        }
    }
}
