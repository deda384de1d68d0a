//! The runs of a session with all of their output, as they happen, whichever client
//! started them.
//!
//! A reader that returns with the position of its last event continues right after it.
//! Nothing is kept for readers, and the keeper is asked for more only when the last event
//! was taken: a slow reader delays nobody.

use super::{Caller, Service, ServiceError};
use crate::keepers::{Link, LinkError, Place, blocking};
use sessile_gateway::following::{
    self, Began, Detail, Event, Following, FollowingError, NotARun, Position, Query,
};
use sessile_protocol::{Answer, OpenRun, Request, RunNo, SessionId};
use sessile_store::{Directory, Entry, SessionStatus, timestamp};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// Where a reader begins.
#[derive(Clone, Debug)]
pub(crate) enum ReadFrom {
    /// With the newest finished runs, and all unfinished ones.
    Newest(u64),
    /// Where it was.
    After(Position),
}

/// An event of a session.
#[derive(Debug)]
pub(crate) enum TranscriptEvent {
    Run(Event),
    Ended(SessionStatus),
}

#[derive(Debug)]
pub(crate) struct SessionFollower {
    place: Arc<Place>,
    source: Source,
    runs: Following,
    calls: HashMap<u64, Query>,
    detail: Detail,
}

#[derive(Debug)]
enum Source {
    Keeper(Link),
    /// A session without a keeper: only what is on disk.
    Disk,
    Over,
}

impl Service {
    pub(crate) async fn follow_session(
        &self,
        caller: &Caller,
        id: &SessionId,
        beginning: ReadFrom,
        detail: Detail,
    ) -> Result<SessionFollower, ServiceError> {
        let place = self.place(caller, id).await?;
        let calls = HashMap::new();
        let reached = self.reach_if_live(&place).await?;
        let directory = place.directory.clone();
        // Read before the keeper is asked: it reports runs that are accepted after that.
        let history = place.directory.history();
        let recorded = blocking(move || Ok(history.runs().into_iter().max())).await?;
        let live = match reached.and_then(crate::keepers::ConnectedSession::into_link) {
            Some(link) => open_runs(link).await?,
            None => None,
        };
        let Some((link, open)) = live else {
            let runs = blocking(move || on_disk(&directory, beginning, detail)).await?;
            return Ok(SessionFollower { place, source: Source::Disk, runs, calls, detail });
        };
        let runs = blocking(move || {
            let last = open.iter().map(|run| run.run).chain(recorded).max().unwrap_or_default();
            let finished = finished(&directory)?;
            Ok(arrange(&directory, last, open, finished, beginning, detail))
        })
        .await?;
        Ok(SessionFollower { place, source: Source::Keeper(link), runs, calls, detail })
    }
}

impl SessionFollower {
    /// Returns the next event; `None` after the session's end.
    pub(crate) async fn next(&mut self) -> Result<Option<TranscriptEvent>, ServiceError> {
        loop {
            if let Some(event) = self.runs.event() {
                return Ok(Some(TranscriptEvent::Run(event.dated(timestamp))));
            }
            match &mut self.source {
                Source::Keeper(link) => {
                    match exchange(link, &self.place.directory, &mut self.runs, &mut self.calls)
                        .await
                    {
                        Ok(()) => {}
                        Err(LinkEnd::Stopped(error)) => return Err(error),
                        Err(LinkEnd::Gone) => self.continue_from_disk().await?,
                    }
                }
                Source::Disk => {
                    if self.read_on().await? == Reading::Over {
                        self.source = Source::Over;
                        let directory = self.place.directory.clone();
                        let status =
                            blocking(move || Ok(directory.observed_metadata()?.status)).await?;
                        return Ok(Some(TranscriptEvent::Ended(status)));
                    }
                }
                Source::Over => return Ok(None),
            }
        }
    }

    /// Returns the reader's position after the last event.
    pub(crate) fn position(&self) -> &Position {
        self.runs.position()
    }

    /// Continues with the records on disk, since the keeper is gone.
    async fn continue_from_disk(&mut self) -> Result<(), ServiceError> {
        let (directory, detail) = (self.place.directory.clone(), self.detail);
        let beginning = ReadFrom::After(self.position().clone());
        self.runs = blocking(move || on_disk(&directory, beginning, detail)).await?;
        self.source = Source::Disk;
        Ok(())
    }

