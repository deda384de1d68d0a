//! What answers look like.

use crate::http::branch_wire::AutoRequest;
use serde_json::{Map, Value};
use utoipa::ToSchema;

/// What became of the session since it was last used.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "only described: it is rendered elsewhere")]
pub(in crate::http) struct Continuity {
    #[schema(inline)]
    status: ContinuityStatus,
    /// The run whose state was brought back
    #[schema(required = false)]
    as_of_run: u64,
    /// Runs that were going when the keeper died
    #[schema(required = false)]
    lost_runs: Vec<u64>,
    /// The session's metadata before
    #[schema(required = false, value_type = Object)]
    previous: Value,
}

#[derive(Debug, ToSchema)]
#[schema(rename_all = "lowercase")]
#[expect(dead_code, reason = "only described: it is rendered elsewhere")]
enum ContinuityStatus {
    Live,
    Restored,
    Fresh,
}

/// A run: its result, or what there is of it while `running` is true.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "only described: it is rendered elsewhere")]
pub(in crate::http) struct RunResult {
    stdout: String,
    stderr: String,
    run: u64,
    running: bool,
    /// It is blocked in a read of its stdin, and has read all that it was given
    #[schema(required = false)]
    waiting_for_input: bool,
    /// Of a run that is still going: how far its output was read
    #[schema(required = false, example = "12-0")]
    cursor: String,
    #[schema(required = false)]
    exit_code: i32,
    #[schema(required = false)]
    execution_time_ms: f64,
    /// kept, restarted, restored or fresh
    #[schema(required = false)]
    kernel: String,
    #[schema(required = false)]
    as_of_run: u64,
    #[schema(required = false)]
    language: String,
    #[schema(required = false)]
    timed_out: bool,
    #[schema(required = false)]
    interrupted: bool,
    /// The value of the last expression
    #[schema(required = false)]
    result: String,
    /// Richer forms of the value, by MIME type
    #[schema(required = false, value_type = Object)]
    data: Value,
    /// What the code raised: its `type` and `message`
    #[schema(required = false, value_type = Object)]
    error: Value,
    /// Streams that are not text come as base64
    #[schema(required = false, value_type = Object)]
    encoding: Value,
    /// What was left out of long streams
    #[schema(required = false, value_type = Object)]
    truncated: Value,
    #[schema(required = false)]
    notes: Vec<String>,
    /// The answer to an earlier request with the same Idempotency-Key
    #[schema(required = false)]
    repeated: bool,
    #[schema(required = false)]
    continuity: Continuity,
}

/// A run in a list.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "only described: it is rendered elsewhere")]
pub(in crate::http) struct RunRow {
    run: u64,
    /// queued, running, exited (something may still write) or closed
    phase: String,
    language: String,
    command: String,
    /// When it began
    #[schema(nullable)]
    timestamp: Option<String>,
    #[schema(required = false)]
    exit_code: i32,
    #[schema(required = false)]
    duration_ms: u64,
    #[schema(required = false)]
    interactive: bool,
    /// It is blocked in a read of its stdin, and has read all that it was given
    #[schema(required = false)]
    waiting_for_input: bool,
    /// It has a terminal
    #[schema(required = false)]
    terminal: bool,
    #[schema(required = false)]
    timed_out: bool,
    #[schema(required = false)]
    interrupted: bool,
    /// What it is, if it is no run: `rewind`
    #[schema(required = false)]
    event: String,
}

/// A job: a process in the background, with all that descends from it.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "only described: it is rendered elsewhere")]
pub(in crate::http) struct JobRow {
    pid: u32,
    command: String,
    /// The run that started it, where that can be told
    #[schema(nullable)]
    run: Option<u64>,
    #[schema(nullable)]
    language: Option<String>,
    /// running or stopped
    state: String,
    started_at: String,
    /// Processor time of all its processes, ended ones included
    cpu_ms: u64,
    /// On average since it was started; not of one that is younger than a second
    #[schema(required = false)]
    cpu_percent: f64,
    /// Resident memory of all its processes
    memory_bytes: u64,
    processes: u64,
    ports: Vec<JobPort>,
}

#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "only described: it is rendered elsewhere")]
pub(in crate::http) struct JobPort {
    port: u16,
    /// tcp or udp
    protocol: String,
    address: String,
}

/// What `sessile start` answers.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "only described: it is rendered elsewhere")]
pub(in crate::http) struct Started {
    session_id: String,
    command: String,
    work_dir: String,
    status: String,
}

/// A session's metadata.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "only described: it is rendered elsewhere")]
pub(in crate::http) struct SessionInfo {
    session_id: String,
    command: String,
    created_at: String,
    #[schema(nullable)]
    last_executed_at: Option<String>,
    /// starting, active, terminated or lost
    status: String,
    work_dir: String,
    execution_count: u64,
    language: String,
    /// The checkpoints that it takes before runs, if it does
    #[schema(required = false)]
    auto: AutoRequest,
    /// The session that it is a fork of, if it is one
    #[schema(required = false)]
    forked_from: ForkedFrom,
}

#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "only described: it is rendered elsewhere")]
pub(in crate::http) struct ForkedFrom {
    session_id: String,
    /// The newest run of it that the fork has seen
    as_of_run: u64,
}

#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "only described: it is rendered elsewhere")]
pub(in crate::http) struct SessionPage {
    sessions: Vec<SessionInfo>,
    /// Where the next page begins, if there is one
    #[schema(nullable)]
    next: Option<String>,
}

#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "only described: it is rendered elsewhere")]
pub(in crate::http) struct HistoryRow {
    run: u64,
    timestamp: String,
    command: String,
    language: String,
    exit_code: i32,
    duration_ms: u64,
    /// What it is, if it is no run: `rewind`
    #[schema(required = false)]
    event: String,
    #[schema(required = false)]
    notes: Vec<String>,
}

#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "only described: it is rendered elsewhere")]
pub(in crate::http) struct OutputChunk {
    #[schema(required = false)]
    data: String,
    /// `base64` if the bytes are no text; of both streams, by their names
    #[schema(required = false, value_type = Value)]
    encoding: Value,
    /// Where to read on
    #[schema(required = false)]
    next: u64,
    /// Of both streams
    #[schema(required = false)]
    stdout: String,
    #[schema(required = false)]
    stderr: String,
    /// Where to read on in both
    #[schema(required = false)]
    cursor: String,
    /// queued, running, exited or closed
    phase: String,
}

/// Any object.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "only described: it is rendered elsewhere")]
pub(in crate::http) struct Anything {
    #[serde(flatten)]
    #[schema(value_type = Object)]
    fields: Map<String, Value>,
}

/// What is refused, and why.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "only described: it is rendered elsewhere")]
pub(in crate::http) struct ErrorBody {
    error: ErrorDetail,
}

#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "only described: it is rendered elsewhere")]
pub(in crate::http) struct ErrorDetail {
    /// Stable: programs match on it
    code: String,
    message: String,
    /// What to do
    hint: String,
}
