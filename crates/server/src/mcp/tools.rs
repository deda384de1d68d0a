//! The tools as a model sees them.

use super::branch_tools;
use super::saving_tools::{self, RESTORE, SAVE};
use super::terminal_tools::{self, KEYS, RESIZE, SCREEN};
use super::watching_tools::{self, LOGS, TOP};
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use serde_json::{Value, json};
use sessile_gateway::tool::{self, BranchTool};
use std::sync::Arc;

/// Which tools there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Offer {
    /// One tool; a session for each workspace, made when it is needed.
    Runtime,
    /// A tool for each thing that can be done with sessions.
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
    SessionBranch(BranchTool),
    SessionSave,
    SessionRestore,
    SessionLogs,
    SessionTop,
    SessionEnd,
    SessionList,
}

const SESSIONS: [ToolName; 18] = [
    ToolName::SessionStart,
    ToolName::SessionExec,
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

impl Offer {
    pub(super) fn tools(self) -> Vec<ToolName> {
        match self {
            Self::Runtime => vec![ToolName::Runtime],
            Self::Sessions => SESSIONS.to_vec(),
            Self::All => [&[ToolName::Runtime][..], &SESSIONS].concat(),
        }
    }

    /// By the name that users give it.
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
            Self::SessionBranch(tool) => branch_tools::name(tool),
            Self::SessionSave => "session_save",
            Self::SessionRestore => "session_restore",
            Self::SessionLogs => "session_logs",
            Self::SessionTop => "session_top",
            Self::SessionEnd => "session_end",
            Self::SessionList => "session_list",
        }
    }

    pub(super) fn definition(self) -> Tool {
        let (title, description, input) = match self {
            Self::Runtime => {
                let schema = runtime_schema();
                ("Runtime", runtime_description(), schema)
            }
            Self::SessionStart => ("Start a session", START.to_owned(), start_schema()),
            Self::SessionExec => ("Run in a session", EXEC.to_owned(), exec_schema()),
            Self::SessionScreen => {
                ("Look at a terminal", SCREEN.to_owned(), terminal_tools::screen_schema())
            }
            Self::SessionKeys => ("Press keys", KEYS.to_owned(), terminal_tools::keys_schema()),
            Self::SessionResize => {
                ("Resize a terminal", RESIZE.to_owned(), terminal_tools::resize_schema())
            }
            Self::SessionJobs => ("Show what goes on", JOBS.to_owned(), session_schema()),
            Self::SessionBranch(tool) => branch_tools::definition(tool),
            Self::SessionSave => ("Save a session", SAVE.to_owned(), saving_tools::save_schema()),
            Self::SessionRestore => {
                ("Restore a session", RESTORE.to_owned(), saving_tools::restore_schema())
            }
            Self::SessionLogs => {
                ("Read what was run", LOGS.to_owned(), watching_tools::logs_schema())
            }
            Self::SessionTop => ("Watch sessions", TOP.to_owned(), watching_tools::top_schema()),
            Self::SessionEnd => ("End a session", END.to_owned(), session_schema()),
            Self::SessionList => ("List sessions", LIST.to_owned(), list_schema()),
        };
        Tool::new(self.as_str(), description, object(&input))
            .with_title(title)
            .with_raw_output_schema(object(&self.output()))
            .with_annotations(self.annotations())
    }

    /// Commands may do anything, and on the network, too.
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
            // A file that is there is replaced.
            Self::SessionSave => {
                hints.read_only(false).destructive(true).idempotent(true).open_world(false)
            }
            Self::SessionResize => {
                hints.read_only(false).destructive(false).idempotent(true).open_world(false)
            }
            // What the session has become since is gone.
            Self::SessionBranch(BranchTool::Rewind | BranchTool::Undo) => {
                hints.read_only(false).destructive(true).idempotent(false).open_world(false)
            }
            Self::SessionEnd | Self::SessionBranch(BranchTool::Drop) => {
                hints.read_only(false).destructive(true).idempotent(true).open_world(false)
            }
            Self::SessionScreen
            | Self::SessionJobs
            | Self::SessionBranch(BranchTool::Checkpoints)
            | Self::SessionLogs
            | Self::SessionTop
            | Self::SessionList => hints.read_only(true).open_world(false),
        }
    }

    /// Refusals have the same shape, so only what they have, too, is required.
    fn output(self) -> Value {
        let properties = match self {
            Self::Runtime => json!({
                "success": {"type": "boolean", "description": "It did what it should"},
                "error": {"type": ["string", "null"], "description": "What went wrong, in one sentence"},
                "stdout": {"type": "string"},
                "stderr": {"type": "string"},
                "exitCode": {"type": "integer"},
                "result": {"type": ["string", "null"], "description": "The value of the last expression"},
                "run": {"type": ["integer", "null"], "description": "The run's number in its session"},
                "running": {"type": "boolean", "description": "It goes on"},
                "waiting_for_input": {"type": "boolean", "description": "It has read all input and wants more"},
                "runs": {"type": "array", "items": {"type": "object"}},
                "jobs": {"type": "array", "items": {"type": "object"}},
                "duration": {"type": "number", "description": "Milliseconds"},
                "kernel": {"type": "string", "enum": ["kept", "restarted", "restored", "fresh"]},
                "session_id": {"type": "string"},
                "checkpoints": {"type": "array", "items": {"type": "object"}},
                "new_session": {"type": "boolean", "description": "Nothing is remembered from before"},
                "state": {"type": "object"},
                "history": {"type": "array"},
            }),
            Self::SessionStart => json!({
                "session_id": {"type": "string"},
                "command": {"type": "string"},
                "work_dir": {"type": "string"},
                "status": {"type": "string"},
            }),
            Self::SessionExec => json!({
                "stdout": {"type": "string"},
                "stderr": {"type": "string"},
                "exit_code": {"type": "integer"},
                "run": {"type": ["integer", "null"], "description": "The run's number in its session"},
                "running": {"type": "boolean", "description": "It goes on"},
                "waiting_for_input": {"type": "boolean", "description": "It has read all input and wants more"},
                "execution_time_ms": {"type": "number"},
                "kernel": {"type": "string", "enum": ["kept", "restarted", "restored", "fresh"]},
                "timed_out": {"type": "boolean"},
            }),
            Self::SessionScreen | Self::SessionKeys | Self::SessionResize => {
                terminal_tools::output()
            }
            Self::SessionBranch(tool) => branch_tools::output(tool),
            Self::SessionSave => saving_tools::save_output(),
            Self::SessionRestore => saving_tools::restore_output(),
            Self::SessionJobs => json!({
                "runs": {"type": "array", "items": {"type": "object"}},
                "jobs": {"type": "array", "items": {"type": "object"}},
            }),
            Self::SessionLogs => watching_tools::logs_output(),
            Self::SessionTop => watching_tools::top_output(),
            Self::SessionEnd => json!({
                "status": {"type": "string"},
                "session_id": {"type": "string"},
            }),
            Self::SessionList => json!({
                "sessions": {"type": "array", "items": {"type": "object"}},
                "more": {"type": "boolean", "description": "There are older ones"},
            }),
        };
        json!({"type": "object", "properties": properties})
    }
}

