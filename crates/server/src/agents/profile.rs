//! How an agent was made.

use super::audit::Record;
use super::model::Model;
use crate::service::{ErrorCode, ServiceError, StartSession};
use serde::{Deserialize, Serialize};
use sessile_agent::ids::ThreadId;
use sessile_agent::thread::{Entry, EntryKind, FORMAT};
use sessile_agent::{Approval, Checkpoints, Config, Worker};
use std::time::{SystemTime, UNIX_EPOCH};

/// A request for a new agent.
#[derive(Clone, Debug, Default)]
pub(crate) struct NewAgent {
    /// An existing session; when absent, one is started.
    pub(crate) session: Option<String>,
    pub(crate) start: StartSession,
    pub(crate) model: Option<String>,
    pub(crate) instructions: Option<String>,
    /// Tools whose calls need the caller's approval; `*`: all.
    pub(crate) approve: Vec<String>,
    /// How many steps can be taken back; depends on the workspace when absent.
    pub(crate) checkpoints: Option<u32>,
}

/// The checkpoints of the session that are kept for rewinds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct KeptCheckpoints {
    /// 0: none are taken.
    pub(super) keep: u32,
    /// Whether they include the files of the workspace.
    pub(super) files: bool,
}

/// How many are kept by default.
const KEPT: u32 = 10;
/// A workspace of this size is walked in some milliseconds, and its first checkpoint does
/// not fill a disk.
const SMALL_ENTRIES: usize = 20_000;
const SMALL_BYTES: u64 = 512 << 20;

impl KeptCheckpoints {
    /// Returns the default for a workspace: with its files, if they are few and small.
    pub(super) fn fitting(workspace: &std::path::Path) -> Self {
        let mut bytes = 0;
        let mut walk = ignore::WalkBuilder::new(workspace);
        walk.hidden(false).require_git(false).follow_links(false).same_file_system(true);
        let is_small = walk.build().flatten().enumerate().all(|(count, entry)| {
            bytes += entry.metadata().map_or(0, |metadata| metadata.len());
            count < SMALL_ENTRIES && bytes < SMALL_BYTES
        });
        Self { keep: KEPT, files: is_small }
    }
}

/// The content of `agent.json`. It has no key.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Profile {
    pub(super) thread_id: ThreadId,
    pub(super) model: String,
    #[serde(default)]
    pub(super) instructions: String,
    #[serde(default)]
    pub(super) approve: Vec<String>,
    pub(super) created_ms: u64,
    #[serde(default)]
    pub(super) checkpoints: KeptCheckpoints,
    /// The thread that was lost when the agent began anew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) previous: Option<Previous>,
}

/// What an agent had before it began anew.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Previous {
    pub(super) thread_id: String,
    pub(super) tasks: u64,
}

const INSTRUCTIONS: &str = include_str!("instructions.md");

pub(super) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

fn new_thread_id() -> Result<ThreadId, ServiceError> {
    let mut bytes = [0; 12];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())
        .map_err(|e| ServiceError::new(ErrorCode::Internal, e.to_string()))?;
    Ok(ThreadId::of(bytes))
}

impl Profile {
    pub(super) fn new(
        new: &NewAgent,
        model: &Model,
        checkpoints: KeptCheckpoints,
    ) -> Result<Self, ServiceError> {
        let instructions = new.instructions.clone();
        Ok(Self {
            thread_id: new_thread_id()?,
            model: model.name.clone(),
            instructions: instructions.unwrap_or_else(|| INSTRUCTIONS.to_owned()),
            approve: new.approve.clone(),
            created_ms: now_ms(),
            checkpoints,
            previous: None,
        })
    }

    /// Returns the profile of an agent whose own is unknown.
    pub(super) fn of_unknown(model: &Model) -> Result<Self, ServiceError> {
        Self::new(&NewAgent::default(), model, KeptCheckpoints::default())
    }

    /// Returns the profile of a fork.
    pub(super) fn forked(self) -> Result<Self, ServiceError> {
        Ok(Self { thread_id: new_thread_id()?, created_ms: now_ms(), previous: None, ..self })
    }

    /// Returns the profile of an agent that begins anew. It keeps its age and its task count.
    pub(super) fn anew(self, record: &Record) -> Result<Self, ServiceError> {
        let thread_id = record.thread_id.clone();
        let previous = Some(Previous { thread_id, tasks: record.task_count });
        Ok(Self { thread_id: new_thread_id()?, previous, ..self })
    }

    pub(super) fn first_entry(&self) -> Entry {
        let thread = self.thread_id.clone();
        let earlier_tasks = self.previous.as_ref().map_or(0, |previous| previous.tasks);
        let what = EntryKind::Created { format: FORMAT, thread, forked_from: None, earlier_tasks };
        Entry { entry: 1, at_ms: self.created_ms, what }
    }

    pub(super) fn config(&self, tools: Vec<String>, worker: Worker) -> Config {
        let approval = match &self.approve[..] {
            [] => Approval::Never,
            names if names.iter().any(|name| name == "*") => Approval::Always,
            names => Approval::Tools(names.to_vec()),
        };
        let checkpoints = match self.checkpoints.keep {
            0 => Checkpoints::Never,
            _ => match worker {
                Worker::Program => Checkpoints::BeforeAsking,
                Worker::Model => Checkpoints::BeforeCalls,
            },
        };
        Config { tools, approval, checkpoints, worker }
    }
}
