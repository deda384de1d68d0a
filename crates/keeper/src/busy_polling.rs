//! How long the keeper stays awake for the next event.
//!
//! A small run takes an interpreter some twenty microseconds. Putting a process to sleep
//! and waking it on another core takes longer than that, above all on a virtual machine,
//! which gives up an idle core. So if the last run ended soon, the keeper polls for the
//! end of the next one for a moment before it sleeps; and if the last order came soon
//! after the previous answer, it polls for the next order.
//!
//! This costs little, because it is done only if it was worth it the last time: each slow
//! run and each pause between orders costs at most a [`MOMENT`] of one core, and the next
//! ones nothing. With one core, polling would keep away the very process that is awaited.
//! If others turn out to want the core, they get it, and polling is not tried again for a
//! while, which doubles each time: among many busy sessions every attempt is one too
//! many.

use std::time::{Duration, Instant};

/// How long to poll: twice as long as small runs take.
const MOMENT: Duration = Duration::from_micros(100);

/// What counts as soon: the limit between a small run whose end was slept through and a
/// run that takes longer.
const SOON: Duration = Duration::from_micros(200);

/// No polling for this long after others wanted the core. If they still want it then, the
/// time doubles, up to the longest time. The shortest time is short, because a session that
/// floods wants the core for a moment of each millisecond, and leaves it to others in between.
const CROWDED_FOR: Duration = Duration::from_millis(2);
const CROWDED_LONG: Duration = Duration::from_millis(800);

#[derive(Debug)]
pub(crate) struct BusyPolling {
    has_cores: bool,
    /// Others want the core until then.
    crowded_until: Option<Instant>,
    /// How long the core is left to others the next time.
    crowded_for: Duration,
    ends: Pace,
    orders: Pace,
}

/// Events of one kind, each awaited after some other event.
#[derive(Debug, Default)]
struct Pace {
    awaited_since: Option<Instant>,
    is_quick: bool,
}

impl Pace {
    fn is_awaited(&mut self, now: Instant) {
        self.awaited_since = Some(now);
    }

    fn came(&mut self, now: Instant) {
        if let Some(since) = self.awaited_since.take() {
            self.is_quick = now.saturating_duration_since(since) <= SOON;
        }
    }

    fn until(&self) -> Option<Instant> {
        self.awaited_since.filter(|_| self.is_quick).map(|since| since + MOMENT)
    }
}

impl BusyPolling {
    pub(crate) fn new() -> Self {
        let cores = rustix::thread::sched_getaffinity(None).map_or(1, |set| set.count());
        Self::with_cores(cores)
    }

    fn with_cores(cores: u32) -> Self {
        Self {
            has_cores: cores > 1,
            crowded_until: None,
            crowded_for: CROWDED_FOR,
            ends: Pace::default(),
            orders: Pace::default(),
        }
    }

    pub(crate) fn ordered(&mut self, now: Instant) {
        self.orders.came(now);
    }

    /// Notes that others want the core.
    pub(crate) fn crowded(&mut self, now: Instant) {
        self.crowded_until = Some(now + self.crowded_for);
        self.crowded_for = CROWDED_LONG.min(self.crowded_for * 2);
    }

    /// Notes that no other process wanted the core. Among many busy sessions that happens
    /// now and then, too, so it does not undo everything.
    pub(crate) fn undisturbed(&mut self) {
        self.crowded_for = CROWDED_FOR.max(self.crowded_for / 2);
    }

    pub(crate) fn run_begun(&mut self, now: Instant) {
        self.ends.is_awaited(now);
    }

    pub(crate) fn run_ended(&mut self, now: Instant) {
        self.ends.came(now);
        self.orders.is_awaited(now);
    }

