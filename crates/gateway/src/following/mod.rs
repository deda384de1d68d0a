//! Follows a session's runs as events: decides what to ask its keeper next, and converts
//! the answers. The caller sends the requests and brings the answers, in any order.
//!
//! A request is repeated only when the events of its last answer were taken, so a slow
//! reader costs the keeper a few kilobytes and delays nobody. The session is not touched.
//!
//! Events of one run come in the order began, output, ended, later output of background
//! processes, closed. Those of different runs are mixed, except for runs that were over
//! before: they come first, one after the other.

mod event;
mod pieces;
mod position;

pub use event::{Began, Ended, Event, NamedEvent, NotARun, TranscriptNote};
pub use pieces::Pieces;
pub use position::{InvalidPosition, Position};

use sessile_protocol::{Answer, Failure, OpenRun, OutputView, Request, RunNo, RunPhase};
use std::collections::{BTreeMap, VecDeque};

/// How many ended runs are followed for the output of their background processes. A
/// reader's position names each of them.
const LEFT_BEHIND: usize = 128;

/// The subject of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Query {
    Runs,
    Output(RunNo),
    Result(RunNo),
}

/// Why following cannot continue.
#[derive(Debug, thiserror::Error)]
pub enum FollowingError {
    #[error(transparent)]
    Refused(#[from] Failure),
    #[error(
        "the keeper sent an unexpected answer; it may be of another version: end the session and start a new one"
    )]
    Unexpected,
}

/// Returns the runs of an answer that are over. The history has the details of them, and
/// some entries there are not runs.
#[must_use]
pub fn over(outcome: &Result<Answer, Failure>) -> Vec<RunNo> {
    let Ok(Answer::Runs(view)) = outcome else {
        return Vec::new();
    };
    let over = view.runs.iter().filter(|run| run.phase == RunPhase::Closed);
    over.map(|run| run.run).collect()
}

/// How much of a run is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Its output, too.
    Output,
    /// When it begins and how it ends.
    Ends,
}

/// A run that is not reported to its end.
#[derive(Debug)]
struct Watched {
    began: Began,
    pieces: Pieces,
}

#[derive(Debug)]
pub struct Following {
    position: Position,
    detail: Detail,
    runs: BTreeMap<RunNo, Watched>,
    /// Those of them that were over before: the first is being reported, the others wait.
    past: VecDeque<RunNo>,
    questions: VecDeque<Query>,
    ready: VecDeque<Event>,
}

impl Following {
    /// Follows from this position on. `past` are the runs in it that are over; `open`
    /// those that are not.
    #[must_use]
    pub fn new(position: Position, past: Vec<Began>, open: &[OpenRun], detail: Detail) -> Self {
        let mut following = Self {
            position,
            detail,
            runs: BTreeMap::new(),
            past: past.iter().map(|began| began.run).collect(),
            questions: VecDeque::new(),
            ready: VecDeque::new(),
        };
        for began in past {
            following.admit(began);
        }
        for run in open {
            following.admit(Began::from(run));
        }
        following.query_next();
        following
    }

    /// Reports why a run of the position cannot be followed.
    pub fn cancel(&mut self, run: RunNo, why: Failure) {
        self.ready.push_back(cancelled(run, why));
    }

    /// Returns the next event.
    pub fn event(&mut self) -> Option<Event> {
        let event = self.ready.pop_front()?;
        self.position.advance(&event);
        Some(event)
    }

    /// Returns the next request, when there are no events left.
    pub fn question(&mut self) -> Option<(Query, Request)> {
        loop {
            let asked = self.questions.pop_front()?;
            let request = match asked {
                Query::Runs => Request::Following { after: self.position.after, patience_ms: None },
                Query::Output(run) => match self.runs.get(&run) {
                    Some(watched) => Request::Output(watched.pieces.read(run, self.detail)),
                    None => continue,
                },
                Query::Result(run) => {
                    Request::Result { run, max_output: 0, patience_ms: None, until_input: false }
                }
            };
            return Some((asked, request));
        }
    }

    /// Returns the reader's position after the last event.
    #[must_use]
    pub fn position(&self) -> &Position {
        &self.position
    }

