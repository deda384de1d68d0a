//! Bodies and answers about agents.

use crate::agents::{AgentView, ImportOrder, MovedAway, NewAgent, TaskView};
use crate::http::wire::{self, Environment, Span, span_text};
use crate::service::{RestoreOrder, ServiceError, StartSession};
use serde::{Deserialize, Deserializer, Serialize};
use sessile_agent::continuity::Continuity;
use sessile_agent::ids::TaskNo;
use sessile_agent::limits::Limits;
use sessile_agent::model::Failure;
use sessile_agent::thread::{Entry, Moved, Rewind};
use sessile_client::Trust;
use sessile_gateway::answer::{Restored, Rewound};
use sessile_protocol::SessionId;
use utoipa::{IntoParams, ToSchema};

/// A new agent: a session with a thread, and a model that works in it.
#[derive(Debug, Default, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct StartAgent {
    /// An existing session. Default: a new one
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable)]
    pub session: Option<String>,
    /// Its working directory
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable)]
    pub workspace: Option<String>,
    /// A name for its session
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable)]
    pub name: Option<String>,
    /// Environment variables of its session
    #[serde(default)]
    pub env: Environment,
    /// The model. Default: the server's only one
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable)]
    pub model: Option<String>,
    /// Instructions for the model
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable)]
    pub instructions: Option<String>,
    /// Tools whose calls wait for approval; `*` stands for all
    #[serde(default)]
    pub approve: Vec<String>,
    /// Number of steps that can be undone, including files; 0: none. Default: 10, without
    /// files if the workspace is large
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable, minimum = 0, maximum = 1000)]
    pub checkpoints: Option<u32>,
    /// Run its session in a sandbox: true, the name of a preset, or a policy
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable, value_type = Option<wire::SandboxChoice>)]
    pub sandbox: Option<serde_json::Value>,
    /// Save its session in idle time. Default: the server's setting
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable)]
    pub durable: Option<bool>,
}

impl StartAgent {
    pub(super) fn order(self) -> Result<NewAgent, ServiceError> {
        if self.checkpoints.is_some_and(|keep| keep > 1000) {
            return Err(ServiceError::bad_request("checkpoints: 0 to 1000 are kept"));
        }
        let start = StartSession {
            workspace: self.workspace,
            name: self.name,
            env: self.env.0,
            sandbox: self.sandbox,
            durable: self.durable,
            ..StartSession::default()
        };
        Ok(NewAgent {
            session: self.session,
            start,
            model: self.model,
            instructions: self.instructions,
            approve: self.approve,
            checkpoints: self.checkpoints,
        })
    }
}

/// A task for an agent.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct NewTask {
    /// The task
    #[schema(min_length = 1, example = "Create app.py")]
    pub(super) text: String,
    /// Its limits
    #[serde(default)]
    #[schema(nullable)]
    pub(super) limits: Option<Limits>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct TaskBegun {
    pub(super) task: TaskNo,
    /// What happened to the session before
    pub(super) continuity: Continuity,
}

/// The target of a rewind.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RewindAgent {
    /// The last step to keep; 0: none
    pub step: u64,
}

/// The result of an agent's rewind
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct RewoundAgent {
    pub(super) session_id: SessionId,
    #[serde(flatten)]
    pub(super) rewind: Rewind,
    /// The rewind of the session; absent if nothing was run since
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(super) session: Option<Rewound>,
}

/// The new place of an agent.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct MovedAgent {
    /// The URL of that server, for clients that ask here
    #[schema(
        example = "https://sessile.example",
        min_length = 1,
        max_length = 1000,
        pattern = r"^[^\u0000-\u001f\u007f-\u009f]+$"
    )]
    url: String,
    /// Its session on that server
    #[schema(min_length = 1, max_length = 1000, pattern = r"^[^\u0000-\u001f\u007f-\u009f]+$")]
    session_id: String,
    /// The length of the exported thread: `Sessile-Entries` of the export. If the thread has
    /// grown since, the request is refused
    entries: u64,
    /// The newest exported run: `Sessile-As-Of-Run` of the export
    #[serde(default)]
    #[schema(nullable)]
    as_of_run: Option<u64>,
}

impl From<MovedAgent> for MovedAway {
    fn from(MovedAgent { url, session_id, entries, as_of_run }: MovedAgent) -> Self {
        Self { to: Moved { url, session_id }, entries, as_of_run }
    }
}

