//! Performing effects, and checking that they may be asked for.

use super::kernels::{Phase, Process, Story};
use super::{Checked, LANGUAGES, World};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use sessile_protocol::{KernelFate, Language, RunNo};
use sessile_session::{
    Activity, CancelReason, Effect, Epoch, Input, Origin, Outcome, Pressure, Source, Tick, Urgency,
};

impl World {
    pub(super) fn perform(&mut self, effects: Vec<Effect>) -> Checked {
        for effect in effects {
            prop_assert!(!self.finished, "{effect:?} after the end");
            self.effect(effect)?;
        }
        Ok(())
    }

    fn effect(&mut self, effect: Effect) -> Checked {
        match effect {
            Effect::Launch { language, epoch, source } => self.launch(language, epoch, source),
            Effect::Discard { language, epoch } => self.discard(language, epoch),
            Effect::Begin { language, epoch, run } => self.begin(language, epoch, run),
            Effect::Press { language, epoch, pressure } => self.press(language, epoch, pressure),
            Effect::Listen { language, epoch, run } => {
                let process = self.process(language);
                prop_assert_eq!((process.epoch, process.phase), (epoch, Phase::Busy(run)));
                prop_assert!(!process.is_listened_to, "asked twice");
                process.is_listened_to = true;
                Ok(())
            }
            Effect::LookForLife => {
                prop_assert!(!self.is_looked_for, "asked twice");
                prop_assert!(self.limits.activity == Activity::All && self.open.is_empty());
                self.is_looked_for = true;
                Ok(())
            }
            Effect::Capture { language, epoch, urgency: Urgency::Idle, .. }
                if self.is_crowded() =>
            {
                let chance = self.now.wrapping_mul(31);
                self.step(Input::CaptureRefused { language, epoch, chance })
            }
            Effect::Capture { language, epoch, as_of, urgency: _ } => {
                let now = self.now;
                let process = self.process(language);
                prop_assert_eq!(process.epoch, epoch);
                prop_assert!(process.phase == Phase::Idle, "captured while {:?}", process.phase);
                prop_assert!(!process.is_dying, "captured when it is gone");
                prop_assert_eq!(as_of, process.holds, "a capture under a false name");
                process.captures.push(as_of);
                (process.changed, process.capturing) = (None, Some(now));
                Ok(())
            }
            Effect::Abandon { language, epoch } => {
                let process = self.process(language);
                prop_assert_eq!(process.epoch, epoch);
                prop_assert_eq!(process.phase, Phase::Starting);
                process.has_been_killed = true;
                Ok(())
            }
            Effect::Complete { run, outcome } => self.complete(run, &outcome),
            Effect::Cancel { run, why: CancelReason::QueueTimeout } => self.give_up_waiting(run),
            Effect::Cancel {
                run,
                why:
                    CancelReason::Reset
                    | CancelReason::Ended
                    | CancelReason::Interrupted
                    | CancelReason::NoKernel,
            } => self.answer(run).map(|_| ()),
            Effect::Operate(task) => self.task(task),
            Effect::Remember { language, epoch, as_of } => {
                prop_assert!(!self.closing, "the end has begun");
                let process = self.process(language);
                prop_assert_eq!(process.epoch, epoch);
                prop_assert!(as_of > RunNo(0));
                Ok(())
            }
            Effect::Teardown(_) => {
                let idle = self.now - self.last_activity;
                let is_due = self.limits.idle_timeout > 0 && idle >= self.limits.idle_timeout;
                let was_looked_for = self.limits.activity == Activity::Runs
                    || self.told == Some(Input::Life { found: false });
                let is_due = is_due && (was_looked_for || self.closing);
                prop_assert!(
                    self.desk.is_closing_asked() || is_due,
                    "closed after {idle} ms of idle time"
                );
                (self.closing, self.is_looked_for) = (true, false);
                Ok(())
            }
            Effect::Forget => {
                self.desk.saves.changed();
                // The next process is what the reset promised.
                for (language, process) in &self.processes {
                    let next = Story::of(Epoch(process.epoch.0 + 1));
                    self.stories.insert(*language, next);
                }
                self.closing = false;
                self.desk.closed();
                self.last_activity = self.now;
                prop_assert!(self.open.is_empty(), "forgotten: {:?}", self.open);
                Ok(())
            }
            Effect::Finished(_) => {
                self.finished = true;
                prop_assert!(self.open.is_empty(), "left behind: {:?}", self.open);
                Ok(())
            }
        }
    }

