//! A session's runs as they happen, as events: for whoever shows them.
//!
//! One connection carries all that is asked: for the runs to come, and for each
//! run that is not over what it writes next. An answer is asked for again only
//! when the last one was taken, so a slow reader costs the keeper a few
//! kilobytes and holds up nobody. The session is not touched.
//!
//! Events of one run come in the order began, output, ended, output that it left
//! behind writes later, closed. Those of different runs are mixed.

use crate::reader::Reader;
use anyhow::bail;
use sessile_client::{Client, ClientError};
use sessile_gateway::whole_end;
use sessile_protocol::{
    Answer, Completed, Failure, Language, OpenRun, OutputView, ReadOutput, Request, RunNo, RunPhase,
};
use sessile_store::{Directory, Entry, SessionStatus, StreamName, timestamp};
use std::collections::{BTreeMap, VecDeque};
use std::os::fd::BorrowedFd;

/// The version of keepers that can be asked for the runs to come.
const FOLLOWED: u16 = 3;

/// Bytes of each stream that are asked for at once.
const CHUNK: u64 = 64 << 10;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Began(Began),
    /// Up to its last whole character, unless there will be no more.
    Output {
        run: RunNo,
        stream: StreamName,
        bytes: Vec<u8>,
    },
    Ended(Ended),
    /// Nothing can write any more.
    Closed(RunNo),
    /// Something with a number of its own that is no run.
    Happened(Happened),
    /// A run that never began, or whose end nobody knows.
    Cancelled {
        run: RunNo,
        why: String,
    },
}

