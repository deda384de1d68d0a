//! Completion in shells: sessions, runs, jobs and checkpoints besides commands and options.
//!
//! The shell's script calls us with the words so far (`clap_complete`). An answer must
//! come at once, so slow keepers are not waited for.

use crate::args;
use crate::display::words::on_one_line;
use crate::reader::Reader;
use crate::settings::Settings;
use clap::{Arg, ArgAction, ArgMatches, Command};
use clap_complete::engine::{
    ArgValueCandidates, ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter,
};
use clap_complete::env::{CompleteEnv, Shells};
use sessile_protocol::{Answer, Language, Request};
use sessile_store::{Metadata, Scope, SessionStatus};
use std::ffi::{OsStr, OsString};
use std::io;
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Set by the shell's script.
const VARIABLE: &str = "_SESSILE_COMPLETE";
/// The program that the script calls: found in PATH, so that it is always the installed one.
const PROGRAM: &str = "sessile";
/// Timeout for a keeper's answer. A longer one would be felt at each key press.
const PATIENCE: Duration = Duration::from_millis(300);
/// How many finished runs are offered.
const NEWEST: u64 = 20;
/// Commands that need a live session. All others also work for one that has ended.
const ONLY_LIVE: [&str; 17] = [
    "attach",
    "checkpoint",
    "end",
    "exec",
    "fork",
    "input",
    "interrupt",
    "jobs",
    "keys",
    "port",
    "reset",
    "resize",
    "rewind",
    "signal",
    "undo",
    "write",
    "write-key",
];
/// For bash, which splits words differently.
const WORDS: &str = include_str!("completion/words.bash");

/// Answers a completion request, if this is one.
pub(crate) fn answer() -> Option<ExitCode> {
    std::env::var_os(VARIABLE)?;
    let complete = CompleteEnv::with_factory(command).var(VARIABLE).bin(PROGRAM);
    let here = std::env::current_dir().ok();
    match complete.try_complete(std::env::args_os(), here.as_deref()) {
        Ok(true) => Some(ExitCode::SUCCESS),
        Ok(false) => None,
        // Prints nothing: it would appear in the middle of the user's line.
        Err(_) => Some(ExitCode::FAILURE),
    }
}

/// Returns the script that makes a shell call us.
pub(crate) fn script(shell: &str) -> io::Result<Vec<u8>> {
    let shells = Shells::builtins();
    let completer = shells.completer(shell).ok_or(io::ErrorKind::NotFound)?;
    let mut script = Vec::new();
    completer.write_registration(VARIABLE, PROGRAM, PROGRAM, PROGRAM, &mut script)?;
    if shell == "bash" {
        script.extend(WORDS.as_bytes());
    }
    if shell == "zsh" {
        // As a file in fpath it is first read during a completion, and has to answer that one.
        script.extend(
            b"[[ ${funcstack[1]} == _sessile ]] && _clap_dynamic_completer_sessile \"$@\"\n",
        );
    }
    Ok(script)
}

fn command() -> Command {
    with_values(args::command())
}

fn with_values(command: Command) -> Command {
    let name = command.get_name().to_owned();
    // The one that clap adds by itself could not be hidden.
    let help = Arg::new("help").short('h').long("help").action(ArgAction::Help).help("Print help");
    command
        .disable_help_flag(true)
        .arg(help)
        .mut_args(|arg| with_value(&name, arg))
        .mut_subcommands(with_values)
}

/// Adds the candidates of an argument, by its name in our commands.
fn with_value(command: &str, arg: Arg) -> Arg {
    // Options are hidden: they are offered once one is begun, or where nothing else fits.
    let is_option = !arg.is_positional();
    let arg = arg.hide(is_option);
    let find: fn() -> Vec<CompletionCandidate> = match (command, arg.get_id().as_str()) {
        ("cp", "from" | "to") => return arg.add(ArgValueCompleter::new(ends_of_a_copy)),
        (_, "place") => places,
        (command, "id" | "ids") if ONLY_LIVE.contains(&command) => live_sessions,
        (_, "id" | "ids") | ("start", "from") => sessions,
        (_, "run") => runs,
        ("signal", "job") => jobs,
        ("rewind", "name") | ("drop", "names") => checkpoints,
        (_, "language") => languages,
        ("start" | "run", "shell") => programs,
        (_, _) => return arg,
    };
    arg.add(ArgValueCandidates::new(find))
}

