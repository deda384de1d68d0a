//! The bodies of requests.

use super::branch_wire::AutoCheckpoints;
use super::terminals::Terminal;
use serde::{Deserialize, Serialize};
use sessile_protocol::Language;
use std::collections::BTreeMap;
use utoipa::{IntoParams, ToSchema};

mod answers;
mod values;

pub(crate) use answers::ErrorBody;
pub(super) use answers::{Anything, Health, Readiness, ServerSentEvent, SessionEnd};
pub use values::Environment;
pub(super) use values::{
    MOST_KEPT, Size, Span, number_text, span_text, whole, within, within_text,
};
use values::{SignalName, language, max_history, run};

/// A new session. Defaults are those of `sessile start`.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct StartSession {
    /// bash, sh, dash, zsh, python3 or node, or the path of one
    #[schema(nullable, example = "bash")]
    pub(super) shell: Option<String>,
    /// Start with the state of this session (`sess_…`), or of a pool by its name: imports are
    /// done, variables are set. History, run numbers, directory and settings are new
    #[schema(nullable, min_length = 1)]
    pub(super) from: Option<String>,
    /// The workspace of the session
    #[schema(nullable)]
    pub(super) workspace: Option<String>,
    /// The directory to start in, relative to the workspace
    #[schema(nullable)]
    pub(super) cwd: Option<String>,
    /// Environment variables
    #[serde(default)]
    pub(super) env: Environment,
    /// End the session after this long without a run, a background job or an attached client;
    /// 0: never
    #[schema(nullable, value_type = Option<Span>)]
    pub(super) idle_timeout: Option<Span>,
    /// Count only runs for `idle_timeout`, not jobs or attached clients
    #[serde(default)]
    pub(super) idle_without_runs: bool,
    /// Interrupt a command after this long; 0: never
    #[schema(nullable, value_type = Option<Span>)]
    pub(super) command_timeout: Option<Span>,
    /// Runs to keep in the history
    #[serde(default, deserialize_with = "max_history")]
    #[schema(nullable, minimum = 1, maximum = 100_000)]
    pub(super) max_history: Option<u64>,
    /// Limits of the session
    #[serde(default)]
    pub(super) limits: SessionLimits,
    /// Run it in a sandbox: true, the name of a preset, or a policy
    #[schema(nullable, value_type = Option<SandboxChoice>)]
    pub(super) sandbox: Option<serde_json::Value>,
    /// Its name
    #[schema(
        nullable,
        min_length = 1,
        max_length = 100,
        pattern = r"^(?!sess_)[\p{Alphabetic}\p{N} _.:/-]+$"
    )]
    pub(super) name: Option<String>,
    /// Take a checkpoint before each run, and keep this many: see `…/undo`
    #[serde(default)]
    #[schema(nullable, value_type = Option<AutoCheckpoints>)]
    pub(super) auto: AutoCheckpoints,
    /// Save it in idle time, so that it survives a reboot. Default: the server's setting
    #[schema(nullable)]
    pub(super) durable: Option<bool>,
    /// End it, and its forks without a name, when the calling process ends for any reason.
    /// For programs on the same machine, over the local server's socket
    #[serde(default)]
    pub(super) ends_with_caller: bool,
}

/// A sandbox: a preset or a policy.
#[derive(ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "only described: the policy's own reader says what is wrong where")]
#[expect(clippy::large_enum_variant, reason = "one for each request that starts a session")]
pub(super) enum SandboxChoice {
    /// true: the preset `development`
    Switch(bool),
    Preset(sessile_sandbox::policy::PresetName),
    Policy(sessile_sandbox::Draft),
}

#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SessionLimits {
    /// Bytes of each stream of a run to keep on disk, as number or `"64MiB"`
    /// 1 GiB at the most; more is taken for that
    #[schema(nullable, value_type = Option<Size>)]
    pub(super) output: Option<Size>,
}

/// A run to begin.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ExecRequest {
    /// The command or code, any number of lines
    #[schema(example = "x=41; echo $((x+1))")]
    pub(super) command: String,
    /// bash, sh, zsh, python or node. Default: the session's language
    #[serde(default, deserialize_with = "language")]
    #[schema(nullable, value_type = Option<LanguageName>)]
    pub(super) language: Option<Language>,
    /// Interrupt the command this long after it has begun; 0: never
    #[serde(default)]
    #[schema(nullable, value_type = Option<Span>)]
    pub(super) timeout: Option<Span>,
    /// Cancel the run if it is still queued after this long; 0: never
    #[serde(default)]
    #[schema(nullable, value_type = Option<Span>)]
    pub(super) queue_timeout: Option<Span>,
    /// Interrupt the command after this long without output or input; 0: never
    #[serde(default)]
    #[schema(nullable, value_type = Option<Span>)]
    pub(super) no_output_timeout: Option<Span>,
    /// Return after this long even if it is still running
    #[serde(default)]
    #[schema(nullable, value_type = Option<Span>)]
    pub(super) wait: Option<Span>,
    /// Stdin of the command. Default: empty
    #[serde(default)]
    #[schema(nullable)]
    pub(super) stdin: Option<String>,
    /// Environment variables for this run only
    #[serde(default)]
    pub(super) env: Environment,
    /// Maximum bytes of each stream in the answer
    #[schema(nullable, value_type = Option<Size>)]
    pub(super) max_output: Option<Size>,
    /// Keep stdin open for `…/input`
    #[serde(default)]
    pub(super) interactive: bool,
    /// Use a terminal instead of stdin, stdout and stderr: true, or its size. The run's
    /// stdout is what the program writes to it, including escape codes; see `…/screen`
    #[serde(default)]
    #[schema(nullable, value_type = Option<Terminal>)]
    pub(super) terminal: Terminal,
}

