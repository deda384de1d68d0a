//! The clients of a session, and the answers to those that wait.

use super::waiters::{Caller, WaiterId, Waiters, WaitsFor};
use crate::connections::Connections;
use crate::reactor::Reactor;
use crate::runs::Run;
use crate::source::Source;
use sessile_protocol::{Answer, Completed, Failure, OutputView, ReadOutput, Reply, RunNo};

#[derive(Debug)]
pub(super) struct Clients {
    pub(super) connections: Connections,
    pub(super) waiters: Waiters,
}

impl Clients {
    pub(super) fn answer(
        &mut self,
        caller: Caller,
        outcome: Result<Answer, Failure>,
        reactor: &Reactor<Source>,
    ) {
        self.connections.send(caller.client, &Reply::new(caller.call, outcome), reactor);
    }

    /// Answers a waiter, unless its client has gone.
    pub(super) fn answer_ticket(
        &mut self,
        ticket: WaiterId,
        outcome: Result<Answer, Failure>,
        reactor: &Reactor<Source>,
    ) {
        if let Some(waiter) = self.waiters.take_ticket(ticket) {
            self.answer(waiter.caller, outcome, reactor);
        }
    }

    /// Answers the clients that wait for this run, as far as it has got.
    pub(super) fn answer_run(
        &mut self,
        (number, run): (RunNo, &Run),
        recorded: bool,
        waiting_for_input: bool,
        reactor: &Reactor<Source>,
    ) {
        while let Some(waiter) =
            self.waiters.take(|waiter| waiter.waits_for.is_met_by(number, run, recorded))
        {
            if let Some(answer) = progress(number, run, &waiter.waits_for, waiting_for_input) {
                self.answer(waiter.caller, Ok(answer), reactor);
            }
        }
    }

    /// Answers the clients whose wait is over when the run waits for input.
    pub(super) fn answer_at_input(
        &mut self,
        (number, run): (RunNo, &Run),
        reactor: &Reactor<Source>,
    ) {
        while let Some(waiter) = self.waiters.take(|waiter| {
            waiter.waits_for.run() == Some(number) && waiter.waits_for.ends_at_input()
        }) {
            let answer = so_far(number, Some(run), &waiter.waits_for, true);
            self.answer(waiter.caller, Ok(answer), reactor);
        }
    }

    /// Refuses the clients that wait for a run which will never have a result.
    pub(super) fn refuse_run(
        &mut self,
        number: RunNo,
        failure: &Failure,
        reactor: &Reactor<Source>,
    ) {
        while let Some(waiter) = self.waiters.take(|waiter| waiter.waits_for.run() == Some(number))
        {
            self.answer(waiter.caller, Err(failure.clone()), reactor);
        }
    }
}

/// Returns a run's progress, as the answer for a client that waits for it.
fn progress(
    number: RunNo,
    run: &Run,
    waits_for: &WaitsFor,
    waiting_for_input: bool,
) -> Option<Answer> {
    match waits_for {
        WaitsFor::Result(wanted) => {
            let done = run.completed(number, wanted.max_output)?;
            Some(Answer::Completed(Box::new(Completed { repeated: wanted.repeated, ..done })))
        }
        WaitsFor::Output(read) => {
            let view = run.output(read)?;
            Some(Answer::Output(OutputView { waiting_for_input, ..view }))
        }
        WaitsFor::Screen { .. }
        | WaitsFor::State { .. }
        | WaitsFor::OpenRuns
        | WaitsFor::RunsAfter(_)
        | WaitsFor::Close(_)
        | WaitsFor::Operation => None,
    }
}

/// Returns what is known of a run, for a client that waits no longer.
pub(super) fn so_far(
    number: RunNo,
    run: Option<&Run>,
    waits_for: &WaitsFor,
    waiting_for_input: bool,
) -> Answer {
    let accepted = Answer::Accepted { run: number, waiting_for_input };
    match (waits_for, run) {
        (WaitsFor::Output(read), Some(run)) => {
            let read = ReadOutput { wait: false, ..*read };
            let view = run.output(&read).map(|view| OutputView { waiting_for_input, ..view });
            view.map_or(accepted, Answer::Output)
        }
        (
            WaitsFor::Result(_)
            | WaitsFor::Output(_)
            | WaitsFor::Screen { .. }
            | WaitsFor::State { .. }
            | WaitsFor::OpenRuns
            | WaitsFor::RunsAfter(_)
            | WaitsFor::Close(_)
            | WaitsFor::Operation,
            _,
        ) => accepted,
    }
}
