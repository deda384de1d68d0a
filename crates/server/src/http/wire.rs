//! The bodies of requests, and what answers look like.

use super::branch_wire::{AutoCheckpoints, AutoRequest};
use super::terminals::Terminal;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use sessile_protocol::{Language, parse_duration, parse_size};
use std::collections::BTreeMap;
use utoipa::openapi::schema::{ObjectBuilder, OneOfBuilder, Schema, Type};
use utoipa::openapi::{KnownFormat, RefOr, SchemaFormat};
use utoipa::{PartialSchema, ToSchema};

/// A length of time: `"30s"`, `"500ms"`, `"2h"`, or a number of seconds. At
/// most a year: longer is a mistake.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Span(pub(super) u64);

const YEAR_MS: u64 = 366 * 24 * 3600 * 1000;

impl Span {
    fn of(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("{text:?} is not a length of time, such as \"30s\", \"500ms\" or \"2h\"");
        let duration = parse_duration(text).map_err(|_| wrong())?;
        let ms = u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
        if ms > YEAR_MS { Err(format!("{text:?} is over a year")) } else { Ok(Self(ms)) }
    }
}

impl<'de> Deserialize<'de> for Span {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged, expecting = "a length of time, such as \"30s\" or 30")]
        enum Form {
            Seconds(f64),
            Text(String),
        }
        match Form::deserialize(deserializer)? {
            Form::Text(text) => Self::of(&text).map_err(serde::de::Error::custom),
            Form::Seconds(seconds) if (0.0..=YEAR_MS as f64 / 1000.0).contains(&seconds) => {
                Ok(Self((seconds * 1000.0).round() as u64))
            }
            Form::Seconds(_) => {
                Err(serde::de::Error::custom("seconds must be from 0 to those of a year"))
            }
        }
    }
}

impl PartialSchema for Span {
    fn schema() -> RefOr<Schema> {
        let text = ObjectBuilder::new()
            .schema_type(Type::String)
            .pattern(Some(r"^[0-9]{1,6}(ms|s|m|h)$"))
            .examples(["30s", "500ms"]);
        let seconds = ObjectBuilder::new()
            .schema_type(Type::Number)
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::Double)))
            .minimum(Some(0))
            .maximum(Some(YEAR_MS / 1000));
        let either = OneOfBuilder::new()
            .item(text)
            .item(seconds)
            .description(Some("A length of time: \"30s\", \"500ms\", \"2h\", or seconds"));
        Schema::OneOf(either.build()).into()
    }
}

impl ToSchema for Span {}

/// The same in a query, where everything is text.
pub(super) fn span_text<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Span>, D::Error> {
    let Some(text) = Option::<String>::deserialize(d)? else { return Ok(None) };
    let span = match text.parse::<f64>() {
        Ok(seconds) if (0.0..=YEAR_MS as f64 / 1000.0).contains(&seconds) => {
            Ok(Span((seconds * 1000.0).round() as u64))
        }
        Ok(_) => Err("seconds must be from 0 to those of a year".to_owned()),
        Err(_) => Span::of(&text),
    };
    span.map(Some).map_err(serde::de::Error::custom)
}

fn language<'de, D: Deserializer<'de>>(d: D) -> Result<Option<Language>, D::Error> {
    let Some(name) = Option::<String>::deserialize(d)? else { return Ok(None) };
    name.parse().map(Some).map_err(serde::de::Error::custom)
}

fn size<'de, D: Deserializer<'de>>(d: D) -> Result<Option<u64>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "a number of bytes, such as 1048576 or \"1MiB\"")]
    enum Form {
        Bytes(u64),
        Text(String),
    }
    let bytes = match Option::<Form>::deserialize(d)? {
        None => None,
        Some(Form::Bytes(bytes)) => Some(bytes),
        Some(Form::Text(text)) => Some(parse_size(&text).map_err(serde::de::Error::custom)?),
    };
    within(bytes, 0, MOST)
}

/// The largest number that every client can write.
const MOST: u64 = i64::MAX as u64;

/// The most of a stream that a session keeps.
fn kept<'de, D: Deserializer<'de>>(d: D) -> Result<Option<u64>, D::Error> {
    within(size(d)?, 0, 1 << 30)
}

fn run<'de, D: Deserializer<'de>>(d: D) -> Result<Option<u64>, D::Error> {
    within(Option::<u64>::deserialize(d)?, 0, MOST)
}

fn max_history<'de, D: Deserializer<'de>>(d: D) -> Result<Option<u64>, D::Error> {
    within(Option::<u64>::deserialize(d)?, 1, 100_000)
}

