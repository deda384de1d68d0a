//! Shells that wait for orders and still owe a report.
//!
//! For example, a user's function named `builtin` swallows the line that reports the end
//! of a run: the shell is free again, but the keeper does not know. So a run that takes
//! longer than a moment is checked now and then, and a shell that has read all its orders
//! and waits for more is asked again, with other commands. If that does not help either,
//! its process is given up.
//!
//! A run in progress must never be mistaken for silence: a shell that reads, waits or has
//! a program in its foreground does not read its *orders*.

use super::live::{Kernels, Live};
use super::reports::about;
use crate::processes::Room;
use sessile_protocol::Language;
use sessile_session::Tick;

/// Pause before the first check of a run or a start; doubled each time.
const LOOK_AFTER: Tick = 100;
const LOOK_AT_MOST_AFTER: Tick = 3200;

/// What to do about a kernel that is idle and has not reported so.
#[derive(Debug)]
pub(super) enum Remedy {
    /// It was asked again with other commands; perhaps with a note.
    Asked(Option<String>),
    /// Its process is given up, for this reason.
    GiveUp(String),
}

impl Kernels {
    /// Returns the pause before the first check.
    pub(super) fn first_look(&mut self) -> Tick {
        self.silence_pause = LOOK_AFTER;
        LOOK_AFTER
    }

    /// Returns the pause before the next check. It is short again after a check that
    /// found a silent kernel.
    pub(super) fn next_look(&mut self, was_silent: bool) -> Tick {
        let longer = (2 * self.silence_pause).min(LOOK_AT_MOST_AFTER);
        self.silence_pause = if was_silent { LOOK_AFTER } else { longer };
        self.silence_pause
    }
}

impl Live {
    pub(super) fn handle_silence(&mut self, language: Language) -> Remedy {
        let room = self.make_room();
        if let Room::Lacking(_) = room {
            return Remedy::GiveUp(about(room, language).unwrap_or_default());
        }
        if !std::mem::replace(&mut self.was_prompted, true) && self.kernel.prompt().is_ok() {
            // Not before the prompt, which asks for the last word of the shell's last command:
            // this order would replace that command.
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
