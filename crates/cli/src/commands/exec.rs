use super::input;
use super::start::milliseconds;
use crate::display::{Colour, Form, Paint, outcome};
use crate::progress::{self, Progress};
use crate::settings::Settings;
use crate::streaming::{self, Line, Streamed, explain};
use crate::{args, interrupts, output, reader};
use anyhow::bail;
use clap::Args;
use serde::Serialize;
use sessile_client::{Client, ClientError};
use sessile_gateway::answer::{self, Output, RunResult};
use sessile_protocol::{
    Answer, Completed, EndedJob, Exec as Order, Language, Request, SessionId, TerminalSize, Until,
};
use sessile_store::Directory;
use std::io::{self, IsTerminal, Read};
use std::process::ExitCode;
use std::time::Duration;

/// Run a command in a session
///
/// The command is one quoted word after the session, several words after `--`,
/// or, without either, read from stdin, any number of lines.
///
/// Prints one JSON object, and exits with 0 if the command ran, whatever its own
/// exit code. At a terminal it prints the output as it comes, and exits with the
/// command's exit code, unless --json is given. Ctrl-C interrupts the command
/// and keeps the session.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    echo 'cd /tmp; x=41' | sessile exec sess_…\n  \
    sessile exec sess_… 'echo $((x+1))'\n  \
    sessile exec sess_… --timeout 5m --raw -- make test\n  \
    sessile exec sess_… --timeout 0 --no-output-timeout 60s -- make test\n  \
    sessile exec sess_… --timeout 0 --wait 2s -- ./server\n  \
    sessile exec sess_… --interactive --background -- python3 -m pdb main.py\n  \
    sessile exec sess_… --pty --timeout 0 --background -- vim notes.txt\n  \
    echo 'import math; math.pi' | sessile exec sess_… --language python")]
pub(crate) struct Exec {
    /// The session
    id: String,
    /// Interrupt the command after this long, not counting time in the queue; 0: never
    /// [default: the session's]
    #[arg(long, value_name = "TIME", value_parser = args::duration)]
    timeout: Option<Duration>,
    /// Cancel the command if it is still queued after this long; 0: never
    #[arg(long, value_name = "TIME", value_parser = args::duration)]
    queue_timeout: Option<Duration>,
    /// Interrupt the command after this long without output or input; 0: never
    #[arg(long, value_name = "TIME", value_parser = args::duration)]
    no_output_timeout: Option<Duration>,
    /// bash, sh, zsh, python or node [default: the session's]
    #[arg(long, short, value_parser = args::language)]
    language: Option<Language>,
    /// Pass stdout, stderr and the exit code through as they come
    #[arg(long)]
    raw: bool,
    /// JSON at a terminal, too
    #[arg(long, conflicts_with = "raw")]
    json: bool,
    /// Return the run's number and its output so far after this long; the command continues
    #[arg(long, value_name = "TIME", value_parser = args::duration, conflicts_with = "raw")]
    wait: Option<Duration>,
    /// Return at once: the same as --wait 0
    #[arg(long, conflicts_with_all = ["raw", "wait"])]
    background: bool,
    /// Keep the command's stdin open for `sessile input`
    #[arg(long)]
    interactive: bool,
    /// Give the command a real terminal, for `sessile screen` and `sessile keys`
    #[arg(long, conflicts_with = "interactive")]
    pty: bool,
    /// The terminal's columns and rows
    #[arg(long, value_name = "COLSxROWS", value_parser = args::terminal_size, requires = "pty",
          default_value = "80x24")]
    size: TerminalSize,
    /// Bytes of each stream to print; the middle of longer ones is left out
    #[arg(long, value_name = "SIZE", default_value = "1MiB", value_parser = args::size)]
    max_output: u64,
    /// Give the command this file as its stdin; `-` is our own stdin, if the
    /// command is not read from there
    #[arg(long, value_name = "FILE")]
    stdin: Option<String>,
    /// Set an environment variable for this command alone (may be repeated)
    #[arg(long = "env", value_name = "K=V", value_parser = args::assignment)]
    env: Vec<(String, String)>,
    /// The command, as one word: quote it
    #[arg(value_name = "COMMAND", conflicts_with = "words")]
    command: Option<String>,
    /// The command, as words that are joined by spaces
    #[arg(last = true, value_name = "WORD")]
    words: Vec<String>,
}

