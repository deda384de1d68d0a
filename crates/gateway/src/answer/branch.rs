//! Forks and checkpoints.

use super::Continuity;
use serde::Serialize;
use sessile_protocol::{
    CarriedKernel, CheckpointView, FilesView, ForkView, ForkedView, LeftBehind, RewoundView, RunNo,
    SessionId,
};
use std::path::PathBuf;
use utoipa::ToSchema;

/// New sessions with the state of another
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Forked {
    pub session_ids: Vec<SessionId>,
    /// The newest run of the original that they have seen
    pub as_of_run: RunNo,
    pub sessions: Vec<Fork>,
    pub kernels: Vec<CarriedKernel>,
    /// What they do not have
    pub left: Vec<LeftBehind>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub continuity: Option<Continuity>,
}

#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = ForkRow)]
pub struct Fork {
    pub session_id: SessionId,
    #[schema(value_type = String)]
    pub work_dir: PathBuf,
}

impl From<&ForkView> for Fork {
    fn from(fork: &ForkView) -> Self {
        Self { session_id: fork.session.clone(), work_dir: fork.work_dir.clone() }
    }
}

impl From<&ForkedView> for Forked {
    fn from(view: &ForkedView) -> Self {
        Self {
            session_ids: view.forks.iter().map(|fork| fork.session.clone()).collect(),
            as_of_run: view.as_of_run,
            sessions: view.forks.iter().map(Fork::from).collect(),
            kernels: view.kernels.clone(),
            left: view.left.clone(),
            continuity: None,
        }
    }
}

/// A point that a session can be rewound to
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = CheckpointRow)]
pub struct Checkpoint {
    #[schema(example = "before-refactoring")]
    pub name: String,
    pub created_at: String,
    /// The newest run that is in it
    pub as_of_run: RunNo,
    /// Taken before a run, by the session itself
    pub auto: bool,
    pub kernels: Vec<CarriedKernel>,
    /// What is not in it
    pub left: Vec<LeftBehind>,
    /// Its files, if it has them
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub files: Option<Files>,
    /// Where it was just taken
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub continuity: Option<Continuity>,
}

/// The files of a checkpoint
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = FilesRow)]
pub struct Files {
    pub files: u64,
    pub bytes: u64,
    /// What had to be read and stored for it
    pub stored_bytes: u64,
    pub left_out: u64,
    /// Some of those that were left out
    pub examples: Vec<LeftBehind>,
}

impl From<&FilesView> for Files {
    fn from(files: &FilesView) -> Self {
        Self {
            files: files.files,
            bytes: files.bytes,
            stored_bytes: files.stored_bytes,
            left_out: files.left_out,
            examples: files.examples.clone(),
        }
    }
}

impl From<&CheckpointView> for Checkpoint {
    fn from(view: &CheckpointView) -> Self {
        Self {
            name: view.name.clone(),
            created_at: view.created_at.clone(),
            as_of_run: view.as_of_run,
            auto: view.auto,
            kernels: view.kernels.clone(),
            left: view.left.clone(),
            files: view.files.as_ref().map(Files::from),
            continuity: None,
        }
    }
}

/// All of them.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Checkpoints {
    pub checkpoints: Vec<Checkpoint>,
}

/// A session that was taken back to a checkpoint
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Rewound {
    #[schema(example = "before-refactoring")]
    pub checkpoint: String,
    /// The newest run that the session remembers now
    pub as_of_run: RunNo,
    /// The number that the rewind has in the history
    pub run: RunNo,
    /// The runs that were taken back
    pub undone: Vec<RunNo>,
    pub kernels: Vec<CarriedKernel>,
    /// What was not taken back, or not brought back
    pub left: Vec<LeftBehind>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub files: Option<RestoredFiles>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub continuity: Option<Continuity>,
}

/// What a rewind did to the workspace
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = RestoredRow)]
pub struct RestoredFiles {
    pub written: u64,
    pub removed: u64,
    /// The checkpoint that has the files as they were before
    #[schema(nullable)]
    pub before: Option<String>,
    pub problems: Vec<LeftBehind>,
}

impl From<&sessile_protocol::RestoredFiles> for RestoredFiles {
    fn from(files: &sessile_protocol::RestoredFiles) -> Self {
        Self {
            written: files.written,
            removed: files.removed,
            before: files.before.clone(),
            problems: files.problems.clone(),
        }
    }
}

impl From<&RewoundView> for Rewound {
    fn from(view: &RewoundView) -> Self {
        Self {
            checkpoint: view.checkpoint.clone(),
            as_of_run: view.as_of_run,
            run: view.run,
            undone: view.undone.clone(),
            kernels: view.kernels.clone(),
            left: view.left.clone(),
            files: view.files.as_ref().map(RestoredFiles::from),
            continuity: None,
        }
    }
}

/// Checkpoints that are gone
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Dropped {
    /// Their names
    pub dropped: Vec<String>,
}
