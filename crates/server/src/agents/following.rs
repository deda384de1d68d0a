//! The events of a thread, for watchers.

use super::digest::piece;
use super::driver::{DriverStatus, Handle};
use super::thread_file;
use crate::keepers::blocking;
use crate::service::ServiceError;
use sessile_agent::ids::TaskNo;
use sessile_agent::model::Failure;
use sessile_agent::thread::{Entry, EntryKind, Preceding};
use sessile_store::Directory;
use std::collections::VecDeque;
use tokio::sync::{broadcast, watch};

/// An event of a thread. Entries are numbered, and a reader continues after a number.
/// Pieces of a reply come at once, and are part of an entry later.
#[derive(Clone, Debug)]
pub(crate) enum AgentEvent {
    Entry(Box<Entry>),
    Delta(String),
    /// The model will be asked again after a while. Pieces of the failed reply are void.
    Retry(Retrying),
    /// The call with this id waits for approval.
    Approve(String),
}

/// Progress that is reported while it happens and is not in the thread.
#[derive(Clone, Debug)]
pub(super) enum Progress {
    /// A piece of the reply that comes after this entry.
    Delta {
        after: u64,
        text: String,
    },
    Retry(Retrying),
}

/// Sends the pieces of one reply to watchers.
#[derive(Debug)]
pub(super) struct DeltaSender {
    after: u64,
    watchers: broadcast::Sender<Progress>,
}

impl DeltaSender {
    pub(super) fn after(entry: u64, watchers: &broadcast::Sender<Progress>) -> Self {
        Self { after: entry, watchers: watchers.clone() }
    }

    pub(super) fn send(&self, text: String) {
        // Fails if there are no watchers.
        let _ = self.watchers.send(Progress::Delta { after: self.after, text });
    }
}

/// A wait before a failed model is asked again.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Retrying {
    /// Number of the failed attempt: 1, 2, …
    pub(crate) attempt: u32,
    pub(crate) after_ms: u64,
    pub(crate) failure: Failure,
}

#[derive(Debug)]
pub(crate) struct AgentFollower {
    directory: Directory,
    /// The last entry that was returned.
    after: u64,
    /// How much of the file was read.
    read: FilePosition,
    known: VecDeque<Entry>,
    live: Option<Live>,
    told_waiting: Option<String>,
    /// The wait for the model that was in progress when this began.
    retrying: Option<Retrying>,
    told_retrying: Option<Retrying>,
}

/// How far a file was read.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FilePosition {
    pub(super) bytes: u64,
    pub(super) before: Preceding,
}

#[derive(Debug)]
struct Live {
    status: watch::Receiver<DriverStatus>,
    progress: broadcast::Receiver<Progress>,
    /// A piece that belongs after entries that are not yet returned.
    held: Option<Progress>,
}

enum Update {
    Entries,
    Progress(Progress),
    Over,
}

impl AgentFollower {
    pub(super) fn new(directory: Directory, after: u64, handle: Option<Handle>) -> Self {
        // Subscribes first, so that nothing is missed in between.
        let live = handle.map(|handle| {
            let (progress, status) = (handle.progress(), handle.status);
            Live { status, progress, held: None }
        });
        let (read, known) = (FilePosition::default(), VecDeque::new());
        let retrying = live.as_ref().and_then(|live| live.status.borrow().retrying.clone());
        let (told_waiting, told_retrying) = (None, None);
        Self { directory, after, read, known, live, told_waiting, retrying, told_retrying }
    }

    /// Starts where another reader has stopped.
    pub(super) fn reading_on(self, read: FilePosition) -> Self {
        Self { after: read.before.entries, read, ..self }
    }

