//! Runs: finished, running, listed.

use super::stream::{self, Encoding, Encodings, Milliseconds, Truncations};
use super::{Continuity, is_false};
use crate::cursor::{self, Cursor};
use crate::text::{self, RunText, Sizing, StreamFrom};
use serde::Serialize;
use serde_json::Value;
use sessile_protocol::{
    Completed, EndedJob, KernelFate, Language, MetLimit, OpenRun, OutputView, Queued, RunError,
    RunNo, RunPhase,
};
use sessile_store::Entry;
use std::collections::BTreeMap;
use utoipa::ToSchema;

/// A finished run
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RunResult {
    pub stdout: String,
    pub stderr: String,
    pub exit_code: i32,
    #[schema(value_type = f64)]
    pub execution_time_ms: Milliseconds,
    pub run: RunNo,
    /// kept, restarted, restored or fresh
    #[schema(value_type = String)]
    pub kernel: &'static str,
    /// The run whose state a restored kernel has
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub as_of_run: Option<RunNo>,
    pub language: Language,
    pub timed_out: bool,
    #[serde(skip_serializing_if = "is_false")]
    #[schema(required = false)]
    pub interrupted: bool,
    /// The answer to an earlier request with the same Idempotency-Key
    #[serde(skip_serializing_if = "is_false")]
    #[schema(required = false)]
    pub repeated: bool,
    /// The value of the last expression
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub result: Option<String>,
    /// Richer forms of the value, by MIME type
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Option<Object>)]
    pub data: Option<Value>,
    /// What the code raised: its `type` and `message`
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub error: Option<RunError>,
    #[serde(skip_serializing_if = "Encodings::is_empty")]
    #[schema(required = false)]
    pub encoding: Encodings,
    #[serde(skip_serializing_if = "Truncations::is_empty")]
    #[schema(required = false)]
    pub truncated: Truncations,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub notes: Vec<String>,
    /// Jobs of a shell that have ended since the previous run
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub jobs_ended: Vec<EndedJob>,
    /// Limits of its sandbox that it has reached
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub limits_met: Vec<MetLimit>,
    /// Streams that are told as a terminal would show them
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(ignore)]
    pub rendered: Vec<&'static str>,
    /// Always false; distinguishes a result from the output of an active run
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub running: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub continuity: Option<Continuity>,
}

impl From<&Completed> for RunResult {
    fn from(done: &Completed) -> Self {
        let stdout = stream::encode(&done.stdout, done.run, "stdout");
        let stderr = stream::encode(&done.stderr, done.run, "stderr");
        let data = done.result.as_ref().and_then(|value| value.data_json.as_ref());
        Self {
            stdout: stdout.text,
            stderr: stderr.text,
            result: done.result.as_ref().map(|value| value.text.clone()),
            data: data.and_then(|text| serde_json::from_str(text).ok()),
            error: done.error.clone(),
            encoding: Encodings { stdout: stdout.encoding, stderr: stderr.encoding },
            truncated: Truncations { stdout: stdout.truncated, stderr: stderr.truncated },
            notes: done.notes.clone(),
            ..Self::without_texts(done)
        }
    }
}

impl RunResult {
    /// Returns the outcome; the texts are to be filled in.
    fn without_texts(done: &Completed) -> Self {
        Self {
            stdout: String::new(),
            stderr: String::new(),
            exit_code: done.exit_code,
            execution_time_ms: Milliseconds { microseconds: done.duration_us },
            run: done.run,
            kernel: done.kernel.as_str(),
            as_of_run: match done.kernel {
                KernelFate::Restored { as_of_run } => Some(as_of_run),
                KernelFate::Kept | KernelFate::Restarted | KernelFate::Fresh => None,
            },
            language: done.language,
            timed_out: done.timed_out,
            interrupted: done.interrupted,
            repeated: done.repeated,
            result: None,
            data: None,
            error: None,
            encoding: Encodings::default(),
            truncated: Truncations::default(),
            notes: Vec::new(),
            jobs_ended: done.jobs_ended.clone(),
            limits_met: done.limits_met.clone(),
            rendered: Vec::new(),
            running: None,
            continuity: None,
        }
    }

