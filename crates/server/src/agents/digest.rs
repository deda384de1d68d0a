//! A summary of a thread, so that the thread need not be read as a whole.
//!
//! A thread only grows, so a summary of its first part stays true. It is kept in
//! `thread.digest.json`; readers load it and then read only what was appended since. A
//! digest that is missing, or does not fit, is rebuilt from the whole thread: nothing
//! depends on it.

use super::thread_file::storage;
use crate::service::ServiceError;
use serde::{Deserialize, Serialize};
use sessile_agent::continuity::Continuity;
use sessile_agent::ids::TaskNo;
use sessile_agent::thread::{Entry, EntryKind, Moved, Preceding, read_on};
use sessile_store::Directory;
use std::fs::File;
use std::os::unix::fs::FileExt;

const DIGEST: &str = "thread.digest.json";
const VERSION: u32 = 2;

/// Upper limit for the size of a thread file.
pub(super) const MAX_THREAD: u64 = 1 << 30;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Digest {
    version: u32,
    /// How many bytes of the file it covers.
    pub(super) bytes: u64,
    pub(super) entries: u64,
    pub(super) steps: u64,
    pub(super) last_ms: u64,
    pub(super) tasks: Vec<TaskLine>,
    /// Number of tasks in threads before this one.
    earlier_tasks: u64,
    is_rewinding: bool,
    pub(super) moved: Option<Moved>,
    /// What became of the session and was not yet reported with a task.
    #[serde(default)]
    pub(super) continuity: Continuity,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TaskLine {
    pub(super) task: TaskNo,
    pub(super) began: EntryPosition,
    pub(super) ended: Option<EntryPosition>,
    /// The entry that says that the session was brought back during the task.
    #[serde(default)]
    pub(super) continued: Option<EntryPosition>,
    /// A rewind has undone at least a part of it.
    pub(super) is_taken_back: bool,
}

/// The position of an entry in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct EntryPosition {
    pub(super) entry: u64,
    at: u64,
    length: u64,
}

impl Digest {
    /// Returns the digest of a thread as it is now.
    pub(super) fn read(directory: &Directory, thread: &File) -> Result<Self, ServiceError> {
        let kept = directory.read_json::<Self>(DIGEST).ok();
        let length = thread.metadata().map_err(|e| storage("thread", &e))?.len();
        if length > MAX_THREAD {
            return Err(storage("thread", &"it is larger than 1 GiB"));
        }
        let mut digest = kept.filter(|kept| kept.fits(thread, length)).unwrap_or_default();
        digest.read_on(thread, length)?;
        Ok(digest)
    }

    /// Whether the digest can belong to this file: it ends at the end of a line.
    fn fits(&self, thread: &File, length: u64) -> bool {
        let mut last = [0];
        self.version == VERSION
            && (1..=length).contains(&self.bytes)
            && thread.read_exact_at(&mut last, self.bytes - 1).is_ok()
            && last == *b"\n"
    }

    fn read_on(&mut self, thread: &File, length: u64) -> Result<(), ServiceError> {
        let (entries, starts, end) = piece(thread, self.bytes, length, self.before())?;
        let ends = starts.iter().skip(1).copied().chain([end]);
        for ((entry, start), end) in entries.iter().zip(&starts).zip(ends) {
            self.take(entry, *start, end - start);
        }
        Ok(())
    }

    pub(super) fn before(&self) -> Preceding {
        Preceding { entries: self.entries, steps: self.steps }
    }

