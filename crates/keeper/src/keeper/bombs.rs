//! Processes that start others without end, in a sandbox that limits how many
//! there are: the limit keeps the machine, this keeps the session. What nobody
//! waits for any more and still takes all places is ended.

use super::Keeper;
use super::jobs;
use crate::processes;
use rustix::process::{Pid, Signal};
use sessile_protocol::RunNo;
use sessile_sandbox::limits::Mechanism;
use std::collections::BTreeMap;
use std::time::Duration;

/// Within this a program that starts others without end has tried again, or has
/// used the processor: longer than the tenth of a second in which a limit on CPUs
/// may keep it waiting. Only a run in which the limit was met waits for it.
const WATCH: Duration = Duration::from_millis(120);

/// Each look finds those that were started during the last one. At the limit
/// there are none.
const LOOKS: u32 = 20;

const ROUNDS: u32 = 20;
const PAUSE: Duration = Duration::from_millis(5);

/// How a run has come to its end, as far as it matters here.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ended {
    pub(super) run: Option<RunNo>,
    /// It was made to end.
    pub(super) was_pressed: bool,
    /// A process could not be started meanwhile: it was counted, or the shell has
    /// ended with the status that says so.
    pub(super) was_refused: bool,
}

impl Keeper {
    /// After a run: ends what it, or an earlier one, has left, if that goes on
    /// starting processes at the limit. What there is to be told of it.
    pub(super) fn end_bomb(&self, ended: Ended) -> Option<String> {
        let confined = self.home.confined.as_ref()?;
        let held = confined.hold().pids?;
        let (limit, sandbox) = (held.limit, confined.sandbox());
        // With the first process.
        let inside = || self.own_descendants().len() as u64 + 1;
        let refusals = || sandbox.group().map(|group| group.counts().refusals);
        let (has_met_limit, is_going_on): (bool, &dyn Fn() -> u64) = match held.by {
            Mechanism::Groups(_) => (ended.was_refused, &|| refusals().unwrap_or(0)),
            // Nobody counts refusals there: those who are there, and work.
            Mechanism::UserRlimit => {
                let may_have = ended.was_pressed || ended.was_refused;
                (may_have && 2 * inside() >= limit, &|| self.ticks())
            }
            Mechanism::Rlimit | Mechanism::FileSystem => return None,
        };
        if !has_met_limit {
            return None;
        }
        // It met the limit and had to be made to end: what is left of it would
        // only grow again.
        let own = ended.was_pressed.then(|| self.end_all_of(ended.run, limit)).flatten();
        let before = is_going_on();
        std::thread::sleep(WATCH);
        if is_going_on() <= before {
            return own;
        }
        let largest = self.largest(limit).and_then(|run| self.end_all_of(run, limit));
        largest.or(own)
    }

    /// Processor time of all that was left.
    fn ticks(&self) -> u64 {
        let all = jobs::members(&self.find_jobs());
        all.iter().map(|(_, stat, _)| stat.cpu).sum()
    }

    /// The run that has left the most, if that has most places.
    fn largest(&self, limit: u64) -> Option<Option<RunNo>> {
        let mut counts: BTreeMap<Option<RunNo>, u64> = BTreeMap::new();
        for (_, _, origin) in jobs::members(&self.find_jobs()) {
            *counts.entry(origin.run).or_default() += 1;
        }
        let (run, count) = counts.into_iter().max_by_key(|(_, count)| *count)?;
        (2 * count >= limit).then_some(run)
    }

    /// Ends all that a run has left, until there is nothing more of it.
    fn end_all_of(&self, run: Option<RunNo>, limit: u64) -> Option<String> {
        let mut ended = 0;
        for _ in 0..ROUNDS {
            let stopped = self.stop_all_of(run);
            if stopped.is_empty() {
                break;
            }
            ended += stopped.len();
            processes::signal(&stopped, Signal::KILL);
            // Those that were just being started, or were about to end, show
            // then whose they are.
            std::thread::sleep(PAUSE);
        }
        let whose = run.map_or_else(|| "some run".to_owned(), |run| format!("run {run}"));
        (ended > 0).then(|| {
            format!(
                "{ended} processes that {whose} had left were ended: they had met the limit of \
                 {limit}, and went on starting others"
            )
        })
    }

    /// One that is stopped starts nothing; one that is killed makes room for
    /// another. Of whom it is not known whose they are, they are taken for its.
    fn stop_all_of(&self, run: Option<RunNo>) -> Vec<Pid> {
        let mut known = Vec::new();
        for _ in 0..LOOKS {
            let left = jobs::members(&self.find_jobs());
            let is_its = |whose: Option<RunNo>| whose.is_none() || whose == run;
            let left = left.into_iter().filter(|(_, _, origin)| is_its(origin.run));
            let found: Vec<Pid> = left.map(|(pid, _, _)| pid).collect();
            if found.iter().all(|pid| known.contains(pid)) {
                return found;
            }
            processes::signal(&found, Signal::STOP);
            known = found;
        }
        known
    }
}