    /// Returns the same for a model, within its size limits. With `is_eval`, a shell's
    /// output is its value.
    #[must_use]
    pub fn sized(done: &Completed, sizing: &Sizing, is_eval: bool) -> Self {
        let (stdout, stderr) = (StreamFrom::whole(&done.stdout), StreamFrom::whole(&done.stderr));
        let value = match &done.result {
            Some(value) => RunText::Value(&value.text),
            None if is_eval && done.language.is_shell() => RunText::Printed,
            None => RunText::Nothing,
        };
        let shown = sizing.run(done.run, stdout, stderr, value);
        let (data, left_out) = sizing.data(done.result.as_ref());
        let error = done.error.as_ref().map(|error| RunError {
            kind: text::sentence(&error.kind),
            message: text::sentence(&error.message),
        });
        let mut notes = text::sentences(&done.notes);
        notes.extend(left_out);
        Self {
            rendered: shown.rendered(),
            stdout: shown.stdout.text,
            stderr: shown.stderr.text,
            encoding: Encodings { stdout: shown.stdout.encoding, stderr: shown.stderr.encoding },
            truncated: Truncations {
                stdout: shown.stdout.truncated,
                stderr: shown.stderr.truncated,
            },
            result: shown.value,
            data,
            error,
            notes,
            ..Self::without_texts(done)
        }
    }
}

/// The output of a run from a cursor on
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Output {
    pub stdout: String,
    pub stderr: String,
    pub run: RunNo,
    pub running: bool,
    /// It waits in a read of its stdin, and has read all its input
    #[serde(skip_serializing_if = "is_false")]
    #[schema(required = false)]
    pub waiting_for_input: bool,
    /// Set while it is queued
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub queued: Option<Queued>,
    /// queued, running, exited (something may still write) or closed
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub phase: Option<RunPhase>,
    /// The cursor for the next call
    #[schema(example = "12-0")]
    pub cursor: String,
    #[serde(skip_serializing_if = "Encodings::is_empty")]
    #[schema(required = false)]
    pub encoding: Encodings,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub notes: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub continuity: Option<Continuity>,
}

impl Output {
    /// Returns requested output.
    #[must_use]
    pub fn of(run: RunNo, view: &OutputView) -> Self {
        Self { phase: Some(view.phase), ..Self::running(run, view) }
    }

    /// Returns the answer for a run that is still going, with its output so far.
    #[must_use]
    pub fn running(run: RunNo, view: &OutputView) -> Self {
        let (stdout, stdout_encoding) = stream::text(cursor::whole(&view.stdout, view.phase));
        let (stderr, stderr_encoding) = stream::text(cursor::whole(&view.stderr, view.phase));
        Self {
            stdout,
            stderr,
            run,
            running: view.phase < RunPhase::Exited,
            waiting_for_input: view.waiting_for_input,
            queued: view.queued.as_deref().cloned(),
            phase: None,
            cursor: Cursor::after(view).to_string(),
            encoding: Encodings { stdout: stdout_encoding, stderr: stderr_encoding },
            notes: Vec::new(),
            continuity: None,
        }
    }
}

/// Output of one stream from an offset on
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct OutputPiece {
    pub data: String,
    /// The offset for the next call
    pub next: u64,
    /// queued, running, exited (something may still write) or closed
    pub phase: RunPhase,
    /// Set if the bytes are not text
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub encoding: Option<Encoding>,
}

/// A piece of a stream: up to the last whole character, unless nothing more will come.
#[derive(Clone, Debug)]
pub struct Piece {
    pub data: String,
    pub encoding: Option<Encoding>,
    pub next: u64,
}

impl Piece {
    /// Returns the piece for bytes that end at `end`. With `is_last`, no more will come
    /// that could complete a character.
    #[must_use]
    pub fn of(bytes: &[u8], end: u64, is_last: bool) -> Self {
        let whole = match stream::whole_end(bytes) {
            0 => bytes.len(),
            _ if is_last => bytes.len(),
            end => end,
        };
        let (data, encoding) = stream::text(&bytes[..whole]);
        Self { data, encoding, next: end - (bytes.len() - whole) as u64 }
    }
}

impl OutputPiece {
    #[must_use]
    pub fn of(bytes: &[u8], end: u64, phase: RunPhase) -> Self {
        let Piece { data, encoding, next } = Piece::of(bytes, end, phase >= RunPhase::Exited);
        Self { data, next, phase, encoding }
    }
}

/// A run that is going, for somebody who has watched it: the head and the tail
/// of what it has written.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct OutputSoFar {
    pub stdout: String,
    pub stderr: String,
    pub run: RunNo,
    pub running: bool,
    #[serde(skip_serializing_if = "Encodings::is_empty")]
    #[schema(required = false)]
    pub encoding: Encodings,
    #[serde(skip_serializing_if = "Truncations::is_empty")]
    #[schema(required = false)]
    pub truncated: Truncations,
    #[serde(skip_serializing_if = "is_false")]
    #[schema(required = false)]
    pub waiting_for_input: bool,
    /// Set while it is queued
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub queued: Option<Queued>,
    /// Where the text begins in the stream, if not at its beginning
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub stdout_from: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub stderr_from: Option<u64>,
    /// Streams that are told as a terminal would show them
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(ignore)]
    pub rendered: Vec<&'static str>,
}

