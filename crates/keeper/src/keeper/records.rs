//! What is written to the session directory, and when.
//!
//! A run's line in the history is appended before its client is answered, so that no run
//! vanishes whose end a client knows of. The run's output, remarks that are too large for
//! that line, and the metadata follow in the next pause between runs, or once a second if
//! there is none. They are written before the answer if the client wants to look at the
//! files or if the order has a key. They are delayed because a new file costs more than a
//! small run. Captured states are written as they come (`captures`).

use crate::runs::{Run, Runs, ticks};
use crate::shortage::describe;
use sessile_protocol::{Code, Failure, RunNo};
use sessile_session::{Pacing, Tick};
use sessile_store::{Accepted, Directory, Entry, History, Keys, Metadata, Remarks};
use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::time::Instant;

/// Larger values and notes have a file of their own, so that the history stays quick to
/// read.
const REMARKS_LIMIT: usize = 2 << 10;

/// Limits on the runs that may wait to be written to disk: their number and the bytes of
/// their output.
const UNSETTLED: usize = 2000;
const UNSETTLED_BYTES: u64 = 1 << 20;

/// Number of runs whose output stays in memory because the disk refuses it.
const REFUSED: usize = 16;

/// Limits on history lines that the disk refuses: their number and their total size. They
/// are smaller than output, and have been promised to clients.
const UNRECORDED: usize = 2000;
const UNRECORDED_BYTES: usize = 4 << 20;

/// The contents of the session directory, written and still to be written.
pub(super) struct Records {
    pub(super) metadata: Metadata,
    pub(super) history: History,
    /// The highest run number in use; none if the disk has no space for it.
    pub(super) accepted: Option<Accepted>,
    /// Read when the first order with a key comes.
    pub(super) keys: Option<Keys>,
    unsettled: Unsettled,
    /// Finished runs whose output is only in memory because the disk has no space for it.
    refused: VecDeque<RunNo>,
    /// Lines of the history for which the disk had no space.
    unrecorded: VecDeque<Entry>,
    /// Runs whose lines were given up because there were too many, not yet reported to a
    /// client.
    never_recorded: Vec<RunNo>,
    /// All runs that are missing from the history for good.
    missing: BTreeSet<RunNo>,
    /// Runs whose output was dropped before the disk had space for it.
    without_output: BTreeSet<RunNo>,
    /// Schedule for writing to disk.
    pace: Pacing,
}

/// Destination of the records.
pub(super) struct Disk<'a> {
    pub(super) directory: &'a Directory,
    pub(super) max_history: u64,
    pub(super) clock: Instant,
}

/// Finished runs whose output is still only in memory.
#[derive(Debug, Default)]
struct Unsettled {
    runs: Vec<RunNo>,
    bytes: u64,
}

impl Records {
    pub(super) fn new(metadata: Metadata, history: History, accepted: Option<Accepted>) -> Self {
        Self {
            metadata,
            history,
            accepted,
            keys: None,
            unsettled: Unsettled::default(),
            refused: VecDeque::new(),
            unrecorded: VecDeque::new(),
            never_recorded: Vec::new(),
            missing: BTreeSet::new(),
            without_output: BTreeSet::new(),
            pace: Pacing::default(),
        }
    }

    /// Follows the session's directory to its new path.
    pub(super) fn moved_to(&mut self, directory: &Directory) {
        self.history = self.history.moved_to(directory.history());
        // Read again when the next order with a key comes.
        self.keys = None;
    }

    /// Returns when the files are to be brought up to date.
    pub(super) fn due(&self) -> Option<Tick> {
        self.pace.due()
    }

    pub(super) fn write_metadata(&self, directory: &Directory) -> Result<(), Failure> {
        directory
            .write_metadata(&self.metadata)
            .map_err(|error| Failure::from_error(Code::Storage, &error))
    }

    /// Records the number that a run has got.
    pub(super) fn accept(&mut self, number: RunNo) {
        if let Some(accepted) = &mut self.accepted {
            // A full disk must not keep anyone from working.
            let _ = accepted.accept(number);
        }
    }

    /// Writes a finished run's line in the history.
    pub(super) fn record(&mut self, number: RunNo, run: &mut Run, directory: &Directory) {
        let Some(mut entry) = run.entry(number) else {
            return;
        };
        let size = entry.remarks.size();
        if size > REMARKS_LIMIT {
            entry.remarks = Remarks::default();
            entry.has_value_file = true;
            run.owed_remarks = size;
        }
        self.metadata.execution_count += 1;
        self.metadata.last_executed_at = Some(entry.timestamp.clone());
        self.unrecorded.push_back(entry);
        if let Err(error) = self.write_entries() {
            let told = describe(&error, std::convert::identity);
            run.notes.push(format!("the run is not in the session's history yet: {told}"));
            self.give_up_oldest();
            run.notes.extend(never_recorded(&std::mem::take(&mut self.never_recorded), &error));
        }
        // No longer needed, and there may be many such runs.
        run.order.text = Vec::new();
        run.order.stdin = None;
        if run.order.key.is_some() {
            // The order may be repeated, and the answer must be the same even after a
            // crash.
            run.settle(directory, number);
            let _ = self.history.complete();
        }
    }