impl Event {
    pub(crate) fn run(&self) -> RunNo {
        match self {
            Self::Began(began) => began.run,
            Self::Ended(ended) => ended.run,
            Self::Happened(happened) => happened.run,
            Self::Output { run, .. } | Self::Closed(run) | Self::Cancelled { run, .. } => *run,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Began {
    pub(crate) run: RunNo,
    pub(crate) language: Language,
    pub(crate) command: String,
    pub(crate) timestamp: String,
    pub(crate) has_terminal: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    pub(crate) run: RunNo,
    pub(crate) exit_code: i32,
    pub(crate) duration_us: u64,
    pub(crate) timed_out: bool,
    pub(crate) interrupted: bool,
}

/// A rewind, say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Happened {
    pub(crate) run: RunNo,
    pub(crate) event: String,
    pub(crate) command: String,
    pub(crate) timestamp: String,
    pub(crate) notes: Vec<String>,
}

impl Happened {
    /// If the entry is about no run.
    pub(crate) fn of(entry: &Entry) -> Option<Self> {
        Some(Self {
            run: entry.run,
            event: entry.event.clone()?,
            command: entry.command.clone(),
            timestamp: entry.timestamp.clone(),
            notes: entry.remarks.notes.clone(),
        })
    }
}

/// What comes next.
#[derive(Debug)]
pub(crate) enum Next {
    Event(Event),
    /// The session has no keeper any more.
    Over(SessionStatus),
    /// Nobody reads what we print.
    Unread,
}

impl From<&Entry> for Began {
    fn from(entry: &Entry) -> Self {
        let (timestamp, command) = (entry.timestamp.clone(), entry.command.clone());
        let (run, language) = (entry.run, entry.language);
        Self { run, language, command, timestamp, has_terminal: false }
    }
}

impl From<&OpenRun> for Began {
    fn from(run: &OpenRun) -> Self {
        let timestamp = run.timestamp.clone().unwrap_or_else(timestamp);
        Self {
            run: run.run,
            language: run.language,
            command: run.command.clone(),
            timestamp,
            has_terminal: run.terminal,
        }
    }
}

impl From<&Entry> for Ended {
    fn from(entry: &Entry) -> Self {
        Self {
            run: entry.run,
            exit_code: entry.exit_code,
            duration_us: entry.duration_us.unwrap_or(entry.duration_ms.saturating_mul(1000)),
            timed_out: entry.timed_out,
            interrupted: entry.interrupted,
        }
    }
}

impl From<&Completed> for Ended {
    fn from(done: &Completed) -> Self {
        Self {
            run: done.run,
            exit_code: done.exit_code,
            duration_us: done.duration_us,
            timed_out: done.timed_out,
            interrupted: done.interrupted,
        }
    }
}

/// The runs that there are when somebody begins to follow.
#[derive(Debug)]
pub(crate) struct Past {
    pub(crate) finished: Vec<Entry>,
    pub(crate) open: Vec<OpenRun>,
    /// All runs up to this one are among them, but for those that are not
    /// wanted.
    last: RunNo,
}

impl Past {
    /// The newest finished runs and all that are not over.
    pub(crate) fn read(reader: &mut Reader, newest: u64) -> anyhow::Result<Self> {
        let history = reader.directory.history();
        let recorded = history.runs().into_iter().max().unwrap_or_default();
        let open = reader.open_runs()?;
        let last = open.iter().map(|run| run.run).max().unwrap_or_default().max(recorded);
        // Once more: what was accepted before the last one and is not open has
        // finished by now.
        let max = reader.directory.metadata()?.max_history;
        let mut finished = history.newest(max);
        let is_open = |run: RunNo| open.iter().any(|open| open.run == run);
        finished.retain(|entry| entry.run <= last && !is_open(entry.run));
        let surplus = finished.len().saturating_sub(usize::try_from(newest).unwrap_or(usize::MAX));
        finished.drain(..surplus);
        Ok(Self { finished, open, last })
    }
}

/// What a run has written up to now, in events.
pub(crate) fn written(
    reader: &mut Reader,
    run: RunNo,
    mut each: impl FnMut(Event) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut watched = Watched::default();
    loop {
        let view = reader.output(ReadOutput { wait: false, ..watched.read(run) })?;
        let is_dry = view.stdout.is_empty() && view.stderr.is_empty();
        for event in watched.take_output(run, view, is_dry) {
            each(event)?;
        }
        if is_dry {
            return Ok(());
        }
    }
}

/// A run that is not over, as far as it was told.
#[derive(Debug)]
struct Watched {
    told: RunPhase,
    stdout: u64,
    stderr: u64,
    /// Bytes that end in the middle of a character.
    halves: [Vec<u8>; 2],
}

impl Default for Watched {
    fn default() -> Self {
        Self { told: RunPhase::Queued, stdout: 0, stderr: 0, halves: Default::default() }
    }
}

impl Watched {
    fn read(&self, run: RunNo) -> ReadOutput {
        ReadOutput {
            stdout_from: self.stdout,
            stderr_from: self.stderr,
            max: CHUNK,
            known: Some(self.told),
            ..ReadOutput::waiting(run)
        }
    }

    fn take_output(&mut self, run: RunNo, view: OutputView, is_last: bool) -> Vec<Event> {
        (self.stdout, self.stderr) = (view.stdout_next, view.stderr_next);
        let streams = [(StreamName::Stdout, view.stdout), (StreamName::Stderr, view.stderr)];
        let mut events = Vec::new();
        for (half, (stream, new)) in self.halves.iter_mut().zip(streams) {
            let mut bytes = std::mem::take(half);
            bytes.extend(new);
            if !is_last {
                *half = bytes.split_off(whole_end(&bytes));
            }
            if !bytes.is_empty() {
                events.push(Event::Output { run, stream, bytes });
            }
        }
        events
    }
}

/// What a call was about.
#[derive(Clone, Copy, Debug)]
enum Asked {
    Runs,
    Output(RunNo),
    Result(RunNo),
}

#[derive(Debug)]
pub(crate) struct Following {
    directory: Directory,
    client: Client,
    after: RunNo,
    runs: BTreeMap<RunNo, (Began, Watched)>,
    calls: BTreeMap<u64, Asked>,
    ready: VecDeque<Event>,
}

impl Following {
    /// Follows from what is past on; `None` when the session has no keeper.
    pub(crate) fn after(past: &Past, reader: Reader) -> anyhow::Result<Option<Self>> {
        let directory = reader.directory.clone();
        let Some(mut client) = reader.into_keeper() else {
            return Ok(None);
        };
        if client.version()? < FOLLOWED {
            bail!(
                "the session's keeper is of an older version and cannot be followed; read its runs without --follow"
            );
        }
        let mut following = Self {
            directory,
            client,
            after: past.last,
            runs: BTreeMap::new(),
            calls: BTreeMap::new(),
            ready: VecDeque::new(),
        };
        following.watch(&past.open)?;
        following.ask(Asked::Runs)?;
        Ok(Some(following))
    }

    /// The next event, whenever it comes. `listener` is where it is printed.
    pub(crate) fn next(&mut self, listener: BorrowedFd<'_>) -> anyhow::Result<Next> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(Next::Event(event));
            }
            let reply = match self.client.reply(listener) {
                Ok(Some(reply)) => reply,
                Ok(None) => return Ok(Next::Unread),
                Err(ClientError::Gone) => return self.over(),
                Err(error) => return Err(error.into()),
            };
            let Some(asked) = self.calls.remove(&reply.id) else {
                continue;
            };
            match self.take(asked, reply.outcome) {
                Err(error) if is_gone(&error) => return self.over(),
                outcome @ (Ok(()) | Err(_)) => outcome?,
            }
        }
    }