/// An imported agent
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct ImportedAgent {
    pub(super) agent: AgentView,
    pub(super) session: Restored,
}

#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct TaskList {
    /// Newest first
    pub(super) tasks: Vec<TaskView>,
}

/// Entries of a thread
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct ThreadPage {
    pub(super) entries: Vec<Entry>,
    /// Set if there are more entries: the value of `after` for them
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(super) next: Option<u64>,
}

/// The data of a thread's event: `event` is the entry's `type`, `id` its number
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct ThreadEvent {
    pub(in crate::http) session_id: SessionId,
    #[serde(flatten)]
    pub(in crate::http) entry: Entry,
}

/// New words of the model: the data of the event `delta`
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct DeltaEvent {
    pub(in crate::http) text: String,
}

/// The model failed, and will be asked again: the data of the event `retry`. Words since the
/// last entry no longer count
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct RetryEvent {
    /// The attempt that has failed: 1, 2, …
    pub(in crate::http) attempt: u32,
    /// Time until the next attempt
    pub(in crate::http) after_ms: u64,
    pub(in crate::http) failure: Failure,
}

/// A call waits for approval: the data of the event `approve`
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct ApproveEvent {
    pub(in crate::http) call: String,
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct TasksQuery {
    /// Maximum number of tasks. Default: 100
    #[serde(default, deserialize_with = "most_tasks")]
    #[param(minimum = 1, maximum = 1000)]
    pub(super) limit: Option<u64>,
}

fn most_tasks<'de, D: Deserializer<'de>>(d: D) -> Result<Option<u64>, D::Error> {
    wire::within_text(d, 1, 1000)
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct ThreadQuery {
    /// Return entries after this one
    #[serde(default, deserialize_with = "any_entry")]
    #[param(minimum = 0, maximum = 9_007_199_254_740_991u64)]
    pub(super) after: Option<u64>,
    /// Maximum number of entries. Default: 1000
    #[serde(default, deserialize_with = "most_entries")]
    #[param(minimum = 1, maximum = 10_000)]
    pub(super) limit: Option<u64>,
}

fn any_entry<'de, D: Deserializer<'de>>(d: D) -> Result<Option<u64>, D::Error> {
    wire::within_text(d, 0, (1 << 53) - 1)
}

fn most_entries<'de, D: Deserializer<'de>>(d: D) -> Result<Option<u64>, D::Error> {
    wire::within_text(d, 1, 10_000)
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct ExportQuery {
    /// Include the files of the session's directory. Default: true
    #[serde(default = "yes")]
    pub(super) files: bool,
}

fn yes() -> bool {
    true
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct ImportQuery {
    /// Trust the file: run its code, and send its thread to the model
    #[serde(default)]
    trust: bool,
    /// The directory for the agent and its files: new or empty. Default: the directory of the
    /// exported session, if it is allowed
    cwd: Option<String>,
    /// The name of the session. Default: the name of the exported one
    #[param(
        min_length = 1,
        max_length = 100,
        pattern = r"^(?!sess_)[\p{Alphabetic}\p{N} _.:/-]+$"
    )]
    name: Option<String>,
    /// Save the new session in idle time. Default: the server's setting
    durable: Option<bool>,
    /// The model. Default: the one of the same name, or the server's only one
    model: Option<String>,
}

impl From<ImportQuery> for ImportOrder {
    fn from(query: ImportQuery) -> Self {
        let ImportQuery { trust, cwd, name, durable, model } = query;
        let trust = if trust { Trust::Given } else { Trust::Own };
        Self { restore: RestoreOrder { trust, cwd, name, durable }, model }
    }
}

/// The decision on a call.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Decision {
    pub call: String,
    pub allow: bool,
    /// The message for the model when the call is denied
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable)]
    pub reason: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct AgentList {
    pub(super) agents: Vec<AgentView>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Accepted)]
pub(in crate::http) struct Accepted {
    /// Always true
    pub(super) accepted: bool,
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct WaitQuery {
    /// Wait this long for the end of the task
    #[serde(default, deserialize_with = "span_text")]
    #[param(value_type = Option<Span>)]
    pub(super) wait: Option<Span>,
}
