use super::screen;
use crate::output;
use crate::reader::Reader;
use crate::settings::Settings;
use crate::viewer::ScreenWaitArgs;
use crate::{args, viewer};
use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use sessile_client::{ClientError, NewSession};
use sessile_gateway::answer::{Ended, TerminalRow, TerminalStarted};
use sessile_protocol::{Answer, Exec, OpenRun, Request, RunNo, TerminalSize, Until};
use sessile_store::SessionStatus;
use sessile_terminal::Modes;
use std::io::{self, Read as _};
use std::path::PathBuf;
use std::process::ExitCode;

/// Run programs on their own terminals: start, write, read
///
/// Each is a session with one run that has a terminal, so `screen`, `keys`,
/// `output` and all other commands work with it, too.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    sessile pty start -- python3 -q\n  \
    sessile pty write sess_… 'print(6*7)' --enter --wait-for '^42$'\n  \
    sessile pty write-key sess_… Up Enter\n  \
    sessile pty read sess_…\n  \
    sessile pty end sess_…")]
pub(crate) struct Pty {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    Start(Start),
    Write(Write),
    WriteKey(WriteKey),
    Read(Read),
    End(End),
    List(List),
}

/// Start a program on a terminal and print its id
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    sessile pty start\n  \
    sessile pty start --size 120x40 -- vim notes.txt")]
struct Start {
    /// The terminal's columns and rows
    #[arg(long, value_name = "COLSxROWS", value_parser = args::terminal_size,
          default_value = "80x24")]
    size: TerminalSize,
    /// Set an environment variable (may be repeated)
    #[arg(long = "env", value_name = "K=V", value_parser = args::assignment)]
    env: Vec<(String, String)>,
    /// Directory to start in [default: the current one]
    #[arg(long, value_name = "DIR")]
    cwd: Option<PathBuf>,
    /// A name, shown by `list`
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// The program; several words are joined by spaces [default: bash]
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// Type text on a terminal and show it
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    sessile pty write sess_… 'ls -l' --enter\n  \
    sessile pty write sess_… <script.txt")]
struct Write {
    /// What `pty start` printed
    id: String,
    /// The text [default: our stdin]
    #[arg(allow_hyphen_values = true)]
    text: Option<String>,
    /// Press Enter after it
    #[arg(long)]
    enter: bool,
    #[command(flatten)]
    waiting: ScreenWaitArgs,
}

/// Press keys by name and show the terminal
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    sessile pty write-key sess_… Enter\n  \
    sessile pty write-key sess_… ctrl-c\n  \
    sessile pty write-key sess_… Down Down Enter --settle 200ms")]
struct WriteKey {
    /// What `pty start` printed
    id: String,
    /// Enter, Esc, Tab, Up, PageDown, F1, ctrl-c, alt-x, …
    #[arg(required = true, value_name = "KEY", value_parser = key)]
    keys: Vec<String>,
    #[command(flatten)]
    waiting: ScreenWaitArgs,
}

/// Show a terminal
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    sessile pty read sess_…\n  \
    sessile pty read sess_… --wait-for 'Password:' --timeout 5s")]
struct Read {
    /// What `pty start` printed
    id: String,
    /// text: as it looks; json: the text, the cursor and the title; cells: with
    /// colours; svg, png: a picture
    #[arg(long, value_enum, default_value_t = screen::Format::Json)]
    format: screen::Format,
    #[command(flatten)]
    waiting: ScreenWaitArgs,
}

/// End a program and its terminal
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  sessile pty end sess_…")]
struct End {
    /// What `pty start` printed
    id: String,
}

/// List the terminals of all sessions
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  sessile pty list\n  sessile pty list | jq -r '.[].session_id'"
)]
struct List {}

/// Converts a key's name to the notation of `Keys`.
fn key(name: &str) -> Result<String, String> {
    let mut chars = name.chars();
    match (chars.next(), chars.next()) {
        (Some('<'), None) => Ok("<lt>".to_owned()),
        (Some(one), None) => Ok(one.to_string()),
        (_, _) => sessile_terminal::named(name, Modes::default())
            .map(|_| format!("<{name}>"))
            .map_err(|error| error.to_string()),
    }
}

