//! Captured states: requests for them, and writing them to the session's directory.

use super::{Keeper, environment};
use crate::turns::Turn;
use sessile_protocol::{Language, RunNo};
use sessile_session::{Epoch, Input, Urgency};
use sessile_store::{SavedKernel, timestamp};

impl Keeper {
    /// Makes a kernel write down its state. In idle time, only if not too many others do
    /// so; the session tries again.
    pub(super) fn capture(
        &mut self,
        language: Language,
        epoch: Epoch,
        as_of: RunNo,
        urgency: Urgency,
    ) {
        let turn = match urgency {
            Urgency::Idle => Some(Turn::take()),
            Urgency::Overdue | Urgency::Now => None,
        };
        let newest = self.newest_beside();
        // At the limit of processes there is none for a capture: the shell would try again for
        // seconds, and beside a bomb the keeper would wait for it to get its private pipes. An
        // overdue one is not refused: it would be due again at once.
        let lacks_room = urgency == Urgency::Idle && self.lacks_room(language, newest);
        if lacks_room || matches!(turn, Some(None)) {
            let nanos = u64::from(self.home.clock.elapsed().subsec_nanos());
            let chance = nanos / 1000 + u64::from(std::process::id());
            return self.step(Input::CaptureRefused { language, epoch, chance });
        }
        // Failures are ignored here: both are tried again, and reported, before the next
        // run.
        let _ = self.renew_directory(language, None);
        let _ = self.keep_private(language, newest);
        let Some(live) = self.kernels.live.get_mut(&language) else {
            return;
        };
        // A capture in progress may be asked for again: its fork is older than that.
        if !live.kernel.is_capturing() {
            live.capture_floor = self.kernels.origins.newest();
        }
        if live.kernel.capture(as_of).is_ok() {
            live.turn = turn.flatten();
        } else {
            self.step(Input::CaptureOver { language, epoch });
        }
    }

    /// Handles the end of a capture. Clients that asked for the state want the newest
    /// one.
    pub(super) fn captures_done(&mut self, language: Language) {
        if let Some(live) = self.kernels.live.get_mut(&language) {
            if live.kernel.is_capturing() {
                return;
            }
            live.turn = None;
            let epoch = live.epoch;
            self.step(Input::CaptureOver { language, epoch });
        }
        self.answer_inspectors(language);
        self.has_described(language);
    }

    /// Writes a captured state to disk. Returns true if the kernel can be restored from
    /// it.
    pub(super) fn save(&mut self, language: Language, mut saved: SavedKernel) -> bool {
        environment::keep_changes(&self.home.env, &mut saved);
        let mut state = self.home.directory.state().unwrap_or_default();
        // Two captures may be in progress, and the older one may finish last.
        if state.kernels.get(&language).is_some_and(|newer| newer.as_of_run > saved.as_of_run) {
            self.has_captured_aside(&saved, language);
            return false;
        }
        if let Some(before) = state.kernels.get(&language)
            && saved.comes_back_as_of().is_none()
        {
            // An older dump is better than none.
            saved.dump.clone_from(&before.dump);
            saved.dump_as_of_run =
                before.dump.as_ref().map(|_| before.dump_as_of_run.unwrap_or(before.as_of_run));
        }
        let can_restore = saved.comes_back_as_of() == Some(saved.as_of_run);
        state.captured_at = timestamp();
        let as_of = saved.as_of_run;
        if let Some(before) = state.kernels.insert(language, saved) {
            self.take_out_of_file(language, &before);
        }
        let is_written = self.home.directory.write_state(&state).is_ok();
        self.operations.images.aside.remove(&language);
        if is_written {
            self.has_captured(language, as_of);
        } else if let Some(saved) = state.kernels.get(&language) {
            self.has_captured_aside(saved, language);
        }
        is_written && can_restore
    }

    /// Removes the state in a file of a kernel that starts without it: it is of no use
    /// any more.
    pub(super) fn forget_dump(&mut self, language: Language) {
        let Some(mut state) = self.home.directory.state() else {
            return;
        };
        let saved = state.kernels.get_mut(&language).filter(|saved| saved.dump.is_some());
        if let Some(saved) = saved {
            (saved.dump, saved.dump_as_of_run) = (None, None);
            if self.home.directory.write_state(&state).is_ok() {
                self.home.directory.sweep_kernels();
            }
        }
    }

    /// Removes the variables that only the run had from the state that its kernel left at
    /// its end.
    pub(super) fn without_environment_of(&self, run: RunNo, mut saved: SavedKernel) -> SavedKernel {
        if let Some(run) = self.runs.get(&run).filter(|run| !run.order.env.is_empty()) {
            let before = self.home.directory.state();
            let before = before.and_then(|mut state| state.kernels.remove(&run.language));
            let names = run.order.env.keys().map(String::as_str);
            environment::take_out(&self.home.env, before.as_ref(), names, &mut saved);
        }
        saved
    }
}
