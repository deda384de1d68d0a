//! When a durable session is saved.
//!
//! A durable session is saved in quiet moments after runs; while runs keep coming, now and
//! then between two of them. Saving takes at most a fifth of the time, however large the
//! session is. A failed save is tried again, less and less often.

use crate::effect::Tick;

/// Quiet time after a run before a save. An agent's next command usually comes sooner, a
/// person's later.
const QUIET: Tick = 500;

/// How long a change waits at most when there is no quiet time.
const AT_LEAST: Tick = 5_000;

/// Pause between the end of one save and the next: this long, or `PAUSES` times as long as
/// the save took.
const PAUSE: Tick = 1_000;
const PAUSES: Tick = 4;

/// Wait after a failure; it doubles with each further one.
const RETRY: Tick = 5_000;
const LONGEST_RETRY: Tick = 60_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// Nothing has changed since the last save.
    Saved,
    /// The times of the first and the last unsaved change.
    Changed { first: Tick, last: Tick },
    /// A save is in progress; `first` and `last` are the changes since it began.
    Saving { began: Tick, first: Option<Tick>, last: Tick },
}

/// The saves of one session.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Durability {
    phase: Phase,
    /// No save begins before this.
    not_before: Tick,
    failures: u32,
}

impl Default for Durability {
    fn default() -> Self {
        Self { phase: Phase::Saved, not_before: 0, failures: 0 }
    }
}

impl Durability {
    /// Notes a run's end, or another change of the session.
    pub(crate) fn changed(&mut self, now: Tick) {
        self.phase = match self.phase {
            Phase::Saved => Phase::Changed { first: now, last: now },
            Phase::Changed { first, .. } => Phase::Changed { first, last: now },
            Phase::Saving { began, first, .. } => {
                Phase::Saving { began, first: Some(first.unwrap_or(now)), last: now }
            }
        };
    }

    /// Returns when the next save is due. It can begin when nothing runs.
    #[must_use]
    pub(crate) fn due(&self) -> Option<Tick> {
        match self.phase {
            Phase::Changed { first, last } => {
                Some((last + QUIET).min(first + AT_LEAST).max(self.not_before))
            }
            Phase::Saved | Phase::Saving { .. } => None,
        }
    }

    /// Begins a save of everything that has changed.
    pub(crate) fn begin(&mut self, now: Tick) {
        if !self.is_saving() {
            self.phase = Phase::Saving { began: now, first: None, last: now };
        }
    }

    #[must_use]
    pub(crate) fn is_saving(&self) -> bool {
        matches!(self.phase, Phase::Saving { .. })
    }

    /// Ends the save in progress with success.
    pub(crate) fn saved(&mut self, now: Tick) {
        let Phase::Saving { began, first, last } = self.phase else {
            return;
        };
        self.phase = first.map_or(Phase::Saved, |first| Phase::Changed { first, last });
        self.failures = 0;
        self.not_before = now + PAUSE.max(now.saturating_sub(began).saturating_mul(PAUSES));
    }

    /// Ends the save in progress with a failure.
    pub(crate) fn failed(&mut self, now: Tick) {
        let Phase::Saving { began, first, last } = self.phase else {
            return;
        };
        // The changes that it was to save are still unsaved.
        self.phase = Phase::Changed { first: first.unwrap_or(began).min(began), last };
        let wait = RETRY.saturating_mul(1 << self.failures.min(16)).min(LONGEST_RETRY);
        self.failures += 1;
        self.not_before = now + wait;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed_at(times: &[Tick]) -> Durability {
        let mut durability = Durability::default();
        for time in times {
            durability.changed(*time);
        }
        durability
    }

    #[test]
    fn nothing_is_saved_before_something_has_changed() {
        assert_eq!(Durability::default().due(), None);
    }

    #[test]
    fn a_change_is_saved_after_a_moment_of_quiet() {
        assert_eq!(changed_at(&[100]).due(), Some(600));
        assert_eq!(changed_at(&[100, 300, 590]).due(), Some(1090));
    }

    #[test]
    fn runs_that_keep_coming_are_saved_now_and_then() {
        let times: Vec<Tick> = (0..100).map(|n| n * 100).collect();
        assert_eq!(changed_at(&times).due(), Some(5_000));
    }

    #[test]
    fn what_changes_during_a_save_is_saved_by_the_next_one() {
        let mut durability = changed_at(&[0]);
        durability.begin(500);
        assert_eq!(durability.due(), None);
        durability.changed(550);
        durability.saved(600);
        assert_eq!(durability.due(), Some(1_600), "a pause first");
        let mut quiet = changed_at(&[0]);
        quiet.begin(500);
        quiet.saved(600);
        assert_eq!(quiet.due(), None);
    }

    #[test]
    fn saving_takes_a_fifth_of_the_time_at_most() {
        let mut durability = changed_at(&[0]);
        durability.begin(500);
        durability.changed(600);
        durability.saved(10_500);
        assert_eq!(durability.due(), Some(50_500));
    }

    #[test]
    fn a_failed_save_is_tried_again_less_and_less_often() {
        let mut durability = changed_at(&[0]);
        let mut now = 500;
        let mut waits = Vec::new();
        for _ in 0..9 {
            durability.begin(now);
            durability.failed(now);
            let due = durability.due().unwrap();
            waits.push(due - now);
            now = due;
        }
        assert_eq!(waits[..4], [5_000, 10_000, 20_000, 40_000]);
        assert_eq!(waits.last(), Some(&LONGEST_RETRY));
        durability.begin(now);
        durability.saved(now);
        durability.changed(now);
        durability.begin(now);
        durability.failed(now);
        assert_eq!(durability.due(), Some(now + RETRY), "after a success, from the beginning");
    }

    #[test]
    fn late_news_of_no_save_changes_nothing() {
        let mut durability = changed_at(&[100]);
        durability.saved(200);
        durability.failed(200);
        assert_eq!(durability.due(), Some(600));
    }
}