    async fn read_on(&mut self) -> Result<Reading, ServiceError> {
        let Some((asked, request)) = self.runs.question() else { return Ok(Reading::Over) };
        let directory = self.place.directory.clone();
        let run = match asked {
            Query::Runs => return Ok(Reading::Over),
            Query::Output(run) | Query::Result(run) => run,
        };
        let answer = blocking(move || {
            let answer = if let Request::Output(read) = request {
                directory.recorded_output(&read).map(Answer::Output)
            } else {
                directory.recorded_run(run, 0).map(|done| Answer::Completed(Box::new(done)))
            };
            Ok(answer.ok_or_else(|| directory.absence(run).explain(run)))
        })
        .await?;
        self.runs.take(asked, answer)?;
        Ok(Reading::On)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reading {
    On,
    Over,
}

/// Returns the unfinished runs; `None` if the keeper ends instead of answering.
async fn open_runs(mut link: Link) -> Result<Option<(Link, Vec<OpenRun>)>, ServiceError> {
    match link.call(Request::Runs).await.map_err(LinkEnd::from) {
        Ok(Answer::Runs(view)) => Ok(Some((link, view.runs))),
        Ok(_) => Err(ServiceError::unexpected()),
        Err(LinkEnd::Gone) => Ok(None),
        Err(LinkEnd::Stopped(error)) => Err(error),
    }
}

/// Why a connection to a keeper ended.
enum LinkEnd {
    Gone,
    Stopped(ServiceError),
}

impl From<LinkError> for LinkEnd {
    fn from(error: LinkError) -> Self {
        match error {
            LinkError::Gone | LinkError::Io(_) => Self::Gone,
            error @ (LinkError::Refused(_)
            | LinkError::Silent
            | LinkError::Stopped(_)
            | LinkError::Frame(_)) => Self::Stopped(error.into()),
        }
    }
}

/// Sends the pending requests, and takes one answer.
async fn exchange(
    link: &mut Link,
    directory: &Directory,
    runs: &mut Following,
    calls: &mut HashMap<u64, Query>,
) -> Result<(), LinkEnd> {
    while let Some((asked, request)) = runs.question() {
        calls.insert(link.ask(request).await?, asked);
    }
    let reply = link.reply().await?;
    if let Some(asked) = calls.remove(&reply.id) {
        let over = following::over(&reply.outcome);
        runs.take(asked, reply.outcome).map_err(|error| match error {
            // A keeper that is ending reports no more runs.
            FollowingError::Refused(_) => LinkEnd::Gone,
            FollowingError::Unexpected => LinkEnd::Stopped(ServiceError::unexpected()),
        })?;
        for happened in happened(directory, over).await {
            runs.amend(happened);
        }
    }
    Ok(())
}

/// Returns those of them that are not runs.
async fn happened(directory: &Directory, over: Vec<RunNo>) -> Vec<NotARun> {
    if over.is_empty() {
        return Vec::new();
    }
    let history = directory.history();
    let found = blocking(move || {
        let entries = over.into_iter().filter_map(|run| history.find(run));
        Ok(entries.filter_map(|entry| NotARun::of(&entry)).collect())
    });
    found.await.unwrap_or_default()
}

fn finished(directory: &Directory) -> Result<Vec<Entry>, ServiceError> {
    Ok(directory.history().newest(directory.metadata()?.max_history))
}

/// Returns the runs of a session without a keeper.
fn on_disk(
    directory: &Directory,
    beginning: ReadFrom,
    detail: Detail,
) -> Result<Following, ServiceError> {
    let finished = finished(directory)?;
    let last = finished.iter().map(|entry| entry.run).max().unwrap_or_default();
    let beginning = match beginning {
        ReadFrom::Newest(count) => ReadFrom::Newest(count),
        ReadFrom::After(mut position) => {
            let known = position.last();
            let news = finished.iter().map(|entry| entry.run).filter(|run| *run > known);
            news.for_each(|run| position.add(run));
            ReadFrom::After(position)
        }
    };
    Ok(arrange(directory, last, Vec::new(), finished, beginning, detail))
}

/// Returns what is to be reported of the runs up to `last`.
fn arrange(
    directory: &Directory,
    last: RunNo,
    mut open: Vec<OpenRun>,
    mut finished: Vec<Entry>,
    beginning: ReadFrom,
    detail: Detail,
) -> Following {
    let going: BTreeSet<RunNo> = open.iter().map(|run| run.run).collect();
    finished.retain(|entry| !going.contains(&entry.run));
    let position = match beginning {
        ReadFrom::Newest(count) => {
            finished.retain(|entry| entry.run <= last);
            let count = usize::try_from(count).unwrap_or(usize::MAX);
            finished.drain(..finished.len().saturating_sub(count));
            let mut position = Position::after(last);
            finished.iter().map(|entry| entry.run).for_each(|run| position.add(run));
            going.iter().for_each(|run| position.add(*run));
            position
        }
        ReadFrom::After(position) => position,
    };
    let wanted: BTreeSet<RunNo> = position.open().collect();
    finished.retain(|entry| wanted.contains(&entry.run));
    open.retain(|run| wanted.contains(&run.run));
    let past: Vec<Began> = finished.iter().map(Began::from).collect();
    let found: BTreeSet<RunNo> = past.iter().map(|began| began.run).chain(going).collect();
    let mut runs = Following::new(position, past, &open, detail);
    for run in wanted.difference(&found) {
        runs.cancel(*run, directory.absence(*run).explain(*run));
    }
    runs
}
