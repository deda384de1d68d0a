//! `delta-sessions`: commands in a shell that remembers.

use crate::commands::{cleanup, exec};
use crate::settings::Settings;
use clap::{Parser, Subcommand};
use serde::Serialize;
use sessile_client::NewSession;
use sessile_gateway::answer::{self, Cleaned, Ended, Started};
use sessile_protocol::{Exec as Order, SessionId, Until};
use sessile_store::SessionStatus;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

/// Command-based session management, by Sessile
#[derive(Debug, Parser)]
#[command(
    name = "delta-sessions",
    version,
    disable_help_subcommand = true,
    after_help = "Options:\n      --sessions-dir <DIR>  Session storage directory [default: .sessions]\n\n\
        Examples:\n  \
        delta-sessions start\n  \
        echo 'ls -la' | delta-sessions exec sess_…\n  \
        delta-sessions list\n  \
        delta-sessions end sess_…"
)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Create a new session
    Start {
        /// bash, sh, zsh, python3, node
        #[arg(default_value = "bash")]
        shell: String,
        /// Taken and passed over, as there
        #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
        rest: Vec<String>,
    },
    /// Execute a command in a session (from stdin)
    Exec {
        session_id: String,
        /// The command [default: stdin]
        command: Vec<String>,
        /// Print the result as JSON, instead of passing the output on
        #[arg(long)]
        json: bool,
    },
    /// Terminate a session
    End { session_id: String },
    /// List all sessions
    List,
    /// Remove terminated sessions
    Cleanup,
}

/// The result of a command.
#[derive(Debug, Serialize)]
struct Executed {
    session_id: SessionId,
    stdout: String,
    stderr: String,
    exit_code: i32,
    /// Whole milliseconds.
    execution_time_ms: u64,
}

/// A session in a list.
#[derive(Debug, Serialize)]
struct Listed {
    session_id: SessionId,
    command: String,
    work_dir: PathBuf,
    status: &'static str,
    created_at: String,
    last_executed_at: Option<String>,
    execution_count: u64,
}

pub(super) fn main(mut args: Vec<OsString>) -> ExitCode {
    let settings = super::settings(&mut args);
    let name = OsString::from("delta-sessions");
    let args = match Args::try_parse_from(std::iter::once(name).chain(args)) {
        Ok(args) => args,
        Err(error) => return super::usage(&error),
    };
    settings.and_then(|settings| args.command.execute(&settings)).unwrap_or_else(|error| {
        eprintln!("Error: {}", crate::reasons(&error));
        ExitCode::FAILURE
    })
}

impl Command {
    fn execute(self, settings: &Settings) -> anyhow::Result<ExitCode> {
        match self {
            Self::Start { shell, rest: _ } => start(settings, shell)?,
            Self::Exec { session_id, command, json } => {
                return execute(settings, &session_id, &command, json);
            }
            Self::End { session_id } => {
                let id = settings.session(&session_id)?;
                let ended = settings.launcher.end(&settings.sessions.find(&id)?)?;
                super::print(&Ended::new(ended))?;
            }
            Self::List => super::print(&list(settings)?)?,
            Self::Cleanup => {
                let cleaned = cleanup::remove_ended(settings)?;
                super::print(&Cleaned { cleaned })?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Starts a session without timeouts: in Delta Engine, a session has no process that
/// could go on for ever. It ends when it is ended, and a command takes as long as it takes.
fn start(settings: &Settings, shell: String) -> anyhow::Result<()> {
    let new = NewSession {
        program: shell,
        idle_timeout_ms: 0,
        command_timeout_ms: 0,
        ..NewSession::default()
    };
    let (_, metadata) = settings.launcher.create(&settings.sessions, new)?;
    super::print(&Started::from(&metadata))
}

/// Runs a command, prints its output, and returns its exit code.
fn execute(
    settings: &Settings,
    session: &str,
    command: &[String],
    json: bool,
) -> anyhow::Result<ExitCode> {
    let id = settings.session(session)?;
    let directory = settings.sessions.find(&id)?;
    let text = match command {
        [] => exec::text_from_stdin()?,
        words => words.join(" ").into_bytes(),
    };
    let mut client = settings.launcher.open(&directory)?;
    crate::interrupts::watch()?;
    let order = Order { text, max_output: u64::MAX, ..Order::default() };
    if !json {
        let order = Order { until: Until::Accepted, ..order };
        return Ok(ExitCode::from(exec::pass(&mut client, order)?));
    }
    let done = exec::run(&mut client, Order { until: Until::Recorded, ..order })?;
    let result = answer::RunResult::from(&done);
    super::print(&Executed {
        session_id: id,
        stdout: result.stdout,
        stderr: result.stderr,
        exit_code: done.exit_code,
        execution_time_ms: (done.duration_us + 500) / 1000,
    })?;
    Ok(ExitCode::SUCCESS)
}

fn list(settings: &Settings) -> anyhow::Result<Vec<Listed>> {
    let all = settings.sessions.list()?.into_iter();
    Ok(all
        .map(|(_, metadata)| Listed {
            session_id: metadata.session_id,
            command: metadata.command,
            work_dir: metadata.work_dir,
            status: status(metadata.status),
            created_at: metadata.created_at,
            last_executed_at: metadata.last_executed_at,
            execution_count: metadata.execution_count,
        })
        .collect())
}

/// Maps to the two statuses of Delta Engine. A session whose keeper has died goes on with
/// its next command.
fn status(status: SessionStatus) -> &'static str {
    match status {
        SessionStatus::Starting
        | SessionStatus::Active
        | SessionStatus::Lost
        | SessionStatus::Unknown => "active",
        SessionStatus::Terminated => "terminated",
    }
}
