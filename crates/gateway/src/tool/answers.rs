//! Answers of the `runtime` tool, and of the MCP tools for earlier runs.

use super::{RunAction, error_of};
use crate::answer::{
    Continuity, Encoding, Encodings, Job, Milliseconds, Output, OutputSoFar, RunResult, RunRow,
    Screen, Truncations, is_false, revival,
};
use crate::text::{self, Sizing};
use crate::{Error, ErrorCode};
use serde::Serialize;
use serde_json::{Map, Value};
use sessile_protocol::{Completed, EndedJob, Language, RunNo, SessionId};
use sessile_store::{Entry, Metadata};

/// The message of a reset.
const RESET: &str =
    "Runtime reset: fresh kernels, empty history, everything that was running is ended";

/// An answer to a successful call.
#[derive(Clone, Debug, Serialize)]
pub struct Success<T> {
    success: bool,
    #[serde(flatten)]
    answer: T,
}

impl<T> Success<T> {
    #[must_use]
    pub fn of(answer: T) -> Self {
        Self { success: true, answer }
    }
}

/// An answer to a failed or refused call.
#[derive(Clone, Debug, Serialize)]
pub struct Failed {
    success: bool,
    /// The run that was interrupted because its call was cancelled.
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<RunNo>,
    error: String,
    code: ErrorCode,
}

impl From<&Error> for Failed {
    fn from(error: &Error) -> Self {
        let message = text::sentence(&error.message);
        Self { success: false, run: None, error: message, code: error.code }
    }
}

impl Failed {
    /// Returns the answer for a run whose call was cancelled.
    #[must_use]
    pub fn cancelled(run: RunNo) -> Self {
        let error = format!("cancelled; run {run} was interrupted");
        Self { success: false, run: Some(run), error, code: ErrorCode::RunCancelled }
    }
}

/// The session, and what happened to it before the call.
#[derive(Clone, Debug, Serialize)]
pub struct SessionNote {
    session_id: SessionId,
    #[serde(skip_serializing_if = "is_false")]
    new_session: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    revived: Option<String>,
}

impl SessionNote {
    #[must_use]
    pub fn new(session_id: SessionId, is_new: bool, before: Option<&Metadata>) -> Self {
        Self { session_id, new_session: is_new, revived: before.map(revival) }
    }
}

/// An answer whose own type does not have the session.
#[derive(Clone, Debug, Serialize)]
pub struct InSession<T> {
    #[serde(flatten)]
    answer: T,
    #[serde(flatten)]
    note: SessionNote,
}

impl<T> InSession<T> {
    #[must_use]
    pub fn noted(answer: T, note: SessionNote) -> Self {
        Self { answer, note }
    }

    #[must_use]
    pub fn of(answer: T, session_id: SessionId) -> Self {
        Self::noted(answer, SessionNote::new(session_id, false, None))
    }
}

/// An answer, and what happened to its session before the call.
#[derive(Clone, Debug, Serialize)]
pub struct Continued<T> {
    #[serde(flatten)]
    answer: T,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub revived: Option<String>,
}

impl<T> Continued<T> {
    #[must_use]
    pub fn of(answer: T, continuity: &Continuity) -> Self {
        Self { answer, revived: continuity.previous().map(revival) }
    }
}

/// An answer about a new session of the workspace.
#[derive(Clone, Debug, Serialize)]
pub struct WithKey<T> {
    #[serde(flatten)]
    pub answer: T,
    pub session_key: String,
}

/// A finished run.
#[derive(Clone, Debug, Serialize)]
pub struct Finished {
    success: bool,
    stdout: String,
    stderr: String,
    #[serde(rename = "exitCode")]
    exit_code: i32,
    error: Option<String>,
    language: Language,
    duration: Milliseconds,
    /// Null when an eval has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Option<String>>,
    run: RunNo,
    kernel: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    as_of_run: Option<RunNo>,
    timed_out: bool,
    #[serde(skip_serializing_if = "is_false")]
    interrupted: bool,
    #[serde(skip_serializing_if = "is_false")]
    repeated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    data: Option<Value>,
    #[serde(skip_serializing_if = "Encodings::is_empty")]
    encoding: Encodings,
    #[serde(skip_serializing_if = "Truncations::is_empty")]
    truncated: Truncations,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    rendered: Vec<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    notes: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    jobs_ended: Vec<EndedJob>,
}

impl Finished {
    #[must_use]
    pub fn of(done: &Completed, shape: RunAction, sizing: &Sizing) -> Self {
        let error = error_of(done).map(|error| text::sentence(&error));
        let run = RunResult::sized(done, sizing, shape == RunAction::Eval);
        let result = match (run.result, shape) {
            (Some(result), _) => Some(Some(result)),
            (None, RunAction::Eval) => Some(None),
            (None, RunAction::Exec) => None,
        };
        Self {
            success: error.is_none(),
            stdout: run.stdout,
            stderr: run.stderr,
            exit_code: run.exit_code,
            error,
            language: run.language,
            duration: run.execution_time_ms,
            result,
            run: run.run,
            kernel: run.kernel,
            as_of_run: run.as_of_run,
            timed_out: run.timed_out,
            interrupted: run.interrupted,
            repeated: run.repeated,
            data: run.data,
            encoding: run.encoding,
            truncated: run.truncated,
            rendered: run.rendered,
            notes: run.notes,
            jobs_ended: run.jobs_ended,
        }
    }
}

