//! Follows a session's runs over one connection to its keeper.
//! `sessile_gateway::following` decides what to ask, and interprets the answers.

use crate::reader::Reader;
use sessile_client::{Client, ClientError};
use sessile_gateway::following::{self, Detail, Pieces, Position, Query};
use sessile_protocol::{OpenRun, ReadOutput, RunNo};
use sessile_store::{Directory, Entry, SessionStatus, timestamp};
use std::collections::BTreeMap;
use std::os::fd::BorrowedFd;

pub(crate) use sessile_gateway::following::{Began, Ended, Event, NotARun};

/// What comes next.
#[derive(Debug)]
pub(crate) enum Next {
    Event(Event),
    /// The session has no keeper any more.
    Over(SessionStatus),
    /// The reader of our output is gone.
    Unread,
}

/// The runs that exist when following begins.
#[derive(Debug)]
pub(crate) struct ExistingRuns {
    pub(crate) finished: Vec<Entry>,
    pub(crate) open: Vec<OpenRun>,
    /// All runs up to this one are among them, except those that were not requested.
    last: RunNo,
}

impl ExistingRuns {
    /// Reads the newest finished runs and all unfinished ones.
    pub(crate) fn read(reader: &mut Reader, newest: u64) -> anyhow::Result<Self> {
        let history = reader.directory.history();
        let recorded = history.runs().into_iter().max().unwrap_or_default();
        let open = reader.open_runs()?;
        let last = open.iter().map(|run| run.run).max().unwrap_or_default().max(recorded);
        // Read after the keeper's list: an earlier run that is not open has finished by now.
        let max = reader.directory.metadata()?.max_history;
        let mut finished = history.newest(max);
        let is_open = |run: RunNo| open.iter().any(|open| open.run == run);
        finished.retain(|entry| entry.run <= last && !is_open(entry.run));
        let surplus = finished.len().saturating_sub(usize::try_from(newest).unwrap_or(usize::MAX));
        finished.drain(..surplus);
        Ok(Self { finished, open, last })
    }
}

/// Returns the output of a run so far, as events.
pub(crate) fn written(
    reader: &mut Reader,
    run: RunNo,
    mut each: impl FnMut(Event) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut pieces = Pieces::default();
    loop {
        let read = ReadOutput { wait: false, ..pieces.read(run, Detail::Output) };
        let view = reader.output(read)?;
        let is_dry = view.stdout.is_empty() && view.stderr.is_empty();
        for event in pieces.take(run, view, is_dry) {
            each(event)?;
        }
        if is_dry {
            return Ok(());
        }
    }
}

#[derive(Debug)]
pub(crate) struct Following {
    directory: Directory,
    client: Client,
    runs: following::Following,
    calls: BTreeMap<u64, Query>,
}

impl Following {
    /// Follows after `past`; `None` when the session has no keeper.
    pub(crate) fn after(past: &ExistingRuns, reader: Reader) -> anyhow::Result<Option<Self>> {
        let directory = reader.directory.clone();
        let Some(client) = reader.into_keeper() else {
            return Ok(None);
        };
        let position = Position::after(past.last);
        let runs = following::Following::new(position, Vec::new(), &past.open, Detail::Output);
        Ok(Some(Self { directory, client, runs, calls: BTreeMap::new() }))
    }

    /// Waits for the next event. `listener` is the stream that it is printed to.
    pub(crate) fn next(&mut self, listener: BorrowedFd<'_>) -> anyhow::Result<Next> {
        loop {
            if let Some(event) = self.runs.event() {
                return Ok(Next::Event(event.dated(timestamp)));
            }
            while let Some((asked, request)) = self.runs.question() {
                match self.client.ask(request) {
                    Ok(call) => drop(self.calls.insert(call, asked)),
                    Err(ClientError::Gone) => return self.over(),
                    Err(error) => return Err(error.into()),
                }
            }
            let reply = match self.client.reply(listener) {
                Ok(Some(reply)) => reply,
                Ok(None) => return Ok(Next::Unread),
                Err(ClientError::Gone) => return self.over(),
                Err(error) => return Err(error.into()),
            };
            if let Some(asked) = self.calls.remove(&reply.id) {
                let over = following::over(&reply.outcome);
                self.runs.take(asked, reply.outcome)?;
                let entries = over.into_iter().filter_map(|run| self.directory.history().find(run));
                entries.filter_map(|entry| NotARun::of(&entry)).for_each(|h| self.runs.amend(h));
            }
        }
    }

    fn over(&self) -> anyhow::Result<Next> {
        Ok(Next::Over(self.directory.observed_metadata()?.status))
    }
}
