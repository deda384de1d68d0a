//! The command-line arguments. No effects here: see `settings` and `commands`.

use crate::config::{SESSIONS_DIR, Source};
use clap::parser::ValueSource;
use clap::{Parser, Subcommand};
use sessile_client::SavedTo;
use sessile_protocol::{Language, TerminalSize, parse_duration, parse_size};
use std::path::PathBuf;
use std::time::Duration;

/// A live shell, Python and Node that remember, for agents and people.
#[derive(Debug, Parser)]
#[command(
    version,
    max_term_width = 100,
    after_help = "Examples:\n  \
        sessile start\n  \
        echo 'cd /tmp; x=41' | sessile exec sess_…\n  \
        sessile exec sess_… -- 'pwd; echo $((x+1))'\n  \
        sessile end sess_…"
)]
pub(crate) struct Args {
    /// Where sessions are kept [default: .sessions in the current directory]
    #[arg(long, global = true, value_name = "DIR", env = "SESSILE_SESSIONS_DIR")]
    pub(crate) sessions_dir: Option<PathBuf>,
    /// Who said so.
    #[arg(skip)]
    pub(crate) sessions_dir_from: Source,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Start(crate::commands::start::Start),
    Exec(crate::commands::exec::Exec),
    Runs(crate::commands::runs::Runs),
    Output(crate::commands::output::Output),
    Logs(crate::commands::logs::Logs),
    Wait(crate::commands::wait::Wait),
    Input(crate::commands::input::Input),
    Jobs(crate::commands::jobs::Jobs),
    Port(crate::commands::port::Port),
    Signal(crate::commands::signal::Signal),
    Screen(crate::commands::screen::Screen),
    Keys(crate::commands::keys::Keys),
    Resize(crate::commands::resize::Resize),
    Pty(crate::commands::pty::Pty),
    Attach(crate::commands::attach::Attach),
    Cp(crate::commands::cp::Cp),
    Files(crate::commands::files::Files),
    Diff(crate::commands::diff::Diff),
    Apply(crate::commands::apply::Apply),
    Discard(crate::commands::discard::Discard),
    Fork(crate::commands::fork::Fork),
    Checkpoint(crate::commands::checkpoint::Checkpoint),
    Checkpoints(crate::commands::checkpoints::Checkpoints),
    Rewind(crate::commands::rewind::Rewind),
    Undo(crate::commands::undo::Undo),
    Drop(crate::commands::drop::Drop),
    End(crate::commands::end::End),
    Top(crate::commands::top::Top),
    List(crate::commands::list::List),
    State(crate::commands::state::State),
    History(crate::commands::history::History),
    Sandbox(crate::commands::sandbox::Sandbox),
    Save(crate::commands::save::Save),
    Restore(crate::commands::restore::Restore),
    Rename(crate::commands::rename::Rename),
    Reset(crate::commands::reset::Reset),
    Interrupt(crate::commands::interrupt::Interrupt),
    Cleanup(crate::commands::cleanup::Cleanup),
    Run(crate::commands::run::Run),
    Tool(crate::commands::tool::Tool),
    Serve(crate::commands::serve::Serve),
    Mcp(crate::commands::mcp::Mcp),
    Agent(crate::commands::agent::Agent),
    Api(crate::commands::api::Api),
    Token(crate::commands::token::Token),
    Config(crate::commands::config::Config),
    Completions(crate::commands::completions::Completions),
    Man(crate::commands::man::Man),
}

/// Commands that print JSON in any case. They accept `--json` as well, as who has used it
/// elsewhere would expect.
const ALWAYS_JSON: [&str; 17] = [
    "start",
    "wait",
    "input",
    "signal",
    "resize",
    "fork",
    "checkpoint",
    "rewind",
    "undo",
    "drop",
    "end",
    "save",
    "restore",
    "rename",
    "reset",
    "interrupt",
    "cleanup",
];

/// Returns the definition of the command line, for help and completion.
pub(crate) fn command() -> clap::Command {
    let json = || {
        let arg = clap::Arg::new("json").long("json").hide(true);
        arg.action(clap::ArgAction::SetTrue)
    };
    ALWAYS_JSON.into_iter().fold(<Args as clap::CommandFactory>::command(), |all, name| {
        all.mut_subcommand(name, |command| command.arg(json()))
    })
}

pub(crate) fn parse() -> Result<Args, clap::Error> {
    // Under another name, such as a link's, it uses that name.
    let name = std::env::args_os().next().map(PathBuf::from);
    let name =
        name.as_ref().and_then(|path| path.file_name()?.to_str()).unwrap_or("sessile").to_owned();
    let command = command().bin_name(name);
    let matches = command.try_get_matches_from(std::env::args_os())?;
    let mut args = <Args as clap::FromArgMatches>::from_arg_matches(&matches)?;
    args.sessions_dir_from = match matches.value_source("sessions_dir") {
        Some(ValueSource::CommandLine) => Source::Flag(SESSIONS_DIR.name),
        Some(ValueSource::EnvVariable) => Source::Environment(SESSIONS_DIR.variable()),
        Some(_) | None => Source::Default,
    };
    Ok(args)
}

pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    parse_duration(text).map_err(|error| error.to_string())
}

/// Parses where a durable session's saves go: empty means this disk.
pub(crate) fn saved_to(text: &str) -> Result<SavedTo, String> {
    if text.is_empty() {
        return Ok(SavedTo::Disk);
    }
    sessile_vault::check_url(text).map_err(|error| error.to_string())?;
    Ok(SavedTo::Store(text.to_owned()))
}

/// Parses where writes to a workspace go.
pub(crate) fn file_mode(text: &str) -> Result<sessile_sandbox::FileMode, String> {
    match text {
        "overlay" => Ok(sessile_sandbox::FileMode::Overlay),
        "direct" => Ok(sessile_sandbox::FileMode::Direct),
        _ => Err("say overlay or direct".to_owned()),
    }
}

pub(crate) fn size(text: &str) -> Result<u64, String> {
    parse_size(text).map_err(|error| error.to_string())
}

/// Parses `80x24`: columns and rows.
pub(crate) fn terminal_size(text: &str) -> Result<TerminalSize, String> {
    let parsed = text.split_once(['x', 'X']).and_then(|(cols, rows)| {
        Some(TerminalSize { cols: cols.parse().ok()?, rows: rows.parse().ok()? })
    });
    let size = parsed.ok_or_else(|| format!("{text:?} is not of the form COLSxROWS"))?;
    size.check().map(|()| size).map_err(|failure| failure.message)
}

pub(crate) fn language(text: &str) -> Result<Language, String> {
    text.parse().map_err(|error: sessile_protocol::UnknownLanguage| error.to_string())
}

/// Parses `K=V`.
pub(crate) fn assignment(text: &str) -> Result<(String, String), String> {
    let wrong = || format!("{text:?} is not of the form NAME=VALUE");
    let (name, value) = text.split_once('=').ok_or_else(wrong)?;
    if name.is_empty() || name.contains('\0') {
        Err(wrong())
    } else {
        Ok((name.into(), value.into()))
    }
}