    fn launch(&mut self, language: Language, epoch: Epoch, source: Source) -> Checked {
        prop_assert!(!self.closing, "launched while closing");
        if let Source::Captured { as_of } = source {
            let known = &self.story(language).captured;
            prop_assert!(known.contains(&as_of), "{source:?} was never captured");
        }
        let process = self.process(language);
        prop_assert_eq!(process.phase, Phase::Gone, "a second process of {}", language);
        prop_assert!(epoch > process.epoch, "{epoch:?} after {:?}", process.epoch);
        let holds = match source {
            Source::Nothing => RunNo(0),
            Source::Final => process.holds,
            Source::Captured { as_of } | Source::Image { as_of } => as_of,
        };
        let repeatable = match process.repeated {
            Some(expected) => {
                prop_assert_eq!(source, expected, "one that was killed is tried again");
                None
            }
            None => Some(source).filter(|source| !matches!(source, Source::Image { .. })),
        };
        *process = Process {
            epoch,
            repeatable,
            holds,
            phase: Phase::Starting,
            is_first: source == Source::Nothing,
            ..Process::default()
        };
        Ok(())
    }

    /// A kernel is replaced by one with another state.
    fn discard(&mut self, language: Language, epoch: Epoch) -> Checked {
        let origin = self.desk.replaces(language)?;
        let process = self.process(language);
        prop_assert_eq!(process.epoch, epoch);
        prop_assert!(!matches!(process.phase, Phase::Busy(_)), "discarded with its run");
        process.phase = Phase::Gone;
        process.is_dying = false;
        process.captures.clear();
        let next = Epoch(process.epoch.0 + 1);
        self.last_activity = self.now;
        let story = self.story(language);
        match origin {
            Origin::Nothing => *story = Story { last_begun: story.last_begun, ..Story::of(next) },
            Origin::Saved(as_of) | Origin::Image(as_of) => {
                story.captured.insert(as_of);
                story.told_of = Epoch(0);
            }
        }
        self.saves_lose_kernel(language, epoch);
        self.desk.kernel_went(language, epoch);
        Ok(())
    }

    fn begin(&mut self, language: Language, epoch: Epoch, run: RunNo) -> Checked {
        prop_assert_eq!(self.open.get(&run), Some(&language), "begun but not open");
        let story = self.story(language);
        prop_assert!(run > story.last_begun, "{run} after {}", story.last_begun);
        story.last_begun = run;
        let earlier = self.open.iter().find(|(r, l)| **l == language && **r < run);
        prop_assert_eq!(earlier, None, "overtaken");
        let times = self.times[&run];
        let is_late = times.queue.is_some_and(|limit| times.submitted + limit <= self.now);
        prop_assert!(!is_late, "{run} begins too late");
        let (now, operations) = (self.now, self.session.operations());
        if let Some(auto) = self.limits.auto {
            // With fewer, that of one kernel's run may have gone for another's.
            let is_kept = auto.keep as usize >= LANGUAGES.len();
            let is_marked = !is_kept || self.desk.is_marked(run);
            prop_assert!(is_marked, "{run} has no checkpoint before it");
            prop_assert!(!operations.is_under_way(), "{run} begins under an operation");
        } else {
            prop_assert!(!operations.is_active(), "{run} begins before an operation");
        }
        self.desk.workspace_changes();
        let process = self.process(language);
        prop_assert_eq!(process.epoch, epoch);
        prop_assert_eq!(process.phase, Phase::Idle, "begun in a kernel that is not ready");
        prop_assert!(!process.is_dying, "begun in a kernel that is gone");
        process.phase = Phase::Busy(run);
        process.is_listened_to = false;
        (process.begun, process.heard) = (now, now);
        Ok(())
    }

