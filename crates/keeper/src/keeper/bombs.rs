//! Fork bombs in a sandbox with a process limit. The limit protects the machine; this
//! module protects the session: it ends processes that no run waits for and that still
//! use up the limit.
//!
//! This takes several checks with pauses, in which the keeper does other work. Meanwhile
//! the run's end is withheld: its answer reports what was done, and the next run has
//! processes to spare.

use super::live::Force;
use super::reports::RunEnd;
use super::{Deadline, Keeper, jobs};
use crate::processes;
use rustix::process::{Pid, Signal};
use sessile_protocol::{Language, RunNo};
use sessile_sandbox::limits::Mechanism;
use sessile_session::Tick;
use std::collections::{BTreeMap, HashSet};

/// Time within which a fork bomb has tried again, or has used the processor: longer than
/// the tenth of a second for which a CPU limit may suspend it. Only a run that met the
/// process limit waits for it.
const WATCH: Tick = 120;

/// How often to wait while some of the processes wait for the processor: on a busy
/// machine a sandbox comes last, and its bomb does nothing for seconds.
const WATCHES: u32 = 40;

/// Each look finds the processes that were started during the last one. At the limit
/// there are none.
const LOOKS: u32 = 20;

/// How often what is left is killed, with pauses: a second or two in all. On a busy machine
/// a killed process waits for the processor before it ends.
const ROUNDS: u32 = 200;
const PAUSE: Tick = 5;

/// How a run has ended, as far as it matters here.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ended {
    pub(super) run: Option<RunNo>,
    pub(super) force: Force,
    /// A process could not be started meanwhile: this was counted, or the shell's exit
    /// status says so.
    pub(super) was_refused: bool,
}

/// Successive checks on the processes that are left.
#[derive(Debug)]
pub(super) struct Watch {
    run: Option<RunNo>,
    limit: u64,
    signs: Signs,
    stage: Stage,
    /// Processes that were killed. Some of them may not have ended yet.
    killed: HashSet<Pid>,
    /// The note to add to the run.
    told: Option<String>,
}

/// Evidence that the processes go on.
#[derive(Clone, Copy, Debug)]
enum Signs {
    /// Processes that could not be started.
    Refusals,
    /// Processor time of the processes that are left, if refusals are not counted.
    Work,
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    /// Comparing counts shows whether the processes go on. Of a run that was forced to
    /// end nothing may be left; a process that was just being started shows only after a
    /// while.
    Seeing {
        before: u64,
        cleared: Option<Clearing>,
        watches: u32,
    },
    Ending(Clearing),
}

/// Ends all that a run has left, until nothing is found any more.
#[derive(Clone, Copy, Debug)]
struct Clearing {
    whose: Option<RunNo>,
    rounds: u32,
    ended: usize,
}

/// The run whose processes use up most of the limit.
#[derive(Clone, Copy, Debug)]
struct Crowd {
    run: Option<RunNo>,
    /// Some of its processes are runnable and wait for the processor.
    has_to_wait: bool,
}

/// What to do after a look.
#[derive(Debug)]
pub(super) enum Next {
    LookAgain(Tick),
    Done(Option<String>),
}

/// The end of a run, to be reported later.
#[derive(Debug)]
pub(super) struct DelayedEnd {
    watch: Watch,
    due: Tick,
    end: RunEnd,
}

impl Keeper {
    /// Returns how to watch what a run, or an earlier one, has left, if those processes
    /// may go on starting others at the limit.
    pub(super) fn watch_bomb(&self, ended: Ended) -> Option<Watch> {
        let confined = self.home.confined.as_ref()?;
        let held = confined.limits().pids?;
        let limit = held.limit;
        let (has_met_limit, signs) = match held.by {
            Mechanism::Groups(_) => (ended.was_refused, Signs::Refusals),
            Mechanism::UserRlimit => {
                let has = match ended.force {
                    Force::SignalsInCrowd => true,
                    Force::Signals => self.is_crowded(),
                    Force::None => ended.was_refused && self.is_crowded(),
                };
                (has, Signs::Work)
            }
            Mechanism::Rlimit | Mechanism::FileSystem => return None,
        };
        if !has_met_limit {
            return None;
        }
        // If the run was forced to end, its leftovers would only grow again.
        let stage = match ended.force {
            Force::Signals | Force::SignalsInCrowd => {
                Stage::Ending(Clearing { whose: ended.run, rounds: 0, ended: 0 })
            }
            Force::None => Stage::Seeing { before: self.count(signs), cleared: None, watches: 1 },
        };
        Some(Watch { run: ended.run, limit, signs, stage, killed: HashSet::new(), told: None })
    }

