//! Answers the clients that wait for something.

use super::clients::so_far;
use super::lists::queued;
use super::prompts::Pause;
use super::waiters::{Waiter, WaitsFor};
use super::{Deadline, Keeper};
use crate::kernels::Question;
use sessile_protocol::{Answer, Language, RunNo, RunPhase, ScreenView};
use sessile_session::Tick;

impl Keeper {
    /// Returns the latest time for the answer of a call with this patience.
    pub(super) fn due_after(&self, patience_ms: Option<u64>) -> Option<Tick> {
        let now = self.now();
        patience_ms.map(|patience| match patience {
            0 => now,
            // Ticks are rounded down, and no answer may be early.
            patience => now.saturating_add(patience).saturating_add(1),
        })
    }

    /// Answers the clients that wait for this run, as far as it has got.
    pub(super) fn answer_waiters(&mut self, number: RunNo, recorded: bool) {
        self.answer_progress(number, recorded, false);
    }

    /// Does the same for a run that waits for input.
    pub(super) fn answer_waiting(&mut self, number: RunNo) {
        self.answer_progress(number, false, true);
    }

    fn answer_progress(&mut self, number: RunNo, recorded: bool, waiting_for_input: bool) {
        if let Some(run) = self.runs.get(&number).filter(|_| !self.clients.waiters.is_empty()) {
            let run = (number, run);
            self.clients.answer_run(run, recorded, waiting_for_input, &self.reactor);
        }
    }

    /// Answers the clients whose patience is over with what there is.
    pub(super) fn answer_overdue(&mut self) {
        let now = self.now();
        let is_over = |waiter: &Waiter| waiter.due.is_some_and(|due| due <= now);
        while let Some(waiter) = self.clients.waiters.take(is_over) {
            let outcome = match &waiter.waits_for {
                WaitsFor::Result(wanted) => {
                    let run = self.runs.get(&wanted.run);
                    Ok(so_far(wanted.run, run, &waiter.waits_for, false))
                }
                WaitsFor::Output(read) => {
                    let run = self.runs.get(&read.run);
                    let mut answer = so_far(read.run, run, &waiter.waits_for, false);
                    if let Answer::Output(view) = &mut answer {
                        view.queued = queued(read.run, &self.session, &self.runs);
                    }
                    Ok(answer)
                }
                WaitsFor::Screen { run, .. } => {
                    self.screen_view(*run).map(|view| Answer::Screen(Box::new(view)))
                }
                WaitsFor::State { .. } => Ok(Answer::State(self.state_view())),
                WaitsFor::OpenRuns => Ok(Answer::Runs(self.lists().open())),
                WaitsFor::RunsAfter(after) => Ok(Answer::Runs(self.lists().after(*after))),
                // These wait for as long as it takes.
                WaitsFor::Close(_) | WaitsFor::Operation => continue,
            };
            self.clients.answer(waiter.caller, outcome, &self.reactor);
        }
    }

    /// Answers the clients that wait for this terminal to change.
    pub(super) fn answer_viewers(&mut self, number: RunNo) {
        let views = |waiter: &Waiter| {
            let WaitsFor::Screen { run, known } = waiter.waits_for else {
                return None;
            };
            (run == number).then_some(known)
        };
        if !self.clients.waiters.iter().any(|waiter| views(waiter).is_some()) {
            return;
        }
        let outcome = self.screen_view(number);
        let is_old =
            |view: &ScreenView, known: u64| view.revision <= known && view.phase < RunPhase::Closed;
        let is_news = |known: u64| !outcome.as_ref().is_ok_and(|view| is_old(view, known));
        while let Some(viewer) = self.clients.waiters.take(|w| views(w).is_some_and(is_news)) {
            let view = outcome.clone().map(|view| Answer::Screen(Box::new(view)));
            self.clients.answer(viewer.caller, view, &self.reactor);
        }
    }

    /// Answers the clients that wait for states, once a kernel has reported its state or
    /// cannot.
    pub(super) fn answer_inspectors(&mut self, language: Language) {
        self.clients.waiters.state_known(language);
        let mut view = None;
        while let Some(waiter) =
            self.clients.waiters.take(|waiter| waiter.waits_for.is_known_state())
        {
            let view = view.get_or_insert_with(|| self.state_view());
            self.clients.answer(waiter.caller, Ok(Answer::State(view.clone())), &self.reactor);
        }
    }

    /// Answers the clients that wait for new runs, once a run has its number.
    pub(super) fn answer_followers(&mut self) {
        let follows = |waiter: &Waiter| matches!(waiter.waits_for, WaitsFor::RunsAfter(_));
        while let Some(waiter) = self.clients.waiters.take(follows) {
            if let WaitsFor::RunsAfter(after) = waiter.waits_for {
                let view = self.lists().after(after);
                self.clients.answer(waiter.caller, Ok(Answer::Runs(view)), &self.reactor);
            }
        }
    }

