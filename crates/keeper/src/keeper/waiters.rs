//! Calls that are answered later: who waits, for what, and how long.
//!
//! Only this module knows who waits. Others report what has happened and take out the
//! waiters whose wait is over. The waiters of a client that goes away are removed in one
//! place.

use super::requests::Closing;
use crate::runs::Run;
use crate::source::ClientId;
use sessile_protocol::{Language, ReadOutput, RunNo};
use sessile_session::Tick;

/// A call of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Caller {
    pub(super) client: ClientId,
    pub(super) call: u64,
}

/// Identifies a waiter for the operation that it waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WaiterId(pub(super) u64);

#[derive(Debug)]
pub(super) struct Waiter {
    pub(super) ticket: WaiterId,
    pub(super) caller: Caller,
    pub(super) waits_for: WaitsFor,
    /// When it is answered with what there is.
    pub(super) due: Option<Tick>,
}

#[derive(Debug)]
pub(super) enum WaitsFor {
    Result(WantedResult),
    /// More output of a run, or progress of the run.
    Output(ReadOutput),
    /// A change of a run's terminal since this revision.
    Screen {
        run: RunNo,
        known: u64,
    },
    /// The state of kernels; `missing` have not answered yet.
    State {
        missing: Vec<Language>,
    },
    /// The runs that have not ended, once the kernel has said whether its run waits for
    /// input.
    OpenRuns,
    RunsAfter(RunNo),
    Close(Closing),
    /// A fork, checkpoint, rewind or save.
    Operation,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct WantedResult {
    pub(super) run: RunNo,
    pub(super) max_output: u64,
    /// Answered only when the result is on disk.
    pub(super) recorded: bool,
    /// The order is a repetition of an earlier one.
    pub(super) repeated: bool,
    pub(super) until_input: bool,
}

impl WaitsFor {
    /// The run whose result or output is awaited.
    pub(super) fn run(&self) -> Option<RunNo> {
        match self {
            Self::Result(wanted) => Some(wanted.run),
            Self::Output(read) => Some(read.run),
            Self::Screen { .. }
            | Self::State { .. }
            | Self::OpenRuns
            | Self::RunsAfter(_)
            | Self::Close(_)
            | Self::Operation => None,
        }
    }

    /// Whether the wait is over when the run waits for input.
    pub(super) fn ends_at_input(&self) -> bool {
        match self {
            Self::Result(wanted) => wanted.until_input,
            Self::Output(read) => read.until_input,
            Self::Screen { .. }
            | Self::State { .. }
            | Self::OpenRuns
            | Self::RunsAfter(_)
            | Self::Close(_)
            | Self::Operation => false,
        }
    }

    pub(super) fn is_known_state(&self) -> bool {
        matches!(self, Self::State { missing } if missing.is_empty())
    }

