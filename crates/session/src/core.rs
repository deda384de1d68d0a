//! Runs and kernels: admission, queues, the state that a new kernel starts from, closing.

use crate::closing::{Close, Ending, Teardown};
use crate::effect::{CancelReason, Effect, Epoch, Tick};
use crate::input::{Activity, Input, Limits, Refusal, Submission};
use crate::kernel::{Cause, Kernel, Origin, Queued};
use sessile_protocol::{Language, RunNo};
use std::collections::BTreeMap;

mod questions;

#[derive(Debug)]
enum Phase {
    Open,
    Closing { why: Close, step: Teardown, due: Tick },
    Closed,
}

#[derive(Debug)]
pub struct Core {
    limits: Limits,
    default: Language,
    phase: Phase,
    kernels: BTreeMap<Language, Kernel>,
    last_run: RunNo,
    last_activity: Tick,
    /// [`Effect::LookForLife`] is unanswered; the session does not end as idle before the answer.
    is_looking: bool,
    is_held: bool,
}

impl Core {
    #[must_use]
    pub fn new(default: Language, limits: Limits, now: Tick) -> Self {
        let kernels = BTreeMap::from([(default, Kernel::new(default, limits.auto.is_some()))]);
        Self {
            limits,
            default,
            phase: Phase::Open,
            kernels,
            last_run: RunNo(0),
            last_activity: now,
            is_looking: false,
            is_held: false,
        }
    }

    /// Returns the state machine of a session whose keeper was lost. Run numbers continue,
    /// and the first answer of each kernel says what it was restored from. `known` lists
    /// the kernels that the session had, each with the run as of which its state can be
    /// restored, if it can.
    #[must_use]
    pub fn revived(
        default: Language,
        limits: Limits,
        now: Tick,
        last_run: RunNo,
        known: &[(Language, Option<RunNo>)],
    ) -> Self {
        let mut session = Self::new(default, limits, now);
        session.last_run = last_run;
        let has_default = known.iter().any(|(language, _)| *language == default);
        let missing = (!has_default).then_some((default, None));
        session.kernels = known
            .iter()
            .copied()
            .chain(missing)
            .map(|(language, captured)| {
                (language, Kernel::revived(language, limits.auto.is_some(), captured))
            })
            .collect();
        session
    }

    /// Returns the state machine of a fork. Run numbers continue from the original's.
    #[must_use]
    pub fn forked(
        default: Language,
        limits: Limits,
        now: Tick,
        last_run: RunNo,
        known: &[(Language, Origin)],
    ) -> Self {
        let mut session = Self::new(default, limits, now);
        session.last_run = last_run;
        for (language, origin) in known {
            let kernel = Kernel::forked(*language, limits.auto.is_some(), *origin, now);
            session.kernels.insert(*language, kernel);
        }
        session
    }

    /// Lets no run begin until [`Core::release`]. Active runs continue.
    pub(crate) fn hold(&mut self) {
        self.is_held = true;
        for kernel in self.kernels.values_mut() {
            kernel.is_held = true;
        }
    }

    pub(crate) fn release(&mut self, now: Tick) -> Vec<Effect> {
        let mut out = Vec::new();
        self.is_held = false;
        self.last_activity = now;
        for kernel in self.kernels.values_mut() {
            kernel.release(now, &mut out);
        }
        out
    }

    /// Clears the hold without beginning a run, because everything is about to end.
    pub(crate) fn clear_hold(&mut self) {
        self.is_held = false;
        for kernel in self.kernels.values_mut() {
            kernel.is_held = false;
        }
    }

    /// Begins a run whose preparation is done.
    pub(crate) fn prepared(
        &mut self,
        language: Language,
        epoch: Epoch,
        run: RunNo,
        now: Tick,
    ) -> Vec<Effect> {
        let mut out = Vec::new();
        if let Some(kernel) = self.kernel(language, epoch) {
            kernel.prepared(run, now, &mut out);
        }
        out
    }

    /// Returns the next number, for an event that is not a run.
    pub(crate) fn take_number(&mut self) -> RunNo {
        self.last_run = self.last_run.next();
        self.last_run
    }

    /// Gives the planned kernels another state. Other kernels stay as they are.
    ///
    /// # Errors
    /// When the session is ending, or one of the planned kernels has a run.
    pub(crate) fn replace(
        &mut self,
        plan: &[(Language, Origin)],
        now: Tick,
    ) -> Result<Vec<Effect>, Refusal> {
        if !self.is_open() {
            return Err(Refusal::Ending);
        }
        let busy = plan.iter().find_map(|(language, _)| self.kernels.get(language)?.busy_with());
        if let Some(run) = busy {
            return Err(Refusal::Busy { run });
        }
        self.last_activity = now;
        let mut out = Vec::new();
        for (language, origin) in plan {
            self.kernel_of(*language).replace(*origin, now, &mut out);
        }
        Ok(out)
    }

