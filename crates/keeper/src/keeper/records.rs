//! What goes to the session directory, and when.
//!
//! A run's line in the history is appended before its client is answered, so
//! that no run vanishes of which somebody has been told. What it wrote and the
//! metadata follow in the next pause between runs, once a second where there is
//! none, or before the answer where the client wants to look at the files or the
//! order has a key: replacing a file costs more than a small run. Captured states
//! are written as they come.

use super::Keeper;
use crate::runs::Run;
use crate::turns::Turn;
use sessile_protocol::{Code, Failure, Language, RunNo};
use sessile_session::{Epoch, Input, Urgency};
use sessile_store::{Entry, History, SavedKernel, timestamp};
use std::collections::{BTreeSet, VecDeque};
use std::io;

/// Larger values and notes have a file of their own, and the history stays
/// quick to read.
const REMARKS_LIMIT: usize = 2 << 10;

/// Runs that may wait to be written to disk, and what they may have printed.
const UNSETTLED: usize = 2000;
const UNSETTLED_BYTES: u64 = 1 << 20;

/// Runs whose output stays in memory because the disk refuses it.
const REFUSED: usize = 16;

/// Finished runs whose output is still only in memory.
#[derive(Debug, Default)]
pub(super) struct Unsettled {
    runs: Vec<RunNo>,
    bytes: u64,
}

impl Keeper {
    pub(super) fn write_metadata(&self) -> Result<(), Failure> {
        self.directory
            .write_metadata(&self.metadata)
            .map_err(|error| Failure::new(Code::Storage, error.to_string()))
    }

    /// Writes a finished run's line in the history.
    pub(super) fn record(&mut self, number: RunNo) {
        let Some(run) = self.runs.get_mut(&number) else {
            return;
        };
        let Some(mut entry) = run.entry(number) else {
            return;
        };
        if entry.remarks.size() > REMARKS_LIMIT {
            let remarks = std::mem::take(&mut entry.remarks);
            entry.has_value_file = self.directory.write_remarks(number, &remarks).is_ok();
        }
        self.metadata.execution_count += 1;
        self.metadata.last_executed_at = Some(entry.timestamp.clone());
        self.unrecorded.push_back(entry);
        if let Err(error) = write_entries(&mut self.history, &mut self.unrecorded) {
            run.notes.push(format!("the run is not in the session's history yet: {error}"));
        }
        // Nobody needs them any more, and there may be many such runs.
        run.order.text = Vec::new();
        run.order.stdin = None;
        if run.order.key.is_some() {
            // Its order may be repeated, and the answer has to be the same,
            // whatever dies in between.
            run.settle();
        }
    }

    /// Drops the oldest runs from the history, and their output with them; these
    /// are the ones.
    fn drop_oldest(&mut self) -> BTreeSet<RunNo> {
        let max = self.boot.max_history.max(1);
        let surplus = BTreeSet::from_iter(self.history.surplus(max));
        let Some(newest) = surplus.last().copied() else {
            return surplus;
        };
        // First what tells a dropped run from a lost one.
        for (number, _) in self.runs.range(..=newest).filter(|(_, run)| run.finished().is_none()) {
            let _ = self.directory.mark_open(*number);
        }
        if let Some(accepted) = &mut self.accepted {
            let _ = accepted.forget_through(newest);
        }
        if self.history.trim(max).is_err() {
            return BTreeSet::new();
        }
        self.directory.sweep_runs(newest, |number| self.runs.contains_key(&number));
        surplus
    }

    pub(super) fn unsettle(&mut self, number: RunNo) {
        // The same run several times in a row: its late output.
        if self.unsettled.runs.last() != Some(&number) {
            self.unsettled.runs.push(number);
            self.unsettled.bytes += self.runs.get(&number).map_or(0, Run::bytes_in_memory);
        }
        self.files.changed(self.now());
        if self.unsettled.runs.len() >= UNSETTLED || self.unsettled.bytes >= UNSETTLED_BYTES {
            self.settle();
        }
    }

    /// Brings the files up to date.
    pub(super) fn settle(&mut self) {
        self.files.begun(self.now());
        let dropped = self.drop_oldest();
        self.forget_origins();
        let _ = write_entries(&mut self.history, &mut self.unrecorded);
        let again = std::mem::take(&mut self.refused);
        let finished = std::mem::take(&mut self.unsettled).runs;
        for number in again.into_iter().chain(finished) {
            // In a fast loop of runs most are of no interest any more.
            if dropped.contains(&number) {
                self.release(number);
            }
            let Some(run) = self.runs.get_mut(&number) else {
                continue;
            };
            let is_recorded = !self.unrecorded.iter().any(|entry| entry.run == number);
            if !run.settle() || !is_recorded {
                self.refused.push_back(number);
                continue;
            }
            if let Some(screen) = &run.screen
                && self.directory.write_screen(number, screen).is_err()
            {
                run.notes.push("the disk refused the run's screen".to_owned());
            }
            self.release(number);
        }
        self.remember_refused();
        let _ = self.write_metadata();
        if !self.is_timeline_written {
            let _ = self.write_timeline();
        }
        self.files.done(self.now());
        if !self.refused.is_empty() {
            // Tried again, though not soon.
            self.files.changed(self.now());
            self.files.put_off(self.now());
        }
    }

    /// What the disk has no place for can still be read, as long as it is not too
    /// much; it is tried again.
    fn remember_refused(&mut self) {
        while self.refused.len() > REFUSED {
            if let Some(oldest) = self.refused.pop_front() {
                self.unrecorded.retain(|entry| entry.run != oldest);
                self.release(oldest);
            }
        }
    }

