//! The description of a saved session: the part `manifest.json` of a bundle.

use serde::{Deserialize, Serialize};
use sessile_protocol::{Language, LeftBehind, RunNo, SavedFiles, SessionId};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Version of the parts of a saved session. It grows when one changes its meaning;
/// additions with defaults do not need it.
pub const FORMAT: u32 = 1;

/// The names of the parts.
pub mod part {
    use sessile_protocol::Language;

    pub const MANIFEST: &str = "manifest.json";
    pub const HISTORY: &str = "history.log";
    pub const FILES: &str = "files";

    /// Returns the name of a kernel's state, as in state.json.
    #[must_use]
    pub fn state(language: Language) -> String {
        format!("kernel/{language}/state.json")
    }

    /// Returns the name of a kernel's dump.
    #[must_use]
    pub fn dump(language: Language) -> String {
        format!("kernel/{language}/dump")
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    pub format: u32,
    /// The version of sessile that wrote it.
    pub sessile: String,
    pub saved_at: String,
    pub session_id: SessionId,
    pub language: Language,
    /// The program of that language.
    pub command: String,
    pub created_at: String,
    #[serde(default)]
    pub name: Option<String>,
    pub work_dir: PathBuf,
    #[serde(default)]
    pub env: BTreeMap<String, String>,
    pub idle_timeout_ms: u64,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub idle_without_runs: bool,
    pub command_timeout_ms: u64,
    pub max_history: u64,
    pub output_cap: u64,
    /// Its sandbox policy, which is applied again where it continues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<serde_json::Value>,
    pub execution_count: u64,
    /// The highest run number.
    pub last_run: RunNo,
    pub kernels: Vec<BundledKernel>,
    /// State that could not be carried.
    #[serde(default)]
    pub left: Vec<LeftBehind>,
    #[serde(default)]
    pub files: Option<SavedFiles>,
}

/// A kernel of a saved session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BundledKernel {
    pub language: Language,
    /// The interpreter's version, if known.
    #[serde(default)]
    pub version: Option<String>,
    /// The state is as of this run.
    pub as_of_run: RunNo,
    /// Number of names in its dump, if it has one.
    #[serde(default)]
    pub carried: Option<u64>,
}
