use super::exec::{self, bytes_for_stdin, text_from_stdin};
use super::start::milliseconds;
use crate::config::Source;
use crate::confinement::Confinement;
use crate::settings::Settings;
use crate::{args, interrupts, script};
use anyhow::Context;
use clap::Args;
use sessile_client::NewSession;
use sessile_protocol::{Exec as Order, Until};
use sessile_sandbox::FileMode;
use sessile_store::{Directory, Sessions};
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Run commands or a script in a temporary session
///
/// Each CMD is a separate command; they are run one after the other. The words
/// after `--` are one command. Without any, the commands are read from stdin.
///
/// If the first CMD is a script, it is run with the rest as its arguments, and
/// with the stdin of `run`. A script is a file that begins with `#!`, or whose
/// name ends in .sh, .bash, .zsh, .py, .js, .mjs or .cjs. Arguments that begin
/// with `-` go after `--`.
///
/// Output is passed through, and the exit code is that of the last command.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    sessile run 'x=41' 'echo $((x+1))'\n  \
    sessile run -- echo hi there\n  \
    sessile run script.py input.txt -- --verbose\n  \
    sessile run --shell python3 <program.txt\n  \
    sessile run --sandbox read-only -- ls")]
pub(crate) struct Run {
    /// The commands, or a script and its arguments
    #[arg(value_name = "CMD")]
    commands: Vec<String>,
    /// The program of the session; for a script, its interpreter [default: bash;
    /// for a script, what it names]
    #[arg(long)]
    shell: Option<String>,
    /// Interrupt a command after this long; 0: never
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = args::duration)]
    timeout: Duration,
    /// Use this file as the commands' stdin (`-`: the stdin of `run`)
    /// [default: empty; for a script, the stdin of `run`]
    #[arg(long, value_name = "FILE")]
    stdin: Option<String>,
    /// With --sandbox: where writes go, overlay (thrown away at the end) or
    /// direct [default: overlay]
    #[arg(long, value_name = "overlay|direct", requires = "sandbox", value_parser = args::file_mode)]
    files: Option<FileMode>,
    #[command(flatten)]
    confinement: Confinement,
    /// One more command; its words are joined by spaces. After a script: more
    /// arguments
    #[arg(last = true, value_name = "WORD")]
    words: Vec<String>,
}

/// Creates a new directory: an existing one of that name belongs to somebody else, or was
/// left behind.
fn temporary_directory() -> std::io::Result<PathBuf> {
    const NAMES: u32 = 1000;
    let process = std::process::id();
    let mut number = 0;
    loop {
        let path = std::env::temp_dir().join(format!("sessile-run-{process}-{number}"));
        match std::fs::DirBuilder::new().mode(0o700).create(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists && number < NAMES => {
                number += 1;
            }
            made => return made.map(|()| path),
        }
    }
}

/// The commands, and the program to run them in.
struct Plan {
    program: String,
    work: Work,
}

enum Work {
    Commands(Vec<Vec<u8>>),
    /// The command that runs it.
    Script(Vec<u8>),
}

/// The stdin of a command.
enum Stdin {
    Given(Option<Vec<u8>>),
    /// Our own, when the command wants to read.
    Own,
}

impl Run {
    pub(crate) fn execute(self, settings: &Settings) -> anyhow::Result<ExitCode> {
        // Parsed first, so that a command mistaken for a preset is reported as that.
        let sandbox = self.confinement.policy(self.files)?;
        let is_said = !(self.commands.is_empty() && self.words.is_empty());
        let stdin = bytes_for_stdin(self.stdin.as_deref(), is_said)?;
        let plan = self.plan()?;
        let (texts, stdin) = match (plan.work, stdin) {
            (Work::Script(text), None) => (vec![text], Stdin::Own),
            (Work::Script(text), given) => (vec![text], Stdin::Given(given)),
            (Work::Commands(texts), given) => (texts, Stdin::Given(given)),
        };
        let place = temporary_directory().context("cannot make a temporary directory")?;
        let settings = Settings {
            sessions: Sessions::at(place.clone(), settings.launcher.user().clone()),
            launcher: settings.launcher.clone(),
            sessions_dir: None,
            sessions_dir_from: Source::Default,
        };
        let new = NewSession {
            sandbox,
            program: plan.program,
            idle_timeout_ms: 0,
            command_timeout_ms: milliseconds(self.timeout),
            output_cap: 1 << 30,
            ..NewSession::default()
        };
        let created = settings.launcher.create(&settings.sessions, new);
        if created.is_err() {
            let _ = std::fs::remove_dir_all(&place);
        }
        let (directory, _) = created.context("cannot start a temporary session")?;
        interrupts::watch()?;
        let outcome = run_all(&settings, &directory, texts, &stdin);
        settings.launcher.end(&directory)?;
        let _ = std::fs::remove_dir_all(place);
        outcome.map(ExitCode::from)
    }

    fn plan(&self) -> anyhow::Result<Plan> {
        if let Some(text) = self.script() {
            return Ok(Plan { program: "sh".to_owned(), work: Work::Script(text.into_bytes()) });
        }
        let mut texts: Vec<Vec<u8>> =
            self.commands.iter().map(|command| command.clone().into_bytes()).collect();
        if !self.words.is_empty() {
            texts.push(self.words.join(" ").into_bytes());
        }
        if texts.is_empty() {
            texts.push(text_from_stdin()?);
        }
        let program = self.shell.clone().unwrap_or_else(|| "bash".to_owned());
        Ok(Plan { program, work: Work::Commands(texts) })
    }

    /// Returns the command that runs the first argument, if that is a script.
    fn script(&self) -> Option<String> {
        let (path, rest) = self.commands.split_first()?;
        let file = File::open(path).ok().filter(|file| file.metadata().is_ok_and(|m| m.is_file()));
        let mut head = Vec::new();
        file?.take(script::FIRST_LINE as u64).read_to_end(&mut head).ok()?;
        let arguments = [rest, &self.words].concat();
        script::command(path, &head, self.shell.as_deref(), &arguments)
    }
}

/// Runs the commands one after the other; returns the exit code of the last.
fn run_all(
    settings: &Settings,
    directory: &Directory,
    texts: Vec<Vec<u8>>,
    stdin: &Stdin,
) -> anyhow::Result<u8> {
    let mut code = 0;
    for text in texts {
        let order = Order { text, until: Until::Accepted, ..Order::default() };
        let mut client = settings.launcher.open(directory)?;
        code = match stdin {
            Stdin::Own => {
                let feeder = settings.launcher.open(directory)?;
                exec::pass_with_stdin(&mut client, feeder, order)?
            }
            Stdin::Given(bytes) => {
                let stdin = bytes.as_ref().map(|bytes| bytes.clone().into());
                exec::pass(&mut client, Order { stdin, ..order })?
            }
        };
    }
    Ok(code)
}
