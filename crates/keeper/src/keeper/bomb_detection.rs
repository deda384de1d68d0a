//! Whether processes that no run waits for hold the process limit of a sandbox and go on
//! starting others.
//!
//! Two surveys of the sandbox are compared; what to conclude from them is decided here
//! without I/O. `bombs` ends what is found.
//!
//! Many processes are no offence: a build, or a server with its workers, may fill most of
//! the limit. Only what meets the limit and stays active is a bomb:
//!
//! - **The limit is met**: the control group has refused to start a process since the
//!   last survey. Where only `RLIMIT_NPROC` holds, nothing is counted; there the limit is
//!   met if there are as many processes and threads as allowed.
//! - **By what was left**: that has at least half of the limit, and the current runs have
//!   next to nothing. Otherwise it may be a current run that meets the limit.
//! - **It goes on**: it has started processes, or has used the processor.

use rustix::process::Pid;
use sessile_protocol::RunNo;
use sessile_session::Tick;
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

/// Current runs that have more than this part of what was left may meet the limit
/// themselves.
const PART: u64 = 8;

/// How long leftovers have to be found at the limit during a run: a job may meet it in
/// passing.
const HELD: Tick = 500;

/// After this time without a find the limit is no longer held. A shell that cannot fork
/// tries again after 1, 2, 4 and 8 seconds.
const FORGET: Tick = 10_000;

/// The processes of a sandbox at one time.
#[derive(Debug, Default)]
pub(super) struct Survey {
    pub(super) limit: u64,
    /// Number of processes and threads, as the system counts them.
    pub(super) inside: u64,
    /// Number of those that belong to current runs, without kernels.
    pub(super) current: u64,
    /// How often the control group has refused to start one, if it counts that.
    pub(super) refusals: Option<u64>,
    /// What runs have left. If it is not known which run, `None`.
    pub(super) left: BTreeMap<Option<RunNo>, Leftovers>,
}

/// The processes that one run has left.
#[derive(Debug, Default)]
pub(super) struct Leftovers {
    /// Number of processes and threads.
    pub(super) tasks: u64,
    /// Whether one of them runs, or waits for the processor.
    pub(super) is_runnable: bool,
    /// When the newest of them was started, in ticks after boot.
    pub(super) newest: u64,
    pub(super) used: HashMap<Pid, Used>,
}

/// Processor time that a process has used: the clock of the scheduler is finer, but does
/// not include threads that have ended.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Used {
    pub(super) ticks: u64,
    pub(super) time: Duration,
}

/// What two surveys say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Finding {
    /// Leftovers of this run hold the limit, and go on.
    GoesOn(Option<RunNo>),
    /// Leftovers are near the limit and wait for the processor: on a busy machine a
    /// sandbox comes last, and its bomb does nothing for seconds.
    Waits,
    Nothing,
}

impl Survey {
    /// Whether at least seven eighths of the allowed processes and threads exist.
    pub(super) fn is_nearly_full(&self) -> bool {
        8 * self.inside >= 7 * self.limit
    }

    /// Whether leftovers have at least half of the limit, and current runs next to
    /// nothing.
    fn is_held_by_leftovers(&self) -> bool {
        let left: u64 = self.left.values().map(|left| left.tasks).sum();
        2 * left >= self.limit && PART * self.current <= left
    }

    fn has_met_limit_since(&self, before: &Self) -> bool {
        match (before.refusals, self.refusals) {
            (Some(before), Some(now)) => now > before,
            (_, _) => self.inside >= self.limit,
        }
    }

    /// Returns the run whose leftovers go on starting others, if any do. A bomb has the
    /// newest processes: those of a server are as old as the server, unless they are few.
    fn source(&self, before: &Self) -> Option<Option<RunNo>> {
        let none = Leftovers::default();
        let is_active = |run: &Option<RunNo>, left: &Leftovers| {
            left.is_active_since(before.left.get(run).unwrap_or(&none))
        };
        let active = self.left.iter().filter(|(run, left)| is_active(run, left));
        let many = |left: &Leftovers| 4 * left.tasks >= self.limit;
        let rank = |left: &Leftovers| {
            if many(left) { (1, left.newest, left.tasks) } else { (0, left.tasks, left.newest) }
        };
        active.max_by_key(|(_, left)| rank(left)).map(|(run, _)| *run)
    }

    pub(super) fn compared_with(&self, before: &Self) -> Finding {
        if !self.is_held_by_leftovers() {
            return Finding::Nothing;
        }
        if self.has_met_limit_since(before)
            && let Some(run) = self.source(before)
        {
            return Finding::GoesOn(run);
        }
        let is_runnable = self.left.values().any(|left| left.is_runnable);
        if is_runnable && self.is_nearly_full() { Finding::Waits } else { Finding::Nothing }
    }
}

impl Leftovers {
    fn is_active_since(&self, before: &Self) -> bool {
        self.used.iter().any(|(pid, now)| {
            let is_more = |then: &Used| now.ticks > then.ticks || now.time > then.time;
            before.used.get(pid).is_none_or(is_more)
        })
    }
}

/// Finds out, from successive findings, whether leftovers hold the limit for long.
#[derive(Debug, Default)]
pub(super) struct BombDetector(Option<HeldLimit>);

/// When leftovers were found at the limit: first, and last.
#[derive(Clone, Copy, Debug)]
struct HeldLimit {
    first: Tick,
    last: Tick,
}

