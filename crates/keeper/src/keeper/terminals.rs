//! Runs with a terminal.
//!
//! A kernel has one terminal at the most. It is made for the first run that
//! wants one, and lives on after that run for as long as something else has it
//! open: a stopped program, say, which the next run with a terminal may bring
//! back. Then the kernel lets go of it, because programs of ordinary runs
//! should find no terminal to ask questions on.

use super::events::TURN;
use super::interaction::check_room;
use super::{Deadline, Keeper};
use crate::kernels::{self, Pressed, Release};
use crate::processes;
use crate::runs::ticks;
use crate::source::{ClientId, Source};
use crate::streams::Drained;
use crate::terminal::Terminal;
use rustix::process::{Pid, Signal};
use sessile_protocol::{
    Answer, Code, Failure, Language, ReadScreen, Reply, RunNo, RunPhase, Screen, ScreenView,
    TerminalSize,
};
use sessile_session::Tick;
use std::collections::BTreeMap;
use std::io;

/// How soon a terminal that something else has open is looked at again.
const LOOK_AFTER: Tick = 500;

/// What programs take the terminal for. Every system knows it.
const TYPE: &str = "xterm-256color";

/// A call that waits for a terminal to change.
#[derive(Debug)]
pub(super) struct Viewer {
    pub(super) connection: ClientId,
    call: u64,
    run: RunNo,
    known: u64,
    /// Then it gets what there is.
    due: Option<Tick>,
}

/// What a kernel is told of the terminal of a run.
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

/// The environment of a run with a terminal.
pub(super) fn with_terminal_type(env: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let mut env = env.clone();
    env.entry("TERM".to_owned()).or_insert_with(|| TYPE.to_owned());
    env
}

impl Keeper {
    /// The terminal of a run that is about to begin, if it wants one.
    pub(super) fn take_terminal(
        &mut self,
        language: Language,
        number: RunNo,
    ) -> io::Result<Option<TerminalOrder>> {
        let Some(size) = self.runs.get(&number).and_then(|run| run.order.terminal) else {
            return Ok(None);
        };
        let before = self.terminal(language).map(|terminal| terminal.run);
        if let Some(before) = before {
            self.close_run_of_terminal(language, before);
        }
        let (Some(live), Some(run)) = (self.kernels.get_mut(&language), self.runs.get_mut(&number))
        else {
            return Ok(None);
        };
        let is_new = live.terminal.is_none();
        match &mut live.terminal {
            Some(terminal) => terminal.pass_on(number, size),
            None => live.terminal = Some(Terminal::open(language, number, size, &self.reactor)?),
        }
        let terminal = live.terminal.as_mut().ok_or(io::ErrorKind::NotFound)?;
        if !live.kernel.has_job_control() {
            terminal.forbid_suspending();
        }
        if let Some(typed) = run.order.stdin.take() {
            terminal.push(&typed, &self.reactor);
        }
        let path = terminal.path().to_str().ok_or(io::ErrorKind::InvalidData)?.to_owned();
        let is_left = |pid: &Pid| processes::group(*pid) == Some(live.pid);
        let has_leftovers = processes::children(live.pid).iter().any(is_left);
        Ok(Some(TerminalOrder { path, is_new, has_leftovers }))
    }

    fn terminal(&self, language: Language) -> Option<&Terminal> {
        self.kernels.get(&language)?.terminal.as_ref()
    }

    /// Takes what programs have written on a kernel's terminal.
    pub(super) fn take_shown(&mut self, language: Language) {
        let Some(terminal) = self.kernels.get_mut(&language).and_then(|l| l.terminal.as_mut())
        else {
            return;
        };
        let number = terminal.run;
        let before = terminal.revision();
        terminal.feed(&self.reactor);
        let Some(run) = self.runs.get_mut(&number) else {
            terminal.drain(&mut self.buffer, TURN, &self.reactor, |_| {});
            return;
        };
        let written = run.written();
        let state =
            terminal.drain(&mut self.buffer, TURN, &self.reactor, |bytes| run.stdout.push(bytes));
        if state == Drained::More {
            self.again.push(Source::Terminal(language));
        }
        run.note_sign(written, self.clock);
        if terminal.revision() == before {
            return;
        }
        let is_late = run.finished().is_some();
        if is_late {
            self.unsettle(number);
        }
        self.answer_waiters(number, is_late);
        self.answer_viewers(Some(number));
    }

