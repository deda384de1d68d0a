//! What a keeper is told when it is launched, and what it says back once.

use crate::{Failure, Language, SessionId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Set in every kernel's environment: programs can tell that they are in a
/// session, and what a killed keeper left behind can be found.
pub const SESSION_MARKER: &str = "SESSILE_SESSION_ID";

/// Written to the new keeper's stdin as one frame. Its environment is the
/// session's initial environment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Boot {
    pub session: SessionId,
    /// The session's own directory, absolute.
    pub directory: PathBuf,
    pub work_dir: PathBuf,
    /// Where the user keeps what belongs to no workspace, absolute.
    pub user_state: PathBuf,
    /// The program of the session's default language.
    pub kernel: KernelProgram,
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    pub idle_timeout_ms: u64,
    pub command_timeout_ms: u64,
    pub max_history: u64,
    /// Bytes of each stream of a run that are kept on disk.
    pub output_cap: u64,
    /// Runs that may wait in it, if fewer than the keeper allows by itself.
    #[serde(default)]
    pub max_queue: Option<u64>,
    /// Take checkpoints before runs.
    #[serde(default)]
    pub auto: Option<Auto>,
    #[serde(default)]
    pub duty: Duty,
}

/// What a keeper is launched for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Duty {
    #[default]
    Begin,
    /// The session existed before: continue its numbers and its last state.
    GoOn,
    /// It is to end: only clear away what its last keeper has left.
    Sweep,
}

/// Checkpoints that a session takes by itself, before each run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Auto {
    /// How many of them are kept.
    pub keep: u32,
    /// With the files of the workspace.
    #[serde(default)]
    pub files: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelProgram {
    pub language: Language,
    /// A name to look up in PATH, or a path.
    pub program: String,
}

/// Written by the keeper to the pipe that it was given, once it can be
/// connected to and its first kernel is up (or cannot be).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BootReport {
    pub outcome: Result<u32, Failure>,
}