/// A number that has its limits.
pub(super) fn within<E: serde::de::Error>(
    number: Option<u64>,
    least: u64,
    most: u64,
) -> Result<Option<u64>, E> {
    match number {
        Some(n) if !(least..=most).contains(&n) => {
            Err(E::custom(format!("{n} is not from {least} to {most}")))
        }
        Some(_) | None => Ok(number),
    }
}

/// The same in a query, where everything is text.
pub(super) fn within_text<'de, D: Deserializer<'de>>(
    d: D,
    least: u64,
    most: u64,
) -> Result<Option<u64>, D::Error> {
    let Some(text) = Option::<String>::deserialize(d)? else { return Ok(None) };
    let number = text.parse().map_err(|_| serde::de::Error::custom("not a whole number"))?;
    within(Some(number), least, most)
}

/// Environment variables.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(super) struct Environment(pub(super) BTreeMap<String, String>);

impl<'de> Deserialize<'de> for Environment {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let variables = BTreeMap::<String, String>::deserialize(deserializer)?;
        for (name, value) in &variables {
            let is_name = name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
                && name.bytes().next().is_some_and(|b| !b.is_ascii_digit());
            if !is_name || value.contains('\0') {
                let message = format!("{name:?} cannot be an environment variable");
                return Err(serde::de::Error::custom(message));
            }
        }
        Ok(Self(variables))
    }
}

impl PartialSchema for Environment {
    fn schema() -> RefOr<Schema> {
        let name = ObjectBuilder::new()
            .schema_type(Type::String)
            .pattern(Some("^[A-Za-z_][A-Za-z0-9_]*$"));
        let value = ObjectBuilder::new().schema_type(Type::String).pattern(Some("^[^\\u0000]*$"));
        let variables = ObjectBuilder::new()
            .schema_type(Type::Object)
            .property_names(Some(name))
            .additional_properties(Some(Schema::Object(value.build())))
            .description(Some("Environment variables"));
        Schema::Object(variables.build()).into()
    }
}

impl ToSchema for Environment {}

/// A session to start. What is absent is as `sessile start` has it.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct StartSession {
    /// bash, sh, dash, zsh, python3 or node, or the path of one
    #[schema(nullable, example = "bash")]
    pub(super) shell: Option<String>,
    /// The directory that the session belongs to
    #[schema(nullable)]
    pub(super) workspace: Option<String>,
    /// The directory to start in; within the workspace if it is relative
    #[schema(nullable)]
    pub(super) cwd: Option<String>,
    /// Environment variables
    #[serde(default)]
    pub(super) env: Environment,
    /// End the session after this long without a run; 0: never
    #[schema(nullable, value_type = Option<Span>)]
    pub(super) idle_timeout: Option<Span>,
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
    /// What to call it
    #[schema(nullable, min_length = 1, max_length = 100, pattern = "^[A-Za-z0-9 _.:/-]+$")]
    pub(super) name: Option<String>,
    /// Take a checkpoint before each run, and keep the last so many: see `…/undo`
    #[serde(default)]
    #[schema(nullable, value_type = Option<AutoCheckpoints>)]
    pub(super) auto: AutoCheckpoints,
    /// Save it in idle time, so that it goes on after a reboot; as the server
    /// was told when absent
    #[schema(nullable)]
    pub(super) durable: Option<bool>,
}

#[derive(Debug, Default, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SessionLimits {
    /// Bytes of each stream of a run to keep on disk, as number or `"64MiB"`
    #[serde(default, deserialize_with = "kept")]
    #[schema(nullable, value_type = Option<u64>, maximum = 1_073_741_824)]
    pub(super) output: Option<u64>,
}