    /// It has waited as long as it may, and did not begin.
    fn give_up_waiting(&mut self, run: RunNo) -> Checked {
        let language = self.answer(run)?;
        self.last_activity = self.now;
        let times = self.times[&run];
        let is_late = times.queue.is_some_and(|limit| times.submitted + limit <= self.now);
        prop_assert!(is_late, "{run} has not waited long enough: {times:?}");
        prop_assert!(run > self.story(language).last_begun, "{run} had begun");
        Ok(())
    }

    fn press(&mut self, language: Language, epoch: Epoch, pressure: Pressure) -> Checked {
        let (now, told) = (self.now, self.told);
        let times = match self.process(language).phase {
            Phase::Busy(run) => self.times.get(&run).copied(),
            Phase::Gone | Phase::Starting | Phase::Idle => None,
        };
        let process = self.process(language);
        prop_assert_eq!(process.epoch, epoch);
        let Some(times) = times else {
            return Err(TestCaseError::fail(format!("pressed while {:?}", process.phase)));
        };
        let is_stuck = matches!(told, Some(Input::Stuck { .. }));
        prop_assert!(!process.is_over || is_stuck, "pressed although it is over");
        prop_assert!(!process.is_dying, "pressed although it is gone");
        let is_over = |since: Tick, limit: Option<Tick>| limit.is_some_and(|l| since + l <= now);
        match told.filter(|_| process.pressed.is_none()) {
            Some(Input::Tick) => prop_assert!(is_over(process.begun, times.timeout), "too early"),
            Some(Input::Heard { at, .. }) => {
                prop_assert!(is_over(at, times.silence), "not silent since {at}");
            }
            Some(_) | None => {}
        }
        process.pressed.get_or_insert(now);
        process.has_been_killed |= pressure == Pressure::KillKernel;
        Ok(())
    }

    fn complete(&mut self, run: RunNo, outcome: &Outcome) -> Checked {
        let language = self.answer(run)?;
        self.last_activity = self.now;
        self.desk.saves.changed();
        prop_assert!(!(outcome.timed_out && outcome.interrupted));
        if outcome.silent_for.is_some() {
            prop_assert!(outcome.timed_out);
            prop_assert_eq!(outcome.silent_for, self.times[&run].silence);
        }
        let process = self.process(language);
        let (epoch, is_alive) = (process.epoch, process.phase != Phase::Gone);
        let story = self.story(language);
        let is_known = is_alive && story.told_of == epoch;
        match outcome.fate {
            KernelFate::Kept => prop_assert!(is_known, "{run} says kept, but it is another"),
            KernelFate::Restored { as_of_run } => {
                prop_assert!(!is_known, "{run} says restored, but it is the same process");
                let known = story.captured.contains(&as_of_run) || as_of_run == RunNo(0);
                prop_assert!(known, "restored as of {as_of_run}, which was not captured");
            }
            KernelFate::Restarted | KernelFate::Fresh => {
                prop_assert!(!is_known, "{run} says new, but it is the same process");
            }
        }
        // Who died in this run is told of by this answer; its successor is next.
        story.told_of = if is_alive { epoch } else { Epoch(epoch.0 + 1) };
        Ok(())
    }

    fn answer(&mut self, run: RunNo) -> Result<Language, TestCaseError> {
        prop_assert!(self.answered.insert(run), "{run} is answered twice");
        let language = self.open.remove(&run);
        prop_assert!(language.is_some(), "{run} is answered, but was never admitted");
        Ok(language.unwrap_or(Language::Bash))
    }
}
