//! What goes to the session directory, and when.
//!
//! A run's line in the history is appended before its client is answered, so
//! that no run vanishes of which somebody has been told. What it wrote, what is too
//! large for that line, and the metadata follow in the next pause between runs, once a
//! second where there is none, or before the answer where the client wants to look at
//! the files or the order has a key: a new file costs more than a small run. Captured
//! states are written as they come (`captures`).

use crate::runs::{Run, Runs, ticks};
use crate::shortage::describe;
use sessile_protocol::{Code, Failure, RunNo};
use sessile_session::{Pacing, Tick};
use sessile_store::{Accepted, Directory, Entry, History, Keys, Metadata, Remarks};
use std::collections::{BTreeSet, VecDeque};
use std::io;
use std::time::Instant;

/// Larger values and notes have a file of their own, and the history stays
/// quick to read.
const REMARKS_LIMIT: usize = 2 << 10;

/// Runs that may wait to be written to disk, and what they may have printed.
const UNSETTLED: usize = 2000;
const UNSETTLED_BYTES: u64 = 1 << 20;

/// Runs whose output stays in memory because the disk refuses it.
const REFUSED: usize = 16;

/// Their lines in the history are smaller, and have been promised: how many of
/// them stay, and of how many bytes together.
const UNRECORDED: usize = 2000;
const UNRECORDED_BYTES: usize = 4 << 20;

/// What is, or is to be, in the session directory.
pub(super) struct Records {
    pub(super) metadata: Metadata,
    pub(super) history: History,
    /// How far the numbers have got; none where the disk has no place for it.
    pub(super) accepted: Option<Accepted>,
    /// Read when the first order with a key comes.
    pub(super) keys: Option<Keys>,
    unsettled: Unsettled,
    /// The same, because the disk has no place for it.
    refused: VecDeque<RunNo>,
    /// Lines of the history that the disk had no place for.
    unrecorded: VecDeque<Entry>,
    /// Runs whose lines were too many, which nobody has been told yet.
    never_recorded: Vec<RunNo>,
    /// All that are in no history, and will not be.
    missing: BTreeSet<RunNo>,
    /// Runs whose output was let go of before the disk had a place for it.
    without_output: BTreeSet<RunNo>,
    /// When what is only in memory is written to disk.
    pace: Pacing,
}

/// Where all of it goes.
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

    /// The session's directory is somewhere else.
    pub(super) fn moved_to(&mut self, directory: &Directory) {
        self.history = self.history.moved_to(directory.history());
        // Read anew when the next order has a key.
        self.keys = None;
    }

    /// When the files are to be brought up to date.
    pub(super) fn due(&self) -> Option<Tick> {
        self.pace.due()
    }

    pub(super) fn write_metadata(&self, directory: &Directory) -> Result<(), Failure> {
        directory
            .write_metadata(&self.metadata)
            .map_err(|error| Failure::from_error(Code::Storage, &error))
    }

    /// Takes note of a number that a run has got.
    pub(super) fn accept(&mut self, number: RunNo) {
        if let Some(accepted) = &mut self.accepted {
            // A disk that is full must not keep anybody from working.
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
        // Nobody needs them any more, and there may be many such runs.
        run.order.text = Vec::new();
        run.order.stdin = None;
        if run.order.key.is_some() {
            // Its order may be repeated, and the answer has to be the same,
            // whatever dies in between.
            run.settle(directory, number);
            let _ = self.history.complete();
        }
    }

    /// In the order of the runs' ends, as far as the disk has room.
    fn write_entries(&mut self) -> io::Result<()> {
        while let Some(entry) = self.unrecorded.front() {
            self.history.append(entry)?;
            self.unrecorded.pop_front();
        }
        Ok(())
    }

    /// What would be too much is told as lost, with the run that is recorded.
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

    /// A run has something that is only in memory. True when that is too much.
    pub(super) fn unsettle(&mut self, number: RunNo, run: Option<&Run>, now: Tick) -> bool {
        // The same run several times in a row: its late output.
        if self.unsettled.runs.last() != Some(&number) {
            self.unsettled.runs.push(number);
            self.unsettled.bytes += run.map_or(0, Run::bytes_in_memory);
        }
        self.pace.changed(now);
        self.unsettled.runs.len() >= UNSETTLED || self.unsettled.bytes >= UNSETTLED_BYTES
    }

    /// Brings the files up to date, and lets go of runs that are in them.
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
            // In a fast loop of runs most are of no interest any more.
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
            // Tried again, though not soon.
            self.pace.changed(now);
            self.pace.put_off(now);
        }
    }

    /// Drops the oldest runs from the history, and their output with them; these
    /// are the ones.
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
        // First what tells a dropped run from a lost one.
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

    /// What the disk has no place for can still be read, as long as it is not too
    /// much; it is tried again.
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

    /// The session ends: what is not on disk now is lost, and told in its metadata.
    pub(super) fn close(&mut self, runs: &Runs) {
        self.missing.extend(self.unrecorded.iter().map(|entry| entry.run));
        let in_memory = |run: &RunNo| runs.get(run).is_some_and(|run| run.bytes_in_memory() > 0);
        self.without_output.extend(self.refused.iter().filter(|run| in_memory(run)));
        let kept = BTreeSet::from_iter(self.history.runs());
        // The lines of dropped runs went with their output.
        self.without_output.retain(|run| kept.contains(run) || self.missing.contains(run));
        let why = self.write_entries().err().map(|error| format!(": {error}")).unwrap_or_default();
        let missing =
            named(&self.missing, "is", "are").map(|runs| format!("{runs} not in the history{why}"));
        let without_output = named(&self.without_output, "has", "have")
            .map(|runs| format!("{runs} no output on disk{why}"));
        self.metadata.lost_at_end = missing.into_iter().chain(without_output).collect();
        self.history.release_reserve();
    }

    /// After a reset: the numbers go on, nothing else does.
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

/// Runs by number, as the beginning of a sentence.
fn named(runs: &BTreeSet<RunNo>, one: &str, several: &str) -> Option<String> {
    /// The metadata is to fit into the place that it has, even on a full disk.
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

/// What is said of runs that are in no history, and will not be.
fn never_recorded(runs: &[RunNo], error: &io::Error) -> Option<String> {
    let which = match runs {
        [] => return None,
        [run] => format!("run {run} is"),
        [first, .., last] => format!("runs {first} to {last} are"),
    };
    Some(format!("{which} missing from the session's history for good: {error}"))
}

/// Lets go of a run that is on disk and that nobody waits for.
pub(super) fn release(runs: &mut Runs, number: RunNo, is_awaited: impl Fn(RunNo) -> bool) {
    let is_over = |run: &Run| run.finished().is_some() && run.open_streams == 0;
    if runs.get(&number).is_some_and(is_over) && !is_awaited(number) {
        runs.remove(&number);
    }
}

#[cfg(test)]
mod tests;