    /// Whether at least half of the allowed processes exist, under a mechanism that does
    /// not count refusals.
    pub(super) fn is_crowded(&self) -> bool {
        let confined = self.home.confined.as_ref();
        let Some(held) = confined.and_then(|confined| confined.limits().pids) else { return false };
        // With the first process.
        let inside = || self.own_descendants().len() as u64 + 1;
        held.by == Mechanism::UserRlimit && 2 * inside() >= held.limit
    }

    /// Tells a run's end when what it has left is looked after.
    pub(super) fn delay_end(&mut self, language: Language, mut watch: Watch, end: RunEnd) {
        match self.first_look(&mut watch) {
            Next::Done(told) => {
                told.into_iter().for_each(|note| self.add_note(language, watch.run, note));
                self.end_run(language, end);
            }
            Next::LookAgain(pause) => {
                let due = self.now() + pause;
                if let Some(live) = self.kernels.live.get_mut(&language) {
                    live.withheld = Some(Box::new(DelayedEnd { watch, due, end }));
                    self.deadlines.set_earlier(Deadline::Bombs, due);
                }
            }
        }
    }

    /// Takes the looks that are due.
    pub(super) fn look_after_bombs(&mut self) {
        let now = self.now();
        let languages: Vec<Language> = self.kernels.live.keys().copied().collect();
        for language in languages {
            let live = self.kernels.live.get_mut(&language);
            let Some(mut withheld) = live.and_then(|live| live.withheld.take()) else { continue };
            if withheld.due <= now {
                match self.look(&mut withheld.watch) {
                    Next::LookAgain(pause) => withheld.due = now + pause,
                    Next::Done(told) => {
                        let run = withheld.watch.run;
                        told.into_iter().for_each(|note| self.add_note(language, run, note));
                        self.end_run(language, withheld.end);
                        continue;
                    }
                }
            }
            self.deadlines.set_earlier(Deadline::Bombs, withheld.due);
            if let Some(live) = self.kernels.live.get_mut(&language) {
                live.withheld = Some(withheld);
            }
        }
    }

    /// A kernel has died while its run's end was withheld: the run has ended as it had
    /// said.
    pub(super) fn release_delayed_end(&mut self, language: Language) -> Option<Watch> {
        let live = self.kernels.live.get_mut(&language)?;
        let DelayedEnd { watch, end, due: _ } = *live.withheld.take()?;
        live.verdict = Some(end.ended.exit_code);
        if let Some(run) = self.runs.get_mut(&end.ended.run) {
            run.value = end.ended.value;
            run.error = end.ended.error;
            run.notes.extend(end.ended.notes);
        }
        Some(watch)
    }

    /// Takes the first look. Whether processes go on can only be seen after a while.
    pub(super) fn first_look(&self, watch: &mut Watch) -> Next {
        match watch.stage {
            Stage::Seeing { .. } => Next::LookAgain(WATCH),
            Stage::Ending(_) => self.look(watch),
        }
    }