    fn over(&self) -> anyhow::Result<Next> {
        Ok(Next::Over(self.directory.observed_metadata()?.status))
    }

    fn ask(&mut self, asked: Asked) -> anyhow::Result<()> {
        let request = match asked {
            Asked::Runs => Request::Following { after: self.after, patience_ms: None },
            Asked::Output(run) => match self.runs.get(&run) {
                Some((_, watched)) => Request::Output(watched.read(run)),
                None => return Ok(()),
            },
            Asked::Result(run) => {
                Request::Result { run, max_output: 0, patience_ms: None, until_input: false }
            }
        };
        let call = self.client.ask(request)?;
        self.calls.insert(call, asked);
        Ok(())
    }

    fn watch(&mut self, runs: &[OpenRun]) -> anyhow::Result<()> {
        for run in runs {
            self.after = self.after.max(run.run);
            // A keeper lists what has a number, be it a run or not.
            if run.phase == RunPhase::Closed
                && let Some(entry) = self.directory.history().find(run.run)
                && let Some(happened) = Happened::of(&entry)
            {
                self.ready.push_back(Event::Happened(happened));
                continue;
            }
            self.runs.insert(run.run, (Began::from(run), Watched::default()));
            self.ask(Asked::Output(run.run))?;
        }
        Ok(())
    }

    fn take(&mut self, asked: Asked, outcome: Result<Answer, Failure>) -> anyhow::Result<()> {
        match (asked, outcome) {
            (Asked::Runs, Ok(Answer::Runs(view))) => {
                self.watch(&view.runs)?;
                self.ask(Asked::Runs)
            }
            (Asked::Output(run), Ok(Answer::Output(view))) => self.take_output(run, view),
            (Asked::Result(run), Ok(Answer::Completed(done))) => {
                self.ready.push_back(Event::Ended(Ended::from(&*done)));
                if let Some((_, watched)) = self.runs.get_mut(&run) {
                    watched.told = RunPhase::Exited;
                }
                self.ask(Asked::Output(run))
            }
            (Asked::Output(run) | Asked::Result(run), Err(failure)) => {
                self.runs.remove(&run);
                self.ready.push_back(Event::Cancelled { run, why: failure.message });
                Ok(())
            }
            (Asked::Runs, Err(failure)) => bail!(failure),
            (_, Ok(_)) => bail!(ClientError::Unexpected),
        }
    }

    fn take_output(&mut self, run: RunNo, view: OutputView) -> anyhow::Result<()> {
        let Some((began, watched)) = self.runs.get_mut(&run) else {
            return Ok(());
        };
        if watched.told == RunPhase::Queued && view.phase >= RunPhase::Running {
            watched.told = RunPhase::Running;
            self.ready.push_back(Event::Began(began.clone()));
        }
        let phase = view.phase;
        let is_over = phase >= RunPhase::Exited && view.stdout.is_empty() && view.stderr.is_empty();
        self.ready.extend(watched.take_output(run, view, is_over));
        if is_over && watched.told < RunPhase::Exited {
            return self.ask(Asked::Result(run));
        }
        if is_over && phase == RunPhase::Closed {
            self.runs.remove(&run);
            self.ready.push_back(Event::Closed(run));
            return Ok(());
        }
        self.ask(Asked::Output(run))
    }
}

fn is_gone(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(ClientError::Gone))
}