impl OutputSoFar {
    /// Returns the output so far, within its size limits.
    #[must_use]
    pub fn sized(
        run: RunNo,
        stdout: StreamFrom<'_>,
        stderr: StreamFrom<'_>,
        sizing: &Sizing,
    ) -> Self {
        let shown = sizing.run(run, stdout, stderr, RunText::Nothing);
        Self {
            rendered: shown.rendered(),
            stdout: shown.stdout.text,
            stderr: shown.stderr.text,
            run,
            running: true,
            encoding: Encodings { stdout: shown.stdout.encoding, stderr: shown.stderr.encoding },
            truncated: Truncations {
                stdout: shown.stdout.truncated,
                stderr: shown.stderr.truncated,
            },
            waiting_for_input: false,
            queued: None,
            stdout_from: Some(stdout.first).filter(|at| *at > 0),
            stderr_from: Some(stderr.first).filter(|at| *at > 0),
        }
    }
}

/// A run in a list
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RunRow {
    pub run: RunNo,
    /// The kind of event, if it is not a run: `rewind`
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub event: Option<String>,
    /// queued, running, exited (something may still write) or closed
    pub phase: RunPhase,
    pub language: Language,
    pub command: String,
    /// When it began
    #[schema(nullable)]
    pub timestamp: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub exit_code: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub duration_ms: Option<u64>,
    #[serde(skip_serializing_if = "is_false")]
    #[schema(required = false)]
    pub timed_out: bool,
    #[serde(skip_serializing_if = "is_false")]
    #[schema(required = false)]
    pub interrupted: bool,
    #[serde(skip_serializing_if = "is_false")]
    #[schema(required = false)]
    pub interactive: bool,
    /// It waits in a read of its stdin, and has read all its input
    #[serde(skip_serializing_if = "is_false")]
    #[schema(required = false)]
    pub waiting_for_input: bool,
    /// It has a terminal
    #[serde(skip_serializing_if = "is_false")]
    #[schema(required = false)]
    pub terminal: bool,
    /// Set while it is queued
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub queued: Option<Queued>,
    /// Notes of an event
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub notes: Option<Vec<String>>,
}

impl RunRow {
    /// Whether it has ended, or never began.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.exit_code.is_some() || self.event.is_some()
    }
}

impl From<&OpenRun> for RunRow {
    fn from(run: &OpenRun) -> Self {
        Self {
            run: run.run,
            event: None,
            phase: run.phase,
            language: run.language,
            command: run.command.clone(),
            timestamp: run.timestamp.clone(),
            exit_code: None,
            duration_ms: None,
            timed_out: false,
            interrupted: false,
            interactive: run.interactive,
            waiting_for_input: run.waiting_for_input,
            terminal: run.terminal,
            queued: run.queued.as_deref().cloned(),
            notes: None,
        }
    }
}

impl From<&Entry> for RunRow {
    fn from(entry: &Entry) -> Self {
        let is_run = entry.event.is_none();
        Self {
            run: entry.run,
            event: entry.event.clone(),
            phase: RunPhase::Closed,
            language: entry.language,
            command: entry.command.clone(),
            timestamp: Some(entry.timestamp.clone()),
            exit_code: is_run.then_some(entry.exit_code),
            duration_ms: is_run.then_some(entry.duration_ms),
            timed_out: is_run && entry.timed_out,
            interrupted: is_run && entry.interrupted,
            interactive: false,
            waiting_for_input: false,
            terminal: false,
            queued: None,
            notes: (!is_run).then(|| entry.remarks.notes.clone()),
        }
    }
}

/// Merges finished and unfinished runs, oldest first.
#[must_use]
pub fn runs(open: &[OpenRun], finished: &[Entry]) -> Vec<RunRow> {
    let rows = finished.iter().map(|entry| (entry.run, RunRow::from(entry)));
    let mut all: BTreeMap<RunNo, RunRow> = rows.collect();
    for run in open {
        match all.get_mut(&run.run) {
            Some(known) => known.phase = run.phase,
            None => drop(all.insert(run.run, run.into())),
        }
    }
    all.into_values().collect()
}