/// A run to begin.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ExecRequest {
    /// The command or code, any number of lines
    #[schema(example = "cd /tmp; x=41; echo $((x+1))")]
    pub(super) command: String,
    /// bash, sh, zsh, python or node; the session's own when absent
    #[serde(default, deserialize_with = "language")]
    #[schema(nullable, value_type = Option<LanguageName>)]
    pub(super) language: Option<Language>,
    /// Interrupt the command after this long; 0: never
    #[serde(default)]
    #[schema(nullable, value_type = Option<Span>)]
    pub(super) timeout: Option<Span>,
    /// Interrupt the command when it has written nothing, and was given no
    /// input, for this long; 0: never
    #[serde(default)]
    #[schema(nullable, value_type = Option<Span>)]
    pub(super) no_output_timeout: Option<Span>,
    /// Answer after this long even if it is still running
    #[serde(default)]
    #[schema(nullable, value_type = Option<Span>)]
    pub(super) wait: Option<Span>,
    /// What the command reads on stdin; nothing when absent
    #[serde(default)]
    #[schema(nullable)]
    pub(super) stdin: Option<String>,
    /// Environment variables for this run alone
    #[serde(default)]
    pub(super) env: Environment,
    /// Bytes of each stream that the answer may carry
    #[serde(default, deserialize_with = "size")]
    #[schema(nullable, value_type = Option<u64>)]
    pub(super) max_output: Option<u64>,
    /// Keep stdin open for `…/input`
    #[serde(default)]
    pub(super) interactive: bool,
    /// A terminal in the place of stdin, stdout and stderr: true, or its size.
    /// What it shows is the run's stdout, escape codes included; see `…/screen`
    #[serde(default)]
    #[schema(nullable, value_type = Option<Terminal>)]
    pub(super) terminal: Terminal,
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
    /// What the command reads on stdin
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
    /// A terminal in the place of stdin, stdout and stderr: true, or its size.
    /// What it shows is the run's stdout, escape codes included
    #[serde(default)]
    #[schema(nullable, value_type = Option<Terminal>)]
    pub(super) terminal: Terminal,
    /// Interrupt the command after this long; 30 s when absent, 0: never
    #[serde(default)]
    #[schema(nullable, value_type = Option<Span>)]
    pub(super) timeout: Option<Span>,
    /// Interrupt the command when it has written nothing, and was given no
    /// input, for this long; 0: never
    #[serde(default)]
    #[schema(nullable, value_type = Option<Span>)]
    pub(super) no_output_timeout: Option<Span>,
    /// Bytes of each stream that the answer may carry
    #[serde(default, deserialize_with = "size")]
    #[schema(nullable, value_type = Option<u64>)]
    pub(super) max_output: Option<u64>,
}

/// bash, sh, zsh, python or node
#[derive(Debug, ToSchema)]
#[schema(rename_all = "lowercase")]
#[expect(dead_code, reason = "only described: the wire takes some more names")]
pub(super) enum LanguageName {
    Bash,
    Sh,
    Zsh,
    Python,
    Node,
}

#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct InterruptRequest {
    /// The run to interrupt; whatever is running when absent
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
    /// How `data` is written
    #[schema(nullable)]
    pub(super) encoding: Option<Encoding>,
    /// There will be no more
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
    /// `INT`, `TERM`, `KILL`, …, or a number
    #[schema(example = "TERM")]
    pub(super) signal: String,
}

/// What became of the session since it was last used.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "only described: it is rendered elsewhere")]
pub(super) struct Continuity {
    #[schema(inline)]
    status: ContinuityStatus,
    /// The run whose state was brought back
    #[schema(required = false)]
    as_of_run: u64,
    /// Runs that were going when the keeper died
    #[schema(required = false)]
    lost_runs: Vec<u64>,
    /// The session's metadata before
    #[schema(required = false, value_type = Object)]
    previous: Value,
}

#[derive(Debug, ToSchema)]
#[schema(rename_all = "lowercase")]
#[expect(dead_code, reason = "only described: it is rendered elsewhere")]
enum ContinuityStatus {
    Live,
    Restored,
    Fresh,
}

/// A run: its result, or what there is of it while `running` is true.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "only described: it is rendered elsewhere")]
pub(super) struct RunResult {
    stdout: String,
    stderr: String,
    run: u64,
    running: bool,
    /// It is blocked in a read of its stdin, and has read all that it was given
    #[schema(required = false)]
    waiting_for_input: bool,
    /// Of a run that is still going: how far its output was read
    #[schema(required = false, example = "12-0")]
    cursor: String,
    #[schema(required = false)]
    exit_code: i32,
    #[schema(required = false)]
    execution_time_ms: f64,
    /// kept, restarted, restored or fresh
    #[schema(required = false)]
    kernel: String,
    #[schema(required = false)]
    as_of_run: u64,
    #[schema(required = false)]
    language: String,
    #[schema(required = false)]
    timed_out: bool,
    #[schema(required = false)]
    interrupted: bool,
    /// The value of the last expression
    #[schema(required = false)]
    result: String,
    /// Richer forms of the value, by MIME type
    #[schema(required = false, value_type = Object)]
    data: Value,
    /// What the code raised: its `type` and `message`
    #[schema(required = false, value_type = Object)]
    error: Value,
    /// Streams that are not text come as base64
    #[schema(required = false, value_type = Object)]
    encoding: Value,
    /// What was left out of long streams
    #[schema(required = false, value_type = Object)]
    truncated: Value,
    #[schema(required = false)]
    notes: Vec<String>,
    /// The answer to an earlier request with the same Idempotency-Key
    #[schema(required = false)]
    repeated: bool,
    #[schema(required = false)]
    continuity: Continuity,
}

