//! When a durable session asks its store whether this machine still owns the session.
//!
//! Each save asks as well, so these checks cover the time without saves: now and then,
//! during a long run, and before the first run after a pause, which would be lost if
//! another machine has the session. A run waits for the answer, but only briefly, and not
//! again while the store is silent: the session has to work without a network, too.

use crate::Core;
use crate::effect::Tick;

/// How long the store's answer holds. A run within that time is lost if the session has
/// moved. A check costs a process and a call to the store, tens of milliseconds, which is
/// too much for each run. The time is longer than the time between the saves of a busy
/// session, which ask as well.
pub(super) const FRESH: Tick = 6_000;

/// When an idle session asks for the first time. This is less urgent: the next run asks
/// before it begins.
const IDLE: Tick = 30_000;

/// How often a session asks during a run. Effects of a run after a move happen twice; an
/// hour costs a thousand checks.
const GOING: Tick = 4_000;

/// The longest time between checks: an idle session asks less and less often.
const SELDOM: Tick = 300_000;

/// How long a run waits for the answer.
pub(super) const PATIENCE: Tick = 2_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Resting,
    /// A check is in progress.
    Asking,
    /// The same, and runs wait for the answer until then.
    AskingFor {
        until: Tick,
    },
}

/// The session's activity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Activity {
    None,
    /// A run is active.
    Running,
}

impl Activity {
    pub(super) fn of(core: &Core) -> Self {
        if core.is_working() { Self::Running } else { Self::None }
    }
}

/// The answer to a check or a save.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StoreReply {
    Answered,
    /// The store could not be asked, or did not answer.
    Silent,
}

/// What a run that is about to come has to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RunWaitsFor {
    Nothing,
    /// The answer to a check that is in progress.
    Answer,
    Question,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct OwnershipChecks {
    phase: Phase,
    /// The last answer, and when it came.
    last: (StoreReply, Tick),
    pause: Tick,
}

impl OwnershipChecks {
    pub(super) fn new(now: Tick) -> Self {
        Self { phase: Phase::Resting, last: (StoreReply::Answered, now), pause: IDLE }
    }

    /// Resets the pause, because the session is active.
    pub(super) fn changed(&mut self) {
        self.pause = IDLE;
    }

    /// Returns when the next check is due.
    pub(super) fn due(&self, activity: Activity) -> Option<Tick> {
        let pause = match (activity, self.last.0) {
            (Activity::Running, StoreReply::Answered) => self.pause.min(GOING),
            // A silent store is not asked more often because of a run.
            (Activity::Running, StoreReply::Silent) | (Activity::None, _) => self.pause,
        };
        match self.phase {
            Phase::Resting => Some(self.last.1 + pause),
            Phase::Asking | Phase::AskingFor { .. } => None,
        }
    }

    /// Returns when runs stop waiting.
    pub(super) fn waits_until(&self) -> Option<Tick> {
        match self.phase {
            Phase::AskingFor { until } => Some(until),
            Phase::Resting | Phase::Asking => None,
        }
    }

    pub(super) fn ask(&mut self) {
        self.phase = Phase::Asking;
    }

    /// Returns what a run that is about to come has to wait for.
    pub(super) fn before_run(&mut self, now: Tick) -> RunWaitsFor {
        match self.last {
            (StoreReply::Answered, at) if now >= at + FRESH => {}
            (StoreReply::Answered | StoreReply::Silent, _) => return RunWaitsFor::Nothing,
        }
        let until = now + PATIENCE;
        match std::mem::replace(&mut self.phase, Phase::AskingFor { until }) {
            Phase::Resting => RunWaitsFor::Question,
            Phase::Asking => RunWaitsFor::Answer,
            waiting @ Phase::AskingFor { .. } => {
                self.phase = waiting;
                RunWaitsFor::Answer
            }
        }
    }

    /// Stops the waiting of runs.
    pub(super) fn give_up(&mut self, now: Tick) {
        self.phase = Phase::Asking;
        self.last = (StoreReply::Silent, now);
    }