impl Exec {
    pub(crate) fn execute(self, settings: &Settings) -> anyhow::Result<ExitCode> {
        let id = settings.session(&self.id)?;
        let directory = settings.sessions.find(&id)?;
        let said = self.said();
        let stdin = bytes_for_stdin(self.stdin.as_deref(), said.is_some())?;
        let text = said.map_or_else(text_from_stdin, |said| Ok(said.into_bytes()))?;
        let mut client = settings.launcher.open(&directory)?;
        interrupts::watch()?;
        let order = Order {
            text,
            language: self.language,
            timeout_ms: self.timeout.map(milliseconds),
            queue_timeout_ms: self.queue_timeout.map(milliseconds),
            silence_ms: self.no_output_timeout.map(milliseconds),
            stdin: stdin.map(Into::into),
            env: self.env.into_iter().collect(),
            max_output: self.max_output,
            until: if self.raw { Until::Accepted } else { Until::Recorded },
            patience_ms: if self.background { Some(0) } else { self.wait.map(milliseconds) },
            interactive: self.interactive,
            until_input: self.interactive || self.pty,
            terminal: self.pty.then_some(self.size),
            ..Order::default()
        };
        if self.raw {
            return Ok(ExitCode::from(pass(&mut client, order)?));
        }
        match Form::of_stdout(self.json) {
            Form::Json => {
                output::json(&answer(&mut client, order, &directory)?)?;
                Ok(ExitCode::SUCCESS)
            }
            Form::Text(_) => show(&mut client, order, &directory, &id),
        }
    }

    /// Returns the command, if it is among the arguments.
    fn said(&self) -> Option<String> {
        let words = (!self.words.is_empty()).then(|| self.words.join(" "));
        self.command.clone().or(words)
    }
}

/// Reads the command from stdin, typed or piped.
pub(crate) fn text_from_stdin() -> anyhow::Result<Vec<u8>> {
    if io::stdin().is_terminal() {
        eprintln!("Type the command, then Ctrl-D:");
    }
    let mut text = Vec::new();
    io::stdin().lock().read_to_end(&mut text)?;
    if text.iter().all(u8::is_ascii_whitespace) {
        bail!("No command provided (stdin is empty)");
    }
    Ok(text)
}

/// Returns the command's stdin: a file, or our own stdin for `-`, if the command
/// `is_said` and thus not read from there.
pub(crate) fn bytes_for_stdin(
    from: Option<&str>,
    is_said: bool,
) -> anyhow::Result<Option<Vec<u8>>> {
    match from {
        None => Ok(None),
        Some("-") if !is_said => {
            bail!("--stdin - needs the command as an argument, because our stdin cannot be both")
        }
        Some("-") => {
            let mut bytes = Vec::new();
            io::stdin().lock().read_to_end(&mut bytes)?;
            Ok(Some(bytes))
        }
        Some(path) => match std::fs::read(path) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) => bail!("cannot read {path} for the command's stdin: {error}"),
        },
    }
}

/// A run, finished or not.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum RunReport {
    Finished(Box<RunResult>),
    Running(Box<Output>),
}

/// Runs a command; returns its result, or its output so far when its time is up.
fn answer(client: &mut Client, order: Order, directory: &Directory) -> anyhow::Result<RunReport> {
    let max_output = order.max_output;
    let answer = if progress::is_wanted() {
        ask_showing(client, order, directory)?
    } else {
        ask(client, order)?
    };
    let revival = client.revived().map(answer::revival);
    if let Answer::Completed(mut done) = answer {
        done.notes.splice(0..0, revival);
        return Ok(RunReport::Finished(Box::new((&*done).into())));
    }
    let Answer::Accepted { run, waiting_for_input } = answer else {
        bail!(ClientError::Unexpected)
    };
    let mut so_far = reader::so_far(client, run, max_output)?;
    so_far.waiting_for_input |= waiting_for_input;
    let notes = client.revived().map(answer::revival).into_iter().collect();
    Ok(RunReport::Running(Box::new(Output { notes, ..Output::running(run, &so_far) })))
}

/// Runs a command and waits for its result.
pub(crate) fn run(client: &mut Client, order: Order) -> anyhow::Result<Completed> {
    let Answer::Completed(done) = ask(client, order)? else { bail!(ClientError::Unexpected) };
    Ok(*done)
}

/// Sends the request; Ctrl-C interrupts the command meanwhile.
fn ask(client: &mut Client, order: Order) -> anyhow::Result<Answer> {
    let mut signals = interrupts::SignalCount::default();
    client
        .call_watching(Request::Exec(order), None, interrupts::watch()?, || signals.take())
        .map_err(explain)
}

