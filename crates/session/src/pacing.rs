//! Pacing of deferred work: captures of a kernel's state, and files.
//!
//! Such work must cost nothing while there is other work to do. So it is done once for many
//! changes: promptly if the change follows a time without any, otherwise in the next short
//! pause, and once a second in a loop of changes without pauses. Work that took long is not
//! repeated soon: either there is much to do, or the machine is loaded. On a loaded machine
//! sessions also take turns, and a session without a turn tries again; but no change waits
//! for longer than [`PATIENCE`].

use crate::effect::Tick;

/// Delay after a change that follows a time without changes. It is long enough that a
/// client in a tight loop has called again, and short enough that a person or an agent has
/// not.
const PROMPT: Tick = 5;

/// A pause between changes: at least this long, and several times as long as the changes
/// are apart. On a machine with a hundred busy sessions the calls of a loop are 20 ms apart,
/// and many of them 40.
const PAUSE: Tick = 30;
const PAUSE_TIMES: Tick = 4;

/// How long a change waits without a pause. A period of this length without changes also
/// makes the next change prompt.
const LOOP: Tick = 1000;

/// The rest after the work, as a multiple of the time that it took; a second at most.
const REST: Tick = 5;
const LONGEST_REST: Tick = 1000;

/// No change waits for longer, however loaded the machine is. This much may be lost when a
/// process is killed.
const PATIENCE: Tick = 10_000;

/// Work without a turn is tried again after this, plus a quarter of the time that it has
/// waited, plus a random part of both. So the waiting sessions do not try all at once, and
/// try less often the more of them there are.
const RETRY: Tick = 20;

/// How much the work matters at the time when it is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Urgency {
    /// The work is done if the machine has a turn for it.
    Idle,
    /// The work has waited long enough, and needs no turn.
    Overdue,
    /// A client waits for it.
    Now,
}

#[derive(Clone, Copy, Debug)]
struct PendingChanges {
    /// Times of the first and last change since the work was last begun.
    first: Tick,
    last: Tick,
    pause: Tick,
}

#[derive(Clone, Copy, Debug)]
struct Begun {
    at: Tick,
    /// The changes that it was begun for.
    pending: Option<PendingChanges>,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct Pacing {
    pending: Option<PendingChanges>,
    changed: Option<Tick>,
    /// How far apart changes are, on average: the latest count most. In eighths of a tick.
    apart: Tick,
    begun: Option<Begun>,
    not_before: Tick,
}

impl Pacing {
    /// Returns when the work is due, if there is any.
    #[must_use]
    pub fn due(&self) -> Option<Tick> {
        let PendingChanges { first, last, pause } = self.pending?;
        let paced = (last + pause).min(first + LOOP).max(self.not_before).min(first + PATIENCE);
        // One at a time, unless the one before is lost.
        Some(self.begun.map_or(paced, |begun| paced.max(begun.at + PATIENCE)))
    }

    /// Returns the urgency of the work if it is due.
    #[must_use]
    pub fn urgency(&self, now: Tick) -> Option<Urgency> {
        let pending = self.pending?;
        self.due().filter(|due| *due <= now)?;
        Some(if pending.first + PATIENCE <= now { Urgency::Overdue } else { Urgency::Idle })
    }

    /// Notes a change.
    pub fn changed(&mut self, now: Tick) {
        let before = self.changed.replace(now).filter(|changed| now < changed + LOOP);
        let pause = match before {
            Some(before) => {
                self.apart = self.apart - self.apart / 8 + now.saturating_sub(before);
                (self.apart / 8 * PAUSE_TIMES).clamp(PAUSE, LOOP)
            }
            None => {
                self.apart = 0;
                PROMPT
            }
        };
        let first = self.pending.map_or(now, |pending| pending.first);
        self.pending = Some(PendingChanges { first, last: now, pause });
    }

    /// Drops all changes and any work in progress.
    pub fn forget(&mut self) {
        (self.pending, self.begun) = (None, None);
    }

    /// Begins the work for all changes so far.
    pub fn begun(&mut self, now: Tick) {
        self.begun = Some(Begun { at: now, pending: self.pending.take() });
    }

    /// Reschedules work that got no turn. `chance` is any number.
    pub fn refused(&mut self, now: Tick, chance: u64) {
        if let Some(pending) = self.begun.take().and_then(|begun| begun.pending) {
            let last = self.pending.map_or(pending.last, |newer| newer.last);
            self.pending = Some(PendingChanges { last, ..pending });
            let wait = RETRY + now.saturating_sub(pending.first) / 4;
            self.not_before = now + wait + chance % wait;
        }
    }

    /// Defers the work, because it failed for a reason that may last.
    pub fn put_off(&mut self, now: Tick) {
        self.not_before = self.not_before.max(now + LOOP);
    }

    /// Ends the work, successful or not.
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
        // Work that never ends does not block the next.
        pacing.begun(20_000);
        pacing.changed(20_001);
        assert_eq!(pacing.due(), Some(20_000 + PATIENCE));
    }

    #[test]
    fn a_pause_is_longer_than_the_changes_are_apart() {
        let mut pacing = Pacing::default();
        let mut now = 0;
        pacing.changed(now);
        pacing.begun(now);
        pacing.done(now);
        let loops = |pacing: &mut Pacing, now: &mut Tick, apart: Tick| {
            for _ in 0..40 {
                *now += apart;
                pacing.changed(*now);
            }
            let first = pacing.pending.unwrap().first;
            pacing.begun(*now);
            pacing.done(*now);
            *now += apart;
            pacing.changed(*now);
            assert!(first < *now);
            pacing.due().unwrap() - *now
        };
        assert_eq!(loops(&mut pacing, &mut now, 1), PAUSE);
        assert!((70..=80).contains(&loops(&mut pacing, &mut now, 20)));
        // Not for longer than a loop without pauses waits.
        assert_eq!(loops(&mut pacing, &mut now, 500), LOOP);
        // After a long time, the next one is prompt again, and what was before is forgotten.
        now += 2 * LOOP;
        pacing.begun(now);
        pacing.done(now);
        pacing.changed(now);
        assert_eq!(pacing.due(), Some(now + PROMPT));
        assert_eq!(loops(&mut pacing, &mut now, 5), PAUSE);
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
                        // Like a driver that ticks in time.
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