    /// Takes the answer to a request.
    ///
    /// # Errors
    /// When following cannot continue.
    pub fn take(
        &mut self,
        asked: Query,
        outcome: Result<Answer, Failure>,
    ) -> Result<(), FollowingError> {
        match (asked, outcome) {
            (Query::Runs, Ok(Answer::Runs(view))) => {
                for run in &view.runs {
                    self.position.add(run.run);
                    self.admit(Began::from(run));
                    self.questions.push_back(Query::Output(run.run));
                }
                self.questions.push_back(Query::Runs);
            }
            (Query::Output(run), Ok(Answer::Output(view))) => self.take_output(run, view),
            (Query::Result(run), Ok(Answer::Completed(done))) => {
                if let Some(watched) = self.runs.get_mut(&run) {
                    watched.pieces.phase = RunPhase::Exited;
                    self.ready.push_back(Event::Ended(Ended::from(&*done)));
                    self.questions.push_back(Query::Output(run));
                    self.leave_oldest();
                }
            }
            (Query::Output(run) | Query::Result(run), Err(failure)) => {
                if self.runs.contains_key(&run) {
                    self.close(cancelled(run, failure));
                }
            }
            (Query::Runs, Err(failure)) => return Err(failure.into()),
            (_, Ok(_)) => return Err(FollowingError::Unexpected),
        }
        Ok(())
    }

    fn admit(&mut self, began: Began) {
        let pieces = self.position.pieces(began.run);
        self.runs.insert(began.run, Watched { began, pieces });
    }

    /// Asks for the first of the past runs; without any, for all that go on.
    fn query_next(&mut self) {
        match self.past.front() {
            Some(run) => self.questions.push_back(Query::Output(*run)),
            None => {
                self.questions.extend(self.runs.keys().map(|run| Query::Output(*run)));
                self.questions.push_back(Query::Runs);
            }
        }
    }

    /// Notes that an entry which is over is not a run.
    pub fn amend(&mut self, happened: NotARun) {
        if let Some(watched) = self.runs.get_mut(&happened.run) {
            watched.began.happened = Some(Box::new(happened));
        }
    }

    fn take_output(&mut self, run: RunNo, view: OutputView) {
        let Some(Watched { began, pieces }) = self.runs.get_mut(&run) else {
            return;
        };
        if let Some(happened) = began.happened.take() {
            self.close(Event::NotARun(*happened));
            return;
        }
        if pieces.phase == RunPhase::Queued && view.phase >= RunPhase::Running {
            pieces.phase = RunPhase::Running;
            self.ready.push_back(Event::Began(began.clone()));
        }
        let phase = view.phase;
        let is_dry = view.stdout.is_empty() && view.stderr.is_empty();
        let is_over = phase >= RunPhase::Exited && is_dry;
        self.ready.extend(pieces.take(run, view, is_over));
        if is_over && pieces.phase < RunPhase::Exited {
            self.questions.push_back(Query::Result(run));
        } else if is_over && phase == RunPhase::Closed {
            self.close(Event::Closed(run));
        } else {
            self.questions.push_back(Query::Output(run));
        }
    }

    /// Adds the last event of a run.
    fn close(&mut self, event: Event) {
        let run = event.run();
        self.runs.remove(&run);
        self.ready.push_back(event);
        if self.past.front() == Some(&run) {
            self.past.pop_front();
            self.query_next();
        }
    }

    /// Stops following the oldest ended run, when there are too many.
    fn leave_oldest(&mut self) {
        if !self.past.is_empty() {
            return;
        }
        let ended = |(_, watched): &(&RunNo, &Watched)| watched.pieces.phase >= RunPhase::Exited;
        let mut ended = self.runs.iter().filter(ended).map(|(run, _)| *run);
        let oldest = ended.next();
        if let Some(run) = oldest
            && ended.count() >= LEFT_BEHIND
        {
            self.runs.remove(&run);
            self.ready.push_back(Event::Left(run));
        }
    }
}

fn cancelled(run: RunNo, why: Failure) -> Event {
    Event::Cancelled { run, code: why.code.into(), why: why.message }
}

#[cfg(test)]
mod tests;
