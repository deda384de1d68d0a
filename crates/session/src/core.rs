//! Runs and kernels: admission, queues, what a new kernel starts from, closing.

use crate::closing::{Close, Ending, Teardown};
use crate::effect::{Effect, Epoch, Tick, Why};
use crate::kernel::{Cause, Kernel, Origin, Place, Queued};
use sessile_protocol::{Auto, Language, RunNo};
use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The session ends after this long without activity; zero: never.
    pub idle_timeout: Tick,
    pub activity: Activity,
    /// Runs that may wait for one kernel.
    pub queue: usize,
    /// A checkpoint is taken before each run, and only then does it begin.
    pub auto: Option<Auto>,
}

/// What keeps a session from being idle.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Activity {
    /// Runs, and what [`Effect::LookForLife`] finds besides.
    #[default]
    All,
    /// Runs alone.
    Runs,
}

/// A run as the state machine sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Submission {
    pub language: Language,
    /// How long it may wait for its beginning.
    pub queue_timeout: Option<Tick>,
    /// How long it may take from its beginning.
    pub timeout: Option<Tick>,
    /// How long it may go without a sign of life.
    pub silence: Option<Tick>,
    /// It may well end its kernel (it mentions `kill` or `exec`, say): have
    /// the state captured before, even if that costs it a millisecond.
    pub risky: bool,
}

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// A kernel process is up, and what it was to start from is in place.
    Ready {
        language: Language,
        epoch: Epoch,
    },
    /// A kernel process is up, and takes over what it is to start from.
    Loading {
        language: Language,
        epoch: Epoch,
    },
    /// A run has come to its end, and what it has left is looked after before that is
    /// reported: it takes no more of its time, and nobody presses on it.
    Over {
        language: Language,
        epoch: Epoch,
        run: RunNo,
    },
    /// A kernel says that its run has ended.
    Reported {
        language: Language,
        epoch: Epoch,
        run: RunNo,
        exit_code: i32,
    },
    /// A kernel process is gone.
    Died {
        language: Language,
        epoch: Epoch,
        exit_code: i32,
        left_state: bool,
    },
    /// A kernel owes a report that it will never make.
    Stuck {
        language: Language,
        epoch: Epoch,
    },
    /// When a run last wrote or was given something: asked for by
    /// [`Effect::Listen`].
    Heard {
        language: Language,
        epoch: Epoch,
        run: RunNo,
        at: Tick,
    },
    /// Whether something lives in the session, or somebody looks at it: asked
    /// for by [`Effect::LookForLife`].
    Life {
        found: bool,
    },
    /// A kernel's state has been written down, and can be brought back.
    Captured {
        language: Language,
        epoch: Epoch,
        as_of: RunNo,
    },
    /// What [`Effect::Capture`] asked for is over, whatever came of it.
    CaptureOver {
        language: Language,
        epoch: Epoch,
    },
    /// What it asked for in idle time was not begun: the machine has enough of
    /// that. `chance` is any number.
    CaptureRefused {
        language: Language,
        epoch: Epoch,
        chance: u64,
    },
    Interrupt {
        run: Option<RunNo>,
    },
    /// Somebody wants to see the state of all live kernels.
    Inspect,
    /// A session that was made ahead becomes somebody's, who lets it be idle for
    /// this long.
    Adopted {
        idle_timeout: Tick,
    },
    Close(Close),
    /// While closing: no kernel is left, though what they started may be.
    KernelsGone,
    /// No process of the session is left.
    AllGone,
    Tick,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    QueueFull {
        limit: usize,
    },
    Ending,
    /// A run is going, or about to.
    Busy {
        run: RunNo,
    },
}

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
    /// An answer is to come, and the session does not end before.
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

    /// A session whose keeper was lost: its numbers go on, and its kernels'
    /// first answers say what they were restored from. `known`: the kernels
    /// that it had, and the run as of which each can be brought back, if it can.
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

    /// A fork: its numbers go on from the original's.
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

    /// The epoch that a forked kernel's process has.
    #[must_use]
    pub fn epoch(&self, language: Language) -> Option<Epoch> {
        self.kernels.get(&language).map(Kernel::epoch)
    }

    /// Lets no run begin until [`Core::release`]. What is going goes on.
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

    /// Is not held any more, without beginning anything: all of it is about to end.
    pub(crate) fn let_go(&mut self) {
        self.is_held = false;
        for kernel in self.kernels.values_mut() {
            kernel.is_held = false;
        }
    }

    /// Runs that wait for what has to be done before they begin.
    pub fn preparing(&self) -> impl Iterator<Item = (Language, Epoch, RunNo)> + '_ {
        self.kernels.values().filter_map(Kernel::preparing)
    }

    /// What had to be done before a run has been done.
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

    /// The first run that is going, or about to.
    #[must_use]
    pub fn busy_with(&self) -> Option<RunNo> {
        self.kernels.values().find_map(Kernel::busy_with)
    }

    /// Whether no run is going or about to, and no kernel is coming up.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.is_open() && self.kernels.values().all(Kernel::is_settled)
    }

    /// Whether a kernel is up and has no run; one may be about to begin.
    #[must_use]
    pub fn is_at_rest(&self, language: Language) -> bool {
        self.kernels.get(&language).is_some_and(Kernel::is_at_rest)
    }

    /// Whether the state of a kernel as it is now has been written down.
    #[must_use]
    pub fn is_captured(&self, language: Language) -> bool {
        self.kernels.get(&language).is_some_and(Kernel::is_captured)
    }

    /// The newest number of what is not still to come.
    #[must_use]
    pub fn last_begun(&self) -> RunNo {
        let next = self.kernels.values().filter_map(Kernel::next).min();
        next.map_or(self.last_run, |next| RunNo(next.0.saturating_sub(1)))
    }

    /// A number for something that is no run.
    pub(crate) fn take_number(&mut self) -> RunNo {
        self.last_run = self.last_run.next();
        self.last_run
    }

    /// The run whose state a kernel has, of each that is there.
    pub fn states(&self) -> impl Iterator<Item = (Language, RunNo)> + '_ {
        let there = self.kernels.iter().filter(|(_, kernel)| kernel.is_there());
        there.map(|(language, kernel)| (*language, kernel.finished()))
    }

    /// Gives kernels another state. Those that are not named stay as they are.
    ///
    /// # Errors
    /// When the session is ending, or one of them has a run.
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

    /// The number that a run of this language would get now.
    ///
    /// # Errors
    /// When the session is ending or too many runs wait already.
    pub fn admits(&self, language: Language) -> Result<RunNo, Refusal> {
        match self.phase {
            Phase::Open => {}
            // A reset is over in a moment, but what it forgets must not
            // include a run that was accepted in between.
            Phase::Closing { .. } | Phase::Closed => return Err(Refusal::Ending),
        }
        let queued = self.kernels.get(&language).map_or(0, Kernel::queued);
        if queued >= self.limits.queue {
            return Err(Refusal::QueueFull { limit: self.limits.queue });
        }
        Ok(self.last_run.next())
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
            (Phase::Open, Input::Died { language, epoch, exit_code, left_state }) => {
                if let Some(kernel) = self.kernel(language, epoch) {
                    kernel.died(exit_code, left_state, now, &mut out);
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
            // An end outranks a reset that is under way.
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
                | Input::Died { .. }
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

    /// When [`Input::Tick`] is next wanted.
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

    /// The runs that are running now.
    pub fn running(&self) -> impl Iterator<Item = RunNo> + '_ {
        self.kernels.values().filter_map(Kernel::running)
    }

    pub(crate) fn limits(&self) -> Limits {
        self.limits
    }

    /// Whether runs are going, or wait for their turn.
    #[must_use]
    pub fn is_working(&self) -> bool {
        self.running().next().is_some() || self.queued() > 0
    }

    /// Whether every kernel that there is could be looked into now.
    pub(crate) fn is_quiet(&self) -> bool {
        let mut there = self.kernels.values().filter(|kernel| kernel.is_there());
        self.is_open() && !self.is_working() && there.all(Kernel::is_idle)
    }

    /// The highest number that a run has had.
    #[must_use]
    pub fn last_run(&self) -> RunNo {
        self.last_run
    }

    #[must_use]
    pub fn queued(&self) -> usize {
        self.kernels.values().map(Kernel::queued).sum()
    }

    /// Where a run that has not begun stands in its queue.
    #[must_use]
    pub fn place(&self, run: RunNo) -> Option<Place> {
        self.kernels.values().find_map(|kernel| kernel.place(run))
    }

    /// Whether the kernel could be looked into right now, and what its state
    /// would be "as of".
    #[must_use]
    pub fn idle_as_of(&self, language: Language) -> Option<RunNo> {
        self.kernels.get(&language).filter(|k| k.is_idle()).map(Kernel::finished)
    }

    #[must_use]
    pub fn is_open(&self) -> bool {
        matches!(self.phase, Phase::Open)
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

    /// What was found counts as activity; without it, an idle session ends.
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
            Close::End(_) => Why::Ended,
            Close::Reset => Why::Reset,
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
