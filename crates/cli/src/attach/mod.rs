//! A user in a live session.
//!
//! Lines are edited here and run there: each is a separate run, with a terminal, in the
//! same kernel that the agent uses. So nothing has to be carried over, everything is in
//! the history, and a killed client does the session no harm.

mod console;
mod editor;
mod mirror;
mod relay;
mod watcher;

pub(crate) use mirror::watch;
pub(crate) use rustyline::EditMode;

use crate::output;
use crate::reader::{self, Reader};
use crate::settings::Settings;
use anyhow::bail;
use console::Mode;
use editor::{Assistant, Line, LineEditor, Names};
use relay::{Relay, RelayEnd};
use rustix::process::Pid;
use rustyline::ExternalPrinter;
use sessile_client::{Client, ClientError, Launcher};
use sessile_proc::Process;
use sessile_protocol::{
    Answer, Completed, Exec, KernelFate, Language, ReadScreen, Request, RunNo, RunPhase, Until,
};
use sessile_store::{Directory, Metadata};
use sessile_terminal::render;
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use watcher::Shared;

/// How many commands of the session are in the editor's history.
const REMEMBERED: u64 = 200;

#[derive(Debug)]
pub(crate) struct Attachment {
    pub(crate) id: String,
    pub(crate) directory: Directory,
    pub(crate) launcher: Launcher,
    pub(crate) language: Option<Language>,
    pub(crate) detach_key: u8,
    pub(crate) edit_mode: EditMode,
}

/// Input that was typed while a program ran that did not read it.
#[derive(Debug, Default)]
struct TypedAhead(Vec<u8>);

impl TypedAhead {
    fn push(&mut self, bytes: &[u8]) {
        self.0.extend(bytes);
    }

    /// Returns the input for the next line.
    fn take(&mut self, assistant: &Assistant) -> Typed {
        let mut text = String::new();
        while let Some(end) = self.0.iter().position(|byte| matches!(byte, b'\r' | b'\n')) {
            let line: Vec<u8> = self.0.drain(..=end).take(end).collect();
            text.push_str(&printable(&line));
            if assistant.is_complete(&text) {
                return Typed::Whole(text);
            }
            text.push('\n');
        }
        text.push_str(&printable(&std::mem::take(&mut self.0)));
        Typed::Begun(text)
    }
}

#[derive(Debug)]
enum Typed {
    Whole(String),
    /// An incomplete line to continue.
    Begun(String),
}

impl Default for Typed {
    fn default() -> Self {
        Self::Begun(String::new())
    }
}

/// Drops control keys: they were meant for the program.
fn printable(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).chars().filter(|c| !c.is_control()).collect()
}

/// Whether the user stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stay {
    On,
    Leave,
}

impl Attachment {
    pub(crate) fn run(self, settings: &Settings, join: Option<RunNo>) -> anyhow::Result<()> {
        let mut client = self.launcher.open(&self.directory)?;
        let metadata = self.directory.metadata()?;
        let language = self.language.unwrap_or(metadata.language);
        let key = char::from(self.detach_key + 64);
        say(&format!("attached to {} ({language}); Ctrl-{key} leaves\n", self.id))?;
        if let Some(previous) = client.revived() {
            say(&format!("{}\n", sessile_gateway::answer::revival(previous)))?;
        }
        let _quiet = Mode::quiet()?;
        let mut editor = self.editor(&metadata, language)?;
        let board = Shared::default();
        let mut printer = editor.create_external_printer()?;
        let (shared, follower) = (board.clone(), Reader::find(settings, &self.id)?);
        std::thread::spawn(move || {
            let outcome = watcher::follow(follower, &shared, |text| {
                let _ = printer.print(text);
            });
            if let Err(error) = outcome {
                let _ = printer.print(format!("the session is not shown any more: {error}\n"));
            }
        });
        let mut status = 0;
        let mut ahead = TypedAhead::default();
        if let Some(run) = self.run_to_join(&mut client, language, join)?
            && self.join(&mut client, run, &board, &mut status, &mut ahead)? == Stay::Leave
        {
            return self.part();
        }
        loop {
            let (raw, styled) = self.prompt(&mut client, language, status)?;
            if let Some(news) = watcher::lock(&board).come_back() {
                say(&news)?;
            }
            let typed = editor.helper().map_or(Typed::default(), |helper| ahead.take(helper));
            let line = match typed {
                Typed::Whole(text) => {
                    say(&format!("{styled}{text}\n"))?;
                    Line::Text(text)
                }
                Typed::Begun(text) => editor::read(&mut editor, &raw, &styled, &text)?,
            };
            watcher::lock(&board).go_away();
            let text = match line {
                Line::Dropped => continue,
                Line::Leave => return self.part(),
                Line::Text(text) if text.trim().is_empty() => continue,
                Line::Text(text) => text,
            };
            editor.add_history_entry(text.as_str())?;
            if language.is_shell() && matches!(text.trim(), "exit" | "logout") {
                return self.part();
            }
            let run = self.submit(&mut client, language, text, &board)?;
            let relay = Relay::new(&mut client, run, self.detach_key);
            if show_outcome(relay.run()?, &mut status, &mut ahead)? == Stay::Leave {
                return self.part();
            }
            if let Some(assistant) = editor.helper() {
                assistant.forget_names();
            }
        }
    }

