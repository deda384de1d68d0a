//! The events of a session, and their JSON.

use crate::ErrorCode;
use crate::answer::{OutputText, is_false};
use serde::Serialize;
use sessile_protocol::{Completed, Language, OpenRun, RunNo};
use sessile_store::{Entry, StreamName};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    Began(Began),
    /// Output, up to its last whole character, unless nothing more will come.
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
    /// The run has ended, and its background processes are no longer followed.
    Left(RunNo),
    /// An entry with a number that is not a run.
    NotARun(NotARun),
    /// A run that never began, or whose end is unknown.
    Cancelled {
        run: RunNo,
        /// The reason: cancelled, lost, forgotten.
        code: ErrorCode,
        why: String,
    },
}

impl Event {
    /// Adds the current time if the event has none: a run that was queued when we heard
    /// of it began just now.
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
            | Self::NotARun(_)
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
    /// Set if it is not a run.
    pub happened: Option<Box<NotARun>>,
}

/// An entry of the history that is not a run, such as a rewind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotARun {
    pub run: RunNo,
    pub event: String,
    pub command: String,
    pub timestamp: String,
    pub notes: Vec<String>,
}

impl NotARun {
    /// Returns it if the entry is not a run.
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
            happened: NotARun::of(entry).map(Box::new),
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
            Self::NotARun(happened) => happened.run,
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
            Self::NotARun(happened) => &happened.event,
            Self::Cancelled { .. } => "cancelled",
        }
    }

    /// Returns all but its name.
    #[must_use]
    pub fn fields(&self) -> EventFields<'_> {
        let mut fields = EventFields { run: self.run(), ..EventFields::default() };
        match self {
            Self::Began(began) => {
                fields.language = Some(began.language);
                fields.command = Some(&began.command);
                fields.timestamp = Some(began.timestamp.as_deref());
                fields.terminal = began.has_terminal;
            }
            Self::Output { bytes, skipped, .. } => {
                fields.output = Some(OutputText::new(bytes, *skipped));
            }
            Self::Ended(ended) => {
                fields.exit_code = Some(ended.exit_code);
                fields.duration_ms = Some(ended.duration_us / 1000);
                fields.timed_out = ended.timed_out;
                fields.interrupted = ended.interrupted;
            }
            Self::Closed(_) | Self::Left(_) => {}
            Self::NotARun(happened) => {
                fields.command = Some(&happened.command);
                fields.timestamp = Some(Some(&happened.timestamp));
                fields.notes = Some(&happened.notes);
            }
            Self::Cancelled { code, why, .. } => {
                fields.code = Some(*code);
                fields.message = Some(why);
            }
        }
        fields
    }
}

/// An event with its name, as a line of a transcript.
#[derive(Clone, Debug, Serialize)]
pub struct NamedEvent<'a> {
    event: &'a str,
    #[serde(flatten)]
    fields: EventFields<'a>,
}

impl<'a> From<&'a Event> for NamedEvent<'a> {
    fn from(event: &'a Event) -> Self {
        Self { event: event.name(), fields: event.fields() }
    }
}

/// A line of a transcript that is not an event of a run.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum TranscriptNote<'a> {
    /// The session itself has changed.
    Session { status: &'a str },
    /// The transcript ends before this run does.
    Open { run: RunNo, phase: &'a str },
}

/// An event as JSON; its fields depend on its name.
#[derive(Clone, Debug, Default, Serialize)]
pub struct EventFields<'a> {
    run: RunNo,
    #[serde(skip_serializing_if = "Option::is_none")]
    language: Option<Language>,
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<&'a str>,
    /// Null when it is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    timestamp: Option<Option<&'a str>>,
    #[serde(skip_serializing_if = "is_false")]
    terminal: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    notes: Option<&'a [String]>,
    #[serde(flatten)]
    output: Option<OutputText>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit_code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration_ms: Option<u64>,
    #[serde(skip_serializing_if = "is_false")]
    timed_out: bool,
    #[serde(skip_serializing_if = "is_false")]
    interrupted: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<ErrorCode>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'a str>,
}