    /// Returns until when it is worth staying awake, if at all.
    pub(crate) fn until(&self) -> Option<Instant> {
        let until = self.ends.until().or(self.orders.until()).filter(|_| self.has_cores)?;
        let is_crowded = self.crowded_until.is_some_and(|crowded| until < crowded);
        (!is_crowded).then_some(until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUICK: Duration = Duration::from_micros(50);
    const LATE: Duration = Duration::from_millis(3);

    /// A run of this length, ordered this long after the end of the last.
    fn run(busy_polling: &mut BusyPolling, now: &mut Instant, pause: Duration, length: Duration) {
        *now += pause;
        busy_polling.ordered(*now);
        busy_polling.run_begun(*now);
        *now += length;
        busy_polling.run_ended(*now);
    }

    #[test]
    fn the_next_end_is_looked_out_for_when_the_last_came_soon() {
        let (mut busy_polling, mut now) = (BusyPolling::with_cores(2), Instant::now());
        busy_polling.run_begun(now);
        assert_eq!(busy_polling.until(), None, "nothing is known yet");
        busy_polling.run_ended(now + QUICK);
        now += LATE;
        busy_polling.ordered(now);
        busy_polling.run_begun(now);
        assert_eq!(busy_polling.until(), Some(now + MOMENT));
        // It was slow, so there is no polling for the next.
        busy_polling.run_ended(now + LATE);
        busy_polling.run_begun(now + LATE);
        assert_eq!(busy_polling.until(), None);
    }

    #[test]
    fn the_next_order_is_looked_out_for_when_the_last_came_soon() {
        let (mut busy_polling, mut now) = (BusyPolling::with_cores(2), Instant::now());
        run(&mut busy_polling, &mut now, LATE, QUICK);
        assert_eq!(busy_polling.until(), None, "one order says nothing of the next");
        run(&mut busy_polling, &mut now, QUICK, QUICK);
        assert_eq!(busy_polling.until(), Some(now + MOMENT));
        run(&mut busy_polling, &mut now, LATE, QUICK);
        assert_eq!(busy_polling.until(), None, "the last one was long in coming");
    }

    #[test]
    fn a_crowded_core_is_left_to_others_for_a_while() {
        let (mut busy_polling, mut now) = (BusyPolling::with_cores(2), Instant::now());
        run(&mut busy_polling, &mut now, QUICK, QUICK);
        run(&mut busy_polling, &mut now, QUICK, QUICK);
        assert_eq!(busy_polling.until(), Some(now + MOMENT));
        busy_polling.crowded(now);
        run(&mut busy_polling, &mut now, QUICK, QUICK);
        assert_eq!(busy_polling.until(), None);
        now += CROWDED_FOR;
        run(&mut busy_polling, &mut now, QUICK, QUICK);
        run(&mut busy_polling, &mut now, QUICK, QUICK);
        assert_eq!(busy_polling.until(), Some(now + MOMENT));
    }

    #[test]
    fn a_core_that_stays_crowded_is_left_for_longer_each_time() {
        let (mut busy_polling, mut now) = (BusyPolling::with_cores(2), Instant::now());
        for pause in [CROWDED_FOR, CROWDED_FOR * 2, CROWDED_FOR * 4] {
            busy_polling.crowded(now);
            assert_eq!(busy_polling.crowded_until, Some(now + pause));
            now += pause;
        }
        (0..20).for_each(|_| busy_polling.crowded(now));
        assert_eq!(busy_polling.crowded_until, Some(now + CROWDED_LONG));
        busy_polling.undisturbed();
        busy_polling.crowded(now);
        assert_eq!(busy_polling.crowded_until, Some(now + CROWDED_LONG / 2));
        (0..20).for_each(|_| busy_polling.undisturbed());
        busy_polling.crowded(now);
        assert_eq!(busy_polling.crowded_until, Some(now + CROWDED_FOR));
    }

    #[test]
    fn a_single_core_is_left_to_others() {
        let (mut busy_polling, mut now) = (BusyPolling::with_cores(1), Instant::now());
        run(&mut busy_polling, &mut now, QUICK, QUICK);
        run(&mut busy_polling, &mut now, QUICK, QUICK);
        assert_eq!(busy_polling.until(), None);
        busy_polling.run_begun(now);
        assert_eq!(busy_polling.until(), None);
    }
}
