//! Interactive runs that wait for input.
//!
//! A run waits for input when one of its processes is blocked in a read of the
//! run's stdin, and has read all that was given. No event tells of it: so, for
//! as long as somebody wants to know, the processes are looked at now and then.
//!
//! It must never take a run for waiting that is not: its client would answer a
//! question that was not asked.

use super::Keeper;
use crate::runs::{Run, Waiter};
use crate::waits::{self, Source};
use sessile_protocol::{Reply, RunNo};
use sessile_session::Tick;

/// When runs are looked at again; twice as long each time.
const LOOK_AFTER: Tick = 1;
const LOOK_AT_MOST_AFTER: Tick = 32;

/// When runs are looked at next.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    pub(super) due: Tick,
    after: Tick,
}

impl Keeper {
    /// Somebody waits for a question, or has just answered one.
    pub(super) fn expect_prompt(&mut self) {
        self.prompts = Some(Look { due: self.now(), after: LOOK_AFTER });
    }

    /// Answers those who wait for a run that has come to wait for input.
    pub(super) fn look_for_prompts(&mut self) {
        let Some(look) = self.prompts.take() else {
            return;
        };
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
            let after = (2 * look.after).min(LOOK_AT_MOST_AFTER);
            self.prompts = Some(Look { due: self.now() + look.after, after });
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

    fn is_waiting(&self, number: RunNo) -> bool {
        let Some(live) = self.kernels.values().find(|live| live.current == Some(number)) else {
            return false;
        };
        let stdin = self.runs.get(&number).and_then(|run| run.stdin.as_ref());
        let terminal = live.terminal.as_ref().filter(|terminal| terminal.run == number);
        // First of all: who is found in a read after that has found nothing,
        // because nobody but us could have given it something.
        let source = match terminal {
            Some(terminal) => terminal.awaited().map(Source::Terminal),
            None => stdin.and_then(|stdin| stdin.awaited()).map(Source::Pipe),
        };
        let Some(source) = source else {
            return false;
        };
        let kernel = std::iter::once(live.pid);
        kernel.chain(live.foreground()).any(|pid| waits::waits_to_read(pid, source))
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
