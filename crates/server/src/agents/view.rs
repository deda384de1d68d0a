//! What an agent is doing, and the state of its tasks.

use super::continuing::IDLE;
use super::digest::{Digest, TaskLine, entry_at};
use super::profile::Profile;
use super::thread_file;
use crate::service::{ErrorCode, ServiceError};
use serde::Serialize;
use sessile_agent::continuity::Continuity;
use sessile_agent::ids::{TaskNo, ThreadId};
use sessile_agent::limits::{Limit, Spent};
use sessile_agent::model::Failure;
use sessile_agent::thread::{Ending, EntryKind, Moved};
use sessile_protocol::SessionId;
use sessile_store::{Directory, Metadata, SessionStatus};
use std::fs::File;
use utoipa::ToSchema;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = AgentStatus)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Status {
    Idle,
    Running,
    /// `waiting_for` is the call that waits for a word of the caller's
    WaitingForApproval,
    /// It goes on elsewhere: `moved_to`
    Moved,
    /// Somebody has ended its session: it takes no more tasks
    Ended,
}

/// An agent
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = AgentInfo)]
pub(crate) struct AgentView {
    pub(crate) session_id: SessionId,
    pub(crate) thread_id: ThreadId,
    /// The name of its model on this server
    pub(crate) model: String,
    pub(crate) status: Status,
    /// Its working directory
    pub(crate) workspace: String,
    /// Tools whose calls wait for approval; `*` stands for all
    pub(crate) approve: Vec<String>,
    /// Number of steps that can be undone; 0: none
    pub(crate) checkpoints: u32,
    /// Number of its tasks, including undone and lost ones
    pub(crate) task_count: u64,
    /// Total number of answers of its model
    pub(crate) steps: u64,
    /// The number of entries in its thread
    pub(crate) entries: u64,
    /// Milliseconds since 1970
    pub(crate) created_ms: u64,
    /// Milliseconds since 1970
    pub(crate) last_activity_ms: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(crate) waiting_for: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(crate) moved_to: Option<Moved>,
    /// The state of its session after a restart, until its next task reports it
    pub(crate) continuity: Continuity,
}

impl AgentView {
    pub(super) fn read(
        directory: &Directory,
        waiting_for: Option<String>,
    ) -> Result<Self, ServiceError> {
        let profile = thread_file::profile(directory)?;
        let digest = thread_file::digest(directory)?;
        let metadata = directory.metadata()?;
        let status = match (digest.is_open(), &digest.moved, &waiting_for) {
            (true, _, Some(_)) => Status::WaitingForApproval,
            (true, _, None) => Status::Running,
            (false, Some(_), _) => Status::Moved,
            (false, None, _) if is_ended(&metadata) => Status::Ended,
            (false, None, _) => Status::Idle,
        };
        Ok(Self {
            session_id: metadata.session_id,
            thread_id: profile.thread_id,
            model: profile.model,
            status,
            workspace: metadata.work_dir.to_string_lossy().into_owned(),
            approve: profile.approve,
            checkpoints: profile.checkpoints.keep,
            task_count: digest.task_count(),
            steps: digest.steps,
            entries: digest.entries,
            created_ms: profile.created_ms,
            last_activity_ms: digest.last_ms.max(profile.created_ms),
            waiting_for,
            moved_to: digest.moved,
            continuity: digest.continuity,
        })
    }
}

