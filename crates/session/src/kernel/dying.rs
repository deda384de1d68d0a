//! The death of a process, and the state that the next one starts from.

use super::{Attempt, Kernel, Process, Queued, Work};
use crate::effect::{CancelReason, Effect, Source, Tick};
use sessile_protocol::{KernelFate, RunNo};

/// The exit code of a process that SIGKILL has ended.
const KILLED: i32 = 128 + 9;

impl Kernel {
    /// Notes that the process is gone. The keeper processes what it left before it calls
    /// [`Kernel::died`]; until then no run begins, and no signal goes to its run.
    pub(crate) fn dying(&mut self) {
        match &mut self.process {
            Process::Busy { work, .. } => *work = Work::Gone { cause: work.cause() },
            Process::Starting { due, .. } => *due = Tick::MAX,
            Process::Idle => self.process = Process::Dying,
            Process::Preparing(next) => {
                self.queue.push_front(*next);
                self.process = Process::Dying;
            }
            Process::Absent | Process::Dying => {}
        }
    }

    /// Handles the end of the process. `left_state`: it wrote its state as it exited.
    pub(crate) fn died(
        &mut self,
        exit_code: i32,
        left_state: bool,
        now: Tick,
        out: &mut Vec<Effect>,
    ) {
        match std::mem::replace(&mut self.process, Process::Absent) {
            Process::Absent => {}
            // A SIGKILL came from outside: the state that it starts from is not the cause.
            Process::Starting { source, attempt: Attempt::First, .. } if exit_code == KILLED => {
                self.launch(source, now, out);
                if let Process::Starting { attempt, .. } = &mut self.process {
                    *attempt = Attempt::Second;
                }
            }
            Process::Starting { source, .. } => self.start_failed(source, now, out),
            Process::Idle | Process::Dying => {
                let (source, fate) = self.succession(left_state, self.finished);
                self.news = worse(self.news, fate);
                self.launch(source, now, out);
            }
            Process::Preparing(next) => {
                self.queue.push_front(next);
                let (source, fate) = self.succession(left_state, self.finished);
                self.news = worse(self.news, fate);
                self.launch(source, now, out);
            }
            Process::Busy { order: Queued { run, .. }, work } => {
                let (source, fate) = self.succession(left_state, run);
                let outcome = Self::outcome(&work, exit_code, worse(self.news, fate));
                self.news = KernelFate::Kept;
                out.push(Effect::Complete { run, outcome });
                self.launch(source, now, out);
            }
        }
    }

    /// Returns the state that a new process starts from, and the fate to report.
    fn succession(&mut self, left_state: bool, run: RunNo) -> (Source, KernelFate) {
        if left_state {
            self.finished = run;
            return (Source::Final, KernelFate::Restarted);
        }
        match self.captured {
            Some(as_of) => (Source::Captured { as_of }, KernelFate::Restored { as_of_run: as_of }),
            // It had not finished a single run, so the initial state is its state.
            None if self.finished == RunNo(0) && self.language.is_shell() => {
                (Source::Nothing, KernelFate::Restored { as_of_run: RunNo(0) })
            }
            None => (Source::Nothing, KernelFate::Fresh),
        }
    }

    /// Falls back step by step: a state that kills the kernel which loads it (an exit in a
    /// DEBUG trap, say) must not lock up the session.
    fn start_failed(&mut self, source: Source, now: Tick, out: &mut Vec<Effect>) {
        let fallback = match (source, self.captured) {
            (Source::Nothing, _) => None,
            (Source::Final | Source::Image { .. }, Some(as_of)) => {
                Some((Source::Captured { as_of }, KernelFate::Restored { as_of_run: as_of }))
            }
            (Source::Final | Source::Image { .. }, None) | (Source::Captured { .. }, _) => {
                self.captured = None;
                Some((Source::Nothing, KernelFate::Fresh))
            }
        };
        match fallback {
            Some((source, fate)) => {
                self.news = worse(self.news, fate);
                self.launch(source, now, out);
            }
            None => {
                for queued in self.queue.drain(..) {
                    out.push(Effect::Cancel { run: queued.run, why: CancelReason::NoKernel });
                }
            }
        }
    }
}

/// Returns the fate that lost more.
fn worse(a: KernelFate, b: KernelFate) -> KernelFate {
    fn rank(fate: KernelFate) -> u8 {
        match fate {
            KernelFate::Kept => 0,
            KernelFate::Restarted => 1,
            KernelFate::Restored { .. } => 2,
            KernelFate::Fresh => 3,
        }
    }
    if rank(b) >= rank(a) { b } else { a }
}