    fn part(&self) -> anyhow::Result<()> {
        let id = &self.id;
        say(&format!("left; the session goes on (sessile attach {id}, sessile end {id})\n"))
    }

    fn submit(
        &self,
        client: &mut Client,
        language: Language,
        text: String,
        board: &Shared,
    ) -> anyhow::Result<RunNo> {
        let order = Exec {
            text: text.into_bytes(),
            language: Some(language),
            // No timeout: the user can wait, and has a key to interrupt.
            timeout_ms: Some(0),
            until: Until::Accepted,
            terminal: Some(console::size()),
            ..Exec::default()
        };
        // Held until the run is marked as ours: its events may come first.
        let mut board = watcher::lock(board);
        let Answer::Accepted { run, .. } = client.call(Request::Exec(order))? else {
            bail!(ClientError::Unexpected);
        };
        board.own(run);
        drop(board);
        let Answer::Runs(view) = client.call(Request::Runs)? else {
            bail!(ClientError::Unexpected);
        };
        let is_queued = |r: &sessile_protocol::OpenRun| r.phase == RunPhase::Queued;
        if view.runs.iter().any(|open| open.run == run && is_queued(open)) {
            let mut before = view.runs.iter().filter(|open| open.language == language);
            if let Some(going) = before.find(|open| open.phase == RunPhase::Running) {
                let command = going.command.lines().next().unwrap_or_default();
                say(&format!(
                    "waiting for run {} of somebody else ({command}); Ctrl-C takes this one back\n",
                    going.run
                ))?;
            }
        }
        Ok(run)
    }

    /// Returns the run with a terminal that the user joins.
    fn run_to_join(
        &self,
        client: &mut Client,
        language: Language,
        wanted: Option<RunNo>,
    ) -> anyhow::Result<Option<RunNo>> {
        let Answer::Runs(view) = client.call(Request::Runs)? else {
            bail!(ClientError::Unexpected);
        };
        let is_going =
            |run: &&sessile_protocol::OpenRun| run.terminal && run.phase == RunPhase::Running;
        let mut going = view.runs.iter().filter(is_going);
        match wanted {
            Some(wanted) => match going.find(|run| run.run == wanted) {
                Some(_) => Ok(Some(wanted)),
                None => bail!("run {wanted} has no terminal, or is not going"),
            },
            None => Ok(going.find(|run| run.language == language).map(|run| run.run)),
        }
    }

    fn join(
        &self,
        client: &mut Client,
        run: RunNo,
        board: &Shared,
        status: &mut i32,
        ahead: &mut TypedAhead,
    ) -> anyhow::Result<Stay> {
        watcher::lock(board).own(run);
        let size = console::size();
        // Fails if it has ended meanwhile; the relay notices.
        let _ = client.call(Request::Resize { run, size });
        let seen = reader::so_far(client, run, 0)?;
        let read = ReadScreen { run, known: None, patience_ms: None };
        if let Answer::Screen(view) = client.call(Request::Screen(read))? {
            let screen = &view.screen;
            let kind = if screen.is_alternate { "\x1b[?1049h" } else { "\x1b[2J" };
            let keys = if screen.application_keys { "\x1b[?1h" } else { "" };
            say(&format!("{kind}{keys}{}", render::ansi(screen)))?;
        }
        let relay = Relay::new(client, run, self.detach_key).from(seen.stdout_next);
        show_outcome(relay.run()?, status, ahead)
    }

    fn editor(&self, metadata: &Metadata, language: Language) -> anyhow::Result<LineEditor> {
        let program = if metadata.language == language {
            metadata.command.clone()
        } else {
            match language {
                Language::Python => "python3".to_owned(),
                Language::Bash | Language::Sh | Language::Zsh | Language::Node => {
                    language.as_str().to_owned()
                }
            }
        };
        let (launcher, directory) = (self.launcher.clone(), self.directory.clone());
        let look_up = move || names(&launcher, &directory, language).unwrap_or_default();
        let assistant = Assistant::new(language, program, Box::new(look_up));
        let mut editor = editor::editor(assistant, self.edit_mode, self.detach_key)?;
        for entry in self.directory.history().newest(REMEMBERED.min(metadata.max_history)) {
            if entry.language == language {
                editor.add_history_entry(entry.command.trim_end())?;
            }
        }
        Ok(editor)
    }

