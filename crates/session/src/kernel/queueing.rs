//! Runs that wait in a kernel's queue.

use super::{Kernel, Process, Queued};
use crate::effect::{CancelReason, Effect, Tick};
use sessile_protocol::RunNo;

/// The place of a run that has not begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// 1 for the next run.
    pub number: usize,
    /// The run that the kernel is busy with. None: the kernel is starting, or an operation
    /// on the whole session is in progress.
    pub behind: Option<RunNo>,
}

impl Queued {
    fn is_late(&self, now: Tick) -> bool {
        self.begins_before.is_some_and(|due| due <= now)
    }
}

impl Kernel {
    pub(crate) fn queued(&self) -> usize {
        self.queue.len()
    }

    pub(crate) fn place(&self, run: RunNo) -> Option<Place> {
        let prepared = self.preparing().map(|(.., run)| run);
        if prepared == Some(run) {
            return Some(Place { number: 1, behind: None });
        }
        let ahead = self.queue.iter().position(|queued| queued.run == run)?;
        let number = ahead + usize::from(prepared.is_some()) + 1;
        Some(Place { number, behind: self.busy_with() })
    }

    /// Returns when the next queue timeout is due.
    pub(super) fn queue_due(&self) -> Option<Tick> {
        self.waiting().filter_map(|queued| queued.begins_before).min()
    }

    /// Returns all runs that have not begun.
    fn waiting(&self) -> impl Iterator<Item = &Queued> {
        let prepared = match &self.process {
            Process::Preparing(next) => Some(next),
            Process::Absent
            | Process::Starting { .. }
            | Process::Idle
            | Process::Busy { .. }
            | Process::Dying => None,
        };
        prepared.into_iter().chain(&self.queue)
    }

    pub(crate) fn enqueue(&mut self, queued: Queued, now: Tick, out: &mut Vec<Effect>) {
        self.queue.push_back(queued);
        self.advance(now, out);
    }

    /// Cancels the runs whose queue timeout is over.
    fn expire(&mut self, now: Tick, out: &mut Vec<Effect>) {
        let why = CancelReason::QueueTimeout;
        if let Process::Preparing(next) = &self.process
            && next.is_late(now)
        {
            out.push(Effect::Cancel { run: next.run, why });
            self.process = Process::Idle;
        }
        self.queue.retain(|queued| {
            let is_late = queued.is_late(now);
            if is_late {
                out.push(Effect::Cancel { run: queued.run, why });
            }
            !is_late
        });
    }

    /// Begins the next run if the kernel is free.
    pub(super) fn advance(&mut self, now: Tick, out: &mut Vec<Effect>) {
        self.expire(now, out);
        if self.queue.is_empty() || self.is_held {
            return;
        }
        self.warm_up(now, out);
        if !self.is_idle() {
            return;
        }
        let Some(next) = self.queue.pop_front() else {
            return;
        };
        if self.is_gated {
            self.process = Process::Preparing(next);
        } else {
            self.begin(&next, now, out);
        }
    }

    /// Begins a run whose preparation is done.
    pub(crate) fn prepared(&mut self, run: RunNo, now: Tick, out: &mut Vec<Effect>) {
        match std::mem::replace(&mut self.process, Process::Idle) {
            Process::Preparing(next) if next.run == run && !next.is_late(now) => {
                self.begin(&next, now, out);
            }
            // Its queue timeout passed before a tick noticed it.
            Process::Preparing(next) if next.run == run => {
                self.queue.push_front(next);
                self.advance(now, out);
            }
            other @ (Process::Absent
            | Process::Starting { .. }
            | Process::Idle
            | Process::Preparing(_)
            | Process::Busy { .. }
            | Process::Dying) => self.process = other,
        }
    }
}
