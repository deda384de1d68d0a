use crate::args;
use crate::output;
use crate::settings::{Settings, new_session_id};
use anyhow::{Context, bail};
use clap::Args;
use serde_json::json;
use sessile_protocol::Language;
use sessile_store::{Directory, Metadata, SessionStatus, timestamp};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Start a session and print its id
///
/// SHELL is bash, sh, dash, zsh, python3 or node, or the path of one. The
/// session lives on by itself until `end`, or until nothing was run in it for
/// the idle timeout.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    sessile start\n  \
    sessile start zsh --env STAGE=test --cwd ./project\n  \
    sessile start --idle-timeout 2h --command-timeout 5m")]
pub(crate) struct Start {
    /// The program of the session
    #[arg(default_value = "bash")]
    shell: String,
    #[command(flatten)]
    options: Options,
}

#[derive(Clone, Debug, Args)]
pub(crate) struct Options {
    /// Set an environment variable (may be repeated)
    #[arg(long = "env", value_name = "K=V", value_parser = args::assignment)]
    pub(crate) env: Vec<(String, String)>,
    /// Directory to start in [default: the current one]
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,
    /// End the session after this long without a run; 0: never
    #[arg(long, value_name = "TIME", default_value = "30m", value_parser = args::duration)]
    pub(crate) idle_timeout: Duration,
    /// Interrupt a command after this long; 0: never
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = args::duration)]
    pub(crate) command_timeout: Duration,
    /// Runs to keep in the history
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub(crate) max_history: u64,
    /// Bytes of each stream of a run to keep on disk
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = args::size)]
    pub(crate) output_cap: u64,
}

impl Start {
    pub(crate) fn execute(self, settings: &Settings) -> anyhow::Result<ExitCode> {
        let (_, metadata) = start(settings, &self.shell, &self.options, None)?;
        output::json(&json!({
            "session_id": metadata.session_id,
            "command": metadata.command,
            "work_dir": metadata.work_dir,
            "status": "active",
        }))?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Starts a session; when that fails, nothing of it is left.
pub(crate) fn start(
    settings: &Settings,
    program: &str,
    options: &Options,
    workspace: Option<String>,
) -> anyhow::Result<(Directory, Metadata)> {
    let Some(language) = Language::of_program(program) else {
        bail!(
            "{program:?} is not a program that Sessile knows; use bash, sh, dash, zsh, python3 or node, or the path of one"
        );
    };
    let cwd = options.cwd.clone().unwrap_or_else(|| PathBuf::from("."));
    let work_dir = std::fs::canonicalize(&cwd)
        .with_context(|| format!("cannot use {} as directory", cwd.display()))?;
    if !work_dir.is_dir() {
        bail!("{} is not a directory", cwd.display());
    }
    // A path is meant from here, wherever the session's directory is.
    let command = if program.contains('/') {
        std::path::absolute(program)?.to_string_lossy().into_owned()
    } else {
        program.to_owned()
    };
    let metadata = Metadata {
        session_id: new_session_id()?,
        command,
        created_at: timestamp(),
        last_executed_at: None,
        status: SessionStatus::Starting,
        work_dir,
        execution_count: 0,
        language,
        ended_at: None,
        ended_by: None,
        keeper_pid: None,
        env: options.env.iter().cloned().collect::<BTreeMap<_, _>>(),
        idle_timeout_ms: milliseconds(options.idle_timeout),
        command_timeout_ms: milliseconds(options.command_timeout),
        max_history: options.max_history.max(1),
        output_cap: options.output_cap,
        workspace,
    };
    let directory = settings.sessions.create(&metadata.session_id)?;
    settings.launcher.start(&directory, &metadata)?;
    Ok((directory, metadata))
}

pub(crate) fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
