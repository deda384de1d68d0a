//! What happens in a session, and its JSON.

use crate::encoding;
use serde_json::{Map, Value, json};
use sessile_protocol::{Completed, Language, OpenRun, RunNo};
use sessile_store::{Entry, StreamName};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    Began(Began),
    /// Up to its last whole character, unless there will be no more.
    Output {
        run: RunNo,
        stream: StreamName,
        bytes: Vec<u8>,
        /// Bytes before these that are not kept.
        skipped: u64,
    },
    Ended(Ended),
    /// Nothing can write any more.
    Closed(RunNo),
    /// It has ended, and what it has left behind is not followed any further.
    Left(RunNo),
    /// Something with a number of its own that is no run.
    Happened(Happened),
    /// A run that never began, or whose end nobody knows.
    Cancelled {
        run: RunNo,
        why: String,
    },
}

impl Event {
    /// The same, if it has a time, or as of now: a run that was queued when we
    /// heard of it began just now.
    #[must_use]
    pub fn dated(self, now: impl FnOnce() -> String) -> Self {
        match self {
            Self::Began(began) if began.timestamp.is_none() => {
                Self::Began(Began { timestamp: Some(now()), ..began })
            }
            Self::Began(_)
            | Self::Output { .. }
            | Self::Ended(_)
            | Self::Closed(_)
            | Self::Left(_)
            | Self::Happened(_)
            | Self::Cancelled { .. } => self,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Began {
    pub run: RunNo,
    pub language: Language,
    pub command: String,
    pub timestamp: Option<String>,
    pub has_terminal: bool,
    /// It is no run, but this.
    pub happened: Option<Box<Happened>>,
}

/// A rewind, say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Happened {
    pub run: RunNo,
    pub event: String,
    pub command: String,
    pub timestamp: String,
    pub notes: Vec<String>,
}

impl Happened {
    /// If the entry is about no run.
    #[must_use]
    pub fn of(entry: &Entry) -> Option<Self> {
        Some(Self {
            run: entry.run,
            event: entry.event.clone()?,
            command: entry.command.clone(),
            timestamp: entry.timestamp.clone(),
            notes: entry.remarks.notes.clone(),
        })
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    pub run: RunNo,
    pub exit_code: i32,
    pub duration_us: u64,
    pub timed_out: bool,
    pub interrupted: bool,
}

impl From<&Entry> for Began {
    fn from(entry: &Entry) -> Self {
        Self {
            run: entry.run,
            language: entry.language,
            command: entry.command.clone(),
            timestamp: Some(entry.timestamp.clone()),
            has_terminal: false,
            happened: Happened::of(entry).map(Box::new),
        }
    }
}

impl From<&OpenRun> for Began {
    fn from(run: &OpenRun) -> Self {
        Self {
            run: run.run,
            language: run.language,
            command: run.command.clone(),
            timestamp: run.timestamp.clone(),
            has_terminal: run.terminal,
            happened: None,
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

impl Event {
    #[must_use]
    pub fn run(&self) -> RunNo {
        match self {
            Self::Began(began) => began.run,
            Self::Ended(ended) => ended.run,
            Self::Happened(happened) => happened.run,
            Self::Output { run, .. }
            | Self::Closed(run)
            | Self::Left(run)
            | Self::Cancelled { run, .. } => *run,
        }
    }

    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Self::Began(_) => "started",
            Self::Output { stream: StreamName::Stdout, .. } => "stdout",
            Self::Output { stream: StreamName::Stderr, .. } => "stderr",
            Self::Ended(_) => "exited",
            Self::Closed(_) => "closed",
            Self::Left(_) => "left",
            Self::Happened(happened) => &happened.event,
            Self::Cancelled { .. } => "cancelled",
        }
    }

    /// All but its name.
    #[must_use]
    pub fn fields(&self) -> Map<String, Value> {
        let mut fields = Map::new();
        fields.insert("run".to_owned(), json!(self.run()));
        let mut add = |name: &str, value: Value| drop(fields.insert(name.to_owned(), value));
        match self {
            Self::Began(began) => {
                add("language", began.language.as_str().into());
                add("command", began.command.clone().into());
                add("timestamp", began.timestamp.clone().into());
                if began.has_terminal {
                    add("terminal", true.into());
                }
            }
            Self::Output { bytes, skipped, .. } => {
                let (text, is_base64) = encoding::text(bytes);
                add("data", text.into());
                if is_base64 {
                    add("encoding", "base64".into());
                }
                if *skipped > 0 {
                    add("skipped", (*skipped).into());
                }
            }
            Self::Ended(ended) => {
                add("exit_code", ended.exit_code.into());
                add("duration_ms", (ended.duration_us / 1000).into());
                let marks = [("timed_out", ended.timed_out), ("interrupted", ended.interrupted)];
                for (name, _) in marks.into_iter().filter(|(_, is_so)| *is_so) {
                    add(name, true.into());
                }
            }
            Self::Closed(_) | Self::Left(_) => {}
            Self::Happened(happened) => {
                add("command", happened.command.clone().into());
                add("timestamp", happened.timestamp.clone().into());
                add("notes", happened.notes.clone().into());
            }
            Self::Cancelled { why, .. } => add("message", why.clone().into()),
        }
        fields
    }
}
