//! Runs with a terminal.
//!
//! A kernel has at most one terminal. It is created for the first run that wants one, and
//! stays after that run for as long as something else has it open: for example a stopped
//! program that the next run with a terminal may resume. Then the kernel releases it,
//! because programs of ordinary runs must not find a terminal to prompt on.

use super::interaction::check_room;
use super::live::{Kernels, Live};
use crate::kernels::{self, Release, SignalTarget};
use crate::processes;
use crate::reactor::Reactor;
use crate::runs::Run;
use crate::source::Source;
use crate::terminal::Terminal;
use rustix::process::{Pid, Signal};
use sessile_protocol::{Code, Failure, Language, RunNo, TerminalSize};
use sessile_sandbox::apply::Sandbox;
use std::collections::BTreeMap;
use std::io;

/// The terminal type for programs. Every system knows it.
const TYPE: &str = "xterm-256color";

/// What a kernel is told about the terminal of a run.
#[derive(Debug)]
pub(super) struct TerminalOrder {
    path: String,
    is_new: bool,
    has_leftovers: bool,
}

impl TerminalOrder {
    pub(super) fn as_order(&self) -> kernels::Terminal<'_> {
        let (is_new, has_leftovers) = (self.is_new, self.has_leftovers);
        kernels::Terminal { path: &self.path, is_new, has_leftovers }
    }
}

/// Returns the environment of a run with a terminal.
pub(super) fn with_terminal_type(env: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let mut env = env.clone();
    env.entry("TERM".to_owned()).or_insert_with(|| TYPE.to_owned());
    env
}

impl Kernels {
    pub(super) fn terminal(&self, language: Language) -> Option<&Terminal> {
        self.live.get(&language)?.terminal.as_ref()
    }

    /// Returns the terminal that a run has, or had last.
    pub(super) fn terminal_of(&self, number: RunNo) -> Option<&Terminal> {
        let mut terminals = self.live.values().filter_map(|live| live.terminal.as_ref());
        terminals.find(|terminal| terminal.run == number)
    }

    /// Returns what a kernel's terminal is still needed for. It is not needed when its
    /// run is over and only kernels have it open.
    pub(super) fn use_of_terminal(&self, language: Language) -> TerminalUse {
        let Some(live) = self.live.get(&language) else {
            return TerminalUse::None;
        };
        let Some(terminal) = live.terminal.as_ref().filter(|t| live.current != Some(t.run)) else {
            return TerminalUse::None;
        };
        let all = processes::descendants(rustix::process::getpid());
        let is_held = |pid: &Pid| !self.has_pid(*pid) && processes::holds(*pid, terminal.path());
        match all.iter().any(is_held) {
            true => TerminalUse::Held,
            false => TerminalUse::Over(terminal.run),
        }
    }
}

/// What a kernel's terminal is still needed for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TerminalUse {
    /// There is none, or its run is in progress.
    None,
    /// A process that a run left behind has it open.
    Held,
    /// It is not needed; this run had it last.
    Over(RunNo),
}

impl Live {
    /// Gives the terminal to a run that is about to begin.
    pub(super) fn hand_terminal(
        &mut self,
        language: Language,
        (number, run): (RunNo, &mut Run),
        size: TerminalSize,
        (sandbox, reactor): (Option<&Sandbox>, &Reactor<Source>),
    ) -> io::Result<TerminalOrder> {
        let is_new = self.terminal.is_none();
        match &mut self.terminal {
            Some(terminal) => terminal.pass_on(number, size),
            None => {
                self.terminal = Some(Terminal::open(language, number, size, sandbox, reactor)?);
            }
        }
        let terminal = self.terminal.as_mut().ok_or(io::ErrorKind::NotFound)?;
        if !self.kernel.has_job_control() {
            terminal.forbid_suspending();
        }
        if let Some(typed) = run.order.stdin.take() {
            terminal.push(&typed, reactor);
        }
        let path = terminal.path().to_str().ok_or(io::ErrorKind::InvalidData)?.to_owned();
        let is_left = |pid: &Pid| processes::group(*pid) == Some(self.pid);
        let has_leftovers = processes::children(self.pid).iter().any(is_left);
        Ok(TerminalOrder { path, is_new, has_leftovers })
    }

    /// Makes the kernel release its terminal.
    pub(super) fn release_terminal(&mut self, reactor: &Reactor<Source>) {
        let Some(terminal) = self.terminal.take() else {
            return;
        };
        let release = if terminal.controls(self.pid) {
            self.kernel.release().unwrap_or(Release::Free)
        } else {
            Release::Free
        };
        match release {
            Release::Pending => self.leaving.push_back(terminal),
            Release::Free => terminal.close(reactor),
        }
    }

    /// Hangs up the terminal that the kernel has released.
    pub(super) fn hang_up(&mut self, reactor: &Reactor<Source>) {
        if let Some(terminal) = self.leaving.pop_front() {
            terminal.close(reactor);
        }
        let _ = self.kernel.released();
    }

    /// Closes the terminals of a dead kernel.
    pub(super) fn close_terminals(&mut self, reactor: &Reactor<Source>) {
        for terminal in self.terminal.take().into_iter().chain(self.leaving.drain(..)) {
            terminal.close(reactor);
        }
    }

    pub(super) fn resize_terminal(&mut self, size: TerminalSize) {
        let Some(terminal) = &mut self.terminal else {
            return;
        };
        terminal.resize(size);
        if !terminal.controls(self.pid) {
            let work = self.foreground();
            processes::signal(&[self.pid], Signal::WINCH);
            processes::signal(&work, Signal::WINCH);
        }
    }

    /// Types for the current run. Returns how many bytes have not been read.
    pub(super) fn type_on_terminal(
        &mut self,
        number: RunNo,
        bytes: &[u8],
        reactor: &Reactor<Source>,
    ) -> Result<u64, Failure> {
        let Some(terminal) = &mut self.terminal else {
            return Err(no_terminal(number));
        };
        check_room(number, terminal.unread(), bytes.len())?;
        let controls = terminal.controls(self.pid);
        let group = terminal.foreground_group().filter(|_| controls);
        let who = match group {
            Some(group) if group != self.pid => SignalTarget::Program,
            Some(_) | None => SignalTarget::Kernel,
        };
        let keys = terminal.signal_keys();
        let signal_of = |byte: u8| keys.iter().find(|(key, _)| *key == byte).map(|(_, s)| *s);
        let signals: Vec<i32> = bytes.iter().filter_map(|byte| signal_of(*byte)).collect();
        if controls {
            terminal.push(bytes, reactor);
        } else {
            let is_typed = |byte: &u8| signal_of(*byte).is_none();
            let typed: Vec<u8> = bytes.iter().copied().filter(is_typed).collect();
            terminal.push(&typed, reactor);
            for signal in &signals {
                self.kernel.pressing(number);
                // The kernel first, as when a run is interrupted.
                for pid in std::iter::once(self.pid).chain(self.foreground()) {
                    processes::signal_by_number(pid, *signal);
                }
            }
        }
        if signals.contains(&libc::SIGINT) {
            let _ = self.kernel.pressed(number, who);
        }
        Ok(self.terminal.as_ref().map_or(0, Terminal::unread))
    }
}

pub(super) fn no_terminal(number: RunNo) -> Failure {
    let message = format!("run {number} has no terminal; start it with one (--pty)");
    Failure::new(Code::NoTerminal, message)
}