const START: &str = "Start a session: a live bash (or sh, zsh, python3, node) that remembers \
variables, functions, working directory and background processes from one session_exec to the \
next, and goes on when you disconnect. Answers with its session_id. End it with session_end when \
it is not needed any more.";

const EXEC: &str = "Run a command in a session, and get its exit code, stdout and stderr. The \
session's own language is the default; python, node and the shells can be used in any session, \
each with a live interpreter of its own. Commands get no input unless stdin is given, and are \
interrupted after 30 seconds (or what session_start said) unless timeout_ms says otherwise; the \
state is kept. A command that takes longer than this call waits goes on, and the answer has its run \
number: call again with run instead of command to wait for it, with interrupt to stop it, with \
stream and from to read its output, or with input to answer what an interactive one asks. Start \
servers in the background with &; session_jobs lists them, and pid and signal end one.";

const JOBS: &str = "What goes on in a session: its runs, and the processes that runs have left in \
the background, with their ports, CPU time and memory.";

const END: &str = "End a session and every process that it has started.";

const LIST: &str = "List sessions, newest first, with their status, directory and number of runs.";

/// What is said of `runtime` everywhere, and what only a client that can come
/// back is told.
fn runtime_description() -> String {
    let schema = tool::schema();
    let description = schema["description"].as_str().unwrap_or_default();
    format!(
        "{description} A command that takes longer than this call waits goes on, and the answer \
         has its run number: exec with run instead of command waits for it, interrupt stops it, \
         output reads what it has written, input answers what an interactive one asks. jobs \
         shows what goes on, background processes and their ports included; signal ends them. \
         checkpoint takes a point that rewind goes back to, variables, imports and directory \
         included; undo takes back the last run, if the session was started with auto; fork makes \
         a second session with the same state, found by its session_key. \
         Long output is shown with its beginning and end; output reads the rest."
    )
}

