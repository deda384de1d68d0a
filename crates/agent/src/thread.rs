//! A thread on disk: `thread.jsonl`, one entry per line, appended and never changed.
//!
//! It has everything that the model was shown and did, so that an agent continues from the
//! file alone. It has no secrets of the caller (keys, headers).

use crate::continuity::Continuity;
use crate::ids::{TaskNo, ThreadId};
use crate::limits::{Limit, Limits, Spent};
use crate::model::{Failure, Reply, Usage};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Version of the file's format.
pub const FORMAT: u32 = 1;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = ThreadEntry))]
pub struct Entry {
    /// 1, 2, 3, … in the order of the file.
    pub entry: u64,
    /// Milliseconds since 1970.
    pub at_ms: u64,
    #[serde(flatten)]
    pub what: EntryKind,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = ThreadEntryKind))]
pub enum EntryKind {
    /// The first entry.
    Created {
        format: u32,
        thread: ThreadId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        forked_from: Option<ThreadId>,
        /// Number of tasks in earlier, lost threads; numbering continues after them.
        #[serde(default, skip_serializing_if = "is_zero")]
        earlier_tasks: u64,
    },
    /// A task of the caller.
    Task {
        task: TaskNo,
        text: String,
        #[serde(default)]
        limits: Limits,
        /// What happened to the session before; absent if it was live.
        #[serde(default, skip_serializing_if = "Continuity::is_live")]
        continuity: Continuity,
        /// The caller's key for it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<String>,
    },
    /// An answer of the model.
    Reply {
        task: TaskNo,
        /// 1, 2, 3, … in the thread. A number is not used again after a rewind.
        #[serde(default)]
        step: u64,
        #[serde(flatten)]
        reply: Reply,
    },
    /// Whether a call may be performed.
    Approval {
        call: String,
        verdict: Verdict,
    },
    /// A change that a call is about to make to a file. After a crash, the file shows whether
    /// it was made.
    Intent(Intent),
    Outcome(Outcome),
    /// The model's summary, which replaces everything before it.
    Summary {
        text: String,
        #[serde(default)]
        usage: Usage,
    },
    /// The task ends this way once the current call has ended.
    Stopping {
        #[serde(flatten)]
        ending: Ending,
    },
    Ended {
        task: TaskNo,
        #[serde(flatten)]
        ending: Ending,
        spent: Spent,
    },
    /// A checkpoint of the session before this step.
    Checkpoint(Checkpoint),
    /// A rewind of thread and session begins.
    Rewinding(Rewind),
    /// The rewind is done: entries after `kept` no longer count.
    Rewound {
        #[serde(flatten)]
        rewind: Rewind,
        /// The number of the rewind in the session's history.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "schema", schema(nullable = false))]
        run: Option<u64>,
    },
    /// The rewind failed, and changed nothing.
    NotRewound {
        why: String,
    },
    /// The session was rewound without the thread.
    SessionRewound {
        /// The number of the rewind in the session's history.
        run: u64,
        note: String,
    },
    /// A report of a command-line agent, or the usage of a discarded answer.
    Activity {
        task: TaskNo,
        #[serde(flatten)]
        activity: Activity,
    },
    /// The thread was imported from another server.
    Imported {
        from_session: String,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        lost: Vec<String>,
    },
    /// The thread was moved to another server.
    Moved(Moved),
    /// What happened to the session, before the next task or during one.
    Continued(Continuity),
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// A checkpoint of the session before a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = StepCheckpoint))]
pub struct Checkpoint {
    pub step: u64,
    /// The name of the checkpoint; absent if none could be taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(nullable = false))]
    pub name: Option<String>,
    /// Whether it includes the files of the workspace.
    #[serde(default)]
    pub files: bool,
    /// Why no checkpoint could be taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(nullable = false))]
    pub error: Option<String>,
}

/// The extent of a rewind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = ThreadRewind))]
pub struct Rewind {
    /// The last step that is kept; 0: none.
    pub step: u64,
    /// The last entry that is kept.
    pub kept: u64,
    /// Number of undone steps.
    pub steps: Vec<u64>,
    /// Number of completely undone tasks.
    pub tasks: Vec<TaskNo>,
    /// The session's checkpoint; absent if nothing was run since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(nullable = false))]
    pub checkpoint: Option<String>,
}

/// The new place of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = MovedTo))]
#[serde(deny_unknown_fields)]
pub struct Moved {
    /// The URL of that server, as given by the client that moved it.
    pub url: String,
    /// Its session on that server.
    pub session_id: String,
}

/// A report of a command-line agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = AgentActivity))]
#[serde(tag = "activity", rename_all = "snake_case")]
pub enum Activity {
    Text {
        text: String,
    },
    /// A call of one of its own tools.
    ToolCall {
        #[serde(default)]
        id: String,
        tool: String,
        #[serde(default)]
        input: Value,
    },
    ToolResult {
        #[serde(default)]
        id: String,
        #[serde(default)]
        text: String,
        #[serde(default)]
        is_error: bool,
    },
    /// Its usage since the last report.
    Usage(Usage),
}

/// The change that a call makes to a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = FileIntent))]
pub struct Intent {
    /// The model's id for the call.
    pub call: String,
    /// SHA-256 of the file before the change; absent if there is no file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(nullable = false))]
    pub before: Option<String>,
    /// SHA-256 of the file after the change.
    pub after: String,
}

/// The state of a file when an intent is carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileState {
    /// Unchanged: the change is still to be made.
    Before,
    /// The change was made.
    After,
    /// Another process has changed the file, before or after that.
    Neither,
}

