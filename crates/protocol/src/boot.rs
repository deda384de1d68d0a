//! What a keeper is told when it is launched, and what it says back once.

use crate::{Failure, Inherited, Language, SessionId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Set in every kernel's environment: programs can tell that they are in a
/// session, and what a killed keeper left behind can be found.
pub const SESSION_MARKER: &str = "SESSILE_SESSION_ID";

/// The last argument of a process that keepers are forked from, where a keeper
/// has its session's id. It is as long as an id, so that a forked keeper can
/// write its own in that place.
pub const FORK_SERVER: &str = "fork-server                  ";

/// Bytes of a boot that a fork server takes, in one message on its stdin, with
/// the pipe for the report. More is rare: environments are that long.
pub const MAX_FORKED_BOOT: usize = 64 << 10;

/// Written to the new keeper's stdin as one frame. Its environment, or what is
/// inherited of it, is the session's initial environment.
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
    /// What the session has of the keeper's environment; all of it when absent.
    #[serde(default)]
    pub inherited: Option<Inherited>,
    pub idle_timeout_ms: u64,
    /// Only runs keep the session from being idle: not jobs, nor who looks at it.
    #[serde(default)]
    pub idle_without_runs: bool,
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
    /// The policy that it is confined by, resolved, as JSON.
    #[serde(default)]
    pub sandbox: Option<String>,
    #[serde(default)]
    pub duty: BootPurpose,
    /// What is to be in the session's metadata file, which is not there yet: a
    /// session that comes up has a file of it, and one that does not has none.
    #[serde(default, with = "serde_bytes")]
    pub metadata: Option<Vec<u8>>,
}

/// What a keeper is launched for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BootPurpose {
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
