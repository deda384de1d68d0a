//! The tools for forks and checkpoints as a model sees them.

use super::tools::session_id;
use serde_json::{Value, json};
use sessile_gateway::tool::BranchTool;

const FORK: &str = "Make new sessions with the state of this one, to try several ways from the \
same point: variables, functions, imports, working directory. Python is copied live, with all that \
it has loaded; shells by their state. From then on they are independent, and are used with \
session_exec by their own ids. Background processes, sockets and threads stay with the original; \
the answer lists what was not carried over. The files of the workspace are shared unless files is \
copy. Refused while a run is going, unless wait is set.";

const CHECKPOINT: &str = "Take a point that the session can be taken back to with session_rewind: \
the state of all its interpreters, and with files the workspace. Take one before something that \
may go wrong.";

const CHECKPOINTS: &str = "List the points that a session can be taken back to, oldest first.";

const REWIND: &str = "Take a session back to a checkpoint: variables, functions, imports and \
working directory are as they were then, and the files, if the checkpoint has them. Without \
checkpoint and runs, to the newest one. The checkpoint stays. Background processes go on, and the \
history keeps what was run. Works also after the interpreter has exited, crashed or timed out.";

const UNDO: &str = "Take back the last run, in a session that was started with auto: its \
variables, imports and working directory are as before it, and with files the workspace. Call it \
again to take back one more.";

const DROP: &str = "Let go of a checkpoint of a session, or of all: the memory and the disk space \
that they need.";

pub(super) fn name(tool: BranchTool) -> &'static str {
    match tool {
        BranchTool::Fork => "session_fork",
        BranchTool::Checkpoint => "session_checkpoint",
        BranchTool::Checkpoints => "session_checkpoints",
        BranchTool::Rewind => "session_rewind",
        BranchTool::Undo => "session_undo",
        BranchTool::Drop => "session_drop",
    }
}

/// Title, description and what it takes.
pub(super) fn definition(tool: BranchTool) -> (&'static str, String, Value) {
    let (title, description, more) = match tool {
        BranchTool::Fork => ("Fork a session", FORK, fork()),
        BranchTool::Checkpoint => ("Take a checkpoint", CHECKPOINT, checkpoint()),
        BranchTool::Checkpoints => ("List checkpoints", CHECKPOINTS, json!({})),
        BranchTool::Rewind => ("Go back to a checkpoint", REWIND, rewind()),
        BranchTool::Undo => ("Take back the last run", UNDO, going_back()),
        BranchTool::Drop => ("Drop checkpoints", DROP, drop_checkpoints()),
    };
    let mut schema = json!({
        "type": "object",
        "properties": {"session_id": session_id()},
        "required": ["session_id"],
    });
    super::tools::add(&mut schema["properties"], more);
    (title, description.to_owned(), schema)
}

fn fork() -> Value {
    json!({
        "count": {"type": "integer", "minimum": 1, "maximum": 1000, "description": "How many. Default: 1"},
        "files": {
            "type": "string",
            "enum": ["share", "copy"],
            "description": "The same workspace, or a copy of it as it is now. Default: share",
        },
        "name": {"type": "string", "description": "A name to know them by"},
        "wait": wait(),
    })
}

fn checkpoint() -> Value {
    json!({
        "name": {"type": "string", "description": "What to call it. Default: checkpoint- and the number of the last run"},
        "files": {"type": "boolean", "description": "The files of the workspace as well"},
        "wait": wait(),
    })
}

fn rewind() -> Value {
    let mut fields = json!({
        "checkpoint": {"type": "string", "description": "The checkpoint to go back to. Default: the newest"},
        "runs": {
            "type": "integer",
            "minimum": 1,
            "description": "Instead: take back the last so many runs, in a session that was started with auto",
        },
    });
    super::tools::add(&mut fields, going_back());
    fields
}

fn going_back() -> Value {
    json!({
        "keep_files": {"type": "boolean", "description": "Leave the workspace as it is, though the checkpoint has its files"},
        "wait": wait(),
    })
}

fn drop_checkpoints() -> Value {
    json!({
        "checkpoint": {"type": "string", "description": "The one to drop"},
        "all": {"type": "boolean", "description": "Instead: all of them"},
    })
}

fn wait() -> Value {
    json!({"type": "boolean", "description": "Wait for runs that are going, instead of refusing"})
}

/// What session_start takes for them, and runtime.
pub(super) fn auto() -> Value {
    json!({
        "type": ["integer", "object"],
        "minimum": 1,
        "maximum": 1000,
        "properties": {"keep": {"type": "integer", "minimum": 1, "maximum": 1000}, "files": {"type": "boolean"}},
        "description": "Take a checkpoint before each run and keep the last so many, so that session_undo can take runs back; {\"keep\": 10, \"files\": true} for the files of the workspace, too",
    })
}

/// What `runtime` takes for them.
pub(super) fn runtime() -> Value {
    json!({
        "checkpoint": {"type": "string", "description": "The name of a checkpoint (checkpoint, rewind)"},
        "runs": {"type": "integer", "minimum": 1, "description": "Take back the last so many runs (rewind)"},
        "files": {
            "type": "boolean",
            "description": "With the files of the workspace: kept with the checkpoint, or copied for the fork",
        },
        "keep_files": {"type": "boolean", "description": "Leave the workspace as it is (rewind, undo)"},
        "new_key": {"type": "string", "description": "The session_key that the fork is found by (fork)"},
        "wait": {"type": "boolean", "description": "Wait for runs that are going, instead of refusing (checkpoint, rewind, undo, fork)"},
    })
}

pub(super) fn output(tool: BranchTool) -> Value {
    let list = || json!({"type": "array", "items": {"type": "object"}});
    let number = |what: &str| json!({"type": "integer", "description": what});
    match tool {
        BranchTool::Fork => json!({
            "session_ids": {"type": "array", "items": {"type": "string"}},
            "as_of_run": number("The newest run that they have seen"),
            "sessions": list(), "kernels": list(), "left": list(),
        }),
        BranchTool::Checkpoint => json!({
            "name": {"type": "string"},
            "as_of_run": number("The newest run that is in it"),
            "kernels": list(), "left": list(), "files": {"type": "object"},
        }),
        BranchTool::Checkpoints => json!({"checkpoints": list()}),
        BranchTool::Rewind | BranchTool::Undo => json!({
            "checkpoint": {"type": "string"},
            "as_of_run": number("The newest run that the session remembers"),
            "run": number("The number that the rewind has in the history"),
            "undone": {"type": "array", "items": {"type": "integer"}},
            "kernels": list(), "left": list(), "files": {"type": "object"},
        }),
        BranchTool::Drop => json!({"dropped": {"type": "array", "items": {"type": "string"}}}),
    }
}
