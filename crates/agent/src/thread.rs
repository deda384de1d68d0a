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
    pub what: What,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = ThreadEntryKind))]
pub enum What {
    /// The first line.
    Created {
        format: u32,
        thread: ThreadId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        forked_from: Option<ThreadId>,
        /// Tasks of threads before this one, which were lost: numbers go on.
        #[serde(default, skip_serializing_if = "is_zero")]
        earlier_tasks: u64,
    },
    /// What the caller wants.
    Task {
        task: TaskNo,
        text: String,
        #[serde(default)]
        limits: Limits,
        /// What had become of the session; absent: it was live.
        #[serde(default, skip_serializing_if = "Continuity::is_live")]
        continuity: Continuity,
        /// The caller's name for it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        key: Option<String>,
    },
    /// What the model answered.
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
    /// What a call is about to make of a file. Whether it has done so is seen by the
    /// file after a crash.
    Intent(Intent),
    Outcome(Outcome),
    /// What the model made of everything before, in its place.
    Summary {
        text: String,
        #[serde(default)]
        usage: Usage,
    },
    /// The task is to end this way as soon as the call that is under way has.
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
    /// The session can go back to where it was before this step did anything.
    Checkpoint(Checkpoint),
    /// The thread and its session are about to go back.
    Rewinding(Rewind),
    /// They have: what came after `kept` does not count any more.
    Rewound {
        #[serde(flatten)]
        rewind: Rewind,
        /// The number that this has in the session's history.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        #[cfg_attr(feature = "schema", schema(nullable = false))]
        run: Option<u64>,
    },
    /// They have not, and are as they were.
    NotRewound {
        why: String,
    },
    /// Somebody has taken the session back, without the thread.
    SessionRewound {
        /// The number that this has in the session's history.
        run: u64,
        note: String,
    },
    /// What a command-line agent does; or what an answer that does not count has used.
    Activity {
        task: TaskNo,
        #[serde(flatten)]
        activity: Activity,
    },
    /// The thread goes on here. It was in another place before.
    Imported {
        from_session: String,
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        lost: Vec<String>,
    },
    /// The thread goes on in another place.
    Moved(Moved),
    /// What had become of the session: when its id came again, which its next task
    /// tells, or in the middle of a task.
    Continued(Continuity),
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// What was kept of a session before a step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = StepCheckpoint))]
pub struct Checkpoint {
    pub step: u64,
    /// The session's name for it; absent when none could be taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(nullable = false))]
    pub name: Option<String>,
    /// With the files of the workspace.
    #[serde(default)]
    pub files: bool,
    /// Why none could be taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(nullable = false))]
    pub error: Option<String>,
}

/// How far a thread goes back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = ThreadRewind))]
pub struct Rewind {
    /// The last step that still counts; 0: none does.
    pub step: u64,
    /// The last entry that still counts.
    pub kept: u64,
    /// Steps that are taken back.
    pub steps: Vec<u64>,
    /// Tasks that are taken back as a whole.
    pub tasks: Vec<TaskNo>,
    /// The session's checkpoint; absent when nothing was done there since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(nullable = false))]
    pub checkpoint: Option<String>,
}

/// Where an agent has gone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = MovedTo))]
#[serde(deny_unknown_fields)]
pub struct Moved {
    /// The server that has it now, as whoever moved it calls it.
    pub url: String,
    /// Its session there.
    pub session_id: String,
}

/// What a command-line agent tells of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = AgentActivity))]
#[serde(tag = "activity", rename_all = "snake_case")]
pub enum Activity {
    Text {
        text: String,
    },
    /// A tool of its own that it uses.
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
    /// What it has used since it last said so.
    Usage(Usage),
}

/// What a call makes of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = FileIntent))]
pub struct Intent {
    /// The model's name for the call.
    pub call: String,
    /// SHA-256 of what is in the file; absent: there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(nullable = false))]
    pub before: Option<String>,
    /// SHA-256 of what will be in it.
    pub after: String,
}

/// The state of a file when an intent is carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
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
    pub fn found(&self, hash: Option<&str>) -> Found {
        if hash == Some(self.after.as_str()) {
            Found::After
        } else if hash == self.before.as_deref() {
            Found::Before
        } else {
            Found::Neither
        }
    }
}

/// What a call has come to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = ToolOutcome))]
pub struct Outcome {
    /// The model's name for the call.
    pub call: String,
    pub text: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_error: bool,
    /// The run of the session that it led to.
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
    /// And what the model is told.
    Denied(String),
}

/// How a task ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "ended", rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = TaskEnding))]
pub enum Ending {
    Done {
        output: String,
        /// The model's answer was too long.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        is_cut_off: bool,
    },
    Limit {
        limit: Limit,
    },
    Cancelled,
    /// The model could not be had.
    Failed {
        failure: Failure,
    },
    /// The model refuses.
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
pub fn read(file: &[u8]) -> Result<Contents, Unreadable> {
    let contents = read_on(file, Before::default())?;
    if contents.entries.is_empty() {
        return Err(Unreadable::Empty);
    }
    Ok(contents)
}

/// The counts of what precedes a piece of a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Before {
    pub entries: u64,
    pub steps: u64,
}

/// Reads a file from one of its lines on.
pub fn read_on(piece: &[u8], before: Before) -> Result<Contents, Unreadable> {
    let whole = piece.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    let mut contents = Contents { entries: Vec::new(), starts: Vec::new(), bytes: whole as u64 };
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
            (What::Created { format, .. }, _) if *format > FORMAT => {
                return Err(Unreadable::Newer(*format));
            }
            (What::Created { .. }, 1) => {}
            (What::Created { .. }, _) => return Err(fault("a second beginning".to_owned())),
            (_, 1) => return Err(fault("the beginning is missing".to_owned())),
            (_, _) => {}
        }
        if let What::Reply { step, .. } = &mut entry.what {
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
pub struct Contents {
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
        if let What::Rewound { rewind, .. } = &entry.what {
            let kept = line.partition_point(|before| before.entry <= rewind.kept);
            line.truncate(kept);
        }
        line.push(entry);
    }
    line
}