/// A run in a list.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "only described: it is rendered elsewhere")]
pub(super) struct RunRow {
    run: u64,
    /// queued, running, exited (something may still write) or closed
    phase: String,
    language: String,
    command: String,
    /// When it began
    #[schema(nullable)]
    timestamp: Option<String>,
    #[schema(required = false)]
    exit_code: i32,
    #[schema(required = false)]
    duration_ms: u64,
    #[schema(required = false)]
    interactive: bool,
    /// It is blocked in a read of its stdin, and has read all that it was given
    #[schema(required = false)]
    waiting_for_input: bool,
    /// It has a terminal
    #[schema(required = false)]
    terminal: bool,
    #[schema(required = false)]
    timed_out: bool,
    #[schema(required = false)]
    interrupted: bool,
    /// What it is, if it is no run: `rewind`
    #[schema(required = false)]
    event: String,
}

/// A job: a process in the background, with all that descends from it.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "only described: it is rendered elsewhere")]
pub(super) struct JobRow {
    pid: u32,
    command: String,
    /// The run that started it, where that can be told
    #[schema(nullable)]
    run: Option<u64>,
    #[schema(nullable)]
    language: Option<String>,
    /// running or stopped
    state: String,
    started_at: String,
    /// Processor time of all its processes, ended ones included
    cpu_ms: u64,
    /// On average since it was started; not of one that is younger than a second
    #[schema(required = false)]
    cpu_percent: f64,
    /// Resident memory of all its processes
    memory_bytes: u64,
    processes: u64,
    ports: Vec<JobPort>,
}

#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "only described: it is rendered elsewhere")]
pub(super) struct JobPort {
    port: u16,
    /// tcp or udp
    protocol: String,
    address: String,
}

/// What `sessile start` answers.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "only described: it is rendered elsewhere")]
pub(super) struct Started {
    session_id: String,
    command: String,
    work_dir: String,
    status: String,
}

/// A session's metadata.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "only described: it is rendered elsewhere")]
pub(super) struct SessionInfo {
    session_id: String,
    command: String,
    created_at: String,
    #[schema(nullable)]
    last_executed_at: Option<String>,
    /// starting, active, terminated or lost
    status: String,
    work_dir: String,
    execution_count: u64,
    language: String,
    /// The checkpoints that it takes before runs, if it does
    #[schema(required = false)]
    auto: AutoRequest,
    /// The session that it is a fork of, if it is one
    #[schema(required = false)]
    forked_from: ForkedFrom,
}

#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "only described: it is rendered elsewhere")]
pub(super) struct ForkedFrom {
    session_id: String,
    /// The newest run of it that the fork has seen
    as_of_run: u64,
}

#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "only described: it is rendered elsewhere")]
pub(super) struct SessionPage {
    sessions: Vec<SessionInfo>,
    /// Where the next page begins, if there is one
    #[schema(nullable)]
    next: Option<String>,
}

#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "only described: it is rendered elsewhere")]
pub(super) struct HistoryRow {
    run: u64,
    timestamp: String,
    command: String,
    language: String,
    exit_code: i32,
    duration_ms: u64,
    /// What it is, if it is no run: `rewind`
    #[schema(required = false)]
    event: String,
    #[schema(required = false)]
    notes: Vec<String>,
}

#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "only described: it is rendered elsewhere")]
pub(super) struct OutputChunk {
    #[schema(required = false)]
    data: String,
    /// `base64` if the bytes are no text; of both streams, by their names
    #[schema(required = false, value_type = Value)]
    encoding: Value,
    /// Where to read on
    #[schema(required = false)]
    next: u64,
    /// Of both streams
    #[schema(required = false)]
    stdout: String,
    #[schema(required = false)]
    stderr: String,
    /// Where to read on in both
    #[schema(required = false)]
    cursor: String,
    /// queued, running, exited or closed
    phase: String,
}

/// Any object.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "only described: it is rendered elsewhere")]
pub(super) struct Anything {
    #[serde(flatten)]
    #[schema(value_type = Object)]
    fields: Map<String, Value>,
}

/// What is refused, and why.
#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "only described: it is rendered elsewhere")]
pub(super) struct ErrorBody {
    error: ErrorDetail,
}

#[derive(Debug, ToSchema)]
#[expect(dead_code, reason = "only described: it is rendered elsewhere")]
pub(super) struct ErrorDetail {
    /// Stable: programs match on it
    code: String,
    message: String,
    /// What to do
    hint: String,
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
    /// How many of the newest entries (history)
    #[schema(required = false)]
    limit: u64,
    /// The directory whose session is meant
    #[schema(required = false)]
    workspace: String,
    /// Tells several sessions of one workspace apart
    #[schema(required = false)]
    session_key: String,
    /// Interrupt the command after this long; 0: never
    #[schema(required = false)]
    timeout_ms: u64,
    /// Interrupt the command when it has written nothing for this long
    #[schema(required = false)]
    no_output_timeout_ms: u64,
    #[schema(required = false)]
    stdin: String,
    #[schema(required = false)]
    env: BTreeMap<String, String>,
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