    /// Whether a run has got as far as the waiter wants; `recorded`: it is on disk.
    pub(super) fn is_met_by(&self, number: RunNo, run: &Run, recorded: bool) -> bool {
        match self {
            Self::Result(wanted) if wanted.run == number => {
                run.finished().is_some() && (recorded || !wanted.recorded)
            }
            Self::Output(read) if read.run == number => run.has_news(read),
            Self::Result(_)
            | Self::Output(_)
            | Self::Screen { .. }
            | Self::State { .. }
            | Self::OpenRuns
            | Self::RunsAfter(_)
            | Self::Close(_)
            | Self::Operation => false,
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Waiters {
    /// In the order of the calls.
    all: Vec<Waiter>,
    last: u64,
}

impl Waiters {
    pub(super) fn add(
        &mut self,
        caller: Caller,
        waits_for: WaitsFor,
        due: Option<Tick>,
    ) -> WaiterId {
        self.last += 1;
        let ticket = WaiterId(self.last);
        self.all.push(Waiter { ticket, caller, waits_for, due });
        ticket
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Waiter> {
        self.all.iter()
    }

    /// Whether any waiter for this run's result or output satisfies `is_it`.
    pub(super) fn any_of_run(&self, run: RunNo, is_it: impl Fn(&WaitsFor) -> bool) -> bool {
        self.all
            .iter()
            .any(|waiter| waiter.waits_for.run() == Some(run) && is_it(&waiter.waits_for))
    }

    /// Takes the first waiter whose wait is over.
    pub(super) fn take(&mut self, is_over: impl Fn(&Waiter) -> bool) -> Option<Waiter> {
        let at = self.all.iter().position(is_over)?;
        Some(self.all.remove(at))
    }

    /// Takes all waiters whose wait is over.
    pub(super) fn take_all(&mut self, is_over: impl Fn(&Waiter) -> bool) -> Vec<Waiter> {
        self.all.extract_if(.., |waiter| is_over(waiter)).collect()
    }

    pub(super) fn take_ticket(&mut self, ticket: WaiterId) -> Option<Waiter> {
        self.take(|waiter| waiter.ticket == ticket)
    }

    /// Notes that a kernel has answered, or will not.
    pub(super) fn state_known(&mut self, language: Language) {
        for waiter in &mut self.all {
            if let WaitsFor::State { missing } = &mut waiter.waits_for {
                missing.retain(|other| *other != language);
            }
        }
    }

    /// Whether a client follows what happens in the session.
    pub(super) fn are_watching(&self) -> bool {
        self.all.iter().any(|waiter| match &waiter.waits_for {
            WaitsFor::Result(_)
            | WaitsFor::Output(_)
            | WaitsFor::Screen { .. }
            | WaitsFor::RunsAfter(_) => true,
            WaitsFor::State { .. }
            | WaitsFor::OpenRuns
            | WaitsFor::Close(_)
            | WaitsFor::Operation => false,
        })
    }

    /// Returns the earliest time at which a waiter gives up.
    pub(super) fn due(&self) -> Option<Tick> {
        self.all.iter().filter_map(|waiter| waiter.due).min()
    }

    /// Takes the waiters of clients that are gone, except those for a close: the session
    /// is closed even if nobody hears of it.
    pub(super) fn take_gone(&mut self, gone: &[ClientId]) -> Vec<Waiter> {
        let closes = |waiter: &Waiter| matches!(waiter.waits_for, WaitsFor::Close(_));
        self.take_all(|waiter| gone.contains(&waiter.caller.client) && !closes(waiter))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sessile_protocol::{Exec, KernelFate};
    use sessile_session::Outcome;
    use std::path::Path;

    const LIMIT: u64 = 1 << 20;

    fn caller(client: u64, call: u64) -> Caller {
        Caller { client: ClientId(client), call }
    }

    fn result(run: u64, recorded: bool) -> WaitsFor {
        let (repeated, until_input) = (false, false);
        let run = RunNo(run);
        WaitsFor::Result(WantedResult { run, max_output: LIMIT, recorded, repeated, until_input })
    }

    fn finished(number: u64) -> Run {
        let order = Exec { text: b"true".to_vec(), ..Exec::default() };
        let mut run = Run::new(RunNo(number), Language::Bash, order, Path::new("/"), LIMIT);
        run.begin();
        run.finish(Outcome {
            exit_code: 0,
            fate: KernelFate::Kept,
            timed_out: false,
            silent_for: None,
            interrupted: false,
        });
        run
    }

    #[test]
    fn a_result_is_for_those_who_wait_for_that_run() {
        let mut waiters = Waiters::default();
        waiters.add(caller(1, 1), result(7, false), None);
        waiters.add(caller(1, 2), result(8, false), None);
        waiters.add(caller(2, 1), result(7, true), None);
        let (run, number) = (finished(7), RunNo(7));
        let mut take = |recorded| {
            let taken = waiters.take(|w| w.waits_for.is_met_by(number, &run, recorded));
            taken.map(|waiter| waiter.caller)
        };
        assert_eq!(take(false), Some(caller(1, 1)));
        assert_eq!(take(false), None, "the other one wants it on disk");
        assert_eq!(take(true), Some(caller(2, 1)));
        assert_eq!(take(true), None);
        assert!(waiters.any_of_run(RunNo(8), |_| true));
    }

    #[test]
    fn a_client_that_goes_away_is_forgotten_with_all_that_it_waits_for() {
        let mut waiters = Waiters::default();
        waiters.add(caller(1, 1), result(7, false), Some(30));
        let fork = waiters.add(caller(2, 1), WaitsFor::Operation, None);
        waiters.add(caller(2, 2), WaitsFor::RunsAfter(RunNo(3)), Some(20));
        assert_eq!(waiters.due(), Some(20));
        let gone = waiters.take_gone(&[ClientId(2)]);
        assert_eq!(gone.iter().map(|w| w.ticket).collect::<Vec<_>>()[0], fork);
        assert_eq!((gone.len(), waiters.due()), (2, Some(30)));
        assert!(waiters.take_ticket(fork).is_none());
    }

    #[test]
    fn a_state_is_complete_when_every_kernel_has_answered() {
        let mut waiters = Waiters::default();
        let missing = vec![Language::Bash, Language::Python];
        waiters.add(caller(1, 1), WaitsFor::State { missing }, None);
        let is_over = |waiter: &Waiter| waiter.waits_for.is_known_state();
        waiters.state_known(Language::Bash);
        assert!(waiters.take(is_over).is_none());
        waiters.state_known(Language::Python);
        assert!(waiters.take(is_over).is_some());
    }
}