fn sessions() -> Vec<CompletionCandidate> {
    offered(&listed())
}

fn live_sessions() -> Vec<CompletionCandidate> {
    let mut all = listed();
    all.retain(|found| found.status != SessionStatus::Terminated);
    offered(&all)
}

fn listed() -> Vec<Metadata> {
    let list = settings().and_then(|settings| settings.sessions.list_in(Scope::Directory).ok());
    list.unwrap_or_default().into_iter().map(|(_, found)| found).collect()
}

fn offered(all: &[Metadata]) -> Vec<CompletionCandidate> {
    let each = all.iter().enumerate().flat_map(|(place, found)| of_session(place, found));
    // For users who begin to type it.
    let last = CompletionCandidate::new(sessile_store::LAST)
        .help(Some("the session that was used last".into()))
        .display_order(Some(all.len()))
        .hide(true);
    each.chain((!all.is_empty()).then_some(last)).collect()
}

/// Returns sessions as the beginning of `ID:path`.
fn places() -> Vec<CompletionCandidate> {
    let of = |session: CompletionCandidate| {
        let mut value = session.get_value().to_owned();
        value.push(":");
        CompletionCandidate::new(value)
            .help(session.get_help().cloned())
            .display_order(session.get_display_order())
            .hide(session.is_hide_set())
    };
    sessions().into_iter().map(of).collect()
}

/// Returns these and files of this machine.
fn ends_of_a_copy(begun: &OsStr) -> Vec<CompletionCandidate> {
    let mut all = places();
    all.retain(|c| c.get_value().as_encoded_bytes().starts_with(begun.as_encoded_bytes()));
    all.extend(PathCompleter::any().complete(begun));
    all
}

/// Returns a session's name, and its id for users who begin to type that. Ended sessions
/// are offered where nothing else fits.
fn of_session(place: usize, found: &Metadata) -> Vec<CompletionCandidate> {
    let is_over = found.status == SessionStatus::Terminated;
    let directory = on_one_line(&found.work_dir.display().to_string());
    let about = format!("{}, {} in {directory}", found.status.as_str(), found.command);
    let candidate = |value: &str, is_hidden| {
        CompletionCandidate::new(value)
            .help(Some(about.clone().into()))
            .display_order(Some(place))
            .hide(is_hidden)
    };
    let name = found.name.as_deref().filter(|name| is_one_word(name));
    let id = candidate(found.session_id.as_str(), is_over || name.is_some());
    name.map(|name| candidate(name, is_over)).into_iter().chain([id]).collect()
}

/// Whether every shell takes a name as one word: bash would break it at a colon.
fn is_one_word(name: &str) -> bool {
    name.chars().all(|c| c.is_alphanumeric() || "-_./".contains(c))
}

fn runs() -> Vec<CompletionCandidate> {
    let Some(mut reader) = reader() else { return Vec::new() };
    let open = match ask(&mut reader, Request::Runs) {
        Some(Answer::Runs(view)) => view.runs,
        Some(_) | None => Vec::new(),
    };
    let finished = reader.directory.history().newest(NEWEST);
    let mut rows = sessile_gateway::answer::runs(&open, &finished);
    rows.retain(|row| row.event.is_none());
    numbered(rows.iter().rev().map(|row| (row.run.to_string(), row.command.as_str())))
}

fn jobs() -> Vec<CompletionCandidate> {
    let answer = reader().and_then(|mut reader| ask(&mut reader, Request::Jobs));
    let Some(Answer::Jobs(view)) = answer else { return Vec::new() };
    numbered(view.jobs.iter().map(|job| (job.pid.to_string(), job.command.as_str())))
}

fn checkpoints() -> Vec<CompletionCandidate> {
    let answer = reader().and_then(|mut reader| ask(&mut reader, Request::Checkpoints));
    let Some(Answer::Checkpoints { checkpoints }) = answer else { return Vec::new() };
    let newest_first = checkpoints.into_iter().rev().filter(|point| is_one_word(&point.name));
    let points: Vec<(String, String)> = newest_first
        .map(|point| (point.name.clone(), format!("after run {}", point.as_of_run)))
        .collect();
    numbered(points.iter().map(|(name, about)| (name.clone(), about.as_str())))
}

