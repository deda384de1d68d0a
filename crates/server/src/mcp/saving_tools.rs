//! The tools for sessions as files, as a model sees them.

use super::tools::session_id;
use serde_json::{Value, json};

pub(super) const SAVE: &str = "Save a session to a file: variables, functions, classes, imports and \
working directory of all its interpreters, its history, and with files those of its directory. \
session_restore makes a session of it again, here or on another machine. The session goes on. The \
answer lists what could not be carried, such as sockets and background processes. What the session \
has in its variables and environment is in the file, secrets included. Refused while a run is \
going, unless wait is set.";

pub(super) const RESTORE: &str = "Make a session from a file that session_save wrote. It has an id \
of its own and goes on where the saved one was. This runs code that is in the file: one that was \
saved elsewhere is refused unless trust is set. Set trust only when the user has said that they \
trust whoever made the file.";

pub(super) fn save_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "session_id": session_id(),
            "path": {"type": "string", "description": "The file to write; one that is there is replaced"},
            "files": {"type": "boolean", "description": "With the files of the session's directory"},
            "wait": {"type": "boolean", "description": "Wait for runs that are going, instead of refusing"},
        },
        "required": ["session_id", "path"],
    })
}

pub(super) fn restore_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "The file that the session was saved to"},
            "trust": {"type": "boolean", "description": "Run what is in the file, whoever made it"},
            "cwd": {
                "type": "string",
                "description": "Go on in this directory, with the saved files if there are any: then it must be new or empty. Default: where the session was",
            },
            "name": {"type": "string", "description": "A name to know it by. Default: the saved one's"},
            "durable": durable(),
        },
        "required": ["path"],
    })
}

/// What session_start takes, too.
pub(super) fn durable() -> Value {
    json!({
        "type": "boolean",
        "description": "Save the session by itself in idle time, so that Python and Node, too, go on after a crash or a reboot. Default: as the server was told",
    })
}

pub(super) fn save_output() -> Value {
    let list = || json!({"type": "array", "items": {"type": "object"}});
    json!({
        "session_id": {"type": "string"},
        "path": {"type": "string"},
        "bytes": {"type": "integer"},
        "as_of_run": {"type": "integer", "description": "The newest run that is in it"},
        "kernels": list(), "left": list(), "files": {"type": "object"},
    })
}

pub(super) fn restore_output() -> Value {
    let list = || json!({"type": "array", "items": {"type": "object"}});
    let text = || json!({"type": "string"});
    json!({
        "session_id": text(), "command": text(), "work_dir": text(), "status": text(),
        "restored_from": text(), "saved_at": text(),
        "as_of_run": {"type": "integer", "description": "The newest run that is in it"},
        "kernels": list(), "left": list(), "files": {"type": "object"},
    })
}
