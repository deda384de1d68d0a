//! When work for later is done: captures of a kernel's state, and files.
//!
//! Such work must cost nothing while there is other work to do. So it is done
//! once for many changes: promptly after a time without any, in the next short
//! pause otherwise, and once a second in a loop of changes without pauses. What
//! took long is not done again soon: either there is much to do, or the machine
//! is loaded. On a loaded machine sessions also take turns, and who gets none
//! tries again; but nothing waits for longer than [`PATIENCE`].

use crate::effect::Tick;

/// After a time without changes, long enough that a client which calls in a
/// tight loop has called again, and short enough that a person or an agent has
/// not.
const PROMPT: Tick = 5;

/// A pause between changes. Calls in a loop come sooner, also on a machine with
/// a hundred busy sessions.
const PAUSE: Tick = 30;

/// Without a pause, a change waits this long. It is also how long a time without
/// changes is.
const LOOP: Tick = 1000;

/// After the work there is none for this many times as long as it took, a second
/// at the most.
const REST: Tick = 5;
const LONGEST_REST: Tick = 1000;

/// No change waits for longer, whatever the machine has to do. It is what may be
/// lost when a process is killed.
const PATIENCE: Tick = 10_000;

/// Who got no turn tries again after this, a quarter of the time that it has
/// waited, and a random part of both: those who wait do not come all at once, and
/// less often the more of them there are.
const RETRY: Tick = 20;

/// How much the work matters at the time when it is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Urgency {
    /// It is done if the machine has a turn for it.
    Idle,
    /// It has waited for long enough, and needs no turn.
    Overdue,
    /// Somebody waits for it.
    Now,
}

#[derive(Clone, Copy, Debug)]
struct Wanted {
    /// Of the changes since the work was last begun.
    first: Tick,
    last: Tick,
    pause: Tick,
}

#[derive(Clone, Copy, Debug)]
struct Begun {
    at: Tick,
    /// What it was begun for.
    wanted: Option<Wanted>,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Pacing {
    wanted: Option<Wanted>,
    changed: Option<Tick>,
    begun: Option<Begun>,
    not_before: Tick,
}

impl Pacing {
    /// When the work is to be begun, if there is any.
    #[must_use]
    pub fn due(&self) -> Option<Tick> {
        let Wanted { first, last, pause } = self.wanted?;
        let paced = (last + pause).min(first + LOOP).max(self.not_before).min(first + PATIENCE);
        // One at a time, unless the one before is lost.
        Some(self.begun.map_or(paced, |begun| paced.max(begun.at + PATIENCE)))
    }

    /// What to do about it now.
    #[must_use]
    pub fn urgency(&self, now: Tick) -> Option<Urgency> {
        let wanted = self.wanted?;
        self.due().filter(|due| *due <= now)?;
        Some(if wanted.first + PATIENCE <= now { Urgency::Overdue } else { Urgency::Idle })
    }

    /// Something has changed.
    pub fn changed(&mut self, now: Tick) {
        let is_first = self.changed.is_none_or(|changed| changed + LOOP <= now);
        let pause = if is_first { PROMPT } else { PAUSE };
        self.changed = Some(now);
        let first = self.wanted.map_or(now, |wanted| wanted.first);
        self.wanted = Some(Wanted { first, last: now, pause });
    }

    /// What has changed is of no interest any more.
    pub fn forget(&mut self) {
        (self.wanted, self.begun) = (None, None);
    }

    /// The work begins, of all that has changed.
    pub fn begun(&mut self, now: Tick) {
        self.begun = Some(Begun { at: now, wanted: self.wanted.take() });
    }

    /// There was no turn for it after all. `chance`: any number.
    pub fn refused(&mut self, now: Tick, chance: u64) {
        if let Some(wanted) = self.begun.take().and_then(|begun| begun.wanted) {
            let last = self.wanted.map_or(wanted.last, |newer| newer.last);
            self.wanted = Some(Wanted { last, ..wanted });
            let wait = RETRY + now.saturating_sub(wanted.first) / 4;
            self.not_before = now + wait + chance % wait;
        }
    }

    /// It came to nothing, for a reason that may last: not before long.
    pub fn put_off(&mut self, now: Tick) {
        self.not_before = self.not_before.max(now + LOOP);
    }

