//! When a kernel's state is captured by itself.

use crate::effect::Tick;

/// Idle time before a capture. Long enough that calls in a tight loop never
/// wait for one, short enough that it is done before a person's or an agent's
/// next command (a client process takes longer than this to start).
const AFTER: Tick = 2;

/// After a capture there is none for this many times as long as it took. That of
/// a shell takes ten milliseconds of a core, and longer where many sessions want
/// one: they must not be all that the machine does.
const REST: Tick = 5;

/// At the most: what a kernel that dies has done since is lost.
const LONGEST_REST: Tick = 1000;

#[derive(Debug, Default)]
pub(super) struct Pacing {
    due: Option<Tick>,
    begun: Option<Tick>,
    rest_until: Tick,
}

impl Pacing {
    pub(super) fn due(&self) -> Option<Tick> {
        self.due
    }

    /// There is something new to be captured.
    pub(super) fn wanted(&mut self, now: Tick) {
        self.due = Some((now + AFTER).max(self.rest_until));
    }

    pub(super) fn unwanted(&mut self) {
        self.due = None;
    }

    pub(super) fn begun(&mut self, now: Tick) {
        self.due = None;
        self.begun = Some(now);
    }

    pub(super) fn done(&mut self, now: Tick) {
        if let Some(begun) = self.begun.take() {
            let took = now.saturating_sub(begun);
            self.rest_until = now + took.saturating_mul(REST).min(LONGEST_REST);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capture_comes_a_moment_after_a_run() {
        let mut pacing = Pacing::default();
        assert_eq!(pacing.due(), None);
        pacing.wanted(100);
        assert_eq!(pacing.due(), Some(100 + AFTER));
        pacing.begun(102);
        assert_eq!(pacing.due(), None);
    }

    #[test]
    fn captures_take_a_small_part_of_the_time() {
        let mut pacing = Pacing::default();
        pacing.begun(100);
        pacing.done(120);
        pacing.wanted(121);
        assert_eq!(pacing.due(), Some(120 + 20 * REST));
        // Later it is as if there had been none.
        pacing.wanted(1000);
        assert_eq!(pacing.due(), Some(1000 + AFTER));
        // One that was asked for is not held up, and counts.
        pacing.begun(1001);
        pacing.done(9000);
        pacing.wanted(9000);
        assert_eq!(pacing.due(), Some(9000 + LONGEST_REST));
        // One report for each.
        pacing.done(20_000);
        pacing.wanted(20_000);
        assert_eq!(pacing.due(), Some(20_000 + AFTER));
    }
}
