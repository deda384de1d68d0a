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

use super::Keeper;
use super::events::about;
use crate::processes::{self, Room};
use sessile_protocol::Language;
use sessile_session::{Input, Tick};

/// When a run, or a start, is first looked at; twice as long each time.
const LOOK_AFTER: Tick = 100;
const LOOK_AT_MOST_AFTER: Tick = 3200;

/// When kernels are looked at next.
#[derive(Clone, Copy, Debug)]
pub(super) struct Watch {
    pub(super) due: Tick,
    after: Tick,
}

impl Keeper {
    /// Something is owed from now on.
    pub(super) fn expect_words(&mut self) {
        self.silence = Some(Watch { due: self.now() + LOOK_AFTER, after: LOOK_AFTER });
    }

    pub(super) fn look_for_silence(&mut self) {
        let Some(watch) = self.silence.take() else {
            return;
        };
        let owing = self.kernels.iter().filter(|(_, live)| live.owes_words());
        let owing: Vec<Language> = owing.map(|(language, _)| *language).collect();
        if owing.is_empty() {
            return;
        }
        let mut after = (2 * watch.after).min(LOOK_AT_MOST_AFTER);
        for language in owing {
            if self.is_silent(language) {
                self.break_silence(language);
                after = LOOK_AFTER;
            }
        }
        self.silence = Some(Watch { due: self.now() + after, after });
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
