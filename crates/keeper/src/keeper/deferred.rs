//! Runs whose order cannot be delivered yet to a kernel in a sandbox.
//!
//! Such a kernel gets its orders through a private pipe, which it can only be given while
//! it waits for an order (`privacy.rs`). It waits a moment after its report, unless the
//! user's code runs in between, such as a shell's `PROMPT_COMMAND`. The run is then tried
//! again, with pauses in which the keeper does other work. So is one for whose processes
//! there is no room (`room.rs`).

use super::{Deadline, Keeper};
use crate::privacy::PATIENCE;
use sessile_protocol::{Language, RunNo};
use sessile_session::{Epoch, Input, Tick};
use std::io;

/// Limits of the pause between two attempts, which is as long as the attempts so far.
const SHORTEST: Tick = 2;
const LONGEST: Tick = 50;

/// Exit code of a run that was ended by an interrupt, as in shells.
const INTERRUPTED: i32 = 128 + libc::SIGINT;

/// A run that has not begun although it is its turn.
#[derive(Clone, Copy, Debug)]
pub(super) struct Deferred {
    pub(super) run: RunNo,
    since: Tick,
    due: Tick,
}

impl Deferred {
    /// Returns since when it could have begun.
    pub(super) fn since(self) -> Tick {
        self.since
    }
}

impl Keeper {
    /// Postpones a run whose kernel is not ready for the order.
    pub(super) fn defer(&mut self, language: Language, run: RunNo) {
        let now = self.now();
        let Some(live) = self.kernels.live.get_mut(&language) else { return };
        let before = live.deferred.filter(|deferred| deferred.run == run);
        let since = before.map_or(now, |deferred| deferred.since);
        let patience = Tick::try_from(PATIENCE.as_millis()).unwrap_or(Tick::MAX);
        if now.saturating_sub(since) >= patience {
            live.deferred = None;
            return self.abandon_unsent(language, run, &io::ErrorKind::TimedOut.into());
        }
        let due = now + (now - since).clamp(SHORTEST, LONGEST);
        live.deferred = Some(Deferred { run, since, due });
        self.deadlines.set_earlier(Deadline::Deferred, due);
        if before.is_none()
            && let Some(run) = self.runs.get_mut(&run)
        {
            run.last_sign = now;
        }
    }

    /// Tries the runs that are due.
    pub(super) fn begin_deferred(&mut self) {
        let now = self.now();
        let waiting: Vec<(Language, Epoch, Deferred)> = self
            .kernels
            .live
            .iter()
            .filter_map(|(language, live)| Some((*language, live.epoch, live.deferred?)))
            .collect();
        for (language, epoch, deferred) in waiting {
            if deferred.due <= now {
                self.begin(language, epoch, deferred.run);
            } else {
                self.deadlines.set_earlier(Deadline::Deferred, deferred.due);
            }
        }
        self.process_agenda();
    }

    /// Takes back the deferred run of a kernel that is gone.
    pub(super) fn take_back_deferred(&mut self, language: Language) {
        let deferred = self.kernels.live.get(&language).and_then(|live| live.deferred);
        if let Some(Deferred { run, .. }) = deferred {
            self.take_back(language, run);
        }
    }

    /// Ends a run that is pressed to end before it has begun. Returns true if there was
    /// one.
    pub(super) fn end_deferred(&mut self, language: Language, epoch: Epoch) -> bool {
        let live = self.kernels.live.get_mut(&language);
        let Some(Deferred { run: number, .. }) = live.and_then(|live| live.deferred.take()) else {
            return false;
        };
        if let Some(run) = self.runs.get_mut(&number) {
            run.begin();
            run.notes.push(format!(
                "the run was not begun: {language} was still at something that comes after each \
                 run (`PROMPT_COMMAND`, say), which was interrupted"
            ));
        }
        self.agenda.note(Input::Reported { language, epoch, run: number, exit_code: INTERRUPTED });
        true
    }
}
