//! The terminal's answers to queries of a program.
//!
//! Invariant: an unknown query is not answered at all; programs query the device attributes
//! last, and continue when those come.

use super::sequences::Terminator;
use crate::palette::{self, Rgb};

/// Limit for a program that only queries and never reads, and would fill its own input
/// without end. It is more than any program queries between two reads.
const MOST: usize = 16 * 1024;

#[derive(Debug, Default)]
pub(super) struct Replies {
    bytes: Vec<u8>,
}

/// The facts that answers depend on. Counted from one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facts {
    pub(super) row: usize,
    pub(super) col: usize,
    pub(super) rows: u16,
    pub(super) cols: u16,
}

impl Replies {
    pub(super) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }

    fn say(&mut self, reply: &str) {
        if self.bytes.len() + reply.len() <= MOST {
            self.bytes.extend_from_slice(reply.as_bytes());
        }
    }

    /// A VT220 with colours: it claims nothing that we cannot do.
    pub(super) fn device_attributes(&mut self) {
        self.say("\x1b[?62;22c");
    }

    /// Answers `ESC [ params last`, if it is a query.
    pub(super) fn csi(&mut self, params: &str, last: char, facts: impl FnOnce() -> Facts) {
        match (params, last) {
            ("" | "0", 'c') => self.device_attributes(),
            (">" | ">0", 'c') => self.say("\x1b[>1;10;0c"),
            (">" | ">0", 'q') => {
                self.say(concat!("\x1bP>|sessile(", env!("CARGO_PKG_VERSION"), ")\x1b\\"));
            }
            ("5", 'n') => self.say("\x1b[0n"),
            ("6", 'n') => {
                let Facts { row, col, .. } = facts();
                self.say(&format!("\x1b[{row};{col}R"));
            }
            ("?6", 'n') => {
                let Facts { row, col, .. } = facts();
                self.say(&format!("\x1b[?{row};{col}R"));
            }
            // No printer.
            ("?15", 'n') => self.say("\x1b[?13n"),
            // A window, not an icon.
            ("11", 't') => self.say("\x1b[1t"),
            ("18", 't') => {
                let Facts { rows, cols, .. } = facts();
                self.say(&format!("\x1b[8;{rows};{cols}t"));
            }
            ("19", 't') => {
                let Facts { rows, cols, .. } = facts();
                self.say(&format!("\x1b[9;{rows};{cols}t"));
            }
            _ => {}
        }
    }

    /// Answers DECRQM. None: an unknown mode.
    pub(super) fn mode(&mut self, prefix: &str, mode: u16, state: Option<bool>) {
        let state = match state {
            None => 0,
            Some(true) => 1,
            Some(false) => 2,
        };
        self.say(&format!("\x1b[{prefix}{mode};{state}$y"));
    }

    /// Answers queries about colours.
    pub(super) fn osc(&mut self, text: &str, end: Terminator) {
        let mut words = text.split(';');
        match words.next() {
            Some("4") => {
                while let (Some(index), Some(what)) = (words.next(), words.next()) {
                    if let (Ok(number), "?") = (index.parse::<u8>(), what) {
                        self.color(&format!("4;{number}"), palette::indexed(number), end);
                    }
                }
            }
            // Further words query the colours with the next numbers.
            Some(first @ ("10" | "11" | "12")) => {
                let first: u8 = first.parse().unwrap_or(10);
                for (number, _) in (first..=12).zip(words).filter(|(_, what)| *what == "?") {
                    let color =
                        if number == 11 { palette::BACKGROUND } else { palette::FOREGROUND };
                    self.color(&number.to_string(), color, end);
                }
            }
            _ => {}
        }
    }

    fn color(&mut self, what: &str, Rgb(r, g, b): Rgb, end: Terminator) {
        let end = match end {
            Terminator::Bell => "\x07",
            Terminator::StringTerminator => "\x1b\\",
        };
        // Two bytes for each component, as xterm writes them.
        self.say(&format!("\x1b]{what};rgb:{r:02x}{r:02x}/{g:02x}{g:02x}/{b:02x}{b:02x}{end}"));
    }
}