    /// Answers the clients that list runs, once the kernel has said whether its run waits
    /// for input.
    pub(super) fn answer_listers(&mut self, waiting: Option<RunNo>) {
        let lists = |waiter: &Waiter| matches!(waiter.waits_for, WaitsFor::OpenRuns);
        while let Some(waiter) = self.clients.waiters.take(lists) {
            let mut view = self.lists().open();
            for run in view.runs.iter_mut().filter(|run| Some(run.run) == waiting) {
                run.waiting_for_input = true;
            }
            self.clients.answer(waiter.caller, Ok(Answer::Runs(view)), &self.reactor);
        }
    }

    /// Forgets the waiters of clients that are gone. A run that was only kept for one of
    /// them is released when it is next looked at.
    pub(super) fn forget_gone_clients(&mut self) {
        let gone = self.clients.connections.take_gone();
        if gone.is_empty() {
            return;
        }
        for waiter in self.clients.waiters.take_gone(&gone) {
            match waiter.waits_for {
                WaitsFor::Result(_) | WaitsFor::Output(_) => {
                    let finished = |run: &RunNo| {
                        self.runs.get(run).is_some_and(|run| run.finished().is_some())
                    };
                    if let Some(run) = waiter.waits_for.run().filter(finished) {
                        self.unsettle(run);
                    }
                }
                WaitsFor::Operation => self.withdraw_operation(waiter.ticket),
                WaitsFor::Screen { .. }
                | WaitsFor::State { .. }
                | WaitsFor::OpenRuns
                | WaitsFor::RunsAfter(_)
                | WaitsFor::Close(_) => {}
            }
        }
    }

    /// Starts the checks for a prompt: a client waits for one, or has just answered one.
    pub(super) fn expect_prompt(&mut self) {
        self.kernels.prompt_pause = Pause::default();
        self.deadlines.set(Deadline::Prompts, self.now());
    }

    /// Answers the clients that wait for a run which now waits for input.
    pub(super) fn look_for_prompts(&mut self) {
        let waiters = &self.clients.waiters;
        let is_awaited = |run: RunNo| waiters.any_of_run(run, WaitsFor::ends_at_input);
        let open = self.runs.iter().filter(|(_, run)| run.takes_input());
        let awaited: Vec<RunNo> =
            open.map(|(number, _)| *number).filter(|run| is_awaited(*run)).collect();
        let mut is_any_left = false;
        for number in awaited {
            if self.awaits_input(number) {
                self.answer_at_input(number);
            } else {
                is_any_left = true;
            }
        }
        if is_any_left {
            let due = self.now() + self.kernels.prompt_pause.next();
            self.deadlines.set(Deadline::Prompts, due);
        }
    }

    /// Whether a run waits for input. If so, all its earlier output has been taken: the
    /// question is in its output.
    pub(super) fn awaits_input(&mut self, number: RunNo) -> bool {
        let (live, run) = (self.kernels.at_run_mut(number), self.runs.get_mut(&number));
        let (Some(live), Some(run)) = (live, run) else {
            return false;
        };
        let is_waiting = live.waits_for_input(number, run);
        if is_waiting {
            self.catch_up(number);
        }
        is_waiting
    }

    /// Whether the kernel was asked and has not answered yet.
    pub(super) fn is_asked(&self, number: RunNo) -> bool {
        let stdin = self.runs.get(&number).and_then(|run| run.stdin.as_ref());
        stdin.is_some_and(|stdin| stdin.is_asked())
    }

    /// Handles a kernel's answer to the question whether its run waits for input.
    pub(super) fn input_question_answered(
        &mut self,
        language: Language,
        question: Question,
        waits: bool,
    ) {
        let current = self.kernels.live.get(&language).and_then(|live| live.current);
        let Some(number) = current else {
            return;
        };
        let stdin = self.runs.get_mut(&number).and_then(|run| run.stdin.as_mut());
        let Some(stdin) = stdin else {
            return;
        };
        if !stdin.takes_answer(question) {
            return;
        }
        let is_waiting = waits && stdin.awaited().is_some();
        if is_waiting {
            self.catch_up(number);
            self.answer_at_input(number);
        } else {
            self.answer_waiters(number, false);
        }
        self.answer_listers(is_waiting.then_some(number));
    }

    fn answer_at_input(&mut self, number: RunNo) {
        if let Some(run) = self.runs.get(&number) {
            self.clients.answer_at_input((number, run), &self.reactor);
        }
    }
}
