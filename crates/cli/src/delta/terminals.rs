//! `delta-sessions-pty`: programs on terminals, which can be written to and read.

use super::escapes;
use crate::commands::input;
use crate::output;
use crate::reader::Reader;
use crate::script::quoted;
use crate::settings::Settings;
use anyhow::{Context, bail};
use clap::{Parser, Subcommand};
use jiff::Timestamp;
use serde::Serialize;
use sessile_client::{ClientError, NewSession};
use sessile_gateway::answer::Ended;
use sessile_protocol::{
    Answer, Exec, Language, ReadOutput, Request, RunNo, RunPhase, SessionId, TerminalSize, Until,
};
use sessile_store::{Directory, Metadata, SessionStatus};
use sessile_terminal::Modes;
use std::ffi::OsString;
use std::io::{self, Read as _};
use std::path::PathBuf;
use std::process::ExitCode;

/// The only run of a session here.
const RUN: RunNo = RunNo(1);

/// Programs on terminals, by Sessile
#[derive(Debug, Parser)]
#[command(
    name = "delta-sessions-pty",
    version,
    disable_help_subcommand = true,
    after_help = "Options:\n      --sessions-dir <DIR>  Session storage directory [default: .sessions]\n\n\
        Examples:\n  \
        delta-sessions-pty start bash -i\n  \
        echo 'ls -la\\n' | delta-sessions-pty write sess_…\n  \
        delta-sessions-pty write-key sess_… arrow_up\n  \
        delta-sessions-pty read sess_… --timeout 2000"
)]
struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Start a program
    Start {
        #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
        command: Vec<String>,
    },
    /// Send input (from stdin, with escapes such as \n and \x1b)
    Write { session_id: String },
    /// Send a key: arrow_up, enter, ctrl+c, f1, page_down, …
    WriteKey { session_id: String, key: String },
    /// Print what was written since the last read
    Read {
        session_id: String,
        /// Wait for output, for at most so many milliseconds
        #[arg(long, value_name = "MS", default_value_t = 0)]
        timeout: u64,
        /// Wait for output
        #[arg(long)]
        wait: bool,
        /// Go on until the program ends
        #[arg(long)]
        follow: bool,
        /// Print only the last so many lines
        #[arg(long, value_name = "N")]
        lines: Option<usize>,
    },
    /// Terminate a program
    End { session_id: String },
    /// List all sessions
    List,
    /// Tell how a program is
    Status { session_id: String },
    /// Remove dead sessions
    Cleanup,
}

#[derive(Debug, Serialize)]
struct Started {
    session_id: SessionId,
    status: &'static str,
    pid: u32,
    command: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Sent {
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    session_id: SessionId,
}

#[derive(Debug, Serialize)]
struct Listed {
    session_id: SessionId,
    command: String,
    status: &'static str,
    pid: u32,
    holder_pid: u32,
    created_at: String,
    last_accessed_at: String,
}

#[derive(Debug, Serialize)]
struct TerminalReport {
    session_id: SessionId,
    status: &'static str,
    pid: u32,
    holder_pid: u32,
    alive: bool,
    uptime_seconds: i64,
    command: Vec<String>,
}

#[derive(Debug, Serialize)]
struct CleanedUp {
    cleaned: Vec<SessionId>,
    remaining: Vec<SessionId>,
}

#[derive(Debug, Serialize)]
struct Failure {
    error: String,
}

/// Runs the command. A mistake is reported on stderr, and as JSON on stdout.
pub(super) fn main(mut args: Vec<OsString>) -> ExitCode {
    let settings = super::settings(&mut args);
    let name = OsString::from("delta-sessions-pty");
    let args = match Args::try_parse_from(std::iter::once(name).chain(args)) {
        Ok(args) => args,
        Err(error) => return super::usage(&error),
    };
    match settings.and_then(|settings| args.command.execute(&settings)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let message = crate::reasons(&error);
            eprintln!("{message}");
            let _ = output::json(&Failure { error: message });
            ExitCode::FAILURE
        }
    }
}