    fn kernel_of(&mut self, language: Language) -> &mut Kernel {
        let (is_gated, is_held) = (self.limits.auto.is_some(), self.is_held);
        self.kernels.entry(language).or_insert_with(|| {
            let mut kernel = Kernel::new(language, is_gated);
            kernel.is_held = is_held;
            kernel
        })
    }

    /// Starts the default kernel ahead of its first run.
    pub fn open(&mut self, now: Tick) -> Vec<Effect> {
        let mut out = Vec::new();
        if let Some(kernel) = self.kernels.get_mut(&self.default) {
            kernel.warm_up(now, &mut out);
        }
        out
    }

    /// Admits a run and gives it its number.
    ///
    /// # Errors
    /// When the session is ending or too many runs wait already.
    pub fn submit(
        &mut self,
        submission: Submission,
        now: Tick,
    ) -> Result<(RunNo, Vec<Effect>), Refusal> {
        let run = self.admits(submission.language)?;
        self.last_run = run;
        self.last_activity = now;
        let mut out = Vec::new();
        let Submission { language, queue_timeout, timeout, silence, risky } = submission;
        let begins_before = queue_timeout.map(|limit| now.saturating_add(limit));
        let queued = Queued { run, begins_before, timeout, silence, risky };
        self.kernel_of(language).enqueue(queued, now, &mut out);
        Ok((run, out))
    }

    pub fn step(&mut self, input: Input, now: Tick) -> Vec<Effect> {
        let mut out = Vec::new();
        match (&self.phase, input) {
            (Phase::Closed, _) => {}
            (Phase::Open, Input::Ready { language, epoch }) => {
                if let Some(kernel) = self.kernel(language, epoch) {
                    kernel.ready(now, &mut out);
                }
            }
            (Phase::Open, Input::Loading { language, epoch }) => {
                if let Some(kernel) = self.kernel(language, epoch) {
                    kernel.loading(now);
                }
            }
            (Phase::Open, Input::Over { language, epoch, run }) => {
                if let Some(kernel) = self.kernel(language, epoch) {
                    kernel.over(run);
                }
            }
            (Phase::Open, Input::Reported { language, epoch, run, exit_code }) => {
                if let Some(kernel) = self.kernel(language, epoch) {
                    kernel.reported(run, exit_code, now, &mut out);
                }
            }
            (Phase::Open, Input::Dying { language, epoch }) => {
                if let Some(kernel) = self.kernel(language, epoch) {
                    kernel.dying();
                }
            }
            (Phase::Open, Input::Died { language, epoch, exit_code, left_state }) => {
                if let Some(kernel) = self.kernel(language, epoch) {
                    kernel.died(exit_code, left_state, now, &mut out);
                }
            }
            (Phase::Open, Input::Unsent { language, epoch, run }) => {
                if let Some(kernel) = self.kernel(language, epoch) {
                    kernel.unsent(run);
                }
            }
            (Phase::Open, Input::Stuck { language, epoch }) => {
                if let Some(kernel) = self.kernel(language, epoch) {
                    kernel.stuck(&mut out);
                }
            }
            (Phase::Open, Input::Heard { language, epoch, run, at }) => {
                if let Some(kernel) = self.kernel(language, epoch) {
                    kernel.heard(run, at, now, &mut out);
                }
            }
            (Phase::Open, Input::Life { found }) => self.looked(found, now, &mut out),
            (Phase::Open, Input::Captured { language, epoch, as_of }) => {
                if let Some(kernel) = self.kernel(language, epoch) {
                    kernel.captured(as_of);
                }
            }
            (Phase::Open, Input::CaptureOver { language, epoch }) => {
                if let Some(kernel) = self.kernel(language, epoch) {
                    kernel.capture_over(now);
                }
            }
            (Phase::Open, Input::CaptureRefused { language, epoch, chance }) => {
                if let Some(kernel) = self.kernel(language, epoch) {
                    kernel.capture_refused(chance, now);
                }
            }
            (Phase::Open, Input::Interrupt { run }) => {
                for kernel in self.kernels.values_mut() {
                    kernel.interrupt(run, Cause::Asked, now, &mut out);
                }
            }
            (Phase::Open, Input::Inspect) => {
                for kernel in self.kernels.values_mut() {
                    kernel.capture_now(now, &mut out);
                }
            }
            (Phase::Open, Input::Adopted { idle_timeout }) => {
                self.limits.idle_timeout = idle_timeout;
                self.last_activity = now;
            }
            (Phase::Open, Input::Close(why)) => self.close(why, now, &mut out),
            // An end replaces a reset that is in progress.
            (Phase::Closing { why: Close::Reset, step, due }, Input::Close(why)) => {
                self.phase = Phase::Closing { why, step: *step, due: *due };
            }
            (Phase::Closing { why, .. }, Input::AllGone) => {
                let why = *why;
                self.closed(why, now, &mut out);
            }
            (Phase::Closing { why, step: Teardown::Exit, .. }, Input::KernelsGone) => {
                self.phase = Phase::Closing { why: *why, step: Teardown::Exit, due: now };
                self.tick(now, &mut out);
            }
            (Phase::Open | Phase::Closing { .. }, Input::Tick) => self.tick(now, &mut out),
            (Phase::Open | Phase::Closing { .. }, Input::KernelsGone)
            | (Phase::Open, Input::AllGone)
            | (
                Phase::Closing { .. },
                Input::Ready { .. }
                | Input::Loading { .. }
                | Input::Over { .. }
                | Input::Reported { .. }
                | Input::Dying { .. }
                | Input::Died { .. }
                | Input::Unsent { .. }
                | Input::Stuck { .. }
                | Input::Heard { .. }
                | Input::Life { .. }
                | Input::Captured { .. }
                | Input::CaptureOver { .. }
                | Input::CaptureRefused { .. }
                | Input::Interrupt { .. }
                | Input::Inspect
                | Input::Adopted { .. }
                | Input::Close(_),
            ) => {}
        }
        // A run that ends counts as activity, however it ends.
        let ends =
            |effect: &Effect| matches!(effect, Effect::Complete { .. } | Effect::Cancel { .. });
        if out.iter().any(ends) {
            self.last_activity = now;
        }
        out
    }

