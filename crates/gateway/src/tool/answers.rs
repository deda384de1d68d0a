//! What the `runtime` tool answers, and the tools of MCP that come back to runs.

use super::{Shape, error_of};
use crate::answer::{
    Encoding, Encodings, Job, Milliseconds, Output, OutputSoFar, RunResult, RunRow, Truncations,
    is_false, revival,
};
use crate::{Error, ErrorCode};
use serde::Serialize;
use serde_json::{Map, Value};
use sessile_protocol::{Completed, Language, RunNo, SessionId};
use sessile_store::{Entry, Metadata};

/// What a reset says.
const RESET: &str =
    "Runtime reset: fresh kernels, empty history, everything that was running is ended";

/// Something that was done.
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

/// Something that was not done. A refusal is an answer, too.
#[derive(Clone, Debug, Serialize)]
pub struct Failed {
    success: bool,
    /// Of a run that was interrupted because its caller did not want it any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<RunNo>,
    error: String,
    code: ErrorCode,
}

impl From<&Error> for Failed {
    fn from(error: &Error) -> Self {
        Self { success: false, run: None, error: error.message.clone(), code: error.code }
    }
}

impl Failed {
    /// The caller did not want the run any more.
    #[must_use]
    pub fn cancelled(run: RunNo) -> Self {
        let error = format!("cancelled; run {run} was interrupted");
        Self { success: false, run: Some(run), error, code: ErrorCode::RunCancelled }
    }
}

/// Which session it was, and what happened to it before the call.
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
    notes: Vec<String>,
}

impl Finished {
    #[must_use]
    pub fn of(done: &Completed, shape: Shape) -> Self {
        let error = error_of(done);
        let run = RunResult::from(done);
        // A shell's value is what it prints.
        let printed = || done.language.is_shell().then(|| run.stdout.trim_end_matches('\n'));
        let result = match (&run.result, shape) {
            (Some(result), _) => Some(Some(result.clone())),
            (None, Shape::Eval) => Some(printed().map(str::to_owned)),
            (None, Shape::Exec) => None,
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
            notes: run.notes,
        }
    }
}

/// A run that is still going.
pub type Running = Success<Output>;

/// The same for somebody who has watched it.
pub type SoFar = Success<OutputSoFar>;

/// What the kernels know.
#[derive(Clone, Debug, Serialize)]
pub struct State {
    state: Map<String, Value>,
}

impl State {
    /// From the state of live kernels: the parts of all of them that an agent
    /// looks for are at the top.
    #[must_use]
    pub fn of(mut state: Map<String, Value>, history: Vec<Entry>) -> Success<Self> {
        gather(&mut state);
        let history: Vec<HistoryRow> = history.into_iter().map(HistoryRow::from).collect();
        state.insert("history".into(), serde_json::to_value(history).unwrap_or_default());
        Success::of(Self { state })
    }
}

/// The parts of all live kernels that an agent looks for at the top.
fn gather(state: &mut Map<String, Value>) {
    let kernels = state.get("kernels").and_then(Value::as_object).cloned().unwrap_or_default();
    for name in ["functions", "imports"] {
        let mut all = Vec::new();
        for kernel in kernels.values() {
            for item in kernel.get(name).and_then(Value::as_array).into_iter().flatten() {
                let item = item.get("name").unwrap_or(item).clone();
                if !all.contains(&item) {
                    all.push(item);
                }
            }
        }
        state.insert(name.into(), all.into());
    }
    let mut variables = Map::new();
    for (language, kernel) in &kernels {
        if let Some(found) = kernel.get("variables") {
            variables.insert(language.clone(), found.clone());
        }
    }
    state.insert("variables".into(), variables.into());
    state.shift_remove("language");
    state.insert("languages".into(), kernels.keys().cloned().collect::<Vec<_>>().into());
}

/// Fresh kernels.
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

/// What was run.
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

/// An entry of the history in the tool's words.
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
            command: entry.command,
            language: entry.language,
            duration: entry.duration_ms,
            exit_code: entry.exit_code,
            run: entry.run,
            event: entry.event,
            notes,
        }
    }
}

/// What an interrupt came to.
#[derive(Clone, Debug, Serialize)]
pub struct Interrupt {
    status: &'static str,
    run: Option<RunNo>,
    pub message: String,
    session_id: SessionId,
}

impl Interrupt {
    /// `asked`: the run that was meant, if any in particular.
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

/// Runs, and what they have left in the background.
#[derive(Clone, Debug, Serialize)]
pub struct Jobs {
    pub runs: Vec<RunRow>,
    pub jobs: Vec<Job>,
    pub session_id: SessionId,
}
