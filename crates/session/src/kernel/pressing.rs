//! Ending a run: the steps, and when each is taken.

use super::{Attempt, Cause, Kernel, Process, Work};
use crate::effect::{CancelReason, Effect, Pressure, Source, Tick};
use sessile_protocol::RunNo;

/// The steps, each with the milliseconds since the step before. A caller is promised an
/// answer within a second of the limit, so the kernel itself is killed well before that.
/// Most milder steps are repeated, because a shell function may start a new program just
/// after its last one was ended.
pub(super) const PRESSURES: [(Tick, Pressure); 7] = [
    (0, Pressure::Interrupt),
    (100, Pressure::Interrupt),
    (150, Pressure::Terminate),
    (150, Pressure::KillWork),
    (80, Pressure::KillWork),
    (80, Pressure::KillWork),
    (90, Pressure::KillKernel),
];

/// When the keeper is late, kernels are late as well: the next step waits longer by this
/// multiple of the delay. On an idle machine, that is a millisecond or two; on a machine
/// that stood still, it saves a kernel's state.
const LENIENCE: Tick = 4;

/// Upper limit of this extra time, in milliseconds: a caller waits.
const MOST_LENIENCE: Tick = 1000;

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
            out.push(Effect::Cancel { run: wanted, why: CancelReason::Interrupted });
            return;
        }
        if let Process::Preparing(next) = &self.process
            && run.is_none_or(|wanted| wanted == next.run)
        {
            out.push(Effect::Cancel { run: next.run, why: CancelReason::Interrupted });
            self.process = Process::Idle;
            self.advance(now, out);
            return;
        }
        let Process::Busy { order, work } = &mut self.process else {
            return;
        };
        if run.is_none_or(|wanted| wanted == order.run) && matches!(work, Work::Running { .. }) {
            *work = Work::Interrupting { cause, due: now, step: 0 };
            self.press(now, out);
        }
    }

    pub(crate) fn tick(&mut self, now: Tick, out: &mut Vec<Effect>) {
        if self.queue_due().is_some_and(|due| due <= now) {
            self.advance(now, out);
        }
        if self.process_due().is_none_or(|due| due > now) {
            return;
        }
        match &mut self.process {
            Process::Absent | Process::Preparing(_) | Process::Dying => {}
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
            Process::Busy { order, work: Work::Running { silence, .. } } => {
                if let Some(silence) = silence {
                    silence.due = Tick::MAX;
                    let (language, epoch) = (self.language, self.epoch);
                    out.push(Effect::Listen { language, epoch, run: order.run });
                }
            }
            Process::Busy { work: Work::Interrupting { .. }, .. } => self.press(now, out),
            Process::Busy { work: Work::Over { .. } | Work::Gone { .. }, .. } => {}
        }
    }

    /// Takes the time of the run's last sign of life.
    pub(crate) fn heard(&mut self, run: RunNo, at: Tick, now: Tick, out: &mut Vec<Effect>) {
        let Process::Busy { order, work: Work::Running { silence: Some(silence), .. } } =
            &mut self.process
        else {
            return;
        };
        if order.run != run {
            return;
        }
        let limit = silence.limit;
        silence.due = at.saturating_add(limit);
        if silence.due <= now {
            self.interrupt(Some(run), Cause::Silence(limit), now, out);
        }
    }

    /// Kills a process whose report will never come. Its death is a separate event.
    pub(crate) fn stuck(&mut self, out: &mut Vec<Effect>) {
        match self.process {
            Process::Absent | Process::Idle | Process::Preparing(_) | Process::Dying => {}
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
        // Its death is a separate event; wait for that.
        let (due, attempt) = (Tick::MAX, Attempt::Abandoned);
        self.process = Process::Starting { source, due, attempt };
    }

    /// Takes one step, however late it is, so that the run has time to react to each.
    fn press(&mut self, now: Tick, out: &mut Vec<Effect>) {
        let Process::Busy { work: Work::Interrupting { due, step, .. }, .. } = &mut self.process
        else {
            return;
        };
        let Some((_, pressure)) = PRESSURES.get(*step).filter(|_| *due <= now) else { return };
        let late = (now - *due).saturating_mul(LENIENCE).min(MOST_LENIENCE);
        *step += 1;
        if let Some((after, _)) = PRESSURES.get(*step) {
            *due = now + after + late;
        }
        out.push(Effect::Press { language: self.language, epoch: self.epoch, pressure: *pressure });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Queued;
    use sessile_protocol::Language;

    /// Returns the steps, with their times, that a keeper takes which is late by `late` each time.
    fn pressed(late: Tick) -> Vec<(Tick, Pressure)> {
        let mut kernel = Kernel::new(Language::Bash, false);
        let work = Work::Running { due: None, silence: None };
        let (begins_before, timeout, silence) = (None, None, None);
        let order = Queued { run: RunNo(1), begins_before, timeout, silence, risky: false };
        kernel.process = Process::Busy { order, work };
        let (mut now, mut out, mut pressed) = (1000, Vec::new(), Vec::new());
        kernel.interrupt(None, Cause::Asked, now, &mut out);
        loop {
            for effect in out.drain(..) {
                let Effect::Press { pressure, .. } = effect else { panic!("{effect:?}") };
                pressed.push((now - 1000, pressure));
            }
            let Some(due) = kernel.process_due() else { return pressed };
            now = due + late;
            kernel.tick(now, &mut out);
        }
    }

    #[test]
    fn the_kernel_is_killed_well_within_a_second() {
        let pressed = pressed(0);
        assert_eq!(pressed.len(), PRESSURES.len());
        assert_eq!(pressed.last(), Some(&(650, Pressure::KillKernel)));
    }

    #[test]
    fn a_late_keeper_presses_step_by_step_and_gives_kernels_more_time() {
        let pressed = pressed(200);
        let steps: Vec<Pressure> = pressed.iter().map(|(_, pressure)| *pressure).collect();
        assert_eq!(steps, PRESSURES.map(|(_, pressure)| pressure));
        // The first step comes at once, so the wait for the second is the usual one.
        for (step, pair) in pressed.windows(2).enumerate().skip(1) {
            let waited = pair[1].0 - pair[0].0;
            assert_eq!(waited, PRESSURES[step + 1].0 + 200 + 200 * LENIENCE);
        }
    }
}
