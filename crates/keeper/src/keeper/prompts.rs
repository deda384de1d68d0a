//! Interactive runs that wait for input.
//!
//! A run waits for input when one of its processes is blocked in a read of the
//! run's stdin, and has read all that was given. No event tells of it: so, for
//! as long as somebody wants to know, the processes are looked at now and then.
//!
//! Of a kernel with an event loop the system cannot tell it. Then the driver
//! inside is asked whether it listens to the run's stdin, and to nothing else
//! that could make the run go on.
//!
//! It must never take a run for waiting that is not: its client would answer a
//! question that was not asked.

use super::{Deadline, Keeper};
use crate::kernels::Question;
use crate::runs::{Run, Waiter};
use crate::waits::{self, Manner, Source};
use sessile_protocol::{Language, Reply, RunNo};
use sessile_session::Tick;

/// When runs are looked at again; twice as long each time.
const LOOK_AFTER: Tick = 1;
const LOOK_AT_MOST_AFTER: Tick = 32;

impl Keeper {
    /// Somebody waits for a question, or has just answered one.
    pub(super) fn expect_prompt(&mut self) {
        self.prompts_pause = LOOK_AFTER;
        self.deadlines.set(Deadline::Prompts, self.now());
    }

    /// Answers those who wait for a run that has come to wait for input.
    pub(super) fn look_for_prompts(&mut self) {
        let is_awaited = |run: &Run| run.waiters.iter().any(Waiter::ends_at_input);
        let open = self.runs.iter().filter(|(_, run)| run.takes_input() && is_awaited(run));
        let awaited: Vec<RunNo> = open.map(|(number, _)| *number).collect();
        let mut is_any_left = false;
        for number in awaited {
            if self.awaits_input(number) {
                self.answer_at_input(number);
            } else {
                is_any_left = true;
            }
        }
        if is_any_left {
            let pause = self.prompts_pause;
            self.deadlines.set(Deadline::Prompts, self.now() + pause);
            self.prompts_pause = (2 * pause).min(LOOK_AT_MOST_AFTER);
        }
    }

    /// Whether a run waits for input. What it wrote before that has been taken
    /// then: the question is in its output.
    pub(super) fn awaits_input(&mut self, number: RunNo) -> bool {
        let is_waiting = self.is_waiting(number);
        if is_waiting {
            self.catch_up(number);
        }
        is_waiting
    }

    /// Whether the kernel was asked, and its answer is to come.
    pub(super) fn is_asked(&self, number: RunNo) -> bool {
        let stdin = self.runs.get(&number).and_then(|run| run.stdin.as_ref());
        stdin.is_some_and(|stdin| stdin.is_asked())
    }

    /// The answer of a kernel that was asked about its run.
    pub(super) fn learn(&mut self, language: Language, question: Question, waits: bool) {
        let current = self.kernels.get(&language).and_then(|live| live.current);
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

    /// Whether the system tells that a run waits for input. Where it cannot
    /// tell, the kernel is asked.
    fn is_waiting(&mut self, number: RunNo) -> bool {
        let live = self.kernels.values_mut().find(|live| live.current == Some(number));
        let (Some(live), Some(run)) = (live, self.runs.get_mut(&number)) else {
            return false;
        };
        let terminal = live.terminal.as_ref().filter(|terminal| terminal.run == number);
        // First of all: who is found in a read after that has found nothing,
        // because nobody but us could have given it something.
        let source = match terminal {
            Some(terminal) => terminal.awaited().map(Source::Terminal),
            None => run.stdin.as_ref().and_then(|stdin| stdin.awaited()).map(Source::Pipe),
        };
        let Some(source) = source else {
            return false;
        };
        let has_loop = live.kernel.has_event_loop();
        let by_itself = if has_loop { Manner::Read } else { Manner::Endless };
        let is_found = waits::waits_to_read(live.pid, source, by_itself)
            || live
                .foreground()
                .into_iter()
                .any(|pid| waits::waits_to_read(pid, source, Manner::Endless));
        if let Some(stdin) = &mut run.stdin
            && !is_found
            && has_loop
        {
            // A kernel that does not take the question is not heard of again.
            let asked = stdin.inquire().map(|question| live.kernel.ask(number, question));
            drop(asked);
        }
        is_found
    }

    fn answer_at_input(&mut self, number: RunNo) {
        let Some(run) = self.runs.get_mut(&number) else {
            return;
        };
        let ended: Vec<Waiter> =
            run.waiters.extract_if(.., |waiter| waiter.ends_at_input()).collect();
        for waiter in ended {
            let answer = super::waiting::so_far(number, run, &waiter.want, true);
            let reply = Reply::new(waiter.call, Ok(answer));
            self.connections.send(waiter.connection, &reply, &self.reactor);
        }
    }
}
