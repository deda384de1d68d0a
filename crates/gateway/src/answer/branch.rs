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
    /// The newest run of the original in their state
    pub as_of_run: RunNo,
    pub sessions: Vec<Fork>,
    pub kernels: Vec<CarriedKernel>,
    /// What they do not include
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
    /// The newest run in it
    pub as_of_run: RunNo,
    /// Taken automatically before a run
    pub auto: bool,
    pub kernels: Vec<CarriedKernel>,
    /// What it does not include
    pub left: Vec<LeftBehind>,
    /// Its files, if they are included
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub files: Option<Files>,
    /// Set if it was just taken
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
    /// Bytes that were stored for it
    pub stored_bytes: u64,
    pub left_out: u64,
    /// Examples of what was left out
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

/// A rewound session
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Rewound {
    #[schema(example = "before-refactoring")]
    pub checkpoint: String,
    /// The newest run in the session's state now
    pub as_of_run: RunNo,
    /// The number of the rewind in the history
    pub run: RunNo,
    /// The undone runs
    pub undone: Vec<RunNo>,
    pub kernels: Vec<CarriedKernel>,
    /// What was not undone or not restored
    pub left: Vec<LeftBehind>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub files: Option<RestoredFiles>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub continuity: Option<Continuity>,
}

/// The effect of a rewind on the workspace
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = RestoredRow)]
pub struct RestoredFiles {
    pub written: u64,
    pub removed: u64,
    /// The checkpoint with the files before the rewind
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

/// Removed checkpoints
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Dropped {
    /// Their names
    pub dropped: Vec<String>,
}