impl BombDetector {
    /// Whether leftovers were found at the limit a short time ago.
    pub(super) fn has_found_recently(&self, now: Tick) -> bool {
        self.0.is_some_and(|held| now.saturating_sub(held.last) <= FORGET)
    }

    /// Returns the run whose leftovers are to be ended, if they have held the limit for
    /// long enough.
    pub(super) fn add(&mut self, finding: Finding, now: Tick) -> Option<Option<RunNo>> {
        match finding {
            Finding::GoesOn(run) => {
                let held = self.0.filter(|held| now.saturating_sub(held.last) <= FORGET);
                let first = held.map_or(now, |held| held.first);
                let is_enough = now - first >= HELD;
                self.0 = (!is_enough).then_some(HeldLimit { first, last: now });
                is_enough.then_some(run)
            }
            Finding::Waits | Finding::Nothing => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: u64 = 48;
    const SERVER: Option<RunNo> = Some(RunNo(2));
    const BOMB: Option<RunNo> = Some(RunNo(4));

    /// Processes that were started at a time and have used the processor for another.
    fn left(tasks: u64, started: u64, used: u64) -> Leftovers {
        let pid = |n: u64| Pid::from_raw(i32::try_from(100 * started + n).unwrap()).unwrap();
        let time = Duration::from_micros(used);
        Leftovers {
            tasks,
            is_runnable: false,
            newest: started,
            used: (1..=tasks).map(|n| (pid(n), Used { ticks: 0, time })).collect(),
        }
    }

    /// As many as the system counts: there are a kernel and the first process as well.
    fn survey(
        left: impl IntoIterator<Item = (Option<RunNo>, Leftovers)>,
        current: u64,
        refusals: Option<u64>,
    ) -> Survey {
        let left: BTreeMap<Option<RunNo>, Leftovers> = left.into_iter().collect();
        let inside = left.values().map(|left| left.tasks).sum::<u64>() + current + 2;
        Survey { limit: LIMIT, inside, current, refusals, left }
    }

    fn finding(before: &Survey, now: &Survey) -> Finding {
        now.compared_with(before)
    }

    #[test]
    fn a_bomb_at_the_limit_is_found_with_and_without_a_count() {
        let at = |used, refusals| survey([(BOMB, left(46, 7, used))], 0, refusals);
        assert_eq!(finding(&at(1, None), &at(2, None)), Finding::GoesOn(BOMB));
        assert_eq!(finding(&at(1, Some(5)), &at(2, Some(9))), Finding::GoesOn(BOMB));
    }

    #[test]
    fn one_that_ends_and_starts_again_is_found_below_the_limit_if_refusals_are_counted() {
        let at = |started, refusals| survey([(None, left(40, started, 0))], 1, Some(refusals));
        assert_eq!(finding(&at(7, 1), &at(8, 2)), Finding::GoesOn(None));
    }

    #[test]
    fn work_within_the_limit_is_left_alone() {
        let at = |used, refusals| survey([(SERVER, left(40, 7, used))], 5, refusals);
        assert_eq!(finding(&at(1, None), &at(900, None)), Finding::Nothing);
        assert_eq!(finding(&at(1, Some(0)), &at(900, Some(0))), Finding::Nothing);
    }

    #[test]
    fn whoever_fills_the_limit_and_rests_is_left_alone() {
        let at = |refusals| survey([(SERVER, left(46, 7, 5))], 0, refusals);
        assert_eq!(finding(&at(None), &at(None)), Finding::Nothing);
        assert_eq!(finding(&at(Some(1)), &at(Some(2))), Finding::Nothing);
    }

    #[test]
    fn a_current_run_that_meets_the_limit_does_not_cost_a_server_its_life() {
        let at = |used, refusals| survey([(SERVER, left(30, 7, used))], 16, refusals);
        assert_eq!(finding(&at(1, None), &at(2, None)), Finding::Nothing);
        assert_eq!(finding(&at(1, Some(1)), &at(2, Some(2))), Finding::Nothing);
    }

    #[test]
    fn of_two_the_one_with_the_newest_processes_is_the_bomb() {
        let at = |used| survey([(SERVER, left(30, 7, used)), (BOMB, left(16, 9, used))], 0, None);
        assert_eq!(finding(&at(1), &at(2)), Finding::GoesOn(BOMB));
        // A new process alone says nothing.
        let one =
            |used| survey([(BOMB, left(45, 7, used)), (Some(RunNo(5)), left(1, 9, used))], 0, None);
        assert_eq!(finding(&one(1), &one(2)), Finding::GoesOn(BOMB));
    }

    #[test]
    fn a_bomb_without_a_processor_is_waited_for() {
        let at = || {
            let starved = Leftovers { is_runnable: true, ..left(46, 7, 1) };
            survey([(BOMB, starved)], 0, Some(1))
        };
        assert_eq!(finding(&at(), &at()), Finding::Waits);
    }

    #[test]
    fn the_limit_has_to_be_held_for_a_while() {
        let mut detector = BombDetector::default();
        let found = Finding::GoesOn(BOMB);
        let mut at = |finding, now| detector.add(finding, now);
        assert_eq!([100, 200, 100 + HELD - 1].map(|now| at(found, now)), [None; 3]);
        assert_eq!(at(Finding::Waits, 100 + HELD), None);
        assert_eq!(at(found, 100 + HELD), Some(BOMB));
        assert_eq!(at(found, 110 + HELD), None, "after that it begins anew");
        assert_eq!(at(found, 111 + HELD + FORGET), None, "too long ago");
        assert_eq!(at(found, 111 + 2 * HELD + FORGET), Some(BOMB));
    }
}
