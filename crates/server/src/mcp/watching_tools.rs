//! The tools for watching sessions as a model sees them.

use super::tools::session_id;
use serde_json::{Value, json};

pub(super) const LOGS: &str = "Read what was run in a session, by whomever: the newest runs with \
command, exit code and output, oldest first. To follow a session, call again with after, as \
the last answer gave it, and wait_ms: the answer comes when another run has ended, and \
has runs that still go on, too.";

pub(super) const TOP: &str = "Show what all sessions are doing: state, runs that are going, CPU, \
memory and processes.";

pub(super) fn logs_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "session_id": session_id(),
            "limit": {
                "type": "integer",
                "minimum": 1,
                "maximum": 50,
                "description": "How many runs at the most. Default: 10",
            },
            "after": {
                "type": ["string", "integer"],
                "description": "What the last answer gave as after, or the number of a run: only what was not told by then, oldest first",
            },
            "wait_ms": {
                "type": "integer",
                "minimum": 0,
                "description": "With after: wait up to this long until another run has ended. Default: 0",
            },
        },
        "required": ["session_id"],
    })
}

pub(super) fn top_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "all": {"type": "boolean", "description": "Ended and lost sessions, too"},
        },
    })
}

pub(super) fn logs_output() -> Value {
    json!({
        "runs": {"type": "array", "items": {"type": "object"}},
        "after": {"type": "string", "description": "What was told, for the next call"},
    })
}

pub(super) fn top_output() -> Value {
    json!({"sessions": {"type": "array", "items": {"type": "object"}}})
}
