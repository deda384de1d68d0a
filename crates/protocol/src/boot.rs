//! The parameters of a new keeper, and its report.

use crate::{Failure, Inherited, Language, SessionId};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Set in every kernel's environment: it tells programs that they are in a session, and
/// identifies processes that a killed keeper left behind.
pub const SESSION_MARKER: &str = "SESSILE_SESSION_ID";

/// The last argument of a fork server, where a keeper has its session's id. It is as long
/// as an id, so that a forked keeper can write its own in that place.
pub const FORK_SERVER: &str = "fork-server                  ";

/// Maximum size of a boot that a fork server takes, in one message on its stdin, with the
/// pipe for the report. More is rare: only large environments exceed it.
pub const MAX_FORKED_BOOT: usize = 64 << 10;

/// Written to the new keeper's stdin as one frame. The keeper's environment, or the
/// inherited part of it, is the session's initial environment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Boot {
    pub session: SessionId,
    /// The session's own directory, absolute.
    pub directory: PathBuf,
    pub work_dir: PathBuf,
    /// Directory of the user's state that belongs to no workspace, absolute.
    pub user_state: PathBuf,
    /// The program of the session's default language.
    pub kernel: KernelProgram,
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    /// The variables that the session gets from the keeper's environment; all when absent.
    #[serde(default)]
    pub inherited: Option<Inherited>,
    pub idle_timeout_ms: u64,
    /// Only runs keep the session from being idle; jobs and watching clients do not.
    #[serde(default)]
    pub idle_without_runs: bool,
    pub command_timeout_ms: u64,
    pub max_history: u64,
    /// Bytes of each stream of a run that are kept on disk.
    pub output_cap: u64,
    /// Maximum number of queued runs, if lower than the keeper's own limit.
    #[serde(default)]
    pub max_queue: Option<u64>,
    /// Take checkpoints before runs.
    #[serde(default)]
    pub auto: Option<Auto>,
    /// The resolved policy of its sandbox, as JSON.
    #[serde(default)]
    pub sandbox: Option<String>,
    #[serde(default)]
    pub duty: BootPurpose,
    /// The contents of the session's metadata file, which does not exist yet. Only a
    /// session that starts gets the file.
    #[serde(default, with = "serde_bytes")]
    pub metadata: Option<Vec<u8>>,
}

/// The purpose of a new keeper.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BootPurpose {
    #[default]
    Begin,
    /// The session existed before: continue its numbers and its last state.
    GoOn,
    /// The session is to end: only remove what its last keeper has left.
    Sweep,
}

/// Checkpoints that a session takes automatically before each run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Auto {
    /// How many are kept.
    pub keep: u32,
    /// Whether it includes the files of the workspace.
    #[serde(default)]
    pub files: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelProgram {
    pub language: Language,
    /// A name to look up in PATH, or a path.
    pub program: String,
}

/// Written by the keeper to its report pipe, once it accepts connections and its first
/// kernel is up (or could not be started).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BootReport {
    pub outcome: Result<u32, Failure>,
}