fn runtime_schema() -> Value {
    let mut schema = tool::schema()["input_schema"].take();
    let properties = &mut schema["properties"];
    properties["action"]["enum"] = json!([
        "exec",
        "eval",
        "state",
        "reset",
        "history",
        "interrupt",
        "output",
        "input",
        "signal",
        "jobs",
        "checkpoint",
        "checkpoints",
        "rewind",
        "undo",
        "fork"
    ]);
    properties["run"] = json!({
        "type": "integer",
        "minimum": 1,
        "description": "A run that was begun before: to wait for it (exec or eval, without command), to interrupt it, to read its output, to give it input, or to signal it",
    });
    add(properties, coming_back());
    add(properties, branch_tools::runtime());
    schema
}

/// What both kinds of tools take from a client that comes back.
fn coming_back() -> Value {
    json!({
        "stream": stream(),
        "from": from(),
        "wait_ms": {
            "type": "integer",
            "minimum": 0,
            "description": "Answer after this long even if the command is still running; 0: at once, the command goes on in the background",
        },
        "interactive": {
            "type": "boolean",
            "description": "Keep the command's stdin open for input; the answer comes when it waits for some",
        },
        "input": {
            "type": "string",
            "description": "Text for an interactive run to read, with its newline; then its answer is waited for",
        },
        "eof": {"type": "boolean", "description": "There will be no more input"},
        "signal": {"type": "string", "description": "TERM, KILL, … for a run, or for the job pid"},
        "pid": {"type": "integer", "minimum": 1, "description": "The job to signal"},
    })
}

pub(super) fn add(properties: &mut Value, more: Value) {
    if let (Value::Object(properties), Value::Object(more)) = (properties, more) {
        properties.extend(more);
    }
}

fn stream() -> Value {
    json!({
        "type": "string",
        "enum": ["stdout", "stderr"],
        "description": "Which output of the run to read. Default: stdout",
    })
}

fn from() -> Value {
    json!({
        "type": "integer",
        "minimum": 0,
        "description": "The byte to read the run's output from. Default: 0",
    })
}

pub(super) fn session_id() -> Value {
    json!({"type": "string", "description": "The session, as session_start named it"})
}

fn start_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "shell": {
                "type": "string",
                "description": "bash, sh, zsh, python3 or node, or the path of one. Default: bash",
            },
            "from": {
                "type": "string",
                "description": "A session to begin with the state of, or the name of a pool (imports done, variables set), in place of shell",
            },
            "cwd": {"type": "string", "description": "The directory to start in"},
            "env": {
                "type": "object",
                "additionalProperties": {"type": "string"},
                "description": "Environment variables of the session",
            },
            "name": {"type": "string", "description": "A name to know it by"},
            "auto": branch_tools::auto(),
            "durable": saving_tools::durable(),
            "command_timeout_ms": {
                "type": "integer",
                "minimum": 0,
                "description": "Interrupt commands after this long; 0: never. Default: 30000",
            },
            "idle_timeout_ms": {
                "type": "integer",
                "minimum": 0,
                "description": "End the session after this long without a run; 0: never. Default: 1800000",
            },
        },
    })
}

fn exec_schema() -> Value {
    let mut schema = json!({
        "type": "object",
        "properties": {
            "session_id": session_id(),
            "command": {
                "type": "string",
                "description": "The command or code, any number of lines",
            },
            "language": {
                "type": "string",
                "enum": ["bash", "sh", "zsh", "python", "node"],
                "description": "Default: the session's own",
            },
            "timeout_ms": {
                "type": "integer",
                "minimum": 0,
                "description": "Interrupt the command after this long; 0: never",
            },
            "no_output_timeout_ms": {
                "type": "integer",
                "minimum": 0,
                "description": "Interrupt the command when it has written nothing for this long",
            },
            "stdin": {"type": "string", "description": "What the command reads on stdin"},
            "terminal": terminal_tools::terminal(),
            "env": {
                "type": "object",
                "additionalProperties": {"type": "string"},
                "description": "Environment variables for this command alone",
            },
            "run": {
                "type": "integer",
                "minimum": 1,
                "description": "Instead of command: a run that was begun before, to wait for it",
            },
            "interrupt": {
                "type": "boolean",
                "description": "With run: interrupt that run instead of waiting for it",
            },
        },
        "required": ["session_id"],
    });
    add(&mut schema["properties"], coming_back());
    schema
}

fn session_schema() -> Value {
    json!({
        "type": "object",
        "properties": {"session_id": session_id()},
        "required": ["session_id"],
    })
}

fn list_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "status": {
                "type": "string",
                "enum": ["active", "starting", "lost", "terminated"],
                "description": "Only those with this status",
            },
            "limit": {
                "type": "integer",
                "minimum": 1,
                "description": "How many at the most. Default: 20",
            },
        },
    })
}

fn object(schema: &Value) -> Arc<JsonObject> {
    Arc::new(schema.as_object().cloned().unwrap_or_default())
}
