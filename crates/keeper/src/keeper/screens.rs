//! Requests about terminals, and the output of terminals.

use super::interaction::check_room;
use super::output::TURN;
use super::terminals::{TerminalOrder, TerminalUse, no_terminal};
use super::waiters::{Caller, WaitsFor};
use super::{Deadline, Keeper};
use crate::source::Source;
use crate::streams::Drained;
use crate::terminal::Terminal;
use rustix::process::{Pid, Signal};
use sessile_protocol::{
    Answer, Code, Failure, Language, ReadScreen, RunNo, RunPhase, Screen, ScreenView, TerminalSize,
};
use sessile_session::Tick;
use std::io;

/// Interval of checks on a terminal that something else has open.
const LOOK_AFTER: Tick = 500;

/// Ctrl-D.
const END_KEY: u8 = 4;

impl Keeper {
    /// Hands a terminal to a run that is about to begin, if it wants one.
    pub(super) fn take_terminal(
        &mut self,
        language: Language,
        number: RunNo,
    ) -> io::Result<Option<TerminalOrder>> {
        let Some(size) = self.runs.get(&number).and_then(|run| run.order.terminal) else {
            return Ok(None);
        };
        let before = self.kernels.terminal(language).map(|terminal| terminal.run);
        if let Some(before) = before {
            self.close_run_of_terminal(language, before);
        }
        let live = self.kernels.live.get_mut(&language);
        let (Some(live), Some(run)) = (live, self.runs.get_mut(&number)) else {
            return Ok(None);
        };
        let sandbox = self.home.confined.as_ref().map(|confined| confined.sandbox());
        let place = (sandbox.as_deref(), &self.reactor);
        live.hand_terminal(language, (number, run), size, place).map(Some)
    }

    /// Takes what programs have written to a kernel's terminal.
    pub(super) fn take_shown(&mut self, language: Language) {
        let live = self.kernels.live.get_mut(&language);
        let Some(terminal) = live.and_then(|live| live.terminal.as_mut()) else {
            return;
        };
        let number = terminal.run;
        let before = terminal.revision();
        terminal.feed(&self.reactor);
        let Some(run) = self.runs.get_mut(&number) else {
            terminal.drain(&mut self.output.buffer, TURN, &self.reactor, |_| {});
            return;
        };
        let written = run.written();
        let state = terminal
            .drain(&mut self.output.buffer, TURN, &self.reactor, |bytes| run.stdout.push(bytes));
        if state == Drained::More {
            self.output.read_again(Source::Terminal(language));
        }
        run.note_sign(written, self.home.clock);
        if terminal.revision() == before {
            return;
        }
        let is_late = run.finished().is_some();
        if is_late {
            self.unsettle(number);
        }
        self.answer_waiters(number, is_late);
        self.answer_viewers(number);
    }
    /// Takes the terminal from a run that has ended.
    pub(super) fn leave_terminal(&mut self, language: Language, number: RunNo) {
        if self.kernels.terminal(language).is_none_or(|terminal| terminal.run != number) {
            return;
        }
        let live = self.kernels.live.get_mut(&language);
        let terminal = live.and_then(|live| live.terminal.as_mut());
        if let (Some(terminal), Some(run)) = (terminal, self.runs.get_mut(&number)) {
            // Takes all that the device holds now, but does not follow others that write
            // without end.
            run.unread = terminal.take_unread();
            let (buffer, reactor) = (&mut self.output.buffer, &self.reactor);
            terminal.finish(buffer, TURN, reactor, |bytes| run.stdout.push(bytes));
            run.screen = Some(Box::new(terminal.screen()));
        }
        self.release_terminal(language);
    }

    /// Makes a kernel release its terminal, unless something else has it open.
    fn release_terminal(&mut self, language: Language) {
        match self.kernels.use_of_terminal(language) {
            TerminalUse::None => {}
            TerminalUse::Held => {
                self.deadlines.set(Deadline::Terminals, self.now() + LOOK_AFTER);
            }
            TerminalUse::Over(number) => {
                self.close_run_of_terminal(language, number);
                if let Some(live) = self.kernels.live.get_mut(&language) {
                    live.release_terminal(&self.reactor);
                }
            }
        }
    }

