//! Fork bombs in a sandbox with a process limit. The limit protects the machine; this
//! module protects the session: it ends processes that no run waits for, that hold the
//! limit and go on starting others (`bomb_detection` decides which).
//!
//! When a run ends that has met the limit, what it and earlier runs have left is checked.
//! This takes several checks with pauses, in which the keeper does other work. Meanwhile
//! the run's end is withheld: its answer reports what was done, and the next run has
//! processes to spare. What is found while something waits (`room`) is ended in the same
//! way.

use super::bomb_detection::{Finding, Survey};
use super::jobs::{self, Tree};
use super::live::Force;
use super::reports::RunEnd;
use super::{Deadline, Keeper};
use crate::processes;
use rustix::process::{Pid, Signal};
use sessile_proc::Process;
use sessile_protocol::{Language, RunNo};
use sessile_sandbox::limits::Mechanism;
use sessile_session::Tick;
use std::collections::HashSet;

/// Time within which a fork bomb has tried again, or has used the processor: longer than
/// the tenth of a second for which a CPU limit may suspend it. Only a run that met the
/// process limit waits for it.
const WATCH: Tick = 120;

/// How often to wait while some of the processes wait for the processor.
const WATCHES: u32 = 40;

/// Each look finds the processes that were started during the last one. At the limit
/// there are none.
const LOOKS: u32 = 20;

/// How often what is left is killed, with pauses: a few seconds in all. On a busy machine
/// a killed process waits for the processor before it ends.
const ROUNDS: u32 = 400;
const PAUSE: Tick = 5;

/// How often a shell that sleeps is waited for, and the pause: up to 9 seconds.
const PATIENCE: u32 = 180;
const NAP: Tick = 50;

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
    /// The run that has ended.
    run: Option<RunNo>,
    /// What later checks are compared with.
    before: Survey,
    stage: Stage,
    /// Processes that were killed. Some of them may not have ended yet.
    killed: HashSet<Pid>,
    /// Their command lines.
    commands: HashSet<String>,
    sleep: Option<Sleep>,
    /// The note to add to the run.
    note: Option<String>,
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    /// Comparing surveys shows whether the processes go on. Of a run that was forced to
    /// end nothing may be left; a process that was just being started shows only after a
    /// while.
    Seeing {
        cleared: Option<Clearing>,
        watches: u32,
    },
    Ending(Clearing),
}

/// Ends all that a run has left, until nothing is found any more.
#[derive(Clone, Copy, Debug)]
struct Clearing {
    whose: Option<RunNo>,
    scope: Scope,
    rounds: u32,
    ended: usize,
}

/// Which processes are ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scope {
    /// Those that the run has left.
    Run,
    /// Orphans that run the same command as well: a bomb whose processes end after they
    /// have started others goes on in other runs.
    Alike,
}

/// How a process is related to a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Relation {
    ChildOfKernel,
    Other,
}

