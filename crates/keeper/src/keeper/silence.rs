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

use super::events::about;
use super::{Deadline, Keeper};
use crate::processes::{self, Room};
use sessile_protocol::Language;
use sessile_session::{Input, Tick};

/// When a run, or a start, is first looked at; twice as long each time.
const LOOK_AFTER: Tick = 100;
const LOOK_AT_MOST_AFTER: Tick = 3200;

impl Keeper {
    /// Something is owed from now on.
    pub(super) fn expect_words(&mut self) {
        self.look_after(LOOK_AFTER);
    }

    fn look_after(&mut self, pause: Tick) {
        self.silence_pause = pause;
        self.deadlines.set(Deadline::Silence, self.now() + pause);
    }

    pub(super) fn look_for_silence(&mut self) {
        let owing = self.kernels.iter().filter(|(_, live)| live.owes_words());
        let owing: Vec<Language> = owing.map(|(language, _)| *language).collect();
        if owing.is_empty() {
            return;
        }
        let mut after = (2 * self.silence_pause).min(LOOK_AT_MOST_AFTER);
        for language in owing {
            if self.is_silent(language) {
                self.break_silence(language);
                after = LOOK_AFTER;
            }
        }
        self.look_after(after);
    }

    /// Whether a kernel has nothing more to do, and has not said so.
    fn is_silent(&mut self, language: Language) -> bool {
        let Some(live) = self.kernels.get(&language) else {
            return false;
        };
        let (epoch, run) = (live.epoch, live.current);
        if !live.kernel.awaits_orders(live.pid) {
            return false;
        }
        // What it has said before it came to wait may only now be heard.
        while self.hear(language) {}
        let live = self.kernels.get(&language);
        live.is_some_and(|live| live.epoch == epoch && live.current == run && live.owes_words())
    }

    fn break_silence(&mut self, language: Language) {
        let Some(live) = self.kernels.get_mut(&language) else {
            return;
        };
        let (epoch, run) = (live.epoch, live.current);
        let room = processes::make_room(live.pid, live.kernel.room());
        if let Room::Lacking(_) = room {
            self.tell(language, run, about(room, language).unwrap_or_default());
            return self.step(Input::Stuck { language, epoch });
        }
        if !std::mem::replace(&mut live.was_prompted, true) && live.kernel.prompt().is_ok() {
            // Not before: what it is asked for is in its last command.
            if let Room::Raised { to, .. } = room {
                let _ = live.kernel.got_room(to);
            }
            if let Some(note) = about(room, language) {
                self.tell(language, run, note);
            }
            return;
        }
        let note = format!(
            "{language} had done with the run and could not report it, so that its process was \
             ended: something of the user's has likely taken the place of a builtin (`builtin`, \
             `command`, `echo`, ...)"
        );
        self.tell(language, run, note);
        self.step(Input::Stuck { language, epoch });
    }
}