/// A run that is still going.
pub type Running = Success<Output>;

/// The same for a client that has watched it.
pub type SoFar = Success<OutputSoFar>;

/// The answer to a reset.
#[derive(Clone, Debug, Serialize)]
pub struct Reset {
    message: &'static str,
}

impl Reset {
    #[must_use]
    pub fn done() -> Success<Self> {
        Success::of(Self { message: RESET })
    }
}

/// The history of runs.
#[derive(Clone, Debug, Serialize)]
pub struct History {
    history: Vec<HistoryRow>,
}

impl History {
    #[must_use]
    pub fn of(entries: Vec<Entry>) -> Success<Self> {
        Success::of(Self { history: entries.into_iter().map(HistoryRow::from).collect() })
    }
}

/// An entry of the history with the tool's field names.
#[derive(Clone, Debug, Serialize)]
pub struct HistoryRow {
    timestamp: String,
    command: String,
    language: Language,
    duration: u64,
    #[serde(rename = "exitCode")]
    exit_code: i32,
    run: RunNo,
    #[serde(skip_serializing_if = "Option::is_none")]
    event: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    notes: Option<Vec<String>>,
}

impl From<Entry> for HistoryRow {
    fn from(entry: Entry) -> Self {
        let notes = entry.event.is_some().then_some(entry.remarks.notes);
        Self {
            timestamp: entry.timestamp,
            command: text::mask_text(&entry.command).into_owned(),
            language: entry.language,
            duration: entry.duration_ms,
            exit_code: entry.exit_code,
            run: entry.run,
            event: entry.event,
            notes,
        }
    }
}

/// The outcome of an interrupt.
#[derive(Clone, Debug, Serialize)]
pub struct Interrupt {
    status: &'static str,
    run: Option<RunNo>,
    pub message: String,
    session_id: SessionId,
}

impl Interrupt {
    /// `asked`: the requested run, if one was named.
    #[must_use]
    pub fn of(interrupted: Option<RunNo>, asked: Option<RunNo>, session_id: SessionId) -> Self {
        let (status, message) = match (interrupted, asked) {
            (Some(run), _) => {
                ("interrupted", format!("run {run} is interrupted; the state is kept"))
            }
            (None, Some(run)) => ("idle", format!("run {run} is not running")),
            (None, None) => ("idle", "nothing is running".to_owned()),
        };
        Self { status, run: interrupted, message, session_id }
    }
}

/// A piece of a run's output.
#[derive(Clone, Debug, Serialize)]
pub struct Read {
    pub run: RunNo,
    pub stream: &'static str,
    pub from: u64,
    pub data: String,
    pub next: u64,
    pub more: bool,
    pub running: bool,
    pub session_id: SessionId,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encoding: Option<Encoding>,
}

/// A signal that was sent.
#[derive(Clone, Debug, Serialize)]
pub struct Signal {
    pub processes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run: Option<RunNo>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    pub session_id: SessionId,
}

/// Runs, and their background jobs.
#[derive(Clone, Debug, Serialize)]
pub struct Jobs {
    pub runs: Vec<RunRow>,
    pub jobs: Vec<Job>,
    pub session_id: SessionId,
}

/// A page of sessions.
#[derive(Clone, Debug, Serialize)]
pub struct SessionListing {
    pub sessions: Vec<Value>,
    /// There are older ones.
    pub more: bool,
}

/// The activity of sessions.
#[derive(Clone, Debug, Serialize)]
pub struct Top {
    pub sessions: Vec<Value>,
}

/// The screen of a run with a terminal.
#[derive(Clone, Debug, Serialize)]
pub struct SessionScreen {
    #[serde(flatten)]
    pub screen: Screen,
    pub session_id: SessionId,
    /// Set when the run is over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
}

/// A run of the list, with its output.
#[derive(Clone, Debug, Serialize)]
pub struct LoggedRun<'a> {
    #[serde(flatten)]
    pub row: &'a RunRow,
    #[serde(flatten)]
    pub output: LoggedOutput,
}

#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum LoggedOutput {
    Finished(Box<RunResult>),
    SoFar(Box<OutputSoFar>),
    /// It was dropped from the history meanwhile.
    Dropped {
        error: String,
    },
}

/// Runs with their output.
#[derive(Clone, Debug, Serialize)]
pub struct Logs {
    pub runs: Vec<Map<String, Value>>,
    /// The position for the next call.
    pub after: String,
    pub session_id: SessionId,
}
