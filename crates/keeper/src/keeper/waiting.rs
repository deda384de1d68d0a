//! Who waits for a run, and for how long.

use super::{Deadline, Keeper};
use crate::runs::{Run, Waiter, Want};
use sessile_protocol::{Answer, Completed, OutputView, ReadOutput, Reply, RunNo};
use sessile_session::Tick;

impl Keeper {
    /// When a call that may wait this long is answered at the latest.
    pub(super) fn due_after(&self, patience_ms: Option<u64>) -> Option<Tick> {
        let now = self.now();
        patience_ms.map(|patience| match patience {
            0 => now,
            // Ticks are rounded down, and nobody is answered early.
            patience => now.saturating_add(patience).saturating_add(1),
        })
    }

    /// Takes note of when a waiter is to be answered. Nothing for most, who
    /// wait for as long as it takes.
    pub(super) fn note_due(&mut self, due: Option<Tick>) {
        self.deadlines.set_earlier(Deadline::Calls, due);
    }

    /// Answers those who waited for this run, as far as it has got.
    pub(super) fn answer_waiters(&mut self, number: RunNo, recorded: bool) {
        self.answer_satisfied(number, recorded, false);
    }

    /// The same of a run that waits for input.
    pub(super) fn answer_waiting(&mut self, number: RunNo) {
        self.answer_satisfied(number, false, true);
    }

    fn answer_satisfied(&mut self, number: RunNo, recorded: bool, waiting_for_input: bool) {
        let Some(run) = self.runs.get_mut(&number) else {
            return;
        };
        if run.waiters.is_empty() {
            return;
        }
        for waiter in run.satisfied(recorded) {
            let answer = match &waiter.want {
                Want::Result { max_output, repeated, .. } => {
                    let done = run.completed(number, *max_output);
                    done.map(|done| {
                        Answer::Completed(Box::new(Completed { repeated: *repeated, ..done }))
                    })
                }
                Want::Output(read) => run
                    .output(read)
                    .map(|view| Answer::Output(OutputView { waiting_for_input, ..view })),
            };
            if let Some(answer) = answer {
                self.connections.send(
                    waiter.connection,
                    &Reply::new(waiter.call, Ok(answer)),
                    &self.reactor,
                );
            }
        }
    }

    /// Answers those whose patience is over with what there is.
    pub(super) fn answer_impatient(&mut self) {
        let now = self.now();
        let mut next = None;
        for (number, run) in &mut self.runs {
            let is_over = |waiter: &mut Waiter| waiter.due.is_some_and(|due| due <= now);
            let over: Vec<Waiter> = run.waiters.extract_if(.., is_over).collect();
            for waiter in over {
                let reply = Reply::new(waiter.call, Ok(so_far(*number, run, &waiter.want, false)));
                self.connections.send(waiter.connection, &reply, &self.reactor);
            }
            next = run.waiters.iter().filter_map(|waiter| waiter.due).chain(next).min();
        }
        self.deadlines.set(Deadline::Calls, next);
        self.answer_impatient_followers(now);
    }

    /// Forgets the waiters of clients that are gone. A run that was only kept
    /// for one of them is let go when it is next looked at.
    pub(super) fn forget_gone_clients(&mut self) {
        let gone = self.connections.take_gone();
        if gone.is_empty() {
            return;
        }
        self.followers.retain(|follower| !gone.contains(&follower.connection));
        self.inspectors.retain(|inspector| !gone.contains(&inspector.connection));
        self.viewers.retain(|viewer| !gone.contains(&viewer.connection));
        self.forget_savings_of(&gone);
        self.forget_wishes_of(&gone);
        let mut left = Vec::new();
        for (number, run) in &mut self.runs {
            let before = run.waiters.len();
            run.waiters.retain(|waiter| !gone.contains(&waiter.connection));
            if run.waiters.len() < before && run.finished().is_some() {
                left.push(*number);
            }
        }
        for number in left {
            self.unsettle(number);
        }
    }
}

/// What can be said of a run that somebody will not wait for any longer.
pub(super) fn so_far(number: RunNo, run: &Run, want: &Want, waiting_for_input: bool) -> Answer {
    let accepted = Answer::Accepted { run: number, waiting_for_input };
    match want {
        Want::Result { .. } => accepted,
        Want::Output(read) => {
            let read = ReadOutput { wait: false, ..*read };
            let view = run.output(&read).map(|view| OutputView { waiting_for_input, ..view });
            view.map_or(accepted, Answer::Output)
        }
    }
}
