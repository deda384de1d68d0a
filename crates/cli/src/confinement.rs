//! The options of a session's sandbox.

use crate::args;
use anyhow::{Context, bail};
use clap::Args;
use sessile_sandbox::policy::PRESETS;
use sessile_sandbox::{Bind, Draft, FileMode, Limits, Network, Policy, PolicyError, Rule};
use std::path::{Path, PathBuf};

/// What a session may see, touch and use. All of these but --sandbox ask for a
/// sandbox as well.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Sandbox")]
pub(crate) struct Confinement {
    /// Confine the session, by a preset or a policy file [default: development]
    ///
    /// The workspace is /workspace inside, the system is there read-only, and
    /// nothing else of the host. Presets are view-only, read-only, full-access,
    /// development and agent-safe.
    #[arg(long, value_name = "PRESET|FILE", num_args = 0..=1, default_missing_value = "")]
    sandbox: Option<String>,
    /// A rule for paths of the workspace: none, view, read or write (may be repeated)
    #[arg(long, value_name = "PATTERN=LEVEL", requires = "sandbox")]
    allow: Vec<String>,
    /// Show a directory or file of the host (may be repeated)
    #[arg(long, value_name = "HOST[:INSIDE][:ro]", requires = "sandbox")]
    bind: Vec<String>,
    /// Hosts that can be reached: none, full, or a list as in a.com,*.b.org:443 [default: none]
    #[arg(long, value_name = "HOSTS", requires = "sandbox")]
    network: Option<String>,
    /// Another system tree than the host's
    #[arg(long, value_name = "DIR", requires = "sandbox")]
    rootfs: Option<PathBuf>,
    /// Be root of its own user namespace inside
    #[arg(long, requires = "sandbox")]
    root: bool,
    /// Memory of all its programs together
    #[arg(long, value_name = "SIZE", requires = "sandbox", value_parser = args::size)]
    memory: Option<u64>,
    /// Cores' worth of time, as in 1.5
    #[arg(long, value_name = "N", requires = "sandbox")]
    cpus: Option<f64>,
    /// Processes and threads
    #[arg(long, value_name = "N", requires = "sandbox")]
    pids: Option<u64>,
    /// Open files of each process
    #[arg(long, value_name = "N", requires = "sandbox")]
    open_files: Option<u64>,
    /// Maximum size of the layer for its writes, including /tmp
    #[arg(long, value_name = "SIZE", requires = "sandbox", visible_alias = "disk", value_parser = args::size)]
    layer_size: Option<u64>,
}

impl Confinement {
    /// Returns the policy for sessions that an agent makes: from the flags, else from the
    /// environment.
    pub(crate) fn of_agents(&self) -> anyhow::Result<Option<Policy>> {
        let said = std::env::var(VARIABLE).ok().filter(|word| !word.is_empty());
        match (self.policy(None)?, said) {
            (Some(policy), _) => Ok(Some(policy)),
            (None, Some(word)) => named(&word).context(VARIABLE).map(Some),
            (None, None) => Ok(None),
        }
    }

    /// Whether a sandbox is requested. The other options request it as well.
    pub(crate) fn is_wanted(&self) -> bool {
        self.sandbox.is_some()
    }

    /// Returns the whole policy, if a sandbox is requested. `files` is the given file mode.
    pub(crate) fn policy(&self, files: Option<FileMode>) -> anyhow::Result<Option<Policy>> {
        let Some(word) = &self.sandbox else {
            if files.is_some() {
                bail!("--files overlay and --files direct are about a sandbox: say --sandbox, too");
            }
            return Ok(None);
        };
        let mut draft = draft(word)?;
        for text in &self.allow {
            draft.permissions.push(Rule::parse(text)?);
        }
        for text in &self.bind {
            draft.binds.push(bind(text)?);
        }
        draft.files = files.or(draft.files);
        draft.network = self.network.as_deref().map(network).transpose()?.or(draft.network);
        if let Some(rootfs) = &self.rootfs {
            draft.rootfs =
                Some(std::fs::canonicalize(rootfs).with_context(|| {
                    format!("--rootfs {}: it cannot be opened", rootfs.display())
                })?);
        }
        draft.root = self.root.then_some(true).or(draft.root);
        let said = Limits {
            memory_bytes: self.memory,
            cpus: self.cpus,
            pids: self.pids,
            open_files: self.open_files,
            layer_bytes: self.layer_size,
        };
        said.check().map_err(option)?;
        draft.limits = Limits {
            memory_bytes: said.memory_bytes.or(draft.limits.memory_bytes),
            cpus: said.cpus.or(draft.limits.cpus),
            pids: said.pids.or(draft.limits.pids),
            open_files: said.open_files.or(draft.limits.open_files),
            layer_bytes: said.layer_bytes.or(draft.limits.layer_bytes),
        };
        Ok(Some(draft.resolve()?))
    }
}

/// The variable with a preset's name or a file, for commands that an agent calls.
const VARIABLE: &str = "SESSILE_SANDBOX";

/// Returns the policy of a preset or a file.
pub(crate) fn named(word: &str) -> anyhow::Result<Policy> {
    Ok(draft(word)?.resolve()?)
}

pub(crate) fn is_preset(word: &str) -> bool {
    PRESETS.iter().any(|(name, _)| *name == word)
}

/// Returns the draft of a preset or a file.
fn draft(word: &str) -> anyhow::Result<Draft> {
    if word.is_empty() {
        return Ok(Draft::default());
    }
    if is_preset(word) {
        return Ok(Draft::of_preset(word));
    }
    let path = Path::new(word);
    if !path.is_file() {
        let names: Vec<&str> = PRESETS.iter().map(|(name, _)| *name).collect();
        bail!(
            "--sandbox {word}: this is neither a preset ({}) nor a file. \
             If it is the command, put -- before it, as in: --sandbox -- 'ls; pwd'",
            names.join(", ")
        );
    }
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {word}"))?;
    let draft = Draft::from_toml(word, &text)?;
    draft.require(word, &text, Path::exists)?;
    Ok(draft)
}

/// Names the option in an error about a limit.
fn option(error: PolicyError) -> anyhow::Error {
    let PolicyError::Field { field, reason } = &error else { return error.into() };
    let option = match field.as_str() {
        "limits.memory_bytes" => "--memory",
        "limits.cpus" => "--cpus",
        "limits.pids" => "--pids",
        "limits.open_files" => "--open-files",
        "limits.layer_bytes" => "--layer-size",
        _ => return error.into(),
    };
    anyhow::anyhow!("{option}: {reason}")
}

/// Parses a bind. Its path is relative to the current directory.
fn bind(text: &str) -> anyhow::Result<Bind> {
    let (host, rest) =
        text.split_once(':').map_or((text, ""), |(host, _)| (host, &text[host.len()..]));
    let absolute = std::path::absolute(host).with_context(|| format!("--bind {text}"))?;
    let bind = Bind::parse(&format!("{}{rest}", absolute.display()))?;
    if !bind.host.exists() {
        bail!("--bind {text}: {} does not exist", bind.host.display());
    }
    Ok(bind)
}

fn network(text: &str) -> anyhow::Result<Network> {
    Network::parse(text).map_err(|error| anyhow::anyhow!("--network: {error}"))
}