    /// Returns the next event; none when no driver works on the thread and all events
    /// were returned.
    pub(crate) async fn next(&mut self) -> Result<Option<AgentEvent>, ServiceError> {
        loop {
            if let (Some(entry), Some(live)) = (self.known.front(), &mut self.live)
                && let Some(progress) = live.before(entry.entry)
            {
                match self.told(progress) {
                    Some(event) => return Ok(Some(event)),
                    None => continue,
                }
            }
            if let Some(entry) = self.known.pop_front() {
                self.after = entry.entry;
                return Ok(Some(AgentEvent::Entry(Box::new(entry))));
            }
            self.look().await?;
            if !self.known.is_empty() {
                continue;
            }
            let Some(live) = &mut self.live else { return Ok(None) };
            let DriverStatus { entries, is_busy, waiting, .. } = live.status.borrow().clone();
            if entries > self.after {
                continue;
            }
            if !is_busy {
                return Ok(None);
            }
            if let Some(retrying) = self.retrying.take() {
                self.told_retrying = Some(retrying.clone());
                return Ok(Some(AgentEvent::Retry(retrying)));
            }
            if waiting != self.told_waiting {
                self.told_waiting.clone_from(&waiting);
                if let Some(call) = waiting {
                    return Ok(Some(AgentEvent::Approve(call)));
                }
            }
            match live.news().await {
                Update::Entries => {}
                Update::Progress(progress) => {
                    if let Some(event) = self.told(progress) {
                        return Ok(Some(event));
                    }
                }
                // The loop reads the file once more, for the last entries.
                Update::Over => self.live = None,
            }
        }
    }

    /// Drops pieces of a reply that was already returned as an entry.
    fn told(&self, progress: Progress) -> Option<AgentEvent> {
        match progress {
            Progress::Delta { after, text } => {
                (after >= self.after).then_some(AgentEvent::Delta(text))
            }
            Progress::Retry(retrying) => {
                let is_new = self.told_retrying.as_ref() != Some(&retrying);
                is_new.then_some(AgentEvent::Retry(retrying))
            }
        }
    }

    /// Reads new entries from the file.
    async fn look(&mut self) -> Result<(), ServiceError> {
        if let Some(live) = &mut self.live
            && live.status.borrow_and_update().entries <= self.after
        {
            return Ok(());
        }
        let (directory, read) = (self.directory.clone(), self.read);
        let (entries, end) = blocking(move || {
            let file = thread_file::look(&directory)?;
            let length = file.metadata().map_err(|e| thread_file::storage("thread", &e))?.len();
            let (entries, _, end) = piece(&file, read.bytes, length, read.before)?;
            Ok((entries, end))
        })
        .await?;
        let is_step = |entry: &&Entry| matches!(entry.what, EntryKind::Reply { .. });
        self.read.before.steps += entries.iter().filter(is_step).count() as u64;
        self.read.before.entries += entries.len() as u64;
        self.read.bytes = end;
        let after = self.after;
        self.known.extend(entries.into_iter().filter(|entry| entry.entry > after));
        Ok(())
    }

    pub(crate) async fn until_ended(&mut self, task: TaskNo) -> Result<(), ServiceError> {
        while let Some(event) = self.next().await? {
            if let AgentEvent::Entry(entry) = event
                && matches!(entry.what, EntryKind::Ended { task: ended, .. } if ended == task)
            {
                break;
            }
        }
        Ok(())
    }
}

impl Live {
    /// Takes progress that was sent before this entry was written.
    fn before(&mut self, entry: u64) -> Option<Progress> {
        let progress = match self.held.take() {
            Some(held) => held,
            None => self.progress.try_recv().ok()?,
        };
        match &progress {
            Progress::Delta { after, .. } if *after >= entry => {
                self.held = Some(progress);
                None
            }
            Progress::Delta { .. } | Progress::Retry(_) => Some(progress),
        }
    }

    async fn news(&mut self) -> Update {
        if let Some(held) = self.held.take() {
            return Update::Progress(held);
        }
        // Both are cancel-safe: nothing is lost when one is dropped.
        tokio::select! {
            changed = self.status.changed() => match changed {
                Ok(()) => Update::Entries,
                Err(_) => Update::Over,
            },
            told = self.progress.recv() => match told {
                Ok(progress) => Update::Progress(progress),
                // A slow reader misses pieces, which are also in the whole answer.
                Err(broadcast::error::RecvError::Lagged(_)) => Update::Entries,
                Err(broadcast::error::RecvError::Closed) => Update::Over,
            },
        }
    }
}