/// Does the same in two steps, so that the run's progress can be shown meanwhile.
fn ask_showing(client: &mut Client, order: Order, directory: &Directory) -> anyhow::Result<Answer> {
    let Order { max_output, patience_ms, until_input, .. } = order;
    let order = Order { until: Until::Accepted, ..order };
    let Answer::Accepted { run, .. } = client.call(Request::Exec(order))? else {
        bail!(ClientError::Unexpected);
    };
    let _progress = Progress::of_run(directory, run);
    let mut signals = interrupts::SignalCount::default();
    let result = Request::Result { run, max_output, patience_ms, until_input };
    client
        .call_watching(result, Some(run), interrupts::watch()?, || signals.take())
        .map_err(explain)
}

/// Runs a command, passes its output through as it comes, and returns its exit code.
pub(crate) fn pass(client: &mut Client, order: Order) -> anyhow::Result<u8> {
    let streamed = streaming::stream(client, order, None)?;
    report(streamed)
}

/// Does the same, and gives the command our stdin when it wants to read.
pub(crate) fn pass_with_stdin(
    client: &mut Client,
    feeder: Client,
    order: Order,
) -> anyhow::Result<u8> {
    let order = Order { interactive: true, ..order };
    let feed = |run| drop(std::thread::spawn(move || input::feed(feeder, run)));
    let streamed = streaming::stream_and(client, order, None, feed)?;
    report(streamed)
}

/// Tells what the streams do not show. Returns the exit code.
fn report(streamed: Streamed) -> anyhow::Result<u8> {
    let Streamed::Finished { done, .. } = streamed else {
        bail!(ClientError::Unexpected);
    };
    // A job that failed is news if this run has just
    // started it. Other jobs would only be noise in the stderr of another command.
    let failed =
        |job: &&EndedJob| job.run == done.run && job.exit_code.is_some_and(|code| code != 0);
    let jobs = done.jobs_ended.iter().filter(failed).map(|job| job.told_with(done.run));
    for note in jobs.chain(done.notes.iter().cloned()) {
        eprintln!("sessile: {note}");
    }
    Ok(streaming::exit_code(&done))
}

/// Does the same for people: with the value of the last expression, and one line about
/// what the output does not show.
fn show(
    client: &mut Client,
    order: Order,
    directory: &Directory,
    id: &SessionId,
) -> anyhow::Result<ExitCode> {
    let has_terminal = order.terminal.is_some();
    let streamed = if has_terminal {
        on_its_terminal(client, order, directory)?
    } else {
        streaming::stream(client, order, progress::is_wanted().then_some(directory))?
    };
    match streamed {
        Streamed::Finished { mut done, mut line } => {
            if let Some(value) = done.result.as_ref().filter(|value| !value.text.is_empty()) {
                let text = format!("{}{}\n", line.closed(), value.text);
                output::all(&mut io::stdout().lock(), text.as_bytes())?;
                line = Line::Fresh;
            }
            done.notes.splice(0..0, client.revived().map(answer::revival));
            if let Some(text) = outcome::finished(&done) {
                remark(line, &text)?;
            }
            Ok(ExitCode::from(streaming::exit_code(&done)))
        }
        Streamed::StillRunning { run, why, line } => {
            if let Some(previous) = client.revived() {
                remark(line, &answer::revival(previous))?;
            }
            remark(line, &outcome::going(run, id.as_str(), &why, has_terminal))?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Runs a program with its own terminal. It does not draw on ours while it runs: half of
/// its changes to the screen would stay.
fn on_its_terminal(
    client: &mut Client,
    order: Order,
    directory: &Directory,
) -> anyhow::Result<Streamed> {
    let answer = ask_showing(client, order, directory)?;
    if let Answer::Completed(done) = answer {
        let line = streaming::replay(client, done.run)?;
        return Ok(Streamed::Finished { done, line });
    }
    let Answer::Accepted { run, waiting_for_input } = answer else {
        bail!(ClientError::Unexpected)
    };
    let why = match reader::so_far(client, run, 0)?.queued {
        Some(queued) => outcome::StillRunning::Queued(*queued),
        None if waiting_for_input => outcome::StillRunning::Input,
        None => outcome::StillRunning::Time,
    };
    Ok(Streamed::StillRunning { run, why, line: Line::Fresh })
}

/// Prints one dim line.
fn remark(line: Line, text: &str) -> anyhow::Result<()> {
    let text = Paint::at(&io::stderr()).text(Colour::Dim, text);
    output::all(&mut io::stderr().lock(), format!("{}{text}\n", line.closed()).as_bytes())
}