    /// Lets go of a run that is on disk and that nobody waits for.
    pub(super) fn release(&mut self, number: RunNo) {
        let is_over =
            |run: &Run| run.finished().is_some() && run.open_streams == 0 && run.waiters.is_empty();
        if self.runs.get(&number).is_some_and(is_over) {
            self.runs.remove(&number);
        }
    }

    /// Has a kernel write its state down. In idle time only if not too many others
    /// do: the session tries again.
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
        if let Some(None) = turn {
            let nanos = u64::from(self.clock.elapsed().subsec_nanos());
            let chance = nanos / 1000 + u64::from(std::process::id());
            return self.step(Input::CaptureRefused { language, epoch, chance });
        }
        self.prepare_ahead(language);
        let Some(live) = self.kernels.get_mut(&language) else {
            return;
        };
        live.capture_floor = self.origins.floor();
        if live.kernel.capture(as_of).is_ok() {
            live.turn = turn.flatten();
        } else {
            self.step(Input::CaptureOver { language, epoch });
        }
    }

    /// One capture is over. Those who asked for the state want the newest one.
    pub(super) fn captures_done(&mut self, language: Language) {
        if let Some(live) = self.kernels.get_mut(&language) {
            if live.kernel.is_capturing() {
                return;
            }
            live.turn = None;
            let epoch = live.epoch;
            self.step(Input::CaptureOver { language, epoch });
        }
        self.answer_inspectors(Some(language));
        self.has_described(language);
    }

    /// Writes down a captured state. True when the kernel can be brought back
    /// from it.
    pub(super) fn save(&mut self, language: Language, mut saved: SavedKernel) -> bool {
        self.keep_changes_of_environment(&mut saved);
        let mut state = self.directory.state().unwrap_or_default();
        // Two captures may be under way, and the older one finish last.
        if state.kernels.get(&language).is_some_and(|newer| newer.as_of_run > saved.as_of_run) {
            self.has_captured_aside(&saved, language);
            return false;
        }
        if let Some(before) = state.kernels.get(&language)
            && saved.comes_back_as_of().is_none()
        {
            // An older one is better than none.
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
        let is_written = self.directory.write_state(&state).is_ok();
        self.aside.remove(&language);
        if is_written {
            self.has_captured(language, as_of);
        } else if let Some(saved) = state.kernels.get(&language) {
            self.has_captured_aside(saved, language);
        }
        is_written && can_restore
    }

    /// A kernel starts without the state that is in a file: that one is of no
    /// use any more.
    pub(super) fn forget_dump(&mut self, language: Language) {
        let Some(mut state) = self.directory.state() else {
            return;
        };
        let saved = state.kernels.get_mut(&language).filter(|saved| saved.dump.is_some());
        if let Some(saved) = saved {
            (saved.dump, saved.dump_as_of_run) = (None, None);
            if self.directory.write_state(&state).is_ok() {
                self.directory.sweep_kernels();
            }
        }
    }

    /// Takes the variables that a run had for itself alone out of the state that
    /// its kernel left at its end.
    pub(super) fn without_environment_of(&self, run: RunNo, mut saved: SavedKernel) -> SavedKernel {
        let Some(run) = self.runs.get(&run).filter(|run| !run.order.env.is_empty()) else {
            return saved;
        };
        let before =
            self.directory.state().and_then(|mut state| state.kernels.remove(&run.language));
        let before = before.as_ref().and_then(|saved| saved.view.get("env_vars"));
        let initial =
            |name: &str| self.env.get(std::ffi::OsStr::new(name))?.to_str().map(str::to_owned);
        for name in run.order.env.keys() {
            let changed = before.and_then(|env| env.get(name)?.as_str()).map(str::to_owned);
            let value = changed.or_else(|| initial(name));
            if let Some(restore) = &mut saved.restore {
                restore.push_str(&match &value {
                    Some(value) => format!("\nexport {name}='{}'", value.replace('\'', r"'\''")),
                    None => format!("\nunset {name}"),
                });
            }
            if let Some(serde_json::Value::Object(env)) = saved.view.get_mut("env_vars") {
                match value {
                    Some(value) => env.insert(name.clone(), value.into()),
                    None => env.remove(name),
                };
            }
        }
        saved
    }

    /// Of the environment, what differs from the session's initial one.
    fn keep_changes_of_environment(&self, saved: &mut SavedKernel) {
        let Some(serde_json::Value::Object(env)) = saved.view.get_mut("env_vars") else {
            return;
        };
        let initial = |name: &str| self.env.get(std::ffi::OsStr::new(name));
        let removed: Vec<serde_json::Value> = self
            .env
            .keys()
            .filter_map(|name| name.to_str())
            .filter(|name| !env.contains_key(*name))
            .map(Into::into)
            .collect();
        env.retain(|name, value| {
            let value = value.as_str().unwrap_or_default();
            initial(name).is_none_or(|before| before.to_string_lossy() != value)
        });
        if !removed.is_empty() {
            saved.view.insert("env_removed".into(), removed.into());
        }
    }
}

/// In the order of the runs' ends, as far as the disk has room.
fn write_entries(history: &mut History, entries: &mut VecDeque<Entry>) -> io::Result<()> {
    while let Some(entry) = entries.front() {
        history.append(entry)?;
        entries.pop_front();
    }
    Ok(())
}
