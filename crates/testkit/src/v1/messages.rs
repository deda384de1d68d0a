//! The messages of version 1, as they were. Not to be changed: they stand for
//! keepers that were started before an upgrade and are still there.

use serde::{Deserialize, Serialize};
use serde_bytes::ByteBuf;
use std::collections::BTreeMap;

pub(super) const PROTOCOL: u16 = 1;

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Call {
    pub(super) v: u16,
    pub(super) id: u64,
    pub(super) request: Request,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Request {
    Exec(Exec),
    Result {
        run: u64,
        max_output: u64,
    },
    Output(ReadOutput),
    State,
    History {
        limit: u64,
    },
    Interrupt {
        run: Option<u64>,
        #[serde(default)]
        call: Option<u64>,
    },
    Reset,
    End,
    Status,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Exec {
    #[serde(with = "serde_bytes")]
    text: Vec<u8>,
    #[serde(default)]
    language: Option<Language>,
    #[serde(default)]
    timeout_ms: Option<u64>,
    #[serde(default)]
    stdin: Option<ByteBuf>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    #[serde(default)]
    max_output: u64,
    #[serde(default)]
    until: Until,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Until {
    #[default]
    Finished,
    Recorded,
    Accepted,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ReadOutput {
    run: u64,
    stdout_from: u64,
    stderr_from: u64,
    max: u64,
    wait: bool,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Language {
    Bash,
    Sh,
    Zsh,
    Python,
    Node,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Reply {
    pub(super) v: u16,
    pub(super) id: u64,
    pub(super) outcome: Result<Answer, Failure>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Answer {
    Accepted { run: u64 },
    Completed(Box<Completed>),
    Output(OutputView),
    State(StateView),
    History(HistoryView),
    Interrupted { run: Option<u64> },
    Reset(Reset),
    Ended,
    Status(Status),
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Completed {
    run: u64,
    language: Language,
    exit_code: i32,
    duration_us: u64,
    stdout: StreamView,
    stderr: StreamView,
    kernel: KernelFate,
    #[serde(default)]
    timed_out: bool,
    #[serde(default)]
    interrupted: bool,
    #[serde(default)]
    result: Option<RunValue>,
    #[serde(default)]
    error: Option<RunError>,
    #[serde(default)]
    notes: Vec<String>,
}

#[derive(Debug, Serialize, Deserialize)]
struct StreamView {
    #[serde(with = "serde_bytes")]
    head: Vec<u8>,
    #[serde(with = "serde_bytes")]
    tail: Vec<u8>,
    total: u64,
    stored: u64,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "fate")]
enum KernelFate {
    Kept,
    Restarted,
    Restored { as_of_run: u64 },
    Fresh,
}

#[derive(Debug, Serialize, Deserialize)]
struct RunValue {
    text: String,
    #[serde(default)]
    data_json: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
struct RunError {
    #[serde(rename = "type")]
    kind: String,
    message: String,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct OutputView {
    #[serde(with = "serde_bytes")]
    stdout: Vec<u8>,
    stdout_next: u64,
    #[serde(with = "serde_bytes")]
    stderr: Vec<u8>,
    stderr_next: u64,
    phase: RunPhase,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum RunPhase {
    Queued,
    Running,
    Exited,
    Closed,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct StateView {
    default_language: Language,
    kernels: Vec<KernelState>,
}

#[derive(Debug, Serialize, Deserialize)]
struct KernelState {
    language: Language,
    as_of_run: u64,
    busy: bool,
    json: String,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct HistoryView {
    entries: Vec<HistoryEntry>,
}

#[derive(Debug, Serialize, Deserialize)]
struct HistoryEntry {
    run: u64,
    timestamp: String,
    command: String,
    language: Language,
    exit_code: i32,
    duration_ms: u64,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    timed_out: bool,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Reset {
    ended_processes: u64,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Status {
    keeper_pid: u32,
    version: String,
    running: Vec<u64>,
    queued: u64,
    kernels: Vec<KernelStatus>,
}

#[derive(Debug, Serialize, Deserialize)]
struct KernelStatus {
    language: Language,
    pid: u32,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Failure {
    pub(super) code: Code,
    pub(super) message: String,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Code {
    BadRequest,
    CommandHasNul,
    CommandTooLarge,
    QueueFull,
    RunNotFound,
    RunCancelled,
    Ending,
    KernelUnavailable,
    Storage,
    #[serde(other)]
    Unknown,
}
