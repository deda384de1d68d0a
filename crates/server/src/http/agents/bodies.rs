//! Bodies and answers about agents.

use crate::agents::{AgentView, ImportOrder, MovedAway, NewAgent, TaskView};
use crate::http::wire::{self, Span, span_text};
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

/// An agent to make: a session with a thread, and a model that works there.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct StartAgent {
    /// A session that is there; without it, one is started
    #[serde(default)]
    #[schema(nullable)]
    session: Option<String>,
    /// The directory that it works in
    #[serde(default)]
    #[schema(nullable)]
    workspace: Option<String>,
    /// A name for its session
    #[serde(default)]
    #[schema(nullable)]
    name: Option<String>,
    /// Environment variables of its session
    #[serde(default)]
    env: wire::Environment,
    /// Which of the server's models; not needed where there is one only
    #[serde(default)]
    #[schema(nullable)]
    model: Option<String>,
    /// What the model is told before everything else
    #[serde(default)]
    #[schema(nullable)]
    instructions: Option<String>,
    /// Tools whose calls wait for approval; `*` stands for all
    #[serde(default)]
    approve: Vec<String>,
    /// How many steps can be taken back, files included; 0: none. When absent 10, with
    /// the files of the workspace unless they are many
    #[serde(default)]
    #[schema(nullable, minimum = 0, maximum = 1000)]
    checkpoints: Option<u32>,
    /// Confine its session: true, the name of a preset, or a policy
    #[serde(default)]
    #[schema(nullable, value_type = Option<wire::SandboxChoice>)]
    sandbox: Option<serde_json::Value>,
    /// Save its session in idle time; as the server was told when absent
    #[serde(default)]
    #[schema(nullable)]
    durable: Option<bool>,
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
    /// What is to be done
    #[schema(min_length = 1, example = "Create app.py")]
    pub(super) text: String,
    /// What it may use up
    #[serde(default)]
    #[schema(nullable)]
    pub(super) limits: Option<Limits>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct TaskBegun {
    pub(super) task: TaskNo,
    /// What had become of the session
    pub(super) continuity: Continuity,
}

/// Where to go back to.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct RewindAgent {
    /// The last step that still counts; 0: before the first one
    pub(super) step: u64,
}

/// How far an agent has gone back
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct RewoundAgent {
    pub(super) session_id: SessionId,
    #[serde(flatten)]
    pub(super) rewind: Rewind,
    /// What became of the session; absent when nothing was done there since
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(super) session: Option<Rewound>,
}

/// Where an agent has gone.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct MovedAgent {
    /// The server that has it now; shown to whoever asks for the agent here
    #[schema(
        example = "https://sessile.example",
        min_length = 1,
        max_length = 1000,
        pattern = r"^[^\u0000-\u001f\u007f-\u009f]+$"
    )]
    url: String,
    /// Its session there
    #[schema(min_length = 1, max_length = 1000, pattern = r"^[^\u0000-\u001f\u007f-\u009f]+$")]
    session_id: String,
    /// How long its thread was when it was exported, as `Sessile-Entries` said: if it
    /// has grown since, it is not moved
    entries: u64,
    /// The newest run that was exported, as `Sessile-As-Of-Run` said
    #[serde(default)]
    #[schema(nullable)]
    as_of_run: Option<u64>,
}

impl From<MovedAgent> for MovedAway {
    fn from(MovedAgent { url, session_id, entries, as_of_run }: MovedAgent) -> Self {
        Self { to: Moved { url, session_id }, entries, as_of_run }
    }
}

/// An agent that goes on here
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
    /// There are more: ask with `after` set to this
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(super) next: Option<u64>,
}

/// The data of an event of a thread: `event` is its `type`, and `id` its `entry`
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct ThreadEvent {
    pub(in crate::http) session_id: SessionId,
    #[serde(flatten)]
    pub(in crate::http) entry: Entry,
}

/// Words of the model, as they come: the data of the event `delta`
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct DeltaEvent {
    pub(in crate::http) text: String,
}

/// The model has failed, and is asked once more after a while: the data of the event
/// `retry`. Words that came since the last entry do not count
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct RetryEvent {
    /// The attempt that has failed: 1, 2, …
    pub(in crate::http) attempt: u32,
    /// When it is asked again
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
    /// How many of the newest tasks; 100 when absent
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
    /// Entries after this one
    #[serde(default, deserialize_with = "any_entry")]
    #[param(minimum = 0, maximum = 9_007_199_254_740_991u64)]
    pub(super) after: Option<u64>,
    /// How many entries; 1000 when absent
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
    /// With the files of the session's directory; true when absent
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
    /// Run what is in the file, and say to the model what its thread says, whoever
    /// made it
    #[serde(default)]
    trust: bool,
    /// Go on in this directory, with the files: it must be new or empty. Where the
    /// session was when absent, if that may be
    cwd: Option<String>,
    /// What to call its session; as the exported one when absent
    #[param(
        min_length = 1,
        max_length = 100,
        pattern = r"^(?!sess_)[\p{Alphabetic}\p{N} _.:/-]+$"
    )]
    name: Option<String>,
    /// Save the new session in idle time; as the server was told when absent
    durable: Option<bool>,
    /// Which of this server's models; the one of the same name, or the only one, when
    /// absent
    model: Option<String>,
}

impl From<ImportQuery> for ImportOrder {
    fn from(query: ImportQuery) -> Self {
        let ImportQuery { trust, cwd, name, durable, model } = query;
        let trust = if trust { Trust::Given } else { Trust::Own };
        Self { restore: RestoreOrder { trust, cwd, name, durable }, model }
    }
}

/// Whether a call may be carried out.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct Decision {
    pub(super) call: String,
    pub(super) allow: bool,
    /// What the model is told when it may not
    #[serde(default)]
    #[schema(nullable)]
    pub(super) reason: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct AgentList {
    pub(super) agents: Vec<AgentView>,
}

#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct Taken {
    /// Always true: it was taken
    pub(super) accepted: bool,
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct WaitQuery {
    /// How long to wait for the task's end
    #[serde(default, deserialize_with = "span_text")]
    #[param(value_type = Option<Span>)]
    pub(super) wait: Option<Span>,
}
