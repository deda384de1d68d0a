//! A run that has to end: what is done about it, and when.

use super::{Attempt, Cause, Kernel, Process, Work};
use crate::effect::{Effect, Pressure, Source, Tick, Why};
use sessile_protocol::RunNo;

/// When each pressure is applied, in milliseconds after the first. A caller is
/// promised an answer within a second of the limit, so the kernel itself is
/// killed well before that; everything milder is repeated once, because a
/// shell function may start a new program just after its last was ended.
pub(super) const PRESSURES: [(Tick, Pressure); 7] = [
    (0, Pressure::Interrupt),
    (100, Pressure::Interrupt),
    (250, Pressure::Terminate),
    (400, Pressure::KillWork),
    (480, Pressure::KillWork),
    (560, Pressure::KillWork),
    (650, Pressure::KillKernel),
];

impl Kernel {
    pub(crate) fn interrupt(
        &mut self,
        run: Option<RunNo>,
        cause: Cause,
        now: Tick,
        out: &mut Vec<Effect>,
    ) {
        if let Some(wanted) = run
            && let Some(at) = self.queue.iter().position(|q| q.run == wanted)
        {
            self.queue.remove(at);
            out.push(Effect::Cancel { run: wanted, why: Why::Interrupted });
            return;
        }
        if let Process::Preparing(next) = &self.process
            && run.is_none_or(|wanted| wanted == next.run)
        {
            out.push(Effect::Cancel { run: next.run, why: Why::Interrupted });
            self.process = Process::Idle;
            self.advance(now, out);
            return;
        }
        let Process::Busy { run: current, work } = &mut self.process else {
            return;
        };
        if run.is_none_or(|wanted| wanted == *current) && matches!(work, Work::Running { .. }) {
            *work = Work::Interrupting { cause, since: now, step: 0 };
            self.press(now, out);
        }
    }

    pub(crate) fn tick(&mut self, now: Tick, out: &mut Vec<Effect>) {
        if self.due().is_none_or(|due| due > now) {
            return;
        }
        match &mut self.process {
            Process::Absent | Process::Preparing(_) => {}
            Process::Starting { source, .. } => {
                let source = *source;
                self.abandon(source, out);
            }
            Process::Idle => self.capture_if_due(now, out),
            Process::Busy { work: Work::Running { due, .. }, .. }
                if due.is_some_and(|due| due <= now) =>
            {
                self.interrupt(None, Cause::Timeout, now, out);
            }
            Process::Busy { run, work: Work::Running { silence, .. } } => {
                if let Some(silence) = silence {
                    silence.due = Tick::MAX;
                    let (language, epoch) = (self.language, self.epoch);
                    out.push(Effect::Listen { language, epoch, run: *run });
                }
            }
            Process::Busy { work: Work::Interrupting { .. }, .. } => self.press(now, out),
        }
    }

    /// The run gave its last sign of life at that time.
    pub(crate) fn heard(&mut self, run: RunNo, at: Tick, now: Tick, out: &mut Vec<Effect>) {
        let Process::Busy { run: current, work: Work::Running { silence: Some(silence), .. } } =
            &mut self.process
        else {
            return;
        };
        if *current != run {
            return;
        }
        let limit = silence.limit;
        silence.due = at.saturating_add(limit);
        if silence.due <= now {
            self.interrupt(Some(run), Cause::Silence(limit), now, out);
        }
    }

    /// It will never say what is waited for: its process goes, and its death is
    /// an event of its own.
    pub(crate) fn stuck(&mut self, out: &mut Vec<Effect>) {
        match self.process {
            Process::Absent | Process::Idle | Process::Preparing(_) => {}
            Process::Starting { source, .. } => self.abandon(source, out),
            Process::Busy { .. } => out.push(Effect::Press {
                language: self.language,
                epoch: self.epoch,
                pressure: Pressure::KillKernel,
            }),
        }
    }

    fn abandon(&mut self, source: Source, out: &mut Vec<Effect>) {
        out.push(Effect::Abandon { language: self.language, epoch: self.epoch });
        // Its death is an event of its own; wait for that one.
        let (due, attempt) = (Tick::MAX, Attempt::Abandoned);
        self.process = Process::Starting { source, due, attempt };
    }

    fn press(&mut self, now: Tick, out: &mut Vec<Effect>) {
        let Process::Busy { work: Work::Interrupting { since, step, .. }, .. } = &mut self.process
        else {
            return;
        };
        while let Some((after, pressure)) = PRESSURES.get(*step)
            && *since + after <= now
        {
            *step += 1;
            out.push(Effect::Press {
                language: self.language,
                epoch: self.epoch,
                pressure: *pressure,
            });
        }
    }
}