/// What is in the path of a session's calls.
#[derive(Debug, IntoParams)]
#[into_params(parameter_in = Path)]
#[expect(dead_code, reason = "only described: `body::Session` reads it")]
pub(super) struct SessionParam {
    /// The session: its id, the first four or more digits of the id, or its name
    #[param(example = "sess_1f8a", min_length = 1)]
    id: String,
}

/// A new name for a session.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RenameRequest {
    /// 1 to 100 letters, digits, spaces and -_.:/, not beginning with `sess_`; `null` removes
    /// the name
    #[serde(deserialize_with = "Option::deserialize")]
    #[schema(
        required = true,
        nullable,
        min_length = 1,
        max_length = 100,
        pattern = r"^(?!sess_)[\p{Alphabetic}\p{N} _.:/-]+$",
        example = "web"
    )]
    pub(super) name: Option<String>,
}

/// A command without a session.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct OnceRequest {
    /// The command or code
    #[schema(example = "echo hello")]
    pub(super) command: String,
    #[serde(default, deserialize_with = "language")]
    #[schema(nullable, value_type = Option<LanguageName>)]
    pub(super) language: Option<Language>,
    /// Stdin of the command
    #[serde(default)]
    #[schema(nullable)]
    pub(super) stdin: Option<String>,
    /// Environment variables
    #[serde(default)]
    pub(super) env: Environment,
    /// The directory to run in
    #[serde(default)]
    #[schema(nullable)]
    pub(super) cwd: Option<String>,
    /// Use a terminal instead of stdin, stdout and stderr: true, or its size. The run's
    /// stdout is what the program writes to it, including escape codes
    #[serde(default)]
    #[schema(nullable, value_type = Option<Terminal>)]
    pub(super) terminal: Terminal,
    /// Interrupt the command after this long; 30 s when absent, 0: never
    #[serde(default)]
    #[schema(nullable, value_type = Option<Span>)]
    pub(super) timeout: Option<Span>,
    /// Interrupt the command after this long without output or input; 0: never
    #[serde(default)]
    #[schema(nullable, value_type = Option<Span>)]
    pub(super) no_output_timeout: Option<Span>,
    /// Maximum bytes of each stream in the answer
    #[schema(nullable, value_type = Option<Size>)]
    pub(super) max_output: Option<Size>,
}

/// bash (or shell), sh (dash), zsh, python (python3) or node (javascript, js)
#[derive(Debug, ToSchema)]
#[schema(rename_all = "lowercase")]
#[expect(dead_code, reason = "only described: the protocol reads the names of languages")]
pub(super) enum LanguageName {
    Bash,
    Shell,
    Sh,
    Dash,
    Zsh,
    Python,
    Python3,
    Node,
    JavaScript,
    Js,
}

#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct InterruptRequest {
    /// The run to interrupt. Default: the current one
    #[serde(default, deserialize_with = "run")]
    #[schema(nullable)]
    pub(super) run: Option<u64>,
}

#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct InputRequest {
    /// Text for the run's stdin
    #[serde(default)]
    pub(super) data: String,
    /// The encoding of `data`
    #[schema(nullable)]
    pub(super) encoding: Option<Encoding>,
    /// Close stdin after this
    #[serde(default)]
    pub(super) eof: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Encoding {
    Utf8,
    Base64,
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SignalRequest {
    pub(super) signal: SignalName,
}

/// A request of the `runtime` tool.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "only described: the tool reads its own requests")]
pub(super) struct RuntimeRequest {
    #[schema(inline)]
    action: RuntimeAction,
    /// The command or code (exec and eval)
    #[schema(required = false)]
    command: String,
    #[schema(required = false)]
    language: LanguageName,
    /// Maximum number of entries (history)
    #[schema(required = false)]
    limit: u64,
    /// The directory of the session
    #[schema(required = false)]
    workspace: String,
    /// Distinguishes sessions of one workspace
    #[schema(required = false)]
    session_key: String,
    /// Interrupt the command this long after it has begun; 0: never
    #[schema(required = false)]
    timeout_ms: u64,
    /// Cancel the run if it has not begun after this long; 0: never
    #[schema(required = false)]
    queue_timeout_ms: u64,
    /// Interrupt the command when it has written nothing for this long
    #[schema(required = false)]
    no_output_timeout_ms: u64,
    #[schema(required = false)]
    stdin: String,
    #[schema(required = false)]
    env: BTreeMap<String, String>,
    /// Bytes of output in the answer. Default: 16000
    #[schema(required = false)]
    max_output: u64,
    /// Output byte for byte, with colours and redrawn progress bars
    #[schema(required = false)]
    raw: bool,
    /// Include inherited, unchanged variables (state)
    #[schema(required = false)]
    all: bool,
    /// If this call starts the session: how many checkpoints before runs are kept
    #[schema(required = false, minimum = 1, maximum = 1000)]
    auto: u32,
    /// auto: include the workspace's files
    #[schema(required = false)]
    auto_files: bool,
}

#[derive(Debug, ToSchema)]
#[schema(rename_all = "lowercase")]
#[expect(dead_code, reason = "only described: the tool reads its own requests")]
enum RuntimeAction {
    Exec,
    Eval,
    State,
    Reset,
    History,
}