    /// A run with a terminal is over.
    pub(super) fn leave_terminal(&mut self, language: Language, number: RunNo) {
        if self.terminal(language).is_none_or(|terminal| terminal.run != number) {
            return;
        }
        let Some(live) = self.kernels.get_mut(&language) else {
            return;
        };
        if let (Some(terminal), Some(run)) = (&mut live.terminal, self.runs.get_mut(&number)) {
            // All that the device holds, and no end of what others write.
            run.unread = terminal.take_unread();
            terminal.finish(&mut self.buffer, TURN, &self.reactor, |bytes| run.stdout.push(bytes));
            run.screen = Some(Box::new(terminal.screen()));
        }
        self.let_go(language);
    }

    /// Has the kernel let go of its terminal, unless something else has it.
    fn let_go(&mut self, language: Language) {
        let others: Vec<Pid> = self.kernels.values().map(|live| live.pid).collect();
        let Some(live) = self.kernels.get_mut(&language) else {
            return;
        };
        let Some(terminal) = &live.terminal else {
            return;
        };
        if live.current == Some(terminal.run) {
            return;
        }
        let all = processes::descendants(rustix::process::getpid());
        let is_held = |pid: &Pid| !others.contains(pid) && processes::holds(*pid, terminal.path());
        if all.iter().any(is_held) {
            let due = ticks(self.clock) + LOOK_AFTER;
            self.deadlines.set(Deadline::Terminals, due);
            return;
        }
        let number = terminal.run;
        self.close_run_of_terminal(language, number);
        let Some(live) = self.kernels.get_mut(&language) else {
            return;
        };
        let Some(terminal) = live.terminal.take() else {
            return;
        };
        let release = if terminal.controls(live.pid) {
            live.kernel.release().unwrap_or(Release::Free)
        } else {
            Release::Free
        };
        match release {
            Release::Awaited => live.leaving.push_back(terminal),
            Release::Free => terminal.close(&self.reactor),
        }
    }

    /// Nothing more of a kernel's terminal belongs to this run.
    fn close_run_of_terminal(&mut self, language: Language, number: RunNo) {
        let terminal = self.kernels.get_mut(&language).and_then(|live| live.terminal.as_mut());
        let (Some(terminal), Some(run)) = (terminal, self.runs.get_mut(&number)) else {
            return;
        };
        terminal.finish(&mut self.buffer, TURN, &self.reactor, |bytes| run.stdout.push(bytes));
        run.screen = Some(Box::new(terminal.screen()));
        run.open_streams -= 1;
        if run.finished().is_some() {
            self.unsettle(number);
            self.answer_waiters(number, true);
        }
        self.answer_viewers(Some(number));
    }

    /// The kernel is ready for its terminal to hang up.
    pub(super) fn hang_up(&mut self, language: Language) {
        let Some(live) = self.kernels.get_mut(&language) else {
            return;
        };
        if let Some(terminal) = live.leaving.pop_front() {
            terminal.close(&self.reactor);
        }
        let _ = live.kernel.released();
    }

    /// The kernel is dead, and its terminal goes with it.
    pub(super) fn lose_terminal(&mut self, language: Language) {
        if let Some(number) = self.terminal(language).map(|terminal| terminal.run) {
            self.close_run_of_terminal(language, number);
        }
        let Some(live) = self.kernels.get_mut(&language) else {
            return;
        };
        for terminal in live.terminal.take().into_iter().chain(live.leaving.drain(..)) {
            terminal.close(&self.reactor);
        }
    }

    /// Looks who still has the terminals of runs that are over.
    pub(super) fn tend_terminals(&mut self) {
        let languages: Vec<Language> = self.kernels.keys().copied().collect();
        for language in languages {
            self.let_go(language);
        }
    }

