//! Shells that wait for orders and still owe a report.
//!
//! A function of the user's in the place of `builtin`, say, swallows the line
//! that reports the end of a run: the shell is free again, and nobody is told.
//! So a run that takes longer than a moment is looked at now and then, and a
//! shell that has read all its orders and waits for more is asked again, in
//! other words. When that does not help either, its process is given up.
//!
//! It must never mistake a run that really runs: a shell that reads, waits or
//! has a program in its foreground does not read its *orders*.

use super::live::{Kernels, Live};
use super::reports::about;
use crate::processes::{self, Room};
use sessile_protocol::Language;
use sessile_session::Tick;

/// When a run, or a start, is first looked at; twice as long each time.
const LOOK_AFTER: Tick = 100;
const LOOK_AT_MOST_AFTER: Tick = 3200;

/// What is done about a kernel that has nothing to do and has not said so.
#[derive(Debug)]
pub(super) enum Remedy {
    /// It was asked again, in other words; perhaps with a note.
    Asked(Option<String>),
    /// Its process is given up, and why.
    GiveUp(String),
}

impl Kernels {
    /// The pause before the first look.
    pub(super) fn first_look(&mut self) -> Tick {
        self.silence_pause = LOOK_AFTER;
        LOOK_AFTER
    }

    /// The pause before the next look, after one that found somebody silent or
    /// did not.
    pub(super) fn next_look(&mut self, was_silent: bool) -> Tick {
        let longer = (2 * self.silence_pause).min(LOOK_AT_MOST_AFTER);
        self.silence_pause = if was_silent { LOOK_AFTER } else { longer };
        self.silence_pause
    }
}

impl Live {
    pub(super) fn handle_silence(&mut self, language: Language) -> Remedy {
        let room = processes::make_room(self.pid, self.kernel.room());
        if let Room::Lacking(_) = room {
            return Remedy::GiveUp(about(room, language).unwrap_or_default());
        }
        if !std::mem::replace(&mut self.was_prompted, true) && self.kernel.prompt().is_ok() {
            // Not before: what it is asked for is in its last command.
            if let Room::Raised { to, .. } = room {
                let _ = self.kernel.got_room(to);
            }
            return Remedy::Asked(about(room, language));
        }
        Remedy::GiveUp(format!(
            "{language} had done with the run and could not report it, so that its process was \
             ended: something of the user's has likely taken the place of a builtin (`builtin`, \
             `command`, `echo`, ...)"
        ))
    }
}
