//! Whether the runs of a session have room for processes.
//!
//! While something waits (a run, a kernel that starts, an order that a kernel does not
//! take), the sandbox is checked now and then for leftovers that hold its process limit.
//! `bomb_detection` decides what is a bomb, and `bombs` ends it.

use super::bomb_detection::{BombDetector, Finding, Leftovers, Survey, Used};
use super::bombs::{Next, Watch};
use super::jobs::{self, Tree};
use super::live::Live;
use super::{Deadline, Keeper};
use crate::processes;
use rustix::process::Pid;
use sessile_proc::Process;
use sessile_protocol::{Language, RunNo};
use sessile_sandbox::limits::Mechanism;
use sessile_session::Tick;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Interval of checks while something waits: at first, and if leftovers may be at the
/// limit; and otherwise.
const SOON: Tick = 150;
const LATER: Tick = 1000;

/// A check takes at most this part of the keeper's time: there may be thousands of
/// processes.
const SHARE: Tick = 20;

/// How long a run waits for room before it begins. A bomb is found and ended within a
/// second or so.
const FOR_ROOM: Tick = 2000;

/// How long it waits while a bomb was found and is not gone: on a busy machine the sandbox
/// comes last, and what was killed waits for the processor before it ends.
const FOR_BOMB: Tick = 30_000;

/// The checks while something waits.
#[derive(Debug, Default)]
pub(super) struct Guard {
    detector: BombDetector,
    /// The last survey, if leftovers may have been at the limit.
    before: Option<Survey>,
    /// The refusals at the last check.
    refusals: u64,
    /// What was found is being ended.
    clearing: Option<Box<Watch>>,
}

impl Keeper {
    /// Whether current runs have at least half of the allowed processes, and were refused
    /// others if that is counted.
    pub(super) fn is_at_process_limit(&self) -> bool {
        let Some(confined) = &self.home.confined else { return false };
        let may_be = match confined.limits().pids.map(|held| held.by) {
            Some(Mechanism::Groups(_)) => confined.has_refused(),
            Some(Mechanism::UserRlimit) => true,
            Some(Mechanism::Rlimit | Mechanism::FileSystem) | None => false,
        };
        let Some(survey) = may_be.then(|| self.survey(None)).flatten() else { return false };
        let is_current = |run: RunNo| self.kernels.at_run(run).is_some();
        let earlier = survey.left.iter().filter(|(run, _)| run.is_some_and(|r| !is_current(r)));
        let earlier: u64 = earlier.map(|(_, left)| left.tasks).sum();
        2 * survey.inside.saturating_sub(earlier) >= survey.limit
    }

    /// Ends all that a run has started which is pressed to end and holds the limit: its
    /// kernel hardly gets the processor beside it, and would be killed for not answering.
    pub(super) fn end_processes_of(&mut self, run: RunNo) {
        if self.guard.clearing.is_some() {
            return;
        }
        let run = Some(run);
        if let Some(survey) = self.survey(run) {
            self.guard.clearing = Some(Box::new(Watch::of_pressed(run, survey)));
            self.deadlines.set(Deadline::ProcessLimit, self.now());
        }
    }

    /// Takes over what was begun while the run was pressed to end, or waited for room: it is
    /// finished, and told in that run, before the run's end is.
    pub(super) fn take_clearing(&mut self, run: RunNo) -> Option<Watch> {
        let clearing = self.guard.clearing.take_if(|watch| watch.may_be_told_in(run))?;
        Some(clearing.told_in(run))
    }

    /// Whether a run should wait because what earlier runs have left fills the limit. If it
    /// began, its shell could not fork, and would give up when one of these is ended that
    /// is its child.
    pub(super) fn lacks_room(&self, language: Language, newest: Option<Pid>) -> bool {
        let Some(live) = self.kernels.live.get(&language) else { return false };
        let now = self.now();
        let has_bomb = self.guard.clearing.is_some() || self.guard.detector.has_found_recently(now);
        let patience = if has_bomb { FOR_BOMB } else { FOR_ROOM };
        let has_waited =
            live.deferred.is_some_and(|run| now.saturating_sub(run.since()) > patience);
        if has_waited || !live.privacy.as_ref().is_some_and(|known| known.has_children(newest)) {
            return false;
        }
        let Some(confined) = &self.home.confined else { return false };
        let Some(held) = confined.limits().pids else { return false };
        let inside = match held.by {
            Mechanism::Groups(_) => confined.sandbox().group().and_then(|g| g.processes()),
            Mechanism::UserRlimit => Some(confined.tasks()),
            Mechanism::Rlimit | Mechanism::FileSystem => None,
        };
        inside.is_some_and(|inside| inside >= held.limit)
    }

    /// Starts the checks when something begins to wait.
    pub(super) fn guard_against_bombs(&mut self) {
        let confined = self.home.confined.as_ref();
        let is_limited = confined.is_some_and(|confined| confined.limits().pids.is_some());
        if is_limited && !self.deadlines.is_set(Deadline::ProcessLimit) {
            self.deadlines.set(Deadline::ProcessLimit, self.now() + SOON);
        }
    }