    /// A kernel without job control has been stopped together with its program,
    /// which would never end then.
    pub(crate) fn wake(&mut self, pid: Pid) {
        let is_it = |live: &super::Live| {
            live.pid == pid && live.terminal.as_ref().is_some_and(|t| Some(t.run) == live.current)
        };
        if self.kernels.values().any(is_it) {
            let _ = rustix::process::kill_process_group(pid, Signal::CONT);
        }
    }

    pub(super) fn read_screen(
        &mut self,
        connection: ClientId,
        call: u64,
        read: ReadScreen,
    ) -> Result<Option<Answer>, Failure> {
        let view = self.screen_view(read.run)?;
        match read.known {
            Some(known) if view.revision <= known && view.phase < RunPhase::Closed => {
                let due = self.due_after(read.patience_ms);
                self.viewers.push(Viewer { connection, call, run: read.run, known, due });
                Ok(None)
            }
            Some(_) | None => Ok(Some(Answer::Screen(Box::new(view)))),
        }
    }

    pub(super) fn viewing_due(&self) -> Option<Tick> {
        self.viewers.iter().filter_map(|viewer| viewer.due).min()
    }

    /// Answers those who waited for this terminal, or too long.
    pub(super) fn answer_viewers(&mut self, changed: Option<RunNo>) {
        if self.viewers.is_empty() {
            return;
        }
        let now = self.now();
        for viewer in std::mem::take(&mut self.viewers) {
            let is_over = viewer.due.is_some_and(|due| due <= now);
            if changed != Some(viewer.run) && !is_over {
                self.viewers.push(viewer);
                continue;
            }
            let outcome = self.screen_view(viewer.run);
            let is_news =
                |view: &ScreenView| view.revision > viewer.known || view.phase == RunPhase::Closed;
            if !is_over && outcome.as_ref().is_ok_and(|view| !is_news(view)) {
                self.viewers.push(viewer);
                continue;
            }
            let outcome = outcome.map(|view| Answer::Screen(Box::new(view)));
            let reply = Reply::new(viewer.call, outcome);
            self.connections.send(viewer.connection, &reply, &self.reactor);
        }
    }

    fn screen_view(&mut self, number: RunNo) -> Result<ScreenView, Failure> {
        let waiting_for_input = self.awaits_input(number);
        let terminal = self.terminal_of(number);
        let Some(run) = self.runs.get(&number) else {
            let screen = self.directory.screen(number);
            let screen = screen.ok_or_else(|| match self.history.find(number) {
                Some(_) => no_terminal(number),
                None => self.missing(number),
            })?;
            let phase = RunPhase::Closed;
            return Ok(view(number, phase, screen, u64::MAX, waiting_for_input));
        };
        let phase = run.phase();
        match (terminal, &run.screen, run.order.terminal) {
            (Some(terminal), _, _) => {
                let revision = terminal.revision();
                Ok(view(number, phase, terminal.screen(), revision, waiting_for_input))
            }
            (None, Some(screen), _) => Ok(view(number, phase, (**screen).clone(), u64::MAX, false)),
            (None, None, Some(size)) => {
                let empty = sessile_terminal::Emulator::new(size).screen();
                Ok(view(number, phase, empty, 0, false))
            }
            (None, None, None) => Err(no_terminal(number)),
        }
    }

    /// Input for a run with a terminal: typed on it.
    pub(super) fn type_input(
        &mut self,
        number: RunNo,
        mut bytes: Vec<u8>,
        is_last: bool,
    ) -> Result<Answer, Failure> {
        if is_last {
            bytes.push(self.terminal_of(number).and_then(Terminal::end_key).unwrap_or(END_KEY));
        }
        let unread = self.type_on(number, &bytes)?;
        let now = self.now();
        if let Some(run) = self.runs.get_mut(&number) {
            run.last_sign = now;
        }
        if self.deadlines.is_set(Deadline::Prompts) {
            self.expect_prompt();
        }
        Ok(Answer::Input { unread })
    }

