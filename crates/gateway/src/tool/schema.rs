//! How the `runtime` tool describes itself to a model.

use serde_json::{Value, json};

const DESCRIPTION: &str = "Run code in a live bash, Python or Node that remembers: variables, \
functions, imports, working directory, virtual environments and background processes are still \
there in the next call. Actions: exec (run a command; bash unless language says otherwise), eval \
(run code and get the value of its last expression; Python unless language says otherwise), state \
(working directory, environment, variables, functions, imports of the live interpreters), reset \
(fresh interpreters, empty history), history (what was run). Commands get no input on stdin unless \
it is given, and are interrupted after 30 seconds unless timeout_ms says otherwise; the state is \
kept. Start servers in the background with &.";

#[must_use]
pub fn schema() -> Value {
    json!({
        "name": "runtime",
        "description": DESCRIPTION,
        "input_schema": {
            "type": "object",
            "properties": {
                "action": {
                    "type": "string",
                    "enum": ["exec", "eval", "state", "reset", "history"],
                    "description": "What to do",
                },
                "command": {
                    "type": "string",
                    "description": "The command or code, any number of lines (exec and eval)",
                },
                "language": {
                    "type": "string",
                    "enum": ["bash", "python", "node"],
                    "description": "Default: bash for exec, python for eval",
                },
                "limit": {
                    "type": "integer",
                    "minimum": 0,
                    "description": "How many of the newest entries (history). Default: 20",
                },
                "workspace": {
                    "type": "string",
                    "description": "The directory whose session is meant. Default: the current one",
                },
                "session_key": {
                    "type": "string",
                    "description": "Tells several sessions of one workspace apart",
                },
                "auto": {
                    "type": ["integer", "object"],
                    "minimum": 1,
                    "maximum": 1000,
                    "description": "If this call starts the session: take a checkpoint before each run and keep the last so many, so that runs can be taken back; {\"keep\": 10, \"files\": true} for the files of the workspace, too",
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
                "all": {
                    "type": "boolean",
                    "description": "Also what was inherited and is unchanged: environment, limits (state)",
                },
                "max_output": {
                    "type": "integer",
                    "minimum": 0,
                    "description": "Bytes of output in the answer: the beginning and the end, and how to read the rest. Default: 16000",
                },
                "raw": {
                    "type": "boolean",
                    "description": "Output byte for byte, with colours and redrawn progress bars",
                },
                "stdin": {"type": "string", "description": "What the command reads on stdin"},
                "env": {
                    "type": "object",
                    "additionalProperties": {"type": "string"},
                    "description": "Environment variables for this command alone",
                },
            },
            "required": ["action"],
        },
    })
}
