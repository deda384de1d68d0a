//! The tools as a model sees them.

use crate::service::ServiceError;
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Map, Value, json};
use sessile_gateway::tool::{self, BranchTool, check_fields};
use std::sync::{Arc, LazyLock};

/// Which tools are offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OfferedTools {
    /// One tool, with a session for each workspace, made when it is needed.
    Runtime,
    /// A tool for each operation on sessions.
    Sessions,
    All,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ToolName {
    Runtime,
    SessionStart,
    SessionExec,
    SessionScreen,
    SessionKeys,
    SessionResize,
    SessionJobs,
    SessionState,
    SessionReset,
    SessionBranch(BranchTool),
    SessionSave,
    SessionRestore,
    SessionLogs,
    SessionTop,
    SessionEnd,
    SessionList,
}

const SESSIONS: [ToolName; 20] = [
    ToolName::SessionStart,
    ToolName::SessionExec,
    ToolName::SessionState,
    ToolName::SessionReset,
    ToolName::SessionScreen,
    ToolName::SessionKeys,
    ToolName::SessionResize,
    ToolName::SessionJobs,
    ToolName::SessionBranch(BranchTool::Fork),
    ToolName::SessionBranch(BranchTool::Checkpoint),
    ToolName::SessionBranch(BranchTool::Checkpoints),
    ToolName::SessionBranch(BranchTool::Rewind),
    ToolName::SessionBranch(BranchTool::Undo),
    ToolName::SessionBranch(BranchTool::Drop),
    ToolName::SessionSave,
    ToolName::SessionRestore,
    ToolName::SessionLogs,
    ToolName::SessionTop,
    ToolName::SessionEnd,
    ToolName::SessionList,
];

impl OfferedTools {
    pub(super) fn tools(self) -> Vec<ToolName> {
        match self {
            Self::Runtime => vec![ToolName::Runtime],
            Self::Sessions => SESSIONS.to_vec(),
            Self::All => [&[ToolName::Runtime][..], &SESSIONS].concat(),
        }
    }

    /// Parses the name that users give it.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "runtime" => Some(Self::Runtime),
            "sessions" => Some(Self::Sessions),
            "all" => Some(Self::All),
            _ => None,
        }
    }

    pub(super) fn find(self, name: &str) -> Option<ToolName> {
        self.tools().into_iter().find(|tool| tool.as_str() == name)
    }
}

impl ToolName {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Runtime => "runtime",
            Self::SessionStart => "session_start",
            Self::SessionExec => "session_exec",
            Self::SessionScreen => "session_screen",
            Self::SessionKeys => "session_keys",
            Self::SessionResize => "session_resize",
            Self::SessionJobs => "session_jobs",
            Self::SessionState => "session_state",
            Self::SessionReset => "session_reset",
            Self::SessionBranch(BranchTool::Fork) => "session_fork",
            Self::SessionBranch(BranchTool::Checkpoint) => "session_checkpoint",
            Self::SessionBranch(BranchTool::Checkpoints) => "session_checkpoints",
            Self::SessionBranch(BranchTool::Rewind) => "session_rewind",
            Self::SessionBranch(BranchTool::Undo) => "session_undo",
            Self::SessionBranch(BranchTool::Drop) => "session_drop",
            Self::SessionSave => "session_save",
            Self::SessionRestore => "session_restore",
            Self::SessionLogs => "session_logs",
            Self::SessionTop => "session_top",
            Self::SessionEnd => "session_end",
            Self::SessionList => "session_list",
        }
    }

    /// Returns the tool as clients list it. The output schema says only that answers are
    /// objects: their fields would be 1,200 tokens where a client hands them on (measured
    /// with all tools), and a model sees them in the answer.
    pub(super) fn definition(self) -> Tool {
        let tool = &DEFINITIONS[self.as_str()];
        let word = |name: &str| tool[name].as_str().unwrap_or_default().to_owned();
        Tool::new(self.as_str(), word("description"), object(&tool["inputSchema"]))
            .with_title(word("title"))
            .with_raw_output_schema(object(&json!({"type": "object"})))
            .with_annotations(self.annotations())
    }

    /// Refuses unknown arguments. Every tool takes `wait_ms`.
    pub(super) fn check(self, arguments: &JsonObject) -> Result<(), ServiceError> {
        let known = DEFINITIONS[self.as_str()]["inputSchema"]["properties"].as_object();
        let given = arguments.keys().map(String::as_str).filter(|name| *name != "wait_ms");
        Ok(known.map_or(Ok(()), |known| check_fields(given, known))?)
    }

    /// Returns the hints of a tool. Commands may do anything, also on the network.
    fn annotations(self) -> ToolAnnotations {
        let hints = ToolAnnotations::new();
        match self {
            // What is in a restored file runs.
            Self::Runtime | Self::SessionExec | Self::SessionKeys | Self::SessionRestore => {
                hints.read_only(false).destructive(true).idempotent(false).open_world(true)
            }
            Self::SessionStart | Self::SessionBranch(BranchTool::Fork | BranchTool::Checkpoint) => {
                hints.read_only(false).destructive(false).idempotent(false).open_world(false)
            }
            // An existing file is replaced.
            Self::SessionSave => {
                hints.read_only(false).destructive(true).idempotent(true).open_world(false)
            }
            Self::SessionResize => {
                hints.read_only(false).destructive(false).idempotent(true).open_world(false)
            }
            // What changed in the session since then is lost.
            Self::SessionBranch(BranchTool::Rewind | BranchTool::Undo) => {
                hints.read_only(false).destructive(true).idempotent(false).open_world(false)
            }
            Self::SessionEnd | Self::SessionReset | Self::SessionBranch(BranchTool::Drop) => {
                hints.read_only(false).destructive(true).idempotent(true).open_world(false)
            }
            Self::SessionScreen
            | Self::SessionState
            | Self::SessionJobs
            | Self::SessionBranch(BranchTool::Checkpoints)
            | Self::SessionLogs
            | Self::SessionTop
            | Self::SessionList => hints.read_only(true).open_world(false),
        }
    }
}

/// The tools by name, as described in `tools.json`: a data file, so that the text for
/// models can be read as such. `runtime` has its general schema, plus what concerns only
/// clients that can return to a run.
static DEFINITIONS: LazyLock<Value> = LazyLock::new(|| {
    let told: Value = serde_json::from_str(include_str!("tools.json")).unwrap_or_default();
    let mut all = Map::new();
    for tool in told["sessions"].as_array().into_iter().flatten() {
        all.insert(tool["name"].as_str().unwrap_or_default().to_owned(), tool.clone());
    }
    all.insert(ToolName::Runtime.as_str().to_owned(), runtime(&told["runtime"]));
    all.into()
});

fn runtime(more: &Value) -> Value {
    let mut tool = tool::schema();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let description = [text(&tool["description"]), text(&more["description"])].join(" ");
    let mut schema = tool["input_schema"].take();
    if let (Some(actions), Some(further)) =
        (schema["properties"]["action"]["enum"].as_array_mut(), more["actions"].as_array())
    {
        actions.extend(further.iter().cloned());
    }
    if let (Some(properties), Some(further)) =
        (schema["properties"].as_object_mut(), more["properties"].as_object())
    {
        properties.extend(further.clone());
    }
    json!({"title": "Runtime", "description": description, "inputSchema": schema})
}

fn object(schema: &Value) -> Arc<JsonObject> {
    Arc::new(schema.as_object().cloned().unwrap_or_default())
}