    pub(super) fn keys(&mut self, number: RunNo, keys: &str) -> Result<Answer, Failure> {
        self.check_terminal(number, "gets no keys")?;
        let modes = self.terminal_of(number).map(Terminal::modes).unwrap_or_default();
        let bytes = sessile_terminal::encode(keys, modes)
            .map_err(|error| Failure::new(Code::BadRequest, error.to_string()))?;
        self.type_input(number, bytes, false)
    }

    pub(super) fn resize(&mut self, number: RunNo, size: TerminalSize) -> Result<Answer, Failure> {
        size.check()?;
        self.check_terminal(number, "keeps its size")?;
        if let Some(run) = self.runs.get_mut(&number) {
            run.order.terminal = Some(size);
        }
        let live = self.kernels.values_mut().find(|live| live.current == Some(number));
        if let Some(live) = live
            && let Some(terminal) = &mut live.terminal
        {
            terminal.resize(size);
            if !terminal.controls(live.pid) {
                let work = live.foreground();
                processes::signal(&[live.pid], Signal::WINCH);
                processes::signal(&work, Signal::WINCH);
            }
        }
        self.answer_viewers(Some(number));
        Ok(Answer::Resized)
    }

    fn check_terminal(&self, number: RunNo, what: &str) -> Result<(), Failure> {
        self.check_going(number, Code::InputClosed, what)?;
        let has = self.runs.get(&number).is_some_and(|run| run.order.terminal.is_some());
        if has { Ok(()) } else { Err(no_terminal(number)) }
    }

    /// How much of it has not been read.
    fn type_on(&mut self, number: RunNo, bytes: &[u8]) -> Result<u64, Failure> {
        let live = self.kernels.values_mut().find(|live| live.current == Some(number));
        let Some(live) = live else {
            // It has not begun.
            let Some(run) = self.runs.get_mut(&number) else {
                return Err(self.missing(number));
            };
            let typed = run.order.stdin.get_or_insert_default();
            check_room(number, typed.len() as u64, bytes.len())?;
            typed.extend_from_slice(bytes);
            return Ok(typed.len() as u64);
        };
        let Some(terminal) = &mut live.terminal else {
            return Err(no_terminal(number));
        };
        check_room(number, terminal.unread(), bytes.len())?;
        let group = terminal.foreground_group().filter(|_| terminal.controls(live.pid));
        let who = match group {
            Some(group) if group != live.pid => Pressed::Program,
            Some(_) | None => Pressed::Kernel,
        };
        let keys = terminal.signal_keys();
        let signal_of = |byte: u8| keys.iter().find(|(key, _)| *key == byte).map(|(_, s)| *s);
        let signals: Vec<i32> = bytes.iter().filter_map(|byte| signal_of(*byte)).collect();
        if terminal.controls(live.pid) {
            terminal.push(bytes, &self.reactor);
        } else {
            let typed: Vec<u8> =
                bytes.iter().copied().filter(|byte| signal_of(*byte).is_none()).collect();
            terminal.push(&typed, &self.reactor);
            for signal in &signals {
                live.kernel.pressing(number);
                // The kernel first, as when a run is interrupted.
                for pid in std::iter::once(live.pid).chain(live.foreground()) {
                    processes::signal_by_number(pid, *signal);
                }
            }
        }
        if signals.contains(&libc::SIGINT) {
            let _ = live.kernel.pressed(number, who);
        }
        Ok(self.terminal_of(number).map_or(0, Terminal::unread))
    }

    /// The terminal that a run has, or had last.
    fn terminal_of(&self, number: RunNo) -> Option<&Terminal> {
        let mut terminals = self.kernels.values().filter_map(|live| live.terminal.as_ref());
        terminals.find(|terminal| terminal.run == number)
    }
}

/// Ctrl-D.
const END_KEY: u8 = 4;

fn view(
    run: RunNo,
    phase: RunPhase,
    screen: Screen,
    revision: u64,
    waiting_for_input: bool,
) -> ScreenView {
    ScreenView { run, phase, screen, revision, waiting_for_input }
}

fn no_terminal(number: RunNo) -> Failure {
    let message = format!("run {number} has no terminal; start it with one (--pty)");
    Failure::new(Code::NoTerminal, message)
}
