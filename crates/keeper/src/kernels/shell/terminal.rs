//! A shell and the terminal of its run.
//!
//! A session leader that opens a terminal gets it as its controlling terminal, so a
//! redirection is all that bash and dash need. zsh opens everything in a way that avoids
//! this, except the files that it compiles. With a terminal, shells can do job control,
//! which is on only during the run.
//!
//! When the terminal hangs up, the system sends SIGHUP to the shell only. So the shell
//! ignores that signal for an instant: it sets the user's trap aside, reports that, waits
//! for the end of the terminal, and restores the trap.

use super::super::{Release, Terminal};
use super::Shell;
use super::builtin_calls::BuiltinCalls;
use super::dialect::Dialect;
use crate::scratch::{make_fifo, open_both_ways, write_file};
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

/// Job control of a shell that was started without a terminal.
#[derive(Debug)]
pub(super) struct JobControl {
    setup: TerminalSetup,
    state: State,
    /// Our functions replace `fg` and `kill`.
    is_guarded: bool,
    /// Held open while the shell returns from its wait for it.
    released: Option<OwnedFd>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TerminalSetup {
    /// bash looks for its terminal only when it starts, and when an `exec`
    /// has failed.
    FailedExec,
    /// dash looks for it when monitoring is turned on.
    Monitor,
    /// zsh looks for it when it starts, and when its input is exchanged. It protects
    /// itself from signals of the terminal only if it had one at its start, and when it
    /// returns from `suspend`. (That stops nothing: the system does not stop a process
    /// whose parent is in another session, because no process there would resume it.)
    Suspend,
    None,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Off,
    /// On for the current run; the user had it off.
    Ours,
    /// The user has it on.
    Users,
}

impl JobControl {
    pub(super) fn of(dialect: &dyn Dialect, program: &Path) -> Self {
        let real = std::fs::canonicalize(program).unwrap_or_default();
        let setup = dialect.job_control(real.file_name().and_then(|name| name.to_str()));
        Self { setup, state: State::Off, is_guarded: false, released: None }
    }

    pub(super) fn is_possible(&self) -> bool {
        self.setup != TerminalSetup::None
    }

    /// Removes our own setting from the options that a run left.
    pub(super) fn hide(&self, flags: &mut String) {
        if self.state == State::Ours {
            flags.retain(|flag| flag != 'm');
        }
    }

    /// After a run.
    pub(super) fn end(&mut self, dir: &str, calls: BuiltinCalls) -> Option<String> {
        let was = std::mem::replace(&mut self.state, State::Off);
        (was == State::Ours).then(|| {
            let prefix = calls.prefix;
            let mut line = format!("{prefix}set +m");
            if self.setup == TerminalSetup::Suspend {
                let signals =
                    format!("{prefix}trap '' {TERMINAL_SIGNALS};{prefix}trap - {TERMINAL_SIGNALS}");
                line = format!("{line};{}", unless_trapped(&signals, dir, calls));
            }
            if std::mem::take(&mut self.is_guarded) {
                line.push_str(&without_guards(calls));
            }
            line + "\n"
        })
    }
}

/// Signals by which programs are stopped.
const TERMINAL_SIGNALS: &str = "TSTP TTIN TTOU";

/// In zsh, for lines that would take away what the user has in place for the
/// signals by which programs are stopped: then there is no job control.
fn unless_trapped(lines: &str, dir: &str, calls: BuiltinCalls) -> String {
    let patterns = TERMINAL_SIGNALS.replace(' ', "*|*\\ ");
    let list = format!("{}trap >|{dir}/k", calls.prefix);
    format!("{list};case $(<{dir}/k) in (*\\ {patterns}*) ;; (*) {lines} ;; esac")
}

/// Takes away what is still there of jobs.zsh.
fn without_guards(calls: BuiltinCalls) -> String {
    let prefix = calls.prefix;
    let without = ["fg", "kill"].map(|name| {
        let is_ours = format!("[[ $({prefix}whence -f {name}) == *__sessile_jobs* ]]");
        format!(";{is_ours} && {prefix}unfunction {name}")
    });
    without.concat()
}

impl Shell {
    /// Returns the lines before a run with a terminal.
    pub(super) fn prepare_terminal(&mut self, terminal: Terminal<'_>) -> String {
        let (dir, prefix, path) = (&self.dir, self.calls.prefix, terminal.path);
        self.jobs.state = match self.jobs.setup {
            TerminalSetup::None => return String::new(),
            TerminalSetup::FailedExec | TerminalSetup::Monitor | TerminalSetup::Suspend
                if self.flags.contains('m') =>
            {
                State::Users
            }
            TerminalSetup::FailedExec | TerminalSetup::Monitor | TerminalSetup::Suspend => {
                State::Ours
            }
        };
        let monitor = match self.jobs.setup {
            TerminalSetup::None | TerminalSetup::FailedExec | TerminalSetup::Monitor => {
                format!("{prefix}set -m\n")
            }
            TerminalSetup::Suspend => {
                let lines = format!("{prefix}set -m && {prefix}suspend -f");
                let mut line = unless_trapped(&lines, dir, self.calls);
                if terminal.has_leftovers {
                    let _ = write_file(&self.path("j"), include_bytes!("zsh/jobs.zsh"));
                    let source = format!("{prefix}emulate zsh -c '{prefix}. {dir}/j'");
                    line = format!("{line};[[ ! -o monitor ]] || {source}");
                    self.jobs.is_guarded = true;
                }
                line + "\n"
            }
        };
        if !terminal.is_new {
            return monitor;
        }
        let open = format!("{prefix}: <>{path}\n");
        match self.jobs.setup {
            TerminalSetup::None => open,
            TerminalSetup::Monitor => open + &monitor,
            TerminalSetup::Suspend => {
                let (exec, reopen) = (self.exec(), self.reopen());
                format!(
                    "{prefix}zcompile {dir}/nothing.zwc {path} || {prefix}:\n\
                     {exec} <>{path};{reopen}\n{monitor}"
                )
            }
            // The exec is a line of its own, for nothing follows it; and some
            // versions forget all traps over it. Where it was in vain, programs
            // that are not in the shell's own process group would be stopped
            // when they read.
            TerminalSetup::FailedExec => format!(
                "{open}{prefix}trap >|{dir}/k;{prefix}set -m\n{prefix}exec {dir}/nothing/at/all\n\
                 {prefix}. {dir}/k;[[ -t 255 ]] || {prefix}set +m\n"
            ),
        }
    }

    pub(super) fn release_terminal(&mut self) -> io::Result<Release> {
        let (dir, calls) = (&self.dir, self.calls);
        let prefix = calls.prefix;
        make_fifo(&self.path("u"))?;
        let wait = format!("{prefix}trap '' HUP;{} g >{dir}/s;{prefix}: <{dir}/u", calls.echo);
        let (script, words) = self.dialect.without_hangups(dir, &wait, calls);
        let call = format!("{} {dir}/g{words}", calls.source);
        write_file(&self.path("g"), script.as_bytes())?;
        let mut line = format!("{call} </dev/null >/dev/null 2>&1");
        if self.jobs.setup == TerminalSetup::Suspend {
            // It sees then that there is no terminal any more.
            line = format!("{line};{}", self.reopen());
        }
        self.send(&(line + "\n"))?;
        Ok(Release::Pending)
    }

    pub(super) fn terminal_released(&mut self) -> io::Result<()> {
        self.jobs.released = Some(open_both_ways(&self.path("u"))?);
        Ok(())
    }
}