impl Intent {
    /// Returns the state of a file with this hash; none means that there is no file.
    #[must_use]
    pub fn found(&self, hash: Option<&str>) -> FileState {
        if hash == Some(self.after.as_str()) {
            FileState::After
        } else if hash == self.before.as_deref() {
            FileState::Before
        } else {
            FileState::Neither
        }
    }
}

/// The outcome of a call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = ToolOutcome))]
pub struct Outcome {
    /// The model's id for the call.
    pub call: String,
    pub text: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
    /// The run that it started in the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<u64>,
}

impl Outcome {
    #[must_use]
    pub fn error(call: impl Into<String>, text: impl Into<String>) -> Self {
        Self { call: call.into(), text: text.into(), is_error: true, run: None }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = CallVerdict))]
pub enum Verdict {
    Allowed,
    /// With a message for the model.
    Denied(String),
}

/// How a task ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "ended", rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = TaskEnding))]
pub enum Ending {
    Done {
        output: String,
        /// The model's answer was too long, and is cut off.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_cut_off: bool,
    },
    Limit {
        limit: Limit,
    },
    Cancelled,
    /// The model could not be reached.
    Failed {
        failure: Failure,
    },
    /// The model refused.
    Refused {
        output: String,
    },
}

/// Why a file is not a thread.
#[derive(Debug, thiserror::Error)]
pub enum Unreadable {
    #[error("it is empty")]
    Empty,
    #[error("it has format {0}, and this program knows {FORMAT}; use a newer one")]
    Newer(u32),
    #[error("line {line}: {why}")]
    Line { line: u64, why: String },
}

/// Reads the entries of a file. An incomplete last line was being written when the power
/// failed, and nothing was done for it. It is left out, and `bytes` excludes it, so that
/// the next entry overwrites it.
pub fn read(file: &[u8]) -> Result<ThreadContents, Unreadable> {
    let contents = read_on(file, Preceding::default())?;
    if contents.entries.is_empty() {
        return Err(Unreadable::Empty);
    }
    Ok(contents)
}

/// The counts of what precedes a piece of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Preceding {
    pub entries: u64,
    pub steps: u64,
}

/// Reads a file from one of its lines on.
pub fn read_on(piece: &[u8], before: Preceding) -> Result<ThreadContents, Unreadable> {
    let whole = piece.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let mut contents =
        ThreadContents { entries: Vec::new(), starts: Vec::new(), bytes: whole as u64 };
    let mut steps = before.steps;
    let mut start = 0;
    for (number, line) in
        (before.entries + 1..).zip(piece[..whole].split_inclusive(|byte| *byte == b'\n'))
    {
        let fault = |why: String| Unreadable::Line { line: number, why };
        let mut entry: Entry = serde_json::from_slice(line).map_err(|e| fault(e.to_string()))?;
        if entry.entry != number {
            return Err(fault(format!("entry {} is out of order", entry.entry)));
        }
        match (&entry.what, number) {
            (EntryKind::Created { format, .. }, _) if *format > FORMAT => {
                return Err(Unreadable::Newer(*format));
            }
            (EntryKind::Created { .. }, 1) => {}
            (EntryKind::Created { .. }, _) => return Err(fault("a second beginning".to_owned())),
            (_, 1) => return Err(fault("the beginning is missing".to_owned())),
            (_, _) => {}
        }
        if let EntryKind::Reply { step, .. } = &mut entry.what {
            steps += 1;
            // Threads of the first version did not number them.
            *step = steps;
        }
        contents.starts.push(start);
        contents.entries.push(entry);
        start += line.len() as u64;
    }
    Ok(contents)
}

#[derive(Clone, Debug, PartialEq)]
pub struct ThreadContents {
    pub entries: Vec<Entry>,
    /// Offset of each entry.
    pub starts: Vec<u64>,
    /// Length of all entries in the file.
    pub bytes: u64,
}

/// Returns the entries that count: those that no rewind has undone.
#[must_use]
pub fn line(entries: &[Entry]) -> Vec<&Entry> {
    let mut line: Vec<&Entry> = Vec::with_capacity(entries.len());
    for entry in entries {
        if let EntryKind::Rewound { rewind, .. } = &entry.what {
            let kept = line.partition_point(|before| before.entry <= rewind.kept);
            line.truncate(kept);
        }
        line.push(entry);
    }
    line
}