    /// Closes the run's part of a kernel's terminal: nothing more of it belongs to this
    /// run.
    fn close_run_of_terminal(&mut self, language: Language, number: RunNo) {
        let live = self.kernels.live.get_mut(&language);
        let terminal = live.and_then(|live| live.terminal.as_mut());
        let (Some(terminal), Some(run)) = (terminal, self.runs.get_mut(&number)) else {
            return;
        };
        let (buffer, reactor) = (&mut self.output.buffer, &self.reactor);
        terminal.finish(buffer, TURN, reactor, |bytes| run.stdout.push(bytes));
        run.screen = Some(Box::new(terminal.screen()));
        run.open_streams -= 1;
        if run.finished().is_some() {
            self.unsettle(number);
            self.answer_waiters(number, true);
        }
        self.answer_viewers(number);
    }

    /// The kernel is dead, and its terminal goes with it.
    pub(super) fn drop_terminal(&mut self, language: Language) {
        if let Some(number) = self.kernels.terminal(language).map(|terminal| terminal.run) {
            self.close_run_of_terminal(language, number);
        }
        if let Some(live) = self.kernels.live.get_mut(&language) {
            live.close_terminals(&self.reactor);
        }
    }

    /// Checks which terminals of ended runs are still open elsewhere.
    pub(super) fn release_terminals(&mut self) {
        let languages: Vec<Language> = self.kernels.live.keys().copied().collect();
        for language in languages {
            self.release_terminal(language);
        }
    }

    /// Continues a kernel without job control that was stopped together with its program:
    /// the program would never end otherwise.
    pub(crate) fn wake(&mut self, pid: Pid) {
        let is_it = |live: &super::Live| {
            live.pid == pid && live.terminal.as_ref().is_some_and(|t| Some(t.run) == live.current)
        };
        if self.kernels.live.values().any(is_it) {
            let _ = rustix::process::kill_process_group(pid, Signal::CONT);
        }
    }

    pub(super) fn read_screen(
        &mut self,
        caller: Caller,
        read: ReadScreen,
    ) -> Result<Option<Answer>, Failure> {
        let view = self.screen_view(read.run)?;
        match read.known {
            Some(known) if view.revision <= known && view.phase < RunPhase::Closed => {
                let due = self.due_after(read.patience_ms);
                let screen = WaitsFor::Screen { run: read.run, known };
                self.clients.waiters.add(caller, screen, due);
                Ok(None)
            }
            Some(_) | None => Ok(Some(Answer::Screen(Box::new(view)))),
        }
    }

    pub(super) fn screen_view(&mut self, number: RunNo) -> Result<ScreenView, Failure> {
        let waiting_for_input = self.awaits_input(number);
        let terminal = self.kernels.terminal_of(number);
        let Some(run) = self.runs.get(&number) else {
            let screen = self.home.directory.screen(number);
            let screen = screen.ok_or_else(|| match self.records.history.find(number) {
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

    /// Types input for a run on its terminal.
    pub(super) fn type_input(
        &mut self,
        number: RunNo,
        mut bytes: Vec<u8>,
        is_last: bool,
    ) -> Result<Answer, Failure> {
        if is_last {
            bytes.push(
                self.kernels.terminal_of(number).and_then(Terminal::end_key).unwrap_or(END_KEY),
            );
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
        let modes = self.kernels.terminal_of(number).map(Terminal::modes).unwrap_or_default();
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
        if let Some(live) = self.kernels.at_run_mut(number) {
            live.resize_terminal(size);
        }
        self.answer_viewers(number);
        Ok(Answer::Resized)
    }

    fn check_terminal(&self, number: RunNo, what: &str) -> Result<(), Failure> {
        self.check_going(number, Code::InputClosed, what)?;
        let has = self.runs.get(&number).is_some_and(|run| run.order.terminal.is_some());
        if has { Ok(()) } else { Err(no_terminal(number)) }
    }

    /// Types on the run's terminal. Returns how many bytes have not been read.
    fn type_on(&mut self, number: RunNo, bytes: &[u8]) -> Result<u64, Failure> {
        if let Some(live) = self.kernels.at_run_mut(number) {
            return live.type_on_terminal(number, bytes, &self.reactor);
        }
        // The run has not begun.
        let Some(run) = self.runs.get_mut(&number) else {
            return Err(self.missing(number));
        };
        let typed = run.order.stdin.get_or_insert_default();
        check_room(number, typed.len() as u64, bytes.len())?;
        typed.extend_from_slice(bytes);
        Ok(typed.len() as u64)
    }
}

fn view(
    run: RunNo,
    phase: RunPhase,
    screen: Screen,
    revision: u64,
    waiting_for_input: bool,
) -> ScreenView {
    ScreenView { run, phase, screen, revision, waiting_for_input }
}