/// Returns candidates in this order.
fn numbered<'a>(all: impl Iterator<Item = (String, &'a str)>) -> Vec<CompletionCandidate> {
    let candidate = |(place, (value, about)): (usize, (String, &str))| {
        CompletionCandidate::new(value)
            .help(Some(on_one_line(about).into()))
            .display_order(Some(place))
    };
    all.enumerate().map(candidate).collect()
}

fn languages() -> Vec<CompletionCandidate> {
    use Language::{Bash, Node, Python, Sh, Zsh};
    [Bash, Sh, Zsh, Python, Node].map(|l| CompletionCandidate::new(l.as_str())).into()
}

fn programs() -> Vec<CompletionCandidate> {
    ["bash", "sh", "dash", "zsh", "python3", "node"].map(CompletionCandidate::new).into()
}

/// Sends a request to a keeper; gives up if it does not answer at once.
fn ask(reader: &mut Reader, request: Request) -> Option<Answer> {
    let client = reader.live()?;
    client.ask(request).ok()?;
    client.reply_by(Instant::now() + PATIENCE).ok()??.outcome.ok()
}

/// Returns the session that the line names.
fn reader() -> Option<Reader> {
    let matches = typed();
    let mut command = &matches;
    while let Some((_, below)) = command.subcommand() {
        command = below;
    }
    let id = command.try_get_one::<String>("id").ok()??;
    Reader::find(&settings()?, id).ok()
}

fn settings() -> Option<Settings> {
    let matches = typed();
    let place = matches.try_get_one("sessions_dir").ok().flatten().cloned();
    Settings::resolve(place, crate::config::Source::Default).ok()
}

/// Parses the line so far, which is incomplete.
fn typed() -> ArgMatches {
    let words: Vec<OsString> =
        std::env::args_os().skip_while(|word| word != "--").skip(1).collect();
    args::command().ignore_errors(true).get_matches_from(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(name: Option<&str>, status: SessionStatus) -> Metadata {
        let text = serde_json::json!({
            "session_id": "sess_0123", "command": "bash", "created_at": "2026-01-01T00:00:00Z",
            "status": status, "work_dir": "/", "execution_count": 0, "language": "bash",
            "idle_timeout_ms": 0, "command_timeout_ms": 0, "max_history": 1, "output_cap": 1,
            "name": name,
        });
        serde_json::from_value(text).unwrap()
    }

    fn shown(name: Option<&str>, status: SessionStatus) -> Vec<(String, bool)> {
        let all = of_session(0, &session(name, status));
        let value = |c: &CompletionCandidate| c.get_value().to_string_lossy().into_owned();
        all.iter().map(|c| (value(c), !c.is_hide_set())).collect()
    }

    #[test]
    fn a_session_is_offered_by_name_or_else_by_id() {
        let id = || "sess_0123".to_owned();
        let live = SessionStatus::Active;
        assert_eq!(shown(None, live), [(id(), true)]);
        assert_eq!(shown(Some("web"), live), [("web".to_owned(), true), (id(), false)]);
        assert_eq!(shown(Some("a b"), live), [(id(), true)]);
        let over = SessionStatus::Terminated;
        assert_eq!(shown(Some("web"), over), [("web".to_owned(), false), (id(), false)]);
    }

    #[test]
    fn last_is_offered_to_those_who_begin_to_type_it() {
        assert!(offered(&[]).is_empty());
        let all = offered(&[session(None, SessionStatus::Active)]);
        let last = all.last().unwrap();
        assert!(last.get_value() == "@last" && last.is_hide_set());
    }

    #[test]
    fn every_argument_that_names_something_of_a_session_is_completed() {
        let all = command();
        let with = |path: &[&str], arg: &str| {
            let found = path.iter().fold(&all, |c, name| c.find_subcommand(name).expect(name));
            let arg = found.get_arguments().find(|a| a.get_id() == arg).expect(arg);
            arg.get::<ArgValueCandidates>().is_some()
        };
        for command in ["exec", "logs", "end", "attach", "save"] {
            assert!(with(&[command], "id"), "{command}");
        }
        assert!(with(&["output"], "run") && with(&["rewind"], "name") && with(&["drop"], "names"));
        assert!(with(&["pty", "write"], "id") && with(&["signal"], "job"));
        assert!(with(&["start"], "from") && !with(&["start"], "name"));
        assert!(with(&["files", "cat"], "place"));
    }
}
