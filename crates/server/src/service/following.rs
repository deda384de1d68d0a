//! The runs of a session as they are accepted, whichever client started them.
//!
//! A reader gets each run once, by its number. A reader that returns with its last number
//! gets the runs since. Nothing is kept for readers.

use super::{Caller, Service, ServiceError};
use crate::keepers::{ConnectedSession, Place, blocking};
use sessile_protocol::{Answer, OpenRun, Request, RunNo, RunPhase, SessionId};
use sessile_store::{Entry, SessionStatus};
use std::collections::VecDeque;
use std::sync::Arc;

/// How long the keeper holds a request without an answer.
const PATIENCE_MS: u64 = 30_000;

/// An event of a session.
#[derive(Debug)]
pub(crate) enum SessionEvent {
    Run(Box<OpenRun>),
    /// An entry with a number that is not a run.
    NotARun(Box<Entry>),
    Ended(SessionStatus),
}

#[derive(Debug)]
pub(crate) struct RunsFollower {
    place: Arc<Place>,
    /// None when the session has no keeper.
    reached: Option<ConnectedSession>,
    after: RunNo,
    ready: VecDeque<OpenRun>,
    is_over: bool,
}

impl Service {
    /// Follows the runs after this one; without it, from the unfinished ones on.
    pub(crate) async fn follow_runs(
        &self,
        caller: &Caller,
        id: &SessionId,
        after: Option<RunNo>,
    ) -> Result<RunsFollower, ServiceError> {
        let place = self.place(caller, id).await?;
        let mut reached = self.reach_if_live(&place).await?;
        let mut ready = VecDeque::new();
        let mut after = after;
        if let Some(keeper) = &mut reached
            && after.is_none()
        {
            let directory = place.directory.clone();
            let recorded = blocking(move || Ok(directory.history().runs())).await?;
            let open = match keeper.call(Request::Runs).await {
                Ok(Answer::Runs(view)) => view.runs,
                Ok(_) => return Err(ServiceError::unexpected()),
                // The keeper is ending; only the session's status is left to report.
                Err(_) => {
                    reached = None;
                    Vec::new()
                }
            };
            after = recorded.into_iter().chain(open.iter().map(|run| run.run)).max();
            ready = open.into();
        }
        let after = after.unwrap_or_default();
        Ok(RunsFollower { place, reached, after, ready, is_over: false })
    }
}

impl RunsFollower {
    /// Returns the next event; `None` after the session's end.
    pub(crate) async fn next(&mut self) -> Result<Option<SessionEvent>, ServiceError> {
        loop {
            if let Some(run) = self.ready.pop_front() {
                return self.told(run).await.map(Some);
            }
            if self.is_over {
                return Ok(None);
            }
            let Some(reached) = &mut self.reached else {
                return self.end().await;
            };
            let request = Request::Following { after: self.after, patience_ms: Some(PATIENCE_MS) };
            match reached.call(request).await {
                Ok(Answer::Runs(view)) => {
                    self.after = view.runs.last().map_or(self.after, |run| run.run);
                    self.ready.extend(view.runs);
                }
                Ok(_) => return Err(ServiceError::unexpected()),
                Err(_) => return self.end().await,
            }
        }
    }

    /// Converts a listed run: a keeper lists everything with a number, also what is not a run.
    async fn told(&self, run: OpenRun) -> Result<SessionEvent, ServiceError> {
        if run.phase < RunPhase::Closed {
            return Ok(SessionEvent::Run(Box::new(run)));
        }
        let (directory, number) = (self.place.directory.clone(), run.run);
        let entry = blocking(move || Ok(directory.history().find(number))).await?;
        Ok(match entry.filter(|entry| entry.event.is_some()) {
            Some(entry) => SessionEvent::NotARun(Box::new(entry)),
            None => SessionEvent::Run(Box::new(run)),
        })
    }

    /// Returns the session's status, since the keeper is gone.
    async fn end(&mut self) -> Result<Option<SessionEvent>, ServiceError> {
        self.is_over = true;
        let directory = self.place.directory.clone();
        let status = blocking(move || Ok(directory.observed_metadata()?.status)).await?;
        Ok(Some(SessionEvent::Ended(status)))
    }
}
