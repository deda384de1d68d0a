//! The tools for terminals as a model sees them.

use super::tools::session_id;
use serde_json::{Value, json};

pub(super) const SCREEN: &str = "Look at the terminal of a run that session_exec began with \
terminal: its screen as text, the cursor, and whether the program waits for input. Can wait until \
something is on the screen (wait_for) or until it stands still (settle_ms). Also after the run's \
end.";

pub(super) const KEYS: &str = "Press keys on the terminal of a run that session_exec began with \
terminal, and get the screen after it. Text is typed as it is; other keys are named: <Enter>, \
<Esc>, <Tab>, <BS>, <Up>, <PageDown>, <F1>, <C-c>, <M-x>; a literal < is <lt>. Nothing is entered \
without <Enter>. Answers when the screen has stood still for 200 ms, or as wait_for and settle_ms \
say.";

pub(super) const RESIZE: &str =
    "Give the terminal of a run another size, and get the screen after it.";

/// What session_exec takes for it.
pub(super) fn terminal() -> Value {
    json!({
        "type": ["boolean", "object"],
        "properties": {"cols": side(), "rows": side()},
        "description": "Give the command a terminal (80 by 24, or {\"cols\": …, \"rows\": …}), for programs that need one: vim, top, less, a REPL, an installer. The answer has the screen; go on with session_keys and session_screen",
    })
}

fn side() -> Value {
    json!({"type": "integer", "minimum": 1, "maximum": 1000})
}

fn run() -> Value {
    json!({"type": "integer", "minimum": 1, "description": "The run, as session_exec numbered it"})
}

pub(super) fn screen_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "session_id": session_id(),
            "run": run(),
            "wait_for": {
                "type": "string",
                "description": "Wait until this regular expression matches the screen; ^ and $ are the ends of a line. What was there before the keys does not count",
            },
            "settle_ms": {
                "type": "integer",
                "minimum": 0,
                "description": "Wait until the screen has not changed for this long",
            },
            "wait_ms": {
                "type": "integer",
                "minimum": 0,
                "description": "For how long to wait at the most. Default: 10000",
            },
            "picture": {
                "type": "boolean",
                "description": "Also answer with a picture of the screen (PNG), with its colours",
            },
        },
        "required": ["session_id", "run"],
    })
}

pub(super) fn keys_schema() -> Value {
    let mut schema = screen_schema();
    schema["properties"]["keys"] = json!({
        "type": "string",
        "description": "Such as ihello<Esc>:wq<Enter>",
    });
    schema["required"] = json!(["session_id", "run", "keys"]);
    schema
}

pub(super) fn resize_schema() -> Value {
    json!({
        "type": "object",
        "properties": {"session_id": session_id(), "run": run(), "cols": side(), "rows": side()},
        "required": ["session_id", "run", "cols", "rows"],
    })
}

pub(super) fn output() -> Value {
    json!({
        "run": {"type": ["integer", "null"]},
        "running": {"type": "boolean", "description": "It goes on"},
        "waiting_for_input": {"type": "boolean"},
        "exit_code": {"type": "integer", "description": "Of a run that has ended"},
        "wait": {"type": "string", "enum": ["matched", "settled", "ended", "timed_out"]},
        "text": {"type": "string", "description": "What the screen shows"},
        "cursor": {"type": ["object", "null"], "description": "col and row from 0; null when hidden"},
        "title": {"type": "string"},
        "size": {"type": "object"},
        "is_alternate": {"type": "boolean", "description": "A full-screen program has the screen"},
        "revision": {"type": "integer"},
        "session_id": {"type": "string"},
    })
}
