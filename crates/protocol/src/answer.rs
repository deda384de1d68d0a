//! Answers of a keeper.

use crate::{
    CheckpointView, EndedJob, ForkedView, JobsView, Language, LimitsView, MetLimit, PortsView,
    RewoundView, RunNo, SavedView, ScreenView,
};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// The run has its number, and has not finished yet.
    Accepted {
        run: RunNo,
        /// The run is interactive and waits for input, and the call asked to know that.
        #[serde(default)]
        waiting_for_input: bool,
    },
    Completed(Box<Completed>),
    Output(OutputView),
    State(StateView),
    History(HistoryView),
    /// The interrupted run; none when nothing was running.
    Interrupted {
        run: Option<RunNo>,
    },
    /// Number of input bytes that the run has not read yet.
    Input {
        unread: u64,
    },
    /// Number of processes that got the signal.
    Signalled {
        processes: u64,
    },
    Reset(Reset),
    Renamed,
    Adopted,
    Ended,
    /// Whether the keeper can see the program, and will notice its end.
    EndsWith {
        is_watched: bool,
    },
    Status(Status),
    Runs(RunsView),
    Screen(Box<ScreenView>),
    Resized,
    Jobs(JobsView),
    Ports(PortsView),
    Forked(Box<ForkedView>),
    Checkpointed(Box<CheckpointView>),
    Checkpoints {
        checkpoints: Vec<CheckpointView>,
    },
    Rewound(Box<RewoundView>),
    /// The names of the removed checkpoints.
    Dropped {
        names: Vec<String>,
    },
    Saved(Box<SavedView>),
}

impl Answer {
    /// Returns the answer for a run that has its number.
    #[must_use]
    pub fn accepted(run: RunNo) -> Self {
        Self::Accepted { run, waiting_for_input: false }
    }
}

/// A finished run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Completed {
    pub run: RunNo,
    pub language: Language,
    pub exit_code: i32,
    pub duration_us: u64,
    pub stdout: StreamView,
    pub stderr: StreamView,
    pub kernel: KernelFate,
    #[serde(default)]
    pub timed_out: bool,
    #[serde(default)]
    pub interrupted: bool,
    #[serde(default)]
    pub result: Option<RunValue>,
    #[serde(default)]
    pub error: Option<RunError>,
    /// Notes for people, for instance what could not be carried over.
    #[serde(default)]
    pub notes: Vec<String>,
    /// Jobs of a shell that ended during this run, or since the one before.
    #[serde(default)]
    pub jobs_ended: Vec<EndedJob>,
    /// Limits of the sandbox that the run has met.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits_met: Vec<MetLimit>,
    /// This is the answer to an earlier exec with the same key.
    #[serde(default)]
    pub repeated: bool,
    /// Input typed on its terminal that it did not read, for the next reader.
    #[serde(default, with = "serde_bytes", skip_serializing_if = "Vec::is_empty")]
    pub unread: Vec<u8>,
}

/// A stream's head and tail, and the number of bytes between them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamView {
    #[serde(with = "serde_bytes")]
    pub head: Vec<u8>,
    #[serde(with = "serde_bytes")]
    pub tail: Vec<u8>,
    /// Bytes that the run has written to this stream.
    pub total: u64,
    /// Number of these bytes that are kept on disk.
    pub stored: u64,
}

impl StreamView {
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.total - (self.head.len() + self.tail.len()) as u64
    }
}

/// What happened to the kernel during this run, or since the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "fate")]
pub enum KernelFate {
    /// The same process as before.
    Kept,
    /// A new process, with the state that the old one had when it ended.
    Restarted,
    /// A new process, with the state as it was after run `as_of_run`.
    Restored { as_of_run: RunNo },
    /// A new process without any state.
    Fresh,
}

impl KernelFate {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Kept => "kept",
            Self::Restarted => "restarted",
            Self::Restored { .. } => "restored",
            Self::Fresh => "fresh",
        }
    }
}

/// The value of a run's last expression.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RunValue {
    pub text: String,
    /// Richer forms by MIME type, as JSON text.
    #[serde(default)]
    pub data_json: Option<String>,
}

/// What the code raised.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RunError {
    #[serde(rename = "type")]
    pub kind: String,
    pub message: String,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct OutputView {
    #[serde(with = "serde_bytes")]
    pub stdout: Vec<u8>,
    pub stdout_next: u64,
    #[serde(with = "serde_bytes")]
    pub stderr: Vec<u8>,
    pub stderr_next: u64,
    pub phase: RunPhase,
    /// The run is interactive, is blocked in a read of its stdin, and has read all its input.
    #[serde(default)]
    pub waiting_for_input: bool,
    /// Present while the run is queued.
    #[serde(default)]
    pub queued: Option<Box<Queued>>,
}

/// The place of a run in the queue
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Queued {
    /// 1 is the next run
    pub place: u64,
    /// The active run. Absent while the interpreter starts, or during an operation on the
    /// whole session
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(nullable = false))]
    pub behind: Option<Behind>,
}

/// A run that others are queued behind
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Behind {
    pub run: RunNo,
    /// Its first line, possibly shortened
    pub command: String,
}

impl std::fmt::Display for Queued {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "queued at place {}", self.place)?;
        match &self.behind {
            Some(Behind { run, command }) => write!(f, ", behind run {run} ({command})"),
            None => Ok(()),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum RunPhase {
    Queued,
    Running,
    /// The kernel has answered; something that the run started may still
    /// write to its streams.
    Exited,
    /// Nothing can write any more.
    Closed,
}

impl RunPhase {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Exited => "exited",
            Self::Closed => "closed",
        }
    }
}

/// States of the live kernels, as JSON text; each kernel defines its shape.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StateView {
    pub default_language: Language,
    pub kernels: Vec<KernelState>,
    /// Present if the session has a sandbox with limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<Box<LimitsView>>,
}

/// Keys in a kernel's state: the environment variables and the limits that differ from
/// those that its session was started with.
pub const CHANGED_VARIABLES: &str = "env_changed";
pub const CHANGED_LIMITS: &str = "limits_changed";

/// The state of one kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelState {
    pub language: Language,
    pub as_of_run: RunNo,
    /// The kernel has an active run: the state is the last captured one.
    pub busy: bool,
    pub json: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryView {
    pub entries: Vec<HistoryEntry>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryEntry {
    pub run: RunNo,
    pub timestamp: String,
    pub command: String,
    pub language: Language,
    pub exit_code: i32,
    pub duration_ms: u64,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub timed_out: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reset {
    pub ended_processes: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Status {
    pub keeper_pid: u32,
    pub version: String,
    pub running: Vec<RunNo>,
    pub queued: u64,
    pub kernels: Vec<KernelStatus>,
    /// Present if the session has a sandbox with limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<Box<LimitsView>>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct KernelStatus {
    pub language: Language,
    pub pid: u32,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunsView {
    /// Oldest first.
    pub runs: Vec<OpenRun>,
}

/// A run that is not over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenRun {
    pub run: RunNo,
    pub language: Language,
    /// The beginning of it, if it is long.
    pub command: String,
    pub phase: RunPhase,
    /// When it began; none while it is queued.
    #[serde(default)]
    pub timestamp: Option<String>,
    #[serde(default)]
    pub interactive: bool,
    #[serde(default)]
    pub waiting_for_input: bool,
    /// The run has a terminal.
    #[serde(default)]
    pub terminal: bool,
    /// Present while the run is queued.
    #[serde(default)]
    pub queued: Option<Box<Queued>>,
}
