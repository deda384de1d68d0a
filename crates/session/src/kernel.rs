//! One kernel of a session: its process, its queue, and the known facts about its state.

use crate::effect::{CancelReason, Effect, Epoch, Outcome, Source, Tick};
use crate::pacing::{Pacing, Urgency};
use sessile_protocol::{KernelFate, Language, RunNo};
use std::collections::VecDeque;

mod dying;
mod pressing;
mod queueing;

use pressing::PRESSURES;
pub use queueing::Place;

/// Time after which a kernel that is not up counts as failed. Restoring a megabyte of shell
/// functions takes a tenth of a second; a cold disk can take seconds.
const START_PATIENCE: Tick = 20_000;

/// The same for loading a state from a file, which may import large libraries and read gigabytes.
const LOAD_PATIENCE: Tick = 600_000;

#[derive(Debug)]
enum Process {
    /// No process; one is started when a run needs it.
    Absent,
    Starting {
        source: Source,
        due: Tick,
        attempt: Attempt,
    },
    Idle,
    /// The next run waits for its preparation.
    Preparing(Queued),
    Busy {
        order: Queued,
        work: Work,
    },
    /// The process is gone. It had no run, and the keeper still processes what it left.
    Dying,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Attempt {
    First,
    /// After a first attempt whose process was killed.
    Second,
    /// The start took too long, and we kill the process.
    Abandoned,
}

#[derive(Debug)]
enum Work {
    Running {
        due: Option<Tick>,
        silence: Option<Silence>,
    },
    Interrupting {
        cause: Cause,
        due: Tick,
        step: usize,
    },
    /// The run has ended, but its end is not reported yet.
    Over {
        cause: Option<Cause>,
    },
    /// The process is gone. It may have reported the run's end before that.
    Gone {
        cause: Option<Cause>,
    },
}

impl Work {
    /// Returns why the run was made to end, if it was.
    fn cause(&self) -> Option<Cause> {
        match self {
            Self::Running { .. } => None,
            Self::Interrupting { cause, .. } => Some(*cause),
            Self::Over { cause } | Self::Gone { cause } => *cause,
        }
    }
}

/// The time that a run may go without a sign of life. The driver does not report each sign:
/// when the time is up, the kernel asks when the last one was.
#[derive(Clone, Copy, Debug)]
struct Silence {
    limit: Tick,
    /// When to ask next; `Tick::MAX` while an answer is pending.
    due: Tick,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cause {
    Timeout,
    /// No sign of life for this long.
    Silence(Tick),
    Asked,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Queued {
    pub(crate) run: RunNo,
    /// The run is cancelled if it has not begun by then.
    pub(crate) begins_before: Option<Tick>,
    pub(crate) timeout: Option<Tick>,
    pub(crate) silence: Option<Tick>,
    pub(crate) risky: bool,
}

#[derive(Debug)]
pub(crate) struct Kernel {
    language: Language,
    epoch: Epoch,
    process: Process,
    queue: VecDeque<Queued>,
    /// The run after which the state was last captured.
    captured: Option<RunNo>,
    /// The last run that this kernel (or one that it continues) finished.
    finished: RunNo,
    captures: Pacing,
    /// The kernel's fate that the next answer reports.
    news: KernelFate,
    /// No run begins while this is set.
    pub(crate) is_held: bool,
    /// Each run waits for its preparation.
    is_gated: bool,
}

/// The state that a kernel starts from in a fork, or after a rewind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// Its saved state, as of that run.
    Saved(RunNo),
    /// A copy of the process as it was after that run.
    Image(RunNo),
    /// The kernel did not exist.
    Nothing,
}

impl Kernel {
    pub(crate) fn new(language: Language, is_gated: bool) -> Self {
        Self {
            language,
            epoch: Epoch(0),
            process: Process::Absent,
            queue: VecDeque::new(),
            captured: None,
            finished: RunNo(0),
            captures: Pacing::default(),
            news: KernelFate::Kept,
            is_held: false,
            is_gated,
        }
    }

    /// Returns a kernel of a session whose keeper was lost, as its files describe it.
    pub(crate) fn revived(language: Language, is_gated: bool, captured: Option<RunNo>) -> Self {
        let news = match captured {
            Some(as_of_run) => KernelFate::Restored { as_of_run },
            None => KernelFate::Fresh,
        };
        let finished = captured.unwrap_or_default();
        Self { captured, finished, news, ..Self::new(language, is_gated) }
    }