/// One that nobody has used for a while goes on with its next task.
fn is_ended(metadata: &Metadata) -> bool {
    metadata.status == SessionStatus::Terminated && metadata.ended_by.as_deref() != Some(IDLE)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[schema(as = TaskEnded)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Ended {
    /// The model has answered
    Done,
    /// At a limit: `limit` says which
    Limit,
    Cancelled,
    /// `failure` says why
    Failed,
    /// By the model
    Refused,
}

/// The state of a task
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = TaskInfo)]
pub(crate) struct TaskView {
    pub(crate) task: TaskNo,
    pub(crate) session_id: SessionId,
    pub(crate) thread_id: ThreadId,
    /// The task's text
    pub(crate) text: String,
    pub(crate) running: bool,
    /// What happened to the session before or during the task
    pub(crate) continuity: Continuity,
    /// A rewind has undone at least a part of it
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    pub(crate) taken_back: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(crate) ended: Option<Ended>,
    /// The model's final answer
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(crate) output: Option<String>,
    /// The model's answer was too long, and is cut off
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    pub(crate) is_cut_off: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(crate) limit: Option<Limit>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(crate) failure: Option<Failure>,
    /// Steps, tokens and cost, once it has ended
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub(crate) spent: Option<Spent>,
}

impl TaskView {
    pub(super) fn read(directory: &Directory, task: TaskNo) -> Result<Self, ServiceError> {
        let reader = Reader::open(directory)?;
        match reader.digest.task(task) {
            Some(line) => reader.view(line),
            None => {
                let message = match reader.digest.is_of_earlier_thread(task) {
                    true => format!("task {task} was lost with the agent's earlier thread"),
                    false => format!("this agent has no task {task}"),
                };
                Err(ServiceError::new(ErrorCode::NotFound, message))
            }
        }
    }

    /// Returns the newest tasks, newest first.
    pub(super) fn list(directory: &Directory, limit: usize) -> Result<Vec<Self>, ServiceError> {
        let reader = Reader::open(directory)?;
        reader.digest.tasks.iter().rev().take(limit).map(|line| reader.view(line)).collect()
    }

    fn end(self, ending: Ending, spent: Spent) -> Self {
        let view = Self { running: false, spent: Some(spent), ..self };
        match ending {
            Ending::Done { output, is_cut_off } => {
                Self { ended: Some(Ended::Done), output: Some(output), is_cut_off, ..view }
            }
            Ending::Refused { output } => {
                Self { ended: Some(Ended::Refused), output: Some(output), ..view }
            }
            Ending::Limit { limit } => {
                Self { ended: Some(Ended::Limit), limit: Some(limit), ..view }
            }
            Ending::Cancelled => Self { ended: Some(Ended::Cancelled), ..view },
            Ending::Failed { failure } => {
                Self { ended: Some(Ended::Failed), failure: Some(failure), ..view }
            }
        }
    }
}

struct Reader {
    profile: Profile,
    session_id: SessionId,
    thread: File,
    digest: Digest,
}

impl Reader {
    fn open(directory: &Directory) -> Result<Self, ServiceError> {
        let profile = thread_file::profile(directory)?;
        let thread = thread_file::look(directory)?;
        let digest = Digest::read(directory, &thread)?;
        Ok(Self { profile, session_id: directory.metadata()?.session_id, thread, digest })
    }

    fn view(&self, line: &TaskLine) -> Result<TaskView, ServiceError> {
        let EntryKind::Task { text, continuity, .. } = entry_at(&self.thread, line.began)?.what
        else {
            return Err(ServiceError::unexpected());
        };
        let continued = match line.continued {
            Some(spot) => Some(entry_at(&self.thread, spot)?.what),
            None => None,
        };
        let continuity = match continued {
            Some(EntryKind::Continued(since)) => since,
            Some(_) | None => continuity,
        };
        let view = TaskView {
            task: line.task,
            session_id: self.session_id.clone(),
            thread_id: self.profile.thread_id.clone(),
            text,
            running: true,
            continuity,
            taken_back: line.is_taken_back,
            ended: None,
            output: None,
            is_cut_off: false,
            limit: None,
            failure: None,
            spent: None,
        };
        let Some(spot) = line.ended else { return Ok(view) };
        let EntryKind::Ended { ending, spent, .. } = entry_at(&self.thread, spot)?.what else {
            return Err(ServiceError::unexpected());
        };
        Ok(view.end(ending, spent))
    }
}