impl Pty {
    pub(crate) fn execute(self, settings: &Settings) -> anyhow::Result<ExitCode> {
        match self.action {
            Action::Start(command) => command.execute(settings),
            Action::Write(command) => command.execute(settings),
            Action::WriteKey(command) => command.execute(settings),
            Action::Read(command) => command.execute(settings),
            Action::End(command) => command.execute(settings),
            Action::List(List {}) => list(settings),
        }
    }
}

impl Start {
    fn execute(self, settings: &Settings) -> anyhow::Result<ExitCode> {
        let command =
            if self.command.is_empty() { "bash".to_owned() } else { self.command.join(" ") };
        let new = NewSession {
            cwd: self.cwd,
            env: self.env.into_iter().collect(),
            command_timeout_ms: 0,
            name: self.name,
            ..NewSession::default()
        };
        let (directory, metadata) = settings.launcher.create(&settings.sessions, new)?;
        let order = Exec {
            text: command.clone().into_bytes(),
            until: Until::Accepted,
            terminal: Some(self.size),
            ..Exec::default()
        };
        let mut client = settings.launcher.open(&directory)?;
        let Answer::Accepted { run, .. } = client.call(Request::Exec(order))? else {
            bail!(ClientError::Unexpected);
        };
        output::json(&TerminalStarted {
            session_id: metadata.session_id,
            run,
            command,
            work_dir: metadata.work_dir,
            size: self.size.into(),
        })?;
        Ok(ExitCode::SUCCESS)
    }
}

impl Write {
    fn execute(self, settings: &Settings) -> anyhow::Result<ExitCode> {
        let mut bytes = match self.text {
            Some(text) => text.into_bytes(),
            None => {
                let mut bytes = Vec::new();
                io::stdin().lock().read_to_end(&mut bytes)?;
                bytes
            }
        };
        if self.enter {
            bytes.push(b'\r');
        }
        let mut reader = Reader::find(settings, &self.id)?;
        let run = terminal(&mut reader)?;
        let before = self.waiting.before(&mut reader, run)?;
        super::input::give_all(reader.keeper(run)?, run, &bytes)?;
        show(&mut reader, run, self.waiting, before)
    }
}

impl WriteKey {
    fn execute(self, settings: &Settings) -> anyhow::Result<ExitCode> {
        let mut reader = Reader::find(settings, &self.id)?;
        let run = terminal(&mut reader)?;
        let before = self.waiting.before(&mut reader, run)?;
        let request = Request::Keys { run, keys: self.keys.concat() };
        let Answer::Input { .. } = reader.keeper(run)?.call(request)? else {
            bail!(ClientError::Unexpected);
        };
        show(&mut reader, run, self.waiting, before)
    }
}

impl Read {
    fn execute(self, settings: &Settings) -> anyhow::Result<ExitCode> {
        let mut reader = Reader::find(settings, &self.id)?;
        let run = terminal(&mut reader)?;
        screen::print(&mut reader, run, &self.waiting, None, self.format)
    }
}

impl End {
    fn execute(self, settings: &Settings) -> anyhow::Result<ExitCode> {
        let id = settings.session(&self.id)?;
        let ended = settings.launcher.end(&settings.sessions.find(&id)?)?;
        output::json(&Ended::new(ended))?;
        Ok(ExitCode::SUCCESS)
    }
}

fn list(settings: &Settings) -> anyhow::Result<ExitCode> {
    let mut rows: Vec<TerminalRow> = Vec::new();
    for (_, metadata) in settings.sessions.list()? {
        if metadata.status != SessionStatus::Active {
            continue;
        }
        // A session that ends meanwhile has no terminals.
        let mut reader = Reader::find(settings, metadata.session_id.as_str())?;
        for run in reader.open_runs().unwrap_or_default().into_iter().filter(|run| run.terminal) {
            rows.push(TerminalRow::of(&metadata, run));
        }
    }
    output::json(&rows)?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the newest run with a terminal.
fn terminal(reader: &mut Reader) -> anyhow::Result<RunNo> {
    let open = reader.open_runs()?.into_iter().filter(|run: &OpenRun| run.terminal);
    let newest = open.map(|run| run.run).max().or_else(|| reader.directory.last_screen());
    newest.context("the session has no run with a terminal; start one with `sessile pty start`")
}

fn show(
    reader: &mut Reader,
    run: RunNo,
    waiting: ScreenWaitArgs,
    before: Option<u64>,
) -> anyhow::Result<ExitCode> {
    screen::print(reader, run, &waiting.or_settle(viewer::SETTLE), before, screen::Format::Json)
}