    /// Returns when the next [`Input::Tick`] is due.
    #[must_use]
    pub fn due(&self) -> Option<Tick> {
        match self.phase {
            Phase::Closed => None,
            Phase::Closing { due, .. } => Some(due),
            Phase::Open => {
                let kernels = self.kernels.values().filter_map(Kernel::due);
                kernels.chain(self.idle_due()).min()
            }
        }
    }

    fn kernel(&mut self, language: Language, epoch: Epoch) -> Option<&mut Kernel> {
        self.kernels.get_mut(&language).filter(|kernel| kernel.epoch() == epoch)
    }

    fn idle_due(&self) -> Option<Tick> {
        let quiet = self.kernels.values().all(Kernel::is_quiet);
        (quiet && !self.is_held && !self.is_looking && self.limits.idle_timeout > 0)
            .then(|| self.last_activity + self.limits.idle_timeout)
    }

    fn tick(&mut self, now: Tick, out: &mut Vec<Effect>) {
        match self.phase {
            Phase::Closed => {}
            Phase::Closing { why, step, due } if due <= now => {
                let step = step.next();
                self.phase = Phase::Closing { why, step, due: now + step.patience() };
                out.push(Effect::Teardown(step));
            }
            Phase::Closing { .. } => {}
            Phase::Open if self.idle_due().is_some_and(|due| due <= now) => {
                match self.limits.activity {
                    Activity::Runs => self.close(Close::End(Ending::Idle), now, out),
                    Activity::All => {
                        self.is_looking = true;
                        out.push(Effect::LookForLife);
                    }
                }
            }
            Phase::Open => {
                for kernel in self.kernels.values_mut() {
                    kernel.tick(now, out);
                }
            }
        }
    }

    /// Counts life as activity. Without any, an idle session ends.
    fn looked(&mut self, found: bool, now: Tick, out: &mut Vec<Effect>) {
        if !std::mem::replace(&mut self.is_looking, false) {
            return;
        }
        if found {
            self.last_activity = now;
        } else if self.idle_due().is_some_and(|due| due <= now) {
            self.close(Close::End(Ending::Idle), now, out);
        }
    }

    fn close(&mut self, why: Close, now: Tick, out: &mut Vec<Effect>) {
        self.is_looking = false;
        let reason = match why {
            Close::End(_) => CancelReason::Ended,
            Close::Reset => CancelReason::Reset,
        };
        for kernel in self.kernels.values_mut() {
            if why != Close::Reset {
                out.extend(kernel.remember());
            }
            kernel.close(reason, out);
        }
        let step = Teardown::Exit;
        self.phase = Phase::Closing { why, step, due: now + step.patience() };
        out.push(Effect::Teardown(step));
    }

    fn closed(&mut self, why: Close, now: Tick, out: &mut Vec<Effect>) {
        match why {
            Close::End(ending) => {
                self.phase = Phase::Closed;
                out.push(Effect::Finished(ending));
            }
            Close::Reset => {
                self.phase = Phase::Open;
                self.last_activity = now;
                out.push(Effect::Forget);
                out.extend(self.open(now));
            }
        }
    }
}