impl Command {
    fn execute(self, settings: &Settings) -> anyhow::Result<()> {
        match self {
            Self::Start { command } => start(settings, command),
            Self::Write { session_id } => {
                let mut text = String::new();
                io::stdin().lock().read_to_string(&mut text)?;
                let text = escapes::parse(&text);
                let id = write(settings, &session_id, text.as_bytes())?;
                let bytes = Some(text.len());
                super::print(&Sent { status: "sent", bytes, key: None, session_id: id })
            }
            Self::WriteKey { session_id, key } => {
                // The names are the same as ours, except for an underscore and a prefix.
                let ours = key.strip_prefix("arrow_").unwrap_or(&key).replace('_', "");
                let Ok(bytes) = sessile_terminal::named(&ours, Modes::default()) else {
                    bail!("Invalid key name: {key}");
                };
                let id = write(settings, &session_id, &bytes)?;
                super::print(&Sent { status: "sent", bytes: None, key: Some(key), session_id: id })
            }
            Self::Read { session_id, timeout, wait, follow, lines } => {
                let mut reader = Reader::find(settings, &session_id)?;
                let patience_ms = (!wait && !follow).then_some(timeout);
                read(&mut reader, patience_ms, follow, lines)
            }
            Self::End { session_id } => {
                let id = settings.session(&session_id)?;
                let directory = settings.sessions.find(&id)?;
                let ended = settings.launcher.end(&directory)?;
                // In Delta Engine, nothing is left of it.
                if directory.await_lock()?.is_some() {
                    directory.remove()?;
                }
                super::print(&Ended::new(ended))
            }
            Self::List => {
                let all = programs(settings)?.into_iter();
                let all: Vec<Listed> = all.map(|(directory, of)| listed(&directory, of)).collect();
                super::print(&all)
            }
            Self::Status { session_id } => {
                let directory = settings.sessions.find(&settings.session(&session_id)?)?;
                super::print(&told(&directory)?)
            }
            Self::Cleanup => {
                let (mut cleaned, mut remaining) = (Vec::new(), Vec::new());
                for (directory, metadata) in programs(settings)? {
                    let is_dead = program(&directory, &metadata).is_none();
                    if is_dead && metadata.status != SessionStatus::Starting {
                        settings.launcher.end(&directory)?;
                        if directory.await_lock()?.is_some() {
                            directory.remove()?;
                        }
                        cleaned.push(metadata.session_id);
                    } else {
                        remaining.push(metadata.session_id);
                    }
                }
                super::print(&CleanedUp { cleaned, remaining })
            }
        }
    }
}

fn start(settings: &Settings, command: Vec<String>) -> anyhow::Result<()> {
    let new = NewSession { idle_timeout_ms: 0, command_timeout_ms: 0, ..NewSession::default() };
    let (directory, metadata) = settings.launcher.create(&settings.sessions, new)?;
    std::fs::write(bookmark(&directory), "0").context("cannot mark the session")?;
    let words: Vec<String> = command.iter().map(|word| quoted(word)).collect();
    let order = Exec {
        text: words.join(" ").into_bytes(),
        until: Until::Accepted,
        terminal: Some(TerminalSize::DEFAULT),
        ..Exec::default()
    };
    let mut client = settings.launcher.open(&directory)?;
    let Answer::Accepted { .. } = client.call(Request::Exec(order))? else {
        bail!(ClientError::Unexpected);
    };
    let Answer::Status(status) = client.call(Request::Status)? else {
        bail!(ClientError::Unexpected);
    };
    let pid = shell(&status.kernels).unwrap_or(status.keeper_pid);
    super::print(&Started { session_id: metadata.session_id, status: "running", pid, command })
}

/// Returns the process that a program runs in: the shell of its session.
fn shell(kernels: &[sessile_protocol::KernelStatus]) -> Option<u32> {
    kernels.iter().find(|kernel| kernel.language == Language::Bash).map(|kernel| kernel.pid)
}

fn write(settings: &Settings, session: &str, bytes: &[u8]) -> anyhow::Result<SessionId> {
    let id = settings.session(session)?;
    let mut reader = Reader::find(settings, id.as_str())?;
    match reader.live() {
        Some(client) => input::give_all(client, RUN, bytes)?,
        None => bail!("Session {id} not found or dead"),
    }
    Ok(id)
}

/// Returns the file with the last reader's position. It exists from the start, and marks
/// the session of a program.
fn bookmark(directory: &Directory) -> PathBuf {
    directory.path().join("delta-read")
}

