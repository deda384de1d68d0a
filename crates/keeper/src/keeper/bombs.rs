//! Processes that start others without end, in a sandbox that limits how many
//! there are: the limit keeps the machine, this keeps the session. What nobody
//! waits for any more and still takes all places is ended.
//!
//! That takes a few looks, with pauses, in which the keeper does other things. The
//! run's end is withheld meanwhile: its answer tells what was done, and the next run
//! has processes to spare.

use super::live::Force;
use super::reports::RunEnd;
use super::{Deadline, Keeper, jobs};
use crate::processes;
use rustix::process::{Pid, Signal};
use sessile_protocol::{Language, RunNo};
use sessile_sandbox::limits::Mechanism;
use sessile_session::Tick;
use std::collections::BTreeMap;

/// Within this a program that starts others without end has tried again, or has
/// used the processor: longer than the tenth of a second in which a limit on CPUs
/// may keep it waiting. Only a run in which the limit was met waits for it.
const WATCH: Tick = 120;

/// How often that is waited for, while those that may go on wait for the processor: on
/// a busy machine a sandbox comes last, and its bomb does nothing for seconds.
const WATCHES: u32 = 40;

/// Each look finds those that were started during the last one. At the limit
/// there are none.
const LOOKS: u32 = 20;

const ROUNDS: u32 = 20;
const PAUSE: Tick = 5;

/// How a run has come to its end, as far as it matters here.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ended {
    pub(super) run: Option<RunNo>,
    pub(super) force: Force,
    /// A process could not be started meanwhile: it was counted, or the shell has
    /// ended with the status that says so.
    pub(super) was_refused: bool,
}

/// Looks at what is left, one after the other.
#[derive(Debug)]
pub(super) struct Watch {
    run: Option<RunNo>,
    limit: u64,
    signs: Signs,
    stage: Stage,
    /// What is to be told of it.
    told: Option<String>,
}

/// What shows that something goes on.
#[derive(Clone, Copy, Debug)]
enum Signs {
    /// Processes that could not be started.
    Refusals,
    /// Nobody counts refusals there: those who are there, and work.
    Work,
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    /// Whether it goes on is seen by comparing. Of a run that was made to end nothing
    /// may be left; one that was just being started shows only after a while.
    Seeing {
        before: u64,
        cleared: Option<Clearing>,
        watches: u32,
    },
    Ending(Clearing),
}

/// All that a run has left is ended, until there is nothing more of it.
#[derive(Clone, Copy, Debug)]
struct Clearing {
    whose: Option<RunNo>,
    rounds: u32,
    ended: usize,
    then: Then,
}

#[derive(Clone, Copy, Debug)]
enum Then {
    See,
    Stop,
}

/// What takes most places.
#[derive(Clone, Copy, Debug)]
struct Crowd {
    run: Option<RunNo>,
    /// Some of it would go on, and waits for the processor.
    has_to_wait: bool,
}

/// What comes after a look.
#[derive(Debug)]
pub(super) enum Next {
    LookAgain(Tick),
    Done(Option<String>),
}

/// The end of a run that is told later.
#[derive(Debug)]
pub(super) struct DelayedEnd {
    watch: Watch,
    due: Tick,
    end: RunEnd,
}

impl Keeper {
    /// After a run: how to look after what it, or an earlier one, has left, if that may
    /// go on starting processes at the limit.
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
        // If it had to be made to end, what is left of it would only grow again.
        let stage = match ended.force {
            Force::Signals | Force::SignalsInCrowd => {
                Stage::Ending(Clearing { whose: ended.run, rounds: 0, ended: 0, then: Then::See })
            }
            Force::None => Stage::Seeing { before: self.count(signs), cleared: None, watches: 1 },
        };
        Some(Watch { run: ended.run, limit, signs, stage, told: None })
    }

    /// Whether half of the processes that may be there are there, where nobody counts
    /// those that could not be started.
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

    /// To see whether something goes on takes a while.
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
                Clearing { whose: crowd.run, rounds: 0, ended: 0, then: Then::Stop }
            }
            Stage::Ending(clearing) => clearing,
        };
        let stopped = self.stop_all_of(clearing.whose);
        if !stopped.is_empty() && clearing.rounds < ROUNDS {
            processes::signal(&stopped, Signal::KILL);
            let (rounds, ended) = (clearing.rounds + 1, clearing.ended + stopped.len());
            watch.stage = Stage::Ending(Clearing { rounds, ended, ..clearing });
            // Those that were just being started, or were about to end, show
            // then whose they are.
            return Next::LookAgain(PAUSE);
        }
        watch.told = clearing.note(watch.limit).or(watch.told.take());
        match clearing.then {
            Then::Stop => Next::Done(watch.told.take()),
            Then::See => {
                let before = self.count(watch.signs);
                watch.stage = Stage::Seeing { before, cleared: Some(clearing), watches: 1 };
                Next::LookAgain(WATCH)
            }
        }
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

    /// Processor time of all that was left.
    fn ticks(&self) -> u64 {
        let all = jobs::members(&self.find_jobs());
        all.iter().map(|(_, stat, _)| stat.cpu).sum()
    }

    /// The run that has left the most, if that has most places.
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

    /// One that is stopped starts nothing; one that is killed makes room for another.
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