    /// Appends the waiting lines in the order of the runs' ends, as far as the disk has
    /// space.
    fn write_entries(&mut self) -> io::Result<()> {
        while let Some(entry) = self.unrecorded.front() {
            self.history.append(entry)?;
            self.unrecorded.pop_front();
        }
        Ok(())
    }

    /// Drops the oldest lines beyond the limits. The next run that is recorded reports
    /// them as lost.
    fn give_up_oldest(&mut self) {
        let size = |entry: &Entry| entry.command.len() + entry.remarks.size();
        let mut bytes: usize = self.unrecorded.iter().map(size).sum();
        while self.unrecorded.len() > UNRECORDED
            || (bytes > UNRECORDED_BYTES && self.unrecorded.len() > 1)
        {
            let Some(entry) = self.unrecorded.pop_front() else { return };
            bytes -= size(&entry);
            self.never_recorded.push(entry.run);
            self.missing.insert(entry.run);
        }
    }

    /// Notes that a run has data that is only in memory. Returns true when there is too
    /// much of it.
    pub(super) fn unsettle(&mut self, number: RunNo, run: Option<&Run>, now: Tick) -> bool {
        // The same run may come several times in a row, with its late output.
        if self.unsettled.runs.last() != Some(&number) {
            self.unsettled.runs.push(number);
            self.unsettled.bytes += run.map_or(0, Run::bytes_in_memory);
        }
        self.pace.changed(now);
        self.unsettled.runs.len() >= UNSETTLED || self.unsettled.bytes >= UNSETTLED_BYTES
    }

    /// Brings the files up to date and releases the runs that are in them.
    pub(super) fn settle(
        &mut self,
        runs: &mut Runs,
        disk: &Disk<'_>,
        is_awaited: impl Fn(RunNo) -> bool,
    ) {
        self.pace.begun(ticks(disk.clock));
        let directory = disk.directory;
        let dropped = self.drop_oldest(runs, disk.max_history, directory);
        let _ = self.write_entries();
        let _ = self.history.complete();
        self.history.reserve();
        let again = std::mem::take(&mut self.refused);
        let finished = std::mem::take(&mut self.unsettled).runs;
        for number in again.into_iter().chain(finished) {
            // In a fast loop of runs, most have been dropped from the history by now.
            if dropped.contains(&number) {
                release(runs, number, &is_awaited);
            }
            let Some(run) = runs.get_mut(&number) else {
                continue;
            };
            let is_recorded = !self.unrecorded.iter().any(|entry| entry.run == number);
            if !run.settle(directory, number) || !is_recorded {
                self.refused.push_back(number);
                continue;
            }
            if let Some(screen) = &run.screen
                && let Err(error) = directory.write_screen(number, screen)
            {
                run.note_unwritten("screen", &error);
            }
            release(runs, number, &is_awaited);
        }
        self.remember_refused(runs, &is_awaited);
        let _ = self.write_metadata(directory);
        let now = ticks(disk.clock);
        self.pace.done(now);
        let is_on_disk = self.unrecorded.is_empty() && self.history.is_complete();
        if !self.refused.is_empty() || !is_on_disk {
            // Tried again, but not soon.
            self.pace.changed(now);
            self.pace.put_off(now);
        }
    }

    /// Releases a run if no client waits for it, unless it is only in memory because the
    /// disk has no space.
    pub(super) fn release(
        &self,
        runs: &mut Runs,
        number: RunNo,
        is_awaited: impl Fn(RunNo) -> bool,
    ) {
        if !self.refused.contains(&number) {
            release(runs, number, is_awaited);
        }
    }

    /// Returns why a run that has ended is neither in memory nor on disk, if the disk had no
    /// space for it.
    pub(super) fn absence(&self, number: RunNo) -> Option<Failure> {
        let is_unrecorded = self.unrecorded.iter().any(|entry| entry.run == number);
        (is_unrecorded || self.missing.contains(&number)).then(|| {
            let message =
                format!("run {number} has ended, but the disk had no space for its result");
            Failure::new(Code::RunLost, message)
        })
    }