fn read(
    reader: &mut Reader,
    patience_ms: Option<u64>,
    follow: bool,
    lines: Option<usize>,
) -> anyhow::Result<()> {
    let bookmark = bookmark(&reader.directory);
    let from = std::fs::read_to_string(&bookmark).ok().and_then(|text| text.parse().ok());
    let mut read = ReadOutput {
        stdout_from: from.unwrap_or(0),
        wait: patience_ms != Some(0),
        patience_ms,
        // The run's end is not news as long as something can write.
        known: Some(RunPhase::Exited),
        ..ReadOutput::waiting(RUN)
    };
    loop {
        let view = reader.output(read)?;
        read.stdout_from = view.stdout_next;
        output::all(&mut io::stdout().lock(), last_lines(&view.stdout, lines))?;
        std::fs::write(&bookmark, read.stdout_from.to_string())
            .context("cannot remember how far was read")?;
        let is_more = view.stdout.len() as u64 >= read.max;
        let is_over = view.phase == RunPhase::Closed && view.stdout.is_empty();
        if is_over || (!follow && !is_more) {
            return Ok(());
        }
    }
}

fn last_lines(bytes: &[u8], lines: Option<usize>) -> &[u8] {
    let Some(lines) = lines else { return bytes };
    let mut breaks = bytes.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n');
    match lines.checked_sub(1).and_then(|before| breaks.nth(before)) {
        Some((at, _)) => &bytes[at + 1..],
        None if lines == 0 => &[],
        None => bytes,
    }
}

/// Returns the sessions that were started for a program. Others in the directory belong
/// to `delta-sessions`, or to `sessile` itself.
fn programs(settings: &Settings) -> anyhow::Result<Vec<(Directory, Metadata)>> {
    let mut all = settings.sessions.list()?;
    all.retain(|(directory, metadata)| {
        bookmark(directory).exists() || program(directory, metadata).is_some()
    });
    Ok(all)
}

/// Returns the shell and the command of a program that still runs.
fn program(directory: &Directory, metadata: &Metadata) -> Option<(u32, String)> {
    if metadata.status != SessionStatus::Active {
        return None;
    }
    let sessile_store::Liveness::Live(socket) = directory.connect() else { return None };
    let mut client = sessile_client::Client::new(socket);
    let Ok(Answer::Runs(view)) = client.call(Request::Runs) else { return None };
    let run = view.runs.into_iter().find(|run| run.terminal && run.phase < RunPhase::Exited)?;
    let Ok(Answer::Status(status)) = client.call(Request::Status) else { return None };
    Some((shell(&status.kernels)?, run.command))
}

fn status(is_alive: bool) -> &'static str {
    if is_alive { "running" } else { "dead" }
}

/// Returns the command that a session was started for.
fn command(directory: &Directory, running: Option<&(u32, String)>) -> String {
    let recorded = || directory.history().find(RUN).map(|entry| entry.command);
    running.map(|(_, command)| command.clone()).or_else(recorded).unwrap_or_default()
}

fn listed(directory: &Directory, metadata: Metadata) -> Listed {
    let running = program(directory, &metadata);
    Listed {
        command: command(directory, running.as_ref()),
        status: status(running.is_some()),
        pid: running.map_or(0, |(pid, _)| pid),
        holder_pid: metadata.keeper_pid.unwrap_or(0),
        last_accessed_at: metadata.last_executed_at.unwrap_or_else(|| metadata.created_at.clone()),
        session_id: metadata.session_id,
        created_at: metadata.created_at,
    }
}

/// Splits a command into the words that we have joined.
fn words(command: &str) -> Vec<String> {
    if command.contains('\'') {
        return vec![command.to_owned()];
    }
    command.split_whitespace().map(str::to_owned).collect()
}

fn told(directory: &Directory) -> anyhow::Result<TerminalReport> {
    let metadata = directory.observed_metadata()?;
    let running = program(directory, &metadata);
    let age = metadata.created_at.parse::<Timestamp>();
    let age = age.map(|since| Timestamp::now().duration_since(since).as_secs());
    Ok(TerminalReport {
        command: words(&command(directory, running.as_ref())),
        status: status(running.is_some()),
        alive: running.is_some(),
        pid: running.map_or(0, |(pid, _)| pid),
        holder_pid: metadata.keeper_pid.unwrap_or(0),
        uptime_seconds: age.unwrap_or(0),
        session_id: metadata.session_id,
    })
}