    /// Adds an entry of `length` bytes at offset `at`.
    pub(super) fn take(&mut self, entry: &Entry, at: u64, length: u64) {
        let spot = EntryPosition { entry: entry.entry, at, length };
        self.version = VERSION;
        self.entries = entry.entry;
        self.last_ms = entry.at_ms;
        self.bytes = at + length;
        match &entry.what {
            EntryKind::Task { task, .. } => {
                let (ended, continued, is_taken_back) = (None, None, false);
                let line = TaskLine { task: *task, began: spot, ended, continued, is_taken_back };
                self.tasks.push(line);
                self.continuity = Continuity::default();
            }
            EntryKind::Continued(continuity) => match self.tasks.last_mut() {
                Some(line) if line.ended.is_none() => line.continued = Some(spot),
                Some(_) | None => self.continuity = continuity.clone(),
            },
            EntryKind::Ended { .. } => {
                if let Some(line) = self.tasks.last_mut() {
                    line.ended = Some(spot);
                }
            }
            EntryKind::Reply { .. } => self.steps += 1,
            EntryKind::Rewinding(_) => self.is_rewinding = true,
            EntryKind::NotRewound { .. } => self.is_rewinding = false,
            EntryKind::Rewound { rewind, .. } => {
                self.is_rewinding = false;
                let is_after =
                    |line: &&mut TaskLine| line.ended.is_none_or(|ended| ended.entry > rewind.kept);
                self.tasks.iter_mut().filter(is_after).for_each(|line| line.is_taken_back = true);
            }
            EntryKind::Moved(moved) => self.moved = Some(moved.clone()),
            EntryKind::Imported { .. } => self.moved = None,
            EntryKind::Created { earlier_tasks, .. } => self.earlier_tasks = *earlier_tasks,
            EntryKind::Approval { .. }
            | EntryKind::Intent(_)
            | EntryKind::Outcome(_)
            | EntryKind::Summary { .. }
            | EntryKind::Stopping { .. }
            | EntryKind::Checkpoint(_)
            | EntryKind::SessionRewound { .. }
            | EntryKind::Activity { .. } => {}
        }
    }

    /// Returns how many tasks the agent was given in all.
    pub(super) fn task_count(&self) -> u64 {
        self.earlier_tasks + self.tasks.len() as u64
    }

    /// Whether the task was in an earlier thread, which is lost.
    pub(super) fn is_of_earlier_thread(&self, task: TaskNo) -> bool {
        (1..=self.earlier_tasks).contains(&task.0)
    }

    /// Whether a task or a rewind is unfinished.
    pub(super) fn is_open(&self) -> bool {
        self.is_rewinding || self.tasks.last().is_some_and(|line| line.ended.is_none())
    }

    pub(super) fn task(&self, task: TaskNo) -> Option<&TaskLine> {
        // Numbers go up by one here, but perhaps not in an imported thread.
        let at = self.tasks.partition_point(|line| line.task < task);
        self.tasks.get(at).filter(|line| line.task == task)
    }

    pub(super) fn keep(&self, directory: &Directory) -> Result<(), ServiceError> {
        directory.write_json(DIGEST, self).map_err(|e| storage("digest", &e))
    }
}

/// Returns the entries between two offsets, the offset of each, and the offset where the
/// last complete one ends.
pub(super) fn piece(
    thread: &File,
    from: u64,
    to: u64,
    before: Preceding,
) -> Result<(Vec<Entry>, Vec<u64>, u64), ServiceError> {
    let length = usize::try_from(to.saturating_sub(from)).unwrap_or(0);
    let mut bytes = vec![0; length];
    thread.read_exact_at(&mut bytes, from).map_err(|e| storage("thread", &e))?;
    let contents = read_on(&bytes, before).map_err(|e| storage("thread", &e))?;
    let starts = contents.starts.into_iter().map(|start| from + start).collect();
    Ok((contents.entries, starts, from + contents.bytes))
}

/// Reads one entry.
pub(super) fn entry_at(thread: &File, spot: EntryPosition) -> Result<Entry, ServiceError> {
    let before = Preceding { entries: spot.entry - 1, steps: 0 };
    let (entries, _, _) = piece(thread, spot.at, spot.at + spot.length, before)?;
    entries.into_iter().next().ok_or_else(|| storage("thread", &"an entry is missing"))
}