    /// Returns the prompt, plain and coloured, with the kernel's working directory.
    fn prompt(
        &self,
        client: &mut Client,
        language: Language,
        status: i32,
    ) -> anyhow::Result<(String, String)> {
        let failed = if status == 0 { String::new() } else { format!("[{status}] ") };
        let sign = match language {
            Language::Bash | Language::Sh | Language::Zsh => "$",
            Language::Python => ">>>",
            Language::Node => ">",
        };
        let Answer::Status(now) = client.call(Request::Status)? else {
            bail!(ClientError::Unexpected);
        };
        let kernel = now.kernels.iter().find(|kernel| kernel.language == language);
        let place = kernel.and_then(|kernel| {
            let pid = Pid::from_raw(kernel.pid.cast_signed())?;
            Process::new(pid).directory()
        });
        if let Some(place) = &place {
            // File names are completed from there.
            let _ = std::env::set_current_dir(place);
        }
        let place = place.map(|place| short(&place)).unwrap_or_default();
        Ok((
            format!("{failed}{place} {sign} "),
            format!("\x1b[31m{failed}\x1b[0m\x1b[1;34m{place}\x1b[0m {sign} "),
        ))
    }
}

/// Shortens a directory with `~`.
fn short(place: &Path) -> String {
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    match place.strip_prefix(&home) {
        Ok(rest) if rest.as_os_str().is_empty() => "~".to_owned(),
        Ok(rest) if !home.as_os_str().is_empty() => format!("~/{}", rest.display()),
        Ok(_) | Err(_) => place.display().to_string(),
    }
}

fn say(text: &str) -> anyhow::Result<()> {
    output::all(&mut io::stdout().lock(), text.as_bytes())
}

/// Shows the outcome of a run besides its output.
fn show_outcome(
    parting: RelayEnd,
    status: &mut i32,
    ahead: &mut TypedAhead,
) -> anyhow::Result<Stay> {
    let done = match parting {
        RelayEnd::Detached => return Ok(Stay::Leave),
        RelayEnd::Cancelled(failure) => {
            say(&format!("{failure}\n"))?;
            return Ok(Stay::On);
        }
        RelayEnd::Finished { done, ahead: typed } => {
            ahead.push(&typed);
            done
        }
    };
    let Completed { exit_code, result, notes, kernel, .. } = *done;
    *status = exit_code;
    if let Some(result) = result {
        say(&format!("{}\n", result.text))?;
    }
    for note in notes {
        say(&format!("{note}\n"))?;
    }
    match kernel {
        KernelFate::Kept => {}
        KernelFate::Restarted => say("the interpreter was restarted, with its state\n")?,
        KernelFate::Restored { as_of_run } => {
            say(&format!("the interpreter was restored as of run {as_of_run}\n"))?;
        }
        KernelFate::Fresh => {}
    }
    Ok(Stay::On)
}

/// Asks the session for the names that can be completed.
fn names(launcher: &Launcher, directory: &Directory, language: Language) -> anyhow::Result<Names> {
    let mut client = launcher.open(directory)?;
    let Answer::State(view) = client.call(Request::State)? else {
        bail!(ClientError::Unexpected);
    };
    let mut names = Names::default();
    let Some(kernel) = view.kernels.iter().find(|kernel| kernel.language == language) else {
        return Ok(names);
    };
    let state: serde_json::Value = serde_json::from_str(&kernel.json)?;
    let env = state.get("env_vars");
    names.variables.extend(named_in(state.get("variables")));
    names.variables.extend(named_in(env));
    if !language.is_shell() {
        for section in ["functions", "classes", "imports", "modules"] {
            names.variables.extend(named_in(state.get(section)));
        }
        return Ok(names);
    }
    for section in ["functions", "aliases"] {
        names.commands.extend(named_in(state.get(section)));
    }
    let path = env.and_then(|env| env.get("PATH")?.as_str()).unwrap_or_default();
    for directory in std::env::split_paths(path) {
        let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
        names.commands.extend(entries.filter_map(|entry| entry.file_name().into_string().ok()));
    }
    Ok(names)
}

fn named_in(section: Option<&serde_json::Value>) -> BTreeSet<String> {
    match section {
        Some(serde_json::Value::Object(map)) => map.keys().cloned().collect(),
        Some(serde_json::Value::Array(list)) => list
            .iter()
            .filter_map(|item| item.as_str().or_else(|| item.get("name")?.as_str()))
            .map(str::to_owned)
            .collect(),
        Some(_) | None => BTreeSet::new(),
    }
}