    /// Returns a kernel of a fork. It has the whole state of the original, so its first
    /// answer reports no fate.
    pub(crate) fn forked(language: Language, is_gated: bool, origin: Origin, now: Tick) -> Self {
        match origin {
            Origin::Nothing => Self::new(language, is_gated),
            Origin::Saved(as_of) => {
                Self { captured: Some(as_of), finished: as_of, ..Self::new(language, is_gated) }
            }
            Origin::Image(as_of) => Self {
                epoch: Epoch(1),
                process: Process::Starting {
                    source: Source::Image { as_of },
                    due: now + START_PATIENCE,
                    attempt: Attempt::Second,
                },
                finished: as_of,
                ..Self::new(language, is_gated)
            },
        }
    }

    pub(crate) fn epoch(&self) -> Epoch {
        self.epoch
    }

    pub(crate) fn running(&self) -> Option<RunNo> {
        match self.process {
            Process::Busy { order, .. } => Some(order.run),
            Process::Absent
            | Process::Starting { .. }
            | Process::Idle
            | Process::Preparing(_)
            | Process::Dying => None,
        }
    }

    /// Returns the run because of which the kernel cannot be inspected or replaced.
    pub(crate) fn busy_with(&self) -> Option<RunNo> {
        match &self.process {
            Process::Busy { order, .. } => Some(order.run),
            Process::Preparing(next) => Some(next.run),
            Process::Absent | Process::Starting { .. } | Process::Idle | Process::Dying => None,
        }
    }

    /// Returns the run that waits for its preparation.
    pub(crate) fn preparing(&self) -> Option<(Language, Epoch, RunNo)> {
        match &self.process {
            Process::Preparing(next) => Some((self.language, self.epoch, next.run)),
            Process::Absent
            | Process::Starting { .. }
            | Process::Idle
            | Process::Busy { .. }
            | Process::Dying => None,
        }
    }

    /// Returns the first run in the queue.
    pub(crate) fn next(&self) -> Option<RunNo> {
        self.queue.front().map(|queued| queued.run)
    }

    pub(crate) fn is_quiet(&self) -> bool {
        self.queue.is_empty() && self.busy_with().is_none()
    }

    /// Returns whether the kernel's state is the one after its last run. This includes a
    /// dying kernel, whose last state may still be written.
    pub(crate) fn has_no_run(&self) -> bool {
        matches!(self.process, Process::Idle | Process::Dying)
    }

    pub(crate) fn is_idle(&self) -> bool {
        matches!(self.process, Process::Idle)
    }

    pub(crate) fn is_settled(&self) -> bool {
        let is_coming_up = matches!(self.process, Process::Starting { .. } | Process::Dying);
        self.busy_with().is_none() && !is_coming_up
    }

    pub(crate) fn is_captured(&self) -> bool {
        self.captured == Some(self.finished)
    }

    /// Returns whether there is a process, or one is being started.
    pub(crate) fn is_there(&self) -> bool {
        !matches!(self.process, Process::Absent)
    }

    pub(crate) fn is_at_rest(&self) -> bool {
        matches!(self.process, Process::Idle | Process::Preparing(_) | Process::Dying)
    }

    /// Returns the run that a capture taken now would be "as of".
    pub(crate) fn finished(&self) -> RunNo {
        self.finished
    }

    pub(crate) fn due(&self) -> Option<Tick> {
        self.process_due().into_iter().chain(self.queue_due()).min()
    }

    fn process_due(&self) -> Option<Tick> {
        match &self.process {
            Process::Absent | Process::Preparing(_) | Process::Dying => None,
            Process::Starting { due, .. } => Some(*due),
            Process::Idle => self.captures.due(),
            Process::Busy { work: Work::Running { due, silence }, .. } => {
                due.iter().copied().chain(silence.map(|silence| silence.due)).min()
            }
            Process::Busy { work: Work::Interrupting { due, step, .. }, .. } => {
                PRESSURES.get(*step).map(|_| *due)
            }
            Process::Busy { work: Work::Over { .. } | Work::Gone { .. }, .. } => None,
        }
    }