    /// The work is over, whatever came of it.
    pub fn done(&mut self, now: Tick) {
        if let Some(begun) = self.begun.take() {
            let took = now.saturating_sub(begun.at);
            self.not_before = now + took.saturating_mul(REST).min(LONGEST_REST);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_first_change_after_a_quiet_time_is_seen_to_promptly() {
        let mut pacing = Pacing::default();
        assert_eq!(pacing.due(), None);
        pacing.changed(100);
        assert_eq!(pacing.due(), Some(100 + PROMPT));
        assert_eq!(pacing.urgency(104), None);
        assert_eq!(pacing.urgency(105), Some(Urgency::Idle));
        pacing.begun(105);
        assert_eq!(pacing.due(), None);
    }

    #[test]
    fn further_changes_wait_for_a_pause_and_what_took_long_is_not_done_again_soon() {
        let mut pacing = Pacing::default();
        pacing.changed(100);
        pacing.begun(105);
        pacing.done(105);
        pacing.changed(150);
        assert_eq!(pacing.due(), Some(150 + PAUSE));
        pacing.begun(180);
        pacing.done(190);
        pacing.changed(191);
        assert_eq!(pacing.due(), Some(190 + 10 * REST));
        pacing.begun(500);
        pacing.done(5_000);
        pacing.changed(5_001);
        assert_eq!(pacing.due(), Some(5_000 + LONGEST_REST));
        // Whoever does not come back does not keep the next from being begun.
        pacing.begun(20_000);
        pacing.changed(20_001);
        assert_eq!(pacing.due(), Some(20_000 + PATIENCE));
    }

    #[test]
    fn who_gets_no_turn_tries_again_and_goes_ahead_in_the_end() {
        let mut pacing = Pacing::default();
        pacing.changed(0);
        let mut tries = 0;
        let overdue = loop {
            let now = pacing.due().unwrap();
            match pacing.urgency(now) {
                Some(Urgency::Idle) => {
                    pacing.begun(now);
                    pacing.refused(now, u64::MAX);
                }
                Some(Urgency::Overdue) => break now,
                other => panic!("{other:?} at {now}"),
            }
            tries += 1;
        };
        assert_eq!(overdue, PATIENCE);
        assert!((5..30).contains(&tries), "{tries}");
    }

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Change,
        Wait(Tick),
        /// Takes this long, or is refused.
        Work(Option<Tick>),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            4 => Just(Step::Change),
            4 => (0..60_u64).prop_map(Step::Wait),
            1 => (0..4_000_u64).prop_map(Step::Wait),
            2 => prop::option::of(0..400_u64).prop_map(Step::Work),
        ];
        prop::collection::vec(step, 0..200)
    }

    proptest! {
        #![proptest_config(sessile_testkit::cases(256))]
        #[test]
        fn no_change_waits_too_long_and_no_loop_is_interrupted_often(steps in steps()) {
            let mut pacing = Pacing::default();
            let (mut now, mut first, mut last_change) = (0, None, 0);
            for step in steps {
                match step {
                    Step::Change => {
                        pacing.changed(now);
                        first.get_or_insert(now);
                        last_change = now;
                    }
                    Step::Wait(time) => now += time,
                    Step::Work(outcome) => {
                        // As a driver does that looks in time.
                        if let Some(due) = pacing.due() {
                            now = now.max(due);
                        }
                        let Some(urgency) = pacing.urgency(now) else { continue };
                        let began = first.unwrap();
                        prop_assert!(pacing.due().unwrap() <= began + PATIENCE);
                        let is_paused = now >= last_change + PROMPT;
                        let is_rare = now >= began + LOOP;
                        prop_assert!(is_paused || is_rare, "in the middle of a loop");
                        prop_assert_eq!(urgency == Urgency::Overdue, now >= began + PATIENCE);
                        match outcome {
                            None if urgency == Urgency::Idle => {
                                pacing.begun(now);
                                pacing.refused(now, now * 7);
                            }
                            None | Some(_) => {
                                pacing.begun(now);
                                now += outcome.unwrap_or(0);
                                pacing.done(now);
                                first = None;
                            }
                        }
                    }
                }
                prop_assert_eq!(pacing.due().is_some(), first.is_some());
            }
        }
    }
}
