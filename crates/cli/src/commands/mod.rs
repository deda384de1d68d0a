//! One file per command: its arguments, whose doc comments are its help, and its code.

pub(crate) mod agent;
pub(crate) mod api;
pub(crate) mod apply;
pub(crate) mod attach;
pub(crate) mod checkpoint;
pub(crate) mod checkpoints;
pub(crate) mod cleanup;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod cp;
pub(crate) mod diff;
pub(crate) mod discard;
pub(crate) mod drop;
pub(crate) mod end;
pub(crate) mod exec;
pub(crate) mod files;
pub(crate) mod fork;
pub(crate) mod history;
pub(crate) mod input;
pub(crate) mod interrupt;
pub(crate) mod jobs;
pub(crate) mod keys;
pub(crate) mod list;
pub(crate) mod logs;
pub(crate) mod man;
pub(crate) mod mcp;
pub(crate) mod output;
pub(crate) mod port;
pub(crate) mod pty;
pub(crate) mod rename;
pub(crate) mod reset;
pub(crate) mod resize;
pub(crate) mod restore;
pub(crate) mod rewind;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod sandbox;
pub(crate) mod save;
pub(crate) mod screen;
pub(crate) mod serve;
pub(crate) mod signal;
pub(crate) mod start;
pub(crate) mod state;
pub(crate) mod token;
pub(crate) mod tool;
pub(crate) mod top;
pub(crate) mod undo;
pub(crate) mod wait;

use crate::args::{Args, Command};
use crate::settings::Settings;
use std::process::ExitCode;

pub(crate) fn dispatch(args: Args) -> anyhow::Result<ExitCode> {
    let settings = Settings::resolve(args.sessions_dir, args.sessions_dir_from)?;
    match args.command {
        Command::Start(command) => command.execute(&settings),
        Command::Exec(command) => command.execute(&settings),
        Command::Runs(command) => command.execute(&settings),
        Command::Output(command) => command.execute(&settings),
        Command::Logs(command) => command.execute(&settings),
        Command::Wait(command) => command.execute(&settings),
        Command::Input(command) => command.execute(&settings),
        Command::Jobs(command) => command.execute(&settings),
        Command::Port(command) => command.execute(&settings),
        Command::Signal(command) => command.execute(&settings),
        Command::Screen(command) => command.execute(&settings),
        Command::Keys(command) => command.execute(&settings),
        Command::Resize(command) => command.execute(&settings),
        Command::Pty(command) => command.execute(&settings),
        Command::Attach(command) => command.execute(&settings),
        Command::Cp(command) => command.execute(&settings),
        Command::Files(command) => command.execute(&settings),
        Command::Diff(command) => command.execute(&settings),
        Command::Apply(command) => command.execute(&settings),
        Command::Discard(command) => command.execute(&settings),
        Command::Fork(command) => command.execute(&settings),
        Command::Checkpoint(command) => command.execute(&settings),
        Command::Checkpoints(command) => command.execute(&settings),
        Command::Rewind(command) => command.execute(&settings),
        Command::Undo(command) => command.execute(&settings),
        Command::Drop(command) => command.execute(&settings),
        Command::End(command) => command.execute(&settings),
        Command::Top(command) => command.execute(&settings),
        Command::List(command) => command.execute(&settings),
        Command::State(command) => command.execute(&settings),
        Command::History(command) => command.execute(&settings),
        Command::Sandbox(command) => command.execute(&settings),
        Command::Save(command) => command.execute(&settings),
        Command::Restore(command) => command.execute(&settings),
        Command::Rename(command) => command.execute(&settings),
        Command::Reset(command) => command.execute(&settings),
        Command::Interrupt(command) => command.execute(&settings),
        Command::Cleanup(command) => command.execute(&settings),
        Command::Run(command) => command.execute(&settings),
        Command::Tool(command) => command.execute(&settings),
        Command::Serve(command) => command.execute(&settings),
        Command::Mcp(command) => command.execute(&settings),
        Command::Agent(command) => command.execute(&settings),
        Command::Api(command) => command.execute(&settings),
        Command::Token(command) => command.execute(&settings),
        Command::Config(command) => command.execute(&settings),
        Command::Completions(command) => command.execute(),
        Command::Man(command) => command.execute(),
    }
}