    /// Checks the sandbox, and goes on checking as long as something waits.
    pub(super) fn check_process_limit(&mut self) {
        if let Some(mut watch) = self.guard.clearing.take() {
            match self.look(&mut watch) {
                Next::LookAgain(pause) => {
                    self.guard.clearing = Some(watch);
                    return self.deadlines.set(Deadline::ProcessLimit, self.now() + pause);
                }
                Next::Done(note) => note.into_iter().for_each(|note| self.tell_waiting(note)),
            }
        }
        if !self.has_waiting() {
            self.guard.before = None;
            return;
        }
        let begun = self.now();
        let pause = match self.find_bomb() {
            Some(watch) => {
                self.guard.clearing = Some(Box::new(watch));
                0
            }
            None if self.guard.before.is_some() => SOON,
            None => LATER,
        };
        let now = self.now();
        self.deadlines.set(Deadline::ProcessLimit, now + pause.max(SHARE * (now - begun)));
    }

    /// Returns a watch that ends the leftovers which were found to hold the limit.
    fn find_bomb(&mut self) -> Option<Watch> {
        let is_suspect = self.may_be_at_limit();
        let before = self.guard.before.take();
        if !is_suspect && before.is_none() {
            return None;
        }
        let survey = self.survey(None)?;
        let finding = before.map(|before| survey.compared_with(&before));
        let found = self.guard.detector.add(finding.unwrap_or(Finding::Nothing), self.now());
        if let Some(run) = found {
            return Some(Watch::of_found(run, survey));
        }
        let goes_on = matches!(finding, Some(Finding::GoesOn(_) | Finding::Waits));
        self.guard.before = (is_suspect || goes_on).then_some(survey);
        None
    }

    /// Whether the limit may have been met since the last check. Most checks end here.
    fn may_be_at_limit(&mut self) -> bool {
        let Some(confined) = &self.home.confined else { return false };
        let Some(held) = confined.limits().pids else { return false };
        match held.by {
            Mechanism::Groups(_) => {
                let refusals = confined.sandbox().group().map_or(0, |g| g.counts().refusals);
                std::mem::replace(&mut self.guard.refusals, refusals) < refusals
            }
            Mechanism::UserRlimit => 8 * confined.tasks() >= 7 * held.limit,
            Mechanism::Rlimit | Mechanism::FileSystem => false,
        }
    }

    /// Whether a run, a start or an order may wait for room. If a fork shares the sandbox,
    /// it may be the one that waits for what this session has left.
    fn has_waiting(&self) -> bool {
        let waits = |live: &Live| live.owes_report() || live.deferred.is_some();
        let is_shared = self.home.confined.as_ref().is_some_and(|c| Rc::strong_count(c) > 1);
        self.kernels.live.values().any(waits) || (is_shared && self.has_jobs())
    }

    /// Adds a note to the runs that go on, or else to the next one.
    fn tell_waiting(&mut self, note: String) {
        let going = self.kernels.live.iter().filter(|(_, live)| live.owes_report());
        let going: Vec<_> = going.map(|(language, live)| (*language, live.current)).collect();
        if going.is_empty() {
            return self.add_note(self.home.boot.kernel.language, None, note);
        }
        for (language, run) in going {
            self.add_note(language, run, note.clone());
        }
    }

    /// Counts the processes of the sandbox. `ended` is a run whose end is being handled.
    pub(super) fn survey(&self, ended: Option<RunNo>) -> Option<Survey> {
        let confined = self.home.confined.as_ref()?;
        let held = confined.limits().pids?;
        let (inside, refusals) = match held.by {
            Mechanism::Groups(_) => {
                let sandbox = confined.sandbox();
                let group = sandbox.group()?;
                (group.processes()?, Some(group.counts().refusals))
            }
            Mechanism::UserRlimit => (confined.tasks(), None),
            Mechanism::Rlimit | Mechanism::FileSystem => return None,
        };
        let mut left: BTreeMap<Option<RunNo>, Leftovers> = BTreeMap::new();
        for (pid, stat, origin) in jobs::members(&self.leftovers(ended)) {
            let left = left.entry(origin.run).or_default();
            left.tasks += stat.threads.max(1);
            left.is_runnable |= stat.state == 'R';
            left.newest = left.newest.max(stat.started);
            let time = Process::new(pid).scheduled().time;
            left.used.insert(pid, Used { ticks: stat.cpu, time });
        }
        let has_ended = |live: &&Live| ended.is_some() && live.current == ended;
        let going = self.kernels.live.values().filter(|live| !has_ended(live));
        let work = going.flat_map(|live| processes::descendants(live.pid));
        let is_left = |pid: &Pid| left.values().any(|left| left.used.contains_key(pid));
        let work = work.filter(|pid| !is_left(pid)).filter_map(processes::stat);
        let current = work.map(|stat| stat.threads.max(1)).sum();
        Some(Survey { limit: held.limit, inside, current, refusals, left })
    }

    /// Returns what no run waits for: jobs, except those that a current run has itself
    /// started. A process without a parent may come from an earlier run: a bomb whose
    /// processes end after they have started others has only such.
    pub(super) fn leftovers(&self, ended: Option<RunNo>) -> Vec<Tree> {
        let is_current = |run: RunNo| Some(run) != ended && self.kernels.at_run(run).is_some();
        let mut trees = self.find_jobs_after(ended);
        trees.retain(|tree| !(tree.run().is_some_and(is_current) && self.is_child_of_kernel(tree)));
        trees
    }

    pub(super) fn is_child_of_kernel(&self, tree: &Tree) -> bool {
        tree.parent().is_some_and(|pid| self.kernels.has_pid(pid))
    }
}
