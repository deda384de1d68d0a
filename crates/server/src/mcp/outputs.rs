//! What the tools answer with, described for clients that check it.

use super::tools::ToolName;
use serde_json::{Map, Value, json};
use sessile_gateway::tool::BranchTool;

/// Refusals have the same shape, so nothing is required. What may be null has no
/// type: strict clients know no unions.
pub(super) fn schema(tool: ToolName) -> Value {
    let properties: Map<String, Value> =
        fields(tool).iter().map(|(name, kind)| ((*name).to_owned(), kind.schema())).collect();
    json!({"type": "object", "properties": properties})
}

#[derive(Clone, Copy)]
enum Kind {
    Any,
    Text,
    Flag,
    Whole,
    Number,
    Object,
    Objects,
    Texts,
    Wholes,
}

use Kind::{Any, Flag, Number, Object, Objects, Text, Texts, Whole, Wholes};

impl Kind {
    fn schema(self) -> Value {
        let list = |of: &str| json!({"type": "array", "items": {"type": of}});
        match self {
            Any => json!({}),
            Text => json!({"type": "string"}),
            Flag => json!({"type": "boolean"}),
            Whole => json!({"type": "integer"}),
            Number => json!({"type": "number"}),
            Object => json!({"type": "object"}),
            Objects => list("object"),
            Texts => list("string"),
            Wholes => list("integer"),
        }
    }
}

type Fields = &'static [(&'static str, Kind)];

const RUNTIME: Fields = &[
    ("success", Flag),
    ("error", Any),
    ("stdout", Text),
    ("stderr", Text),
    ("exitCode", Whole),
    ("result", Any),
    ("run", Any),
    ("running", Flag),
    ("waiting_for_input", Flag),
    ("runs", Objects),
    ("jobs", Objects),
    ("duration", Number),
    ("kernel", Text),
    ("session_id", Text),
    ("checkpoints", Objects),
    ("new_session", Flag),
    ("state", Object),
    ("history", Objects),
];

const EXEC: Fields = &[
    ("stdout", Text),
    ("stderr", Text),
    ("exit_code", Whole),
    ("run", Any),
    ("running", Flag),
    ("waiting_for_input", Flag),
    ("execution_time_ms", Number),
    ("kernel", Text),
    ("timed_out", Flag),
];

const SCREEN: Fields = &[
    ("run", Any),
    ("running", Flag),
    ("waiting_for_input", Flag),
    ("exit_code", Whole),
    ("wait", Text),
    ("text", Text),
    ("cursor", Any),
    ("title", Text),
    ("size", Object),
    ("is_alternate", Flag),
    ("revision", Whole),
    ("session_id", Text),
];

const REWOUND: Fields = &[
    ("checkpoint", Text),
    ("as_of_run", Whole),
    ("run", Whole),
    ("undone", Wholes),
    ("kernels", Objects),
    ("left", Objects),
    ("files", Object),
];

const SAVED: Fields = &[
    ("session_id", Text),
    ("path", Text),
    ("bytes", Whole),
    ("as_of_run", Whole),
    ("kernels", Objects),
    ("left", Objects),
    ("files", Object),
];

const RESTORED: Fields = &[
    ("session_id", Text),
    ("command", Text),
    ("work_dir", Text),
    ("status", Text),
    ("restored_from", Text),
    ("saved_at", Text),
    ("as_of_run", Whole),
    ("kernels", Objects),
    ("left", Objects),
    ("files", Object),
];

const FORKED: Fields = &[
    ("session_ids", Texts),
    ("as_of_run", Whole),
    ("sessions", Objects),
    ("kernels", Objects),
    ("left", Objects),
];

const CHECKPOINT: Fields = &[
    ("name", Text),
    ("as_of_run", Whole),
    ("kernels", Objects),
    ("left", Objects),
    ("files", Object),
];

fn fields(tool: ToolName) -> Fields {
    match tool {
        ToolName::Runtime => RUNTIME,
        ToolName::SessionStart => {
            &[("session_id", Text), ("command", Text), ("work_dir", Text), ("status", Text)]
        }
        ToolName::SessionExec => EXEC,
        ToolName::SessionState => &[("state", Object), ("session_id", Text)],
        ToolName::SessionReset => &[("message", Text), ("session_id", Text)],
        ToolName::SessionScreen | ToolName::SessionKeys | ToolName::SessionResize => SCREEN,
        ToolName::SessionBranch(BranchTool::Fork) => FORKED,
        ToolName::SessionBranch(BranchTool::Checkpoint) => CHECKPOINT,
        ToolName::SessionBranch(BranchTool::Checkpoints) => &[("checkpoints", Objects)],
        ToolName::SessionBranch(BranchTool::Rewind | BranchTool::Undo) => REWOUND,
        ToolName::SessionBranch(BranchTool::Drop) => &[("dropped", Texts)],
        ToolName::SessionSave => SAVED,
        ToolName::SessionRestore => RESTORED,
        ToolName::SessionJobs => &[("runs", Objects), ("jobs", Objects)],
        ToolName::SessionLogs => &[("runs", Objects), ("after", Text)],
        ToolName::SessionTop => &[("sessions", Objects)],
        ToolName::SessionEnd => &[("status", Text), ("session_id", Text)],
        ToolName::SessionList => &[("sessions", Objects), ("more", Flag)],
    }
}