/// The sleep of a shell that cannot fork, and when it was first seen.
#[derive(Clone, Copy, Debug)]
struct Sleep {
    seconds: Tick,
    seen: Tick,
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
        let has_met_limit = match confined.limits().pids?.by {
            Mechanism::Groups(_) => ended.was_refused,
            Mechanism::UserRlimit => match ended.force {
                Force::SignalsAtLimit => true,
                Force::Signals => self.is_at_process_limit(),
                Force::None => ended.was_refused,
            },
            Mechanism::Rlimit | Mechanism::FileSystem => false,
        };
        if !has_met_limit {
            return None;
        }
        // If the run was forced to end, its leftovers would only grow again.
        let stage = match ended.force {
            Force::Signals | Force::SignalsAtLimit => {
                Stage::Ending(Clearing::of(ended.run, Scope::Run))
            }
            Force::None => Stage::Seeing { cleared: None, watches: 1 },
        };
        Some(Watch::new(ended.run, self.survey(ended.run)?, stage))
    }

    /// Tells a run's end when what it has left is looked after.
    pub(super) fn delay_end(&mut self, language: Language, mut watch: Watch, end: RunEnd) {
        match self.first_look(&mut watch) {
            Next::Done(note) => {
                note.into_iter().for_each(|note| self.add_note(language, watch.run, note));
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
                    Next::Done(note) => {
                        let run = withheld.watch.run;
                        note.into_iter().for_each(|note| self.add_note(language, run, note));
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
        let stage = watch.stage;
        let clearing = match stage {
            Stage::Seeing { cleared: Some(clearing), watches: _ }
                if clearing.rounds < ROUNDS
                    && !self.processes_to_end(clearing, watch).is_empty() =>
            {
                clearing
            }
            Stage::Seeing { cleared, watches } => {
                let now = self.survey(watch.run);
                let finding = now.map(|now| now.compared_with(&watch.before));
                match finding {
                    Some(Finding::GoesOn(run)) => Clearing::of(run, Scope::Alike),
                    Some(Finding::Waits) if watches < WATCHES => {
                        watch.stage = Stage::Seeing { cleared, watches: watches + 1 };
                        return Next::LookAgain(WATCH);
                    }
                    Some(Finding::Waits | Finding::Nothing) | None => {
                        return Next::Done(watch.note.take());
                    }
                }
            }
            Stage::Ending(clearing) => clearing,
        };
        let found = self.stop_all_of(clearing, watch);
        if !found.is_empty() && clearing.rounds < ROUNDS {
            let (ended, pause) = self.end_found(found, clearing.rounds, watch);
            let fresh = ended.into_iter().filter(|pid| watch.killed.insert(*pid)).count();
            let (rounds, ended) = (clearing.rounds + 1, clearing.ended + fresh);
            watch.stage = Stage::Ending(Clearing { rounds, ended, ..clearing });
            return Next::LookAgain(pause);
        }
        watch.note = clearing.note(watch.before.limit).or(watch.note.take());
        // A process that was just being started shows only now, and would grow again.
        watch.before = self.survey(watch.run).unwrap_or_default();
        watch.stage = Stage::Seeing { cleared: Some(clearing), watches: 1 };
        Next::LookAgain(WATCH)
    }

    /// Kills what was found, unless a shell has to be waited for. Returns which were
    /// killed, and when to look again: by then it is known which run the processes belong
    /// to that were just starting or about to end.
    fn end_found(
        &self,
        mut found: Vec<(Pid, Relation)>,
        rounds: u32,
        watch: &mut Watch,
    ) -> (Vec<Pid>, Tick) {
        let has_children = found.iter().any(|(_, relation)| *relation == Relation::ChildOfKernel);
        if has_children && rounds < PATIENCE && self.would_give_up(watch) {
            return (Vec::new(), NAP);
        }
        // Children have not been stopped, and could take the place of others.
        found.sort_by_key(|(_, relation)| *relation);
        let found: Vec<Pid> = found.into_iter().map(|(pid, _)| pid).collect();
        processes::signal(&found, Signal::KILL);
        (found, PAUSE)
    }

    /// Whether a shell gives up its work if a child of it ends now. A bash that cannot
    /// fork sleeps for 1, 2, 4 and 8 seconds and tries again. If it is woken with a second
    /// or more to go, it does not.
    fn would_give_up(&self, watch: &mut Watch) -> bool {
        let shells = self.kernels.live.iter().filter(|(language, _)| language.is_shell());
        let seconds = shells.filter_map(|(_, live)| sleeps_for(live.pid)).max();
        let now = self.now();
        // Each sleep is longer than the last one.
        watch.sleep = seconds.map(|seconds| match watch.sleep {
            Some(sleep) if sleep.seconds == seconds => sleep,
            Some(_) | None => Sleep { seconds, seen: now },
        });
        watch.sleep.is_some_and(|Sleep { seconds, seen }| now + 1000 < seen + 1000 * seconds)
    }

    /// Returns what is to be ended. Processes of which it is not known whose they are are
    /// taken for those of the run.
    fn processes_to_end(&self, clearing: Clearing, watch: &mut Watch) -> Vec<(Pid, Relation)> {
        let is_its = |tree: &Tree| tree.run().is_none() || tree.run() == clearing.whose;
        let (its, others): (Vec<Tree>, Vec<Tree>) =
            self.leftovers(watch.run).into_iter().partition(is_its);
        watch.commands.extend(its.iter().filter_map(Tree::command_line));
        let is_same = |tree: &Tree| {
            clearing.scope == Scope::Alike
                && !self.is_child_of_kernel(tree)
                && tree.command_line().is_some_and(|line| watch.commands.contains(&line))
        };
        let others = others.into_iter().filter(is_same);
        let all: Vec<Tree> = its.into_iter().chain(others).collect();
        let relation = |parent: Option<Pid>| match parent {
            Some(parent) if self.kernels.has_pid(parent) => Relation::ChildOfKernel,
            Some(_) | None => Relation::Other,
        };
        jobs::members(&all).into_iter().map(|(pid, stat, _)| (pid, relation(stat.parent))).collect()
    }

    /// Stops all that is to be ended: a stopped process starts nothing, and a killed one
    /// makes room for another. Kernels would notice that of their children, which find no
    /// room without it.
    fn stop_all_of(&self, clearing: Clearing, watch: &mut Watch) -> Vec<(Pid, Relation)> {
        let mut known = Vec::new();
        for _ in 0..LOOKS {
            let found = self.processes_to_end(clearing, watch);
            if found.iter().all(|one| known.contains(one)) {
                return found;
            }
            let others = found.iter().filter(|(_, relation)| *relation == Relation::Other);
            processes::signal(&others.map(|(pid, _)| *pid).collect::<Vec<Pid>>(), Signal::STOP);
            known = found;
        }
        known
    }
}

/// Returns for how many seconds a process sleeps.
fn sleeps_for(pid: Pid) -> Option<Tick> {
    let process = Process::new(pid);
    let duration = process.calls().find_map(|call| match call.number {
        libc::SYS_nanosleep => Some(call.args[0]),
        libc::SYS_clock_nanosleep => Some(call.args[2]),
        _ => None,
    })?;
    let seconds = process.memory(duration, size_of::<u64>())?;
    Some(u64::from_ne_bytes(seconds.try_into().ok()?))
}

impl Watch {
    /// Ends leftovers that were found to hold the limit.
    pub(super) fn of_found(whose: Option<RunNo>, before: Survey) -> Self {
        Self::new(None, before, Stage::Ending(Clearing::of(whose, Scope::Alike)))
    }

    /// Ends all that a run has started which is pressed to end.
    pub(super) fn of_pressed(run: Option<RunNo>, before: Survey) -> Self {
        Self::new(run, before, Stage::Ending(Clearing::of(run, Scope::Run)))
    }

    /// Whether it belongs to this run, or to none.
    pub(super) fn may_be_told_in(&self, run: RunNo) -> bool {
        self.run.is_none_or(|known| known == run)
    }

    pub(super) fn told_in(self, run: RunNo) -> Self {
        Self { run: Some(run), ..self }
    }

    fn new(run: Option<RunNo>, before: Survey, stage: Stage) -> Self {
        Self {
            run,
            before,
            stage,
            killed: HashSet::new(),
            commands: HashSet::new(),
            sleep: None,
            note: None,
        }
    }
}

impl Clearing {
    fn of(whose: Option<RunNo>, scope: Scope) -> Self {
        Self { whose, scope, rounds: 0, ended: 0 }
    }

    fn note(self, limit: u64) -> Option<String> {
        let whose = self.whose.map_or_else(|| "some run".to_owned(), |run| format!("run {run}"));
        let (what, were, they) = match self.ended {
            0 => return None,
            1 => ("a process".to_owned(), "was", "it"),
            n => (format!("{n} processes"), "were", "they"),
        };
        Some(format!(
            "{what} that {whose} had left {were} ended: {they} had met the limit of {limit}, and \
             went on starting others"
        ))
    }
}
