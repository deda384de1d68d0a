//! What a confined session uses, and may use.

use serde::{Deserialize, Serialize};

/// The limits of a sandbox, and what is used of them. Absent ones are not limited
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct LimitsView {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(nullable = false))]
    pub memory: Option<MemoryLimit>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(nullable = false))]
    pub cpus: Option<CpuLimit>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(nullable = false))]
    pub pids: Option<PidsLimit>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(nullable = false))]
    pub open_files: Option<FilesLimit>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(nullable = false))]
    pub layer: Option<LayerLimit>,
}

/// A limit of a sandbox that a run has met
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct MetLimit {
    pub resource: LimitedResource,
    /// Bytes, or processes and threads
    pub limit: u64,
    pub evidence: Evidence,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum LimitedResource {
    Memory,
    Pids,
    Layer,
}

/// How the limit was detected
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Evidence {
    /// The system has counted it
    Counted,
    /// The run's end looks like it
    Guessed,
}

/// All programs together, unless it is held by an rlimit: then each by itself
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct MemoryLimit {
    pub limit_bytes: u64,
    /// Without memory that the system can reclaim at once; null if unknown
    #[serde(default)]
    pub used_bytes: Option<u64>,
    #[serde(default)]
    pub peak_bytes: Option<u64>,
    /// Processes that were killed for it
    #[serde(default)]
    pub kills: u64,
    /// `cgroup v1`, `cgroup v2` or `rlimit`
    pub held_by: String,
}

/// CPU time, in cores
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct CpuLimit {
    pub limit: f64,
    pub held_by: String,
}

/// Processes and threads
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PidsLimit {
    pub limit: u64,
    #[serde(default)]
    pub used: Option<u64>,
    /// Processes that could not be started for it
    #[serde(default)]
    pub refused: u64,
    pub held_by: String,
}

/// Open files of each process
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct FilesLimit {
    pub limit: u64,
    pub held_by: String,
}

/// The layer and the private directories together
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct LayerLimit {
    pub limit_bytes: u64,
    /// As of the last check
    #[serde(default)]
    pub used_bytes: Option<u64>,
    /// Writes that failed with `No space left on device`
    #[serde(default)]
    pub refused: u64,
    pub held_by: String,
}