    /// Starts the process if there is none, ahead of the first run.
    pub(crate) fn warm_up(&mut self, now: Tick, out: &mut Vec<Effect>) {
        if matches!(self.process, Process::Absent) {
            let source = match self.captured {
                Some(as_of) => Source::Captured { as_of },
                None => Source::Nothing,
            };
            self.launch(source, now, out);
        }
    }

    /// Lets runs begin again.
    pub(crate) fn release(&mut self, now: Tick, out: &mut Vec<Effect>) {
        self.is_held = false;
        self.advance(now, out);
    }

    /// Replaces an idle kernel by one with another state.
    pub(crate) fn replace(&mut self, origin: Origin, now: Tick, out: &mut Vec<Effect>) {
        if self.busy_with().is_some() {
            return;
        }
        out.push(Effect::Discard { language: self.language, epoch: self.epoch });
        self.process = Process::Absent;
        self.captures.forget();
        match origin {
            Origin::Nothing => {
                self.captured = None;
                self.finished = RunNo(0);
                self.news = KernelFate::Kept;
            }
            Origin::Saved(as_of) => {
                self.captured = Some(as_of);
                self.news = KernelFate::Restored { as_of_run: as_of };
                self.launch(Source::Captured { as_of }, now, out);
            }
            Origin::Image(as_of) => {
                self.captured = None;
                self.news = KernelFate::Restored { as_of_run: as_of };
                self.launch(Source::Image { as_of }, now, out);
            }
        }
        self.advance(now, out);
    }

    fn begin(&mut self, next: &Queued, now: Tick, out: &mut Vec<Effect>) {
        if next.risky && !self.is_captured() {
            out.push(self.capture(Urgency::Now, now));
        } else {
            // A kernel that always has a next run has no idle time.
            self.capture_if_due(now, out);
        }
        let after = |limit: Tick| now.saturating_add(limit);
        let silence = next.silence.map(|limit| Silence { limit, due: after(limit) });
        let work = Work::Running { due: next.timeout.map(after), silence };
        self.process = Process::Busy { order: *next, work };
        out.push(Effect::Begin { language: self.language, epoch: self.epoch, run: next.run });
    }

    fn capture(&mut self, urgency: Urgency, now: Tick) -> Effect {
        let (language, epoch, as_of) = (self.language, self.epoch, self.finished);
        self.captures.begun(now);
        Effect::Capture { language, epoch, as_of, urgency }
    }

    /// Captures the state at once, for a client that asked to see it.
    pub(crate) fn capture_now(&mut self, now: Tick, out: &mut Vec<Effect>) {
        if self.is_idle() {
            let effect = self.capture(Urgency::Now, now);
            out.push(effect);
        }
    }

    fn capture_if_due(&mut self, now: Tick, out: &mut Vec<Effect>) {
        if let Some(urgency) = self.captures.urgency(now) {
            let effect = self.capture(urgency, now);
            out.push(effect);
        }
    }

    /// Reschedules a capture that was refused in idle time because others are in progress.
    pub(crate) fn capture_refused(&mut self, chance: u64, now: Tick) {
        self.captures.refused(now, chance);
    }

    /// Ends a capture, successful or not.
    pub(crate) fn capture_over(&mut self, now: Tick) {
        self.captures.done(now);
    }

    fn launch(&mut self, source: Source, now: Tick, out: &mut Vec<Effect>) {
        // The new process has the state that it starts from.
        self.finished = match source {
            Source::Nothing => RunNo(0),
            Source::Captured { as_of } | Source::Image { as_of } => as_of,
            Source::Final => self.finished,
        };
        self.epoch = Epoch(self.epoch.0 + 1);
        let due = now + START_PATIENCE;
        let attempt = match source {
            Source::Nothing | Source::Final | Source::Captured { .. } => Attempt::First,
            // The process that was copied for this start exists only once.
            Source::Image { .. } => Attempt::Second,
        };
        self.process = Process::Starting { source, due, attempt };
        self.captures.forget();
        out.push(Effect::Launch { language: self.language, epoch: self.epoch, source });
    }

    /// Extends the deadline: the process is up and loads its state.
    pub(crate) fn loading(&mut self, now: Tick) {
        if let Process::Starting { due, .. } = &mut self.process {
            *due = now + LOAD_PATIENCE;
        }
    }

