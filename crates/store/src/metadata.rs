//! metadata.json and state.json.

use crate::directory::StoreError;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sessile_protocol::{Auto, KernelProgram, Language, LeftBehind, RunNo, SessionId};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// What a session is. The fields down to `execution_count` are promised to
/// readers; the rest is what a new keeper needs to go on with the session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = SessionInfo, description = "A session's metadata"))]
pub struct Metadata {
    pub session_id: SessionId,
    pub command: String,
    pub created_at: String,
    pub last_executed_at: Option<String>,
    pub status: SessionStatus,
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub work_dir: PathBuf,
    pub execution_count: u64,
    pub language: Language,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<String>,
    /// Why it ended: asked for, idle, or with its program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_by: Option<String>,
    /// What could not be written to its files when it ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lost_at_end: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keeper_pid: Option<u32>,
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    pub idle_timeout_ms: u64,
    /// Only runs keep it from being idle, not jobs or attached clients.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub idle_without_runs: bool,
    pub command_timeout_ms: u64,
    pub max_history: u64,
    pub output_cap: u64,
    /// Maximum number of queued runs, if limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_queue: Option<u64>,
    /// The workspace (and key) whose default session this is, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// The key that distinguishes it from other sessions of its workspace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_key: Option<String>,
    /// Its name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Automatic checkpoints before runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auto: Option<Auto>,
    /// Its complete sandbox policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<Object>))]
    pub sandbox: Option<Value>,
    /// How its sandbox is weaker than requested, if it is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// The session that it is a fork of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<ForkedFrom>,
    /// The token that it was created with, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Set if it is saved in idle time; how far saving has got.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub durable: Option<Durable>,
    /// The session that it was restored from, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restored_from: Option<SessionId>,
}

impl Metadata {
    /// Returns the directory of its files: its workspace, unless its working directory is
    /// elsewhere, as for forks with their own files.
    #[must_use]
    pub fn files_root(&self) -> PathBuf {
        match self.workspace.as_deref().map(std::path::Path::new) {
            Some(workspace) if self.work_dir.starts_with(workspace) => workspace.to_owned(),
            Some(_) | None => self.work_dir.clone(),
        }
    }
}

/// The saves of a durable session.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Durable {
    /// On this machine's disk.
    #[serde(flatten)]
    pub here: SaveState,
    /// What the last save has not, by name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<LeftBehind>,
    /// The store for saves, in addition to the disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub store: Option<DurableStore>,
}

impl Durable {
    /// Returns the same settings for a session that has no saves yet.
    #[must_use]
    pub fn afresh(&self) -> Self {
        let store = self.store.as_ref().map(|store| DurableStore::new(store.url.clone()));
        Self { store, ..Self::default() }
    }
}

/// The progress of saving.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SaveState {
    /// The newest run in the last save.
    #[serde(default)]
    pub as_of_run: Option<RunNo>,
    #[serde(default)]
    pub saved_at: Option<String>,
    /// Why the last attempt failed, if it did.
    #[serde(default)]
    pub error: Option<String>,
}

/// A store for saves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct DurableStore {
    pub url: String,
    #[serde(flatten)]
    pub state: SaveState,
    /// How often the session has been taken up from there; saves of an earlier
    /// epoch are refused.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub epoch: u64,
    /// The machine that it was taken up from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken_from: Option<String>,
    /// The machine on which it goes on instead of this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved_to: Option<String>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl DurableStore {
    /// Returns a store that has no saves of the session yet.
    #[must_use]
    pub fn new(url: String) -> Self {
        Self { url, state: SaveState::default(), epoch: 0, taken_from: None, moved_to: None }
    }
}

/// The origin of a fork.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ForkedFrom {
    pub session_id: SessionId,
    pub as_of_run: RunNo,
}

impl Metadata {
    /// Returns the machine on which the session continues, if not this one.
    #[must_use]
    pub fn moved_to(&self) -> Option<&str> {
        self.durable.as_ref()?.store.as_ref()?.moved_to.as_deref()
    }

    #[must_use]
    pub fn kernel(&self) -> KernelProgram {
        KernelProgram { language: self.language, program: self.command.clone() }
    }

    /// Serializes the metadata for the keeper that writes it.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// # Errors
    /// When the bytes are not metadata.
    pub fn of_bytes(bytes: &[u8]) -> Result<Self, StoreError> {
        let damaged = |source| StoreError::Damaged { path: "metadata".into(), source };
        serde_json::from_slice(bytes).map_err(damaged)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum SessionStatus {
    Starting,
    Active,
    Terminated,
    /// Its keeper died without ending it; the next exec goes on from the last
    /// captured state.
    Lost,
    /// A status of a newer version.
    #[serde(other)]
    Unknown,
}

impl SessionStatus {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Active => "active",
            Self::Terminated => "terminated",
            Self::Lost => "lost",
            Self::Unknown => "unknown",
        }
    }
}

/// state.json: the last captured states.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SavedState {
    pub captured_at: String,
    pub kernels: BTreeMap<Language, SavedKernel>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SavedKernel {
    pub as_of_run: RunNo,
    /// The kernel's state, for people and programs.
    #[serde(flatten)]
    pub view: serde_json::Map<String, Value>,
    /// The text that restores it, if it can be restored from text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restore: Option<String>,
    /// Name of a file in the session's folder `kernels`, which a new process loads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dump: Option<String>,
    /// The last run in the dump: later captures keep an older dump.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dump_as_of_run: Option<RunNo>,
}

impl SavedKernel {
    /// Returns the run as of which the kernel can be restored, if it can.
    #[must_use]
    pub fn comes_back_as_of(&self) -> Option<RunNo> {
        let text = self.restore.as_ref().map(|_| self.as_of_run);
        text.or_else(|| self.dump.as_ref().map(|_| self.dump_as_of_run.unwrap_or(self.as_of_run)))
    }
}

/// Returns the current time in RFC 3339, UTC, to the millisecond.
#[must_use]
pub fn timestamp() -> String {
    timestamp_before(Duration::ZERO)
}

/// Returns a file's time in the same form.
#[must_use]
pub fn timestamp_of(seconds: i64, nanoseconds: u32) -> String {
    let nanoseconds = i32::try_from(nanoseconds).unwrap_or_default();
    let then = jiff::Timestamp::new(seconds, nanoseconds).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    format!("{then:.3}")
}

/// Returns the time that long ago, in the same form.
#[must_use]
pub fn timestamp_before(age: Duration) -> String {
    let then = jiff::Timestamp::now().checked_sub(age).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    format!("{then:.3}")
}
