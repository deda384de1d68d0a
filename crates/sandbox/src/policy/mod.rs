//! The policy of a sandbox: data that people write, as TOML or JSON, and the one resolved
//! form that a session keeps and shows.
//!
//! A `Draft` is what somebody wrote: every field may be missing, and an unknown one is
//! refused by name. A `Policy` is complete: the rules of the presets that it extends,
//! then its own. Nothing here does I/O.

mod draft;
mod error;
pub mod hosts;
mod network;
mod pattern;
mod presets;
mod rule;
mod sizes;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

#[cfg(feature = "schema")]
pub use draft::PresetName;
pub use draft::{DEFAULT_PRESET, Draft};
pub use error::PolicyError;
pub use hosts::HostRule;
pub use network::Network;
pub(crate) use pattern::{Glob, Specificity};
pub use pattern::{Pattern, PatternError};
pub use presets::{PRESETS, preset};
pub use rule::{Level, Rule, RuleType};

/// What a session may see, touch and use: resolved, with nothing left open.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Policy {
    /// The preset that it comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub preset: Option<String>,
    /// Where writes to the workspace go.
    #[serde(default)]
    pub files: FileMode,
    /// Which level a path of the workspace has.
    #[serde(default)]
    pub permissions: Vec<Rule>,
    /// Further sets of rules that a path must pass, a token's for instance: the
    /// strictest level counts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bounds: Vec<Vec<Rule>>,
    /// Which hosts can be reached.
    #[serde(default)]
    pub network: Network,
    /// What may be used of the machine.
    #[serde(default)]
    pub limits: Limits,
    /// Directories of the host beside the workspace.
    #[serde(default)]
    pub binds: Vec<Bind>,
    /// Another system tree than the host's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<String>))]
    pub rootfs: Option<PathBuf>,
    /// Root of its own user namespace inside, instead of `agent`.
    #[serde(default)]
    pub root: bool,
}

/// Where writes to the workspace go.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum FileMode {
    /// To a layer of the session, which can be looked at, applied or discarded.
    #[default]
    Overlay,
    /// To the directory itself.
    Direct,
}

/// What may be used of the machine. Nothing said is nothing limited, beyond
/// what every sandbox has.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Limits {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(minimum = 16_777_216))]
    pub memory_bytes: Option<u64>,
    /// Cores' worth of time: 1.5 is one and a half.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(minimum = 0.01, maximum = 4096.0))]
    pub cpus: Option<f64>,
    /// Processes and threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(minimum = 4))]
    pub pids: Option<u64>,
    /// Open files of each process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(minimum = 32))]
    pub open_files: Option<u64>,
    /// The layer, `/tmp` and the other private directories together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(minimum = 1_048_576))]
    pub layer_bytes: Option<u64>,
}

/// A directory or file of the host, beside the workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Bind {
    /// Where it is on the host, an absolute path.
    #[cfg_attr(feature = "schema", schema(value_type = String, pattern = r"^/[^\u0000:]+$"))]
    pub host: PathBuf,
    /// Where it is inside; the same path if not given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<String>, pattern = r"^/[^\u0000:]+$"))]
    pub inside: Option<PathBuf>,
    #[serde(default)]
    pub read_only: bool,
}

impl Bind {
    /// Returns its path inside.
    #[must_use]
    pub fn inside(&self) -> &std::path::Path {
        self.inside.as_deref().unwrap_or(&self.host)
    }

    /// Parses `HOST[:INSIDE][:ro]`, the argument of `--bind`.
    ///
    /// # Errors
    /// When a path is not absolute, or there is more.
    pub fn parse(text: &str) -> Result<Self, PolicyError> {
        let (paths, read_only) = match text.strip_suffix(":ro") {
            Some(paths) => (paths, true),
            None => (text, false),
        };
        let (host, inside) = match paths.split_once(':') {
            Some((host, inside)) => (host, Some(inside)),
            None => (paths, None),
        };
        let bind = Self { host: host.into(), inside: inside.map(PathBuf::from), read_only };
        bind.check().map_err(|reason| PolicyError::Bind { text: text.to_owned(), reason })?;
        Ok(bind)
    }

    /// Returns why it is invalid, if so.
    pub(crate) fn check(&self) -> Result<(), &'static str> {
        use std::path::Component;
        if !self.host.is_absolute() {
            return Err("the host's path must be absolute");
        }
        let inside = self.inside();
        if !inside.is_absolute() || inside.to_string_lossy().contains(':') {
            return Err("write HOST[:INSIDE][:ro] with absolute paths");
        }
        if inside.components().any(|part| part == Component::ParentDir) {
            return Err("the path inside must not contain `..`");
        }
        if inside == std::path::Path::new("/") {
            return Err("the path inside must not be `/`; a whole system tree is --rootfs");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