    pub(crate) fn ready(&mut self, now: Tick, out: &mut Vec<Effect>) {
        let Process::Starting { source, .. } = self.process else {
            return;
        };
        self.process = Process::Idle;
        // The state that it was restored from is already on disk; the state that the dead
        // process left is not yet.
        match source {
            Source::Nothing | Source::Captured { .. } => self.captures.forget(),
            Source::Final | Source::Image { .. } => self.captures.changed(now),
        }
        self.advance(now, out);
    }

    pub(crate) fn over(&mut self, run: RunNo) {
        let Some((_, work)) = self.busy_in(run) else {
            return;
        };
        match work {
            Work::Running { .. } | Work::Interrupting { .. } | Work::Over { .. } => {
                *work = Work::Over { cause: work.cause() };
            }
            Work::Gone { .. } => {}
        }
    }

    pub(crate) fn reported(
        &mut self,
        run: RunNo,
        exit_code: i32,
        now: Tick,
        out: &mut Vec<Effect>,
    ) {
        let Process::Busy { order, work } = &self.process else {
            return;
        };
        if order.run != run {
            return;
        }
        let outcome =
            Self::outcome(work, exit_code, std::mem::replace(&mut self.news, KernelFate::Kept));
        let is_gone = matches!(work, Work::Gone { .. });
        self.finished = run;
        out.push(Effect::Complete { run, outcome });
        if is_gone {
            self.process = Process::Dying;
            return;
        }
        self.process = Process::Idle;
        self.captures.changed(now);
        self.advance(now, out);
    }

    /// Takes back a run whose order could not be sent, because the process was gone before.
    /// Its successor is given the run, unless it was made to end meanwhile.
    pub(crate) fn unsent(&mut self, run: RunNo) {
        let Some((order, work)) = self.busy_in(run) else {
            return;
        };
        if work.cause().is_none() {
            // Its turn has come in time.
            let again = Queued { begins_before: None, ..*order };
            self.queue.push_front(again);
            self.process = Process::Dying;
        }
    }

    /// Returns the order and the progress of the current run, if it is this one.
    fn busy_in(&mut self, run: RunNo) -> Option<(&Queued, &mut Work)> {
        match &mut self.process {
            Process::Busy { order, work } if order.run == run => Some((order, work)),
            Process::Absent
            | Process::Starting { .. }
            | Process::Idle
            | Process::Preparing(_)
            | Process::Busy { .. }
            | Process::Dying => None,
        }
    }

    fn outcome(work: &Work, exit_code: i32, fate: KernelFate) -> Outcome {
        let cause = work.cause();
        Outcome {
            exit_code,
            fate,
            timed_out: matches!(cause, Some(Cause::Timeout | Cause::Silence(_))),
            silent_for: match cause {
                Some(Cause::Silence(limit)) => Some(limit),
                Some(Cause::Timeout | Cause::Asked) | None => None,
            },
            interrupted: cause == Some(Cause::Asked),
        }
    }

    pub(crate) fn captured(&mut self, as_of: RunNo) {
        self.captured = self.captured.max(Some(as_of));
    }

    /// Returns the order to write the state before the end, if it is not captured.
    pub(crate) fn remember(&self) -> Option<Effect> {
        let as_of = match &self.process {
            Process::Busy { order, .. } => order.run,
            Process::Idle | Process::Preparing(_) if !self.is_captured() => self.finished,
            Process::Idle
            | Process::Preparing(_)
            | Process::Absent
            | Process::Starting { .. }
            | Process::Dying => return None,
        };
        let has_run = as_of > RunNo(0);
        has_run.then_some(Effect::Remember { language: self.language, epoch: self.epoch, as_of })
    }

    /// Answers the active run and the queue, because everything ends. The teardown ends the
    /// process.
    pub(crate) fn close(&mut self, why: CancelReason, out: &mut Vec<Effect>) {
        let running = self.busy_with();
        let queued = self.queue.drain(..).map(|q| q.run);
        out.extend(running.into_iter().chain(queued).map(|run| Effect::Cancel { run, why }));
        let Self { epoch, is_held, is_gated, .. } = *self;
        *self = Self { epoch, is_held, ..Self::new(self.language, is_gated) };
    }
}
