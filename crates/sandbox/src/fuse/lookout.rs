//! How long the server stays awake for the next request.
//!
//! A program that reads many small files opens one soon after it has closed another. To
//! wake a server that sleeps on another core takes longer than to answer it, above all on
//! a virtual machine, which gives up an idle core: a small file took 85 µs, and takes 55.
//! So after an opening or a closing the server looks out for the next request for a
//! moment, if the last one came soon as well.
//!
//! Not after other requests: who asks for names alone waits for each answer, and the
//! scheduler runs both on one core, without waking any.
//!
//! Others who want the core get it, and it is left to them for a while then, which
//! doubles each time.

use std::time::{Duration, Instant};

use super::message::Operation;

/// How long to look out.
const MOMENT: Duration = Duration::from_micros(100);
/// What counts as soon: also who was slept through.
const SOON: Duration = Duration::from_micros(200);

/// A core that was offered to others is back within this time if none wants it.
const ALONE: Duration = Duration::from_micros(5);
/// Those who are served may have it for that long.
const SERVED: Duration = Duration::from_micros(60);

/// How long the core is left to others.
const CROWDED: Duration = Duration::from_millis(50);
const CROWDED_LONG: Duration = Duration::from_millis(800);

#[derive(Debug)]
pub(super) struct Lookout {
    has_cores: bool,
    /// When the last request was answered, if another is expected soon after.
    answered: Option<Instant>,
    is_quick: bool,
    crowded_until: Option<Instant>,
    crowded_for: Duration,
}

impl Lookout {
    pub(super) fn new() -> Self {
        let cores = rustix::thread::sched_getaffinity(None).map_or(1, |set| set.count());
        Self {
            has_cores: cores > 1,
            answered: None,
            is_quick: false,
            crowded_until: None,
            crowded_for: CROWDED,
        }
    }

    /// A request was answered.
    pub(super) fn answered(&mut self, operation: Operation, now: Instant) {
        let is_of_files =
            matches!(operation, Operation::Open | Operation::Create | Operation::Release);
        self.answered = is_of_files.then_some(now);
    }

    /// Another has come.
    pub(super) fn came(&mut self, now: Instant) {
        if let Some(answered) = self.answered.take() {
            self.is_quick = now.saturating_duration_since(answered) <= SOON;
        }
    }

    /// Until when it is worth staying awake, if at all.
    pub(super) fn until(&self) -> Option<Instant> {
        let answered = self.answered.filter(|_| self.has_cores && self.is_quick)?;
        let is_crowded = self.crowded_until.is_some_and(|until| answered < until);
        (!is_crowded).then_some(answered + MOMENT)
    }

    /// The core was offered to others, and was away for that long. Whether it is theirs.
    pub(super) fn offered(&mut self, away: Duration, now: Instant) -> bool {
        if away <= ALONE {
            self.crowded_for = CROWDED;
            return false;
        }
        if away <= SERVED {
            return false;
        }
        self.crowded_until = Some(now + self.crowded_for);
        self.crowded_for = CROWDED_LONG.min(self.crowded_for * 2);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lookout() -> Lookout {
        Lookout { has_cores: true, ..Lookout::new() }
    }

    /// A file is opened and closed, this long after each other.
    fn read(lookout: &mut Lookout, now: &mut Instant, pause: Duration) {
        for operation in [Operation::Open, Operation::Release] {
            *now += pause;
            lookout.came(*now);
            lookout.answered(operation, *now);
        }
    }

    #[test]
    fn the_next_file_is_looked_out_for_if_the_last_came_soon() {
        let (mut lookout, mut now) = (lookout(), Instant::now());
        assert_eq!(lookout.until(), None);
        read(&mut lookout, &mut now, MOMENT);
        assert_eq!(lookout.until(), Some(now + MOMENT));
        read(&mut lookout, &mut now, SOON * 2);
        assert_eq!(lookout.until(), None);
        let mut single = Lookout { has_cores: false, ..lookout };
        read(&mut single, &mut now, MOMENT);
        assert_eq!(single.until(), None);
    }

    #[test]
    fn names_are_not_looked_out_for() {
        let (mut lookout, mut now) = (lookout(), Instant::now());
        read(&mut lookout, &mut now, MOMENT);
        lookout.came(now);
        lookout.answered(Operation::Lookup, now);
        assert_eq!(lookout.until(), None);
    }

    #[test]
    fn a_core_that_others_want_is_left_to_them_for_longer_each_time() {
        let (mut lookout, mut now) = (lookout(), Instant::now());
        assert!(!lookout.offered(SERVED, now));
        for pause in [CROWDED, CROWDED * 2] {
            assert!(lookout.offered(SERVED * 2, now));
            read(&mut lookout, &mut now, MOMENT);
            assert_eq!(lookout.until(), None);
            now += pause;
            read(&mut lookout, &mut now, MOMENT);
            assert!(lookout.until().is_some());
        }
        assert!(!lookout.offered(ALONE, now));
        assert_eq!(lookout.crowded_for, CROWDED);
    }
}