    /// Drops the oldest runs and their output from the history. Returns these runs.
    fn drop_oldest(
        &mut self,
        runs: &Runs,
        max_history: u64,
        directory: &Directory,
    ) -> BTreeSet<RunNo> {
        let max = max_history.max(1);
        let surplus = BTreeSet::from_iter(self.history.surplus(max));
        let Some(newest) = surplus.last().copied() else {
            return surplus;
        };
        // The marks that tell a dropped run from a lost one come first.
        for (number, _) in runs.range(..=newest).filter(|(_, run)| run.finished().is_none()) {
            let _ = directory.mark_open(*number);
        }
        if let Some(accepted) = &mut self.accepted {
            let _ = accepted.forget_through(newest);
        }
        if self.history.trim(max).is_err() {
            return BTreeSet::new();
        }
        directory.sweep_runs(newest, |number| runs.contains_key(&number));
        surplus
    }

    /// Keeps the output that the disk has no space for readable in memory, within a
    /// limit. Writing it is tried again.
    fn remember_refused(&mut self, runs: &mut Runs, is_awaited: impl Fn(RunNo) -> bool) {
        while self.refused.len() > REFUSED {
            if let Some(oldest) = self.refused.pop_front() {
                if runs.get(&oldest).is_some_and(|run| run.bytes_in_memory() > 0) {
                    self.without_output.insert(oldest);
                }
                release(runs, oldest, &is_awaited);
            }
        }
    }

    /// Closes the records at the session's end: lists in the metadata what is not on disk
    /// and therefore lost.
    pub(super) fn close(&mut self, runs: &Runs) {
        self.missing.extend(self.unrecorded.iter().map(|entry| entry.run));
        let in_memory = |run: &RunNo| runs.get(run).is_some_and(|run| run.bytes_in_memory() > 0);
        self.without_output.extend(self.refused.iter().filter(|run| in_memory(run)));
        let kept = BTreeSet::from_iter(self.history.runs());
        // The lines of dropped runs went together with their output.
        self.without_output.retain(|run| kept.contains(run) || self.missing.contains(run));
        let why = self.write_entries().err().map(|error| format!(": {error}")).unwrap_or_default();
        let missing =
            named(&self.missing, "is", "are").map(|runs| format!("{runs} not in the history{why}"));
        let without_output = named(&self.without_output, "has", "have")
            .map(|runs| format!("{runs} no output on disk{why}"));
        self.metadata.lost_at_end = missing.into_iter().chain(without_output).collect();
        self.history.release_reserve();
    }

    /// Forgets everything after a reset, except the run numbers, which go on.
    pub(super) fn forget(&mut self) {
        self.unsettled = Unsettled::default();
        self.refused.clear();
        self.unrecorded.clear();
        self.never_recorded.clear();
        self.missing.clear();
        self.without_output.clear();
        self.history.clear();
        self.keys = None;
        if let Some(accepted) = &mut self.accepted {
            let _ = accepted.forget_through(accepted.last());
        }
    }
}

/// Returns the runs by number, as the beginning of a sentence.
fn named(runs: &BTreeSet<RunNo>, one: &str, several: &str) -> Option<String> {
    /// The metadata must fit into the space it already has, even on a full disk.
    const SHOWN: usize = 8;
    let mut spans: Vec<(RunNo, RunNo)> = Vec::new();
    for run in runs {
        match spans.last_mut() {
            Some((_, last)) if last.next() == *run => *last = *run,
            Some(_) | None => spans.push((*run, *run)),
        }
    }
    let more = spans.len().saturating_sub(SHOWN);
    let mut shown: Vec<String> = spans
        .iter()
        .take(SHOWN)
        .map(|(first, last)| match first == last {
            true => first.to_string(),
            false => format!("{first} to {last}"),
        })
        .collect();
    if more > 0 {
        shown.push("others".to_owned());
    }
    let last = shown.pop()?;
    let list = match shown.is_empty() {
        true => last,
        false => format!("{} and {last}", shown.join(", ")),
    };
    Some(match runs.len() {
        1 => format!("run {list} {one}"),
        _ => format!("runs {list} {several}"),
    })
}

/// Returns the note about runs that are missing from the history for good.
fn never_recorded(runs: &[RunNo], error: &io::Error) -> Option<String> {
    let which = match runs {
        [] => return None,
        [run] => format!("run {run} is"),
        [first, .., last] => format!("runs {first} to {last} are"),
    };
    Some(format!("{which} missing from the session's history for good: {error}"))
}

/// Releases a run that is on disk if no client waits for it.
fn release(runs: &mut Runs, number: RunNo, is_awaited: impl Fn(RunNo) -> bool) {
    let is_over = |run: &Run| run.finished().is_some() && run.open_streams == 0;
    if runs.get(&number).is_some_and(is_over) && !is_awaited(number) {
        runs.remove(&number);
    }
}

#[cfg(test)]
mod tests;