    pub(super) fn look(&self, watch: &mut Watch) -> Next {
        let clearing = match watch.stage {
            Stage::Seeing { before: _, cleared: Some(clearing), watches: _ }
                if clearing.rounds < ROUNDS
                    && !self.processes_left_by(clearing.whose).is_empty() =>
            {
                clearing
            }
            Stage::Seeing { before, cleared, watches } => {
                let Some(crowd) = self.largest(watch.limit) else {
                    return Next::Done(watch.told.take());
                };
                if self.count(watch.signs) <= before {
                    if crowd.has_to_wait && watches < WATCHES {
                        watch.stage = Stage::Seeing { before, cleared, watches: watches + 1 };
                        return Next::LookAgain(WATCH);
                    }
                    return Next::Done(watch.told.take());
                }
                Clearing { whose: crowd.run, rounds: 0, ended: 0 }
            }
            Stage::Ending(clearing) => clearing,
        };
        let stopped = self.stop_all_of(clearing.whose);
        if !stopped.is_empty() && clearing.rounds < ROUNDS {
            processes::signal(&stopped, Signal::KILL);
            let fresh = stopped.into_iter().filter(|pid| watch.killed.insert(*pid)).count();
            let (rounds, ended) = (clearing.rounds + 1, clearing.ended + fresh);
            watch.stage = Stage::Ending(Clearing { rounds, ended, ..clearing });
            // By the next look it is known which run the processes belong to that were
            // just starting or about to end.
            return Next::LookAgain(PAUSE);
        }
        watch.told = clearing.note(watch.limit).or(watch.told.take());
        // A process that was just being started shows only now, and would grow again.
        let before = self.count(watch.signs);
        watch.stage = Stage::Seeing { before, cleared: Some(clearing), watches: 1 };
        Next::LookAgain(WATCH)
    }

    fn count(&self, signs: Signs) -> u64 {
        match signs {
            Signs::Refusals => {
                let Some(confined) = &self.home.confined else { return 0 };
                confined.sandbox().group().map_or(0, |group| group.counts().refusals)
            }
            Signs::Work => self.ticks(),
        }
    }

    /// Returns the processor time of all processes that are left.
    fn ticks(&self) -> u64 {
        let all = jobs::members(&self.find_jobs());
        all.iter().map(|(_, stat, _)| stat.cpu).sum()
    }

    /// Returns the run that has left the most processes, if these are at least half of
    /// the limit.
    fn largest(&self, limit: u64) -> Option<Crowd> {
        let mut counts: BTreeMap<Option<RunNo>, (u64, bool)> = BTreeMap::new();
        for (_, stat, origin) in jobs::members(&self.find_jobs()) {
            let (count, has_to_wait) = counts.entry(origin.run).or_default();
            *count += 1;
            *has_to_wait |= stat.state == 'R';
        }
        let (run, (count, has_to_wait)) =
            counts.into_iter().max_by_key(|(_, (count, _))| *count)?;
        (2 * count >= limit).then_some(Crowd { run, has_to_wait })
    }

    /// What a run has left. Of whom it is not known whose they are, they are taken for
    /// its.
    fn processes_left_by(&self, run: Option<RunNo>) -> Vec<Pid> {
        let left = jobs::members(&self.find_jobs());
        let is_its = |whose: Option<RunNo>| whose.is_none() || whose == run;
        let left = left.into_iter().filter(|(_, _, origin)| is_its(origin.run));
        left.map(|(pid, _, _)| pid).collect()
    }

    /// Stops all that a run has left. A stopped process starts nothing; a killed one
    /// makes room for another.
    fn stop_all_of(&self, run: Option<RunNo>) -> Vec<Pid> {
        let mut known = Vec::new();
        for _ in 0..LOOKS {
            let found = self.processes_left_by(run);
            if found.iter().all(|pid| known.contains(pid)) {
                return found;
            }
            processes::signal(&found, Signal::STOP);
            known = found;
        }
        known
    }
}

impl Clearing {
    fn note(self, limit: u64) -> Option<String> {
        let (whose, ended) = (self.whose, self.ended);
        let whose = whose.map_or_else(|| "some run".to_owned(), |run| format!("run {run}"));
        (ended > 0).then(|| {
            format!(
                "{ended} processes that {whose} had left were ended: they had met the limit of \
                 {limit}, and went on starting others"
            )
        })
    }
}