    /// Takes the store's answer, or that there is none. Returns true when runs wait for it.
    pub(super) fn answered(&mut self, reply: StoreReply, now: Tick) -> bool {
        let waited = matches!(self.phase, Phase::AskingFor { .. });
        self.phase = Phase::Resting;
        self.last = (reply, now);
        self.pause = (self.pause * 2).min(SELDOM);
        waited
    }

    /// Takes the answer that a save got.
    pub(super) fn saved(&mut self, reply: StoreReply, now: Tick) {
        self.last = (reply, now);
    }

    /// Cancels the check. Returns true when there was one.
    pub(super) fn cancel(&mut self) -> bool {
        std::mem::replace(&mut self.phase, Phase::Resting) != Phase::Resting
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_that_does_nothing_asks_less_and_less_often() {
        let mut checks = OwnershipChecks::new(0);
        let mut pauses = Vec::new();
        let mut now = 0;
        for _ in 0..6 {
            let due = checks.due(Activity::None).unwrap();
            pauses.push(due - now);
            now = due;
            checks.ask();
            assert_eq!(checks.due(Activity::None), None, "one question at a time");
            assert!(!checks.answered(StoreReply::Answered, now), "no run waits");
        }
        assert_eq!(pauses, [30_000, 60_000, 120_000, 240_000, SELDOM, SELDOM]);
        checks.changed();
        assert_eq!(checks.due(Activity::None), Some(now + IDLE));
    }

    #[test]
    fn a_run_after_a_pause_waits_for_the_answer_and_not_for_long() {
        let mut checks = OwnershipChecks::new(0);
        assert_eq!(checks.before_run(FRESH - 1), RunWaitsFor::Nothing);
        assert_eq!(checks.before_run(FRESH), RunWaitsFor::Question);
        assert_eq!(checks.before_run(FRESH + 500), RunWaitsFor::Answer);
        assert_eq!(checks.waits_until(), Some(FRESH + PATIENCE), "since the first");
        checks.give_up(FRESH + PATIENCE);
        assert_eq!(checks.waits_until(), None);
        let later = FRESH + PATIENCE + 1;
        assert_eq!(checks.before_run(later), RunWaitsFor::Nothing);
        assert!(!checks.answered(StoreReply::Silent, later));
        let later = later + 10 * FRESH;
        assert_eq!(checks.before_run(later), RunWaitsFor::Nothing, "not each run waits in vain");
        checks.ask();
        checks.answered(StoreReply::Answered, later);
        assert_eq!(checks.before_run(later + FRESH), RunWaitsFor::Question, "it answers again");
    }

    #[test]
    fn a_run_that_takes_long_has_the_store_asked_unless_it_is_silent() {
        let mut checks = OwnershipChecks::new(0);
        let mut now = 0;
        for _ in 0..20 {
            now += GOING;
            assert_eq!(checks.due(Activity::Running), Some(now), "as often as before");
            checks.ask();
            checks.answered(StoreReply::Answered, now);
        }
        assert_eq!(checks.due(Activity::None), Some(now + SELDOM));
        checks.ask();
        checks.answered(StoreReply::Silent, now);
        assert_eq!(checks.due(Activity::Running), Some(now + SELDOM));
    }

    #[test]
    fn what_a_save_was_told_needs_no_question() {
        let mut checks = OwnershipChecks::new(0);
        checks.saved(StoreReply::Answered, FRESH);
        assert_eq!(checks.before_run(FRESH + 1), RunWaitsFor::Nothing);
        assert_eq!(checks.due(Activity::None), Some(FRESH + IDLE));
    }

    #[test]
    fn a_question_on_its_way_is_not_asked_again() {
        let mut checks = OwnershipChecks::new(0);
        checks.ask();
        assert_eq!(checks.before_run(FRESH), RunWaitsFor::Answer);
        assert!(checks.answered(StoreReply::Answered, FRESH + 1), "a run waits");
        assert!(!checks.cancel());
    }
}
