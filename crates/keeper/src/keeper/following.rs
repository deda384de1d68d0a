//! Lists of runs, and who waits for the next ones.
//!
//! Who follows a session asks for the runs above the last one that it knows,
//! and is answered as soon as there is one. Nothing is kept for it in between:
//! a run that was over before it asked again is in the history.

use super::Keeper;
use crate::source::ClientId;
use sessile_protocol::{Answer, OpenRun, Reply, RunNo, RunPhase, RunsView};
use sessile_session::Tick;
use std::collections::BTreeMap;

/// How long a kernel has to say whether its run waits for input. One that does
/// answers in a fraction of that; one that computes does not wait.
pub(super) const ANSWER_PATIENCE: Tick = 50;

/// Runs in one answer at the most: what a frame takes with room to spare.
const LISTED: usize = 256;

/// A call that is answered with a list of runs.
#[derive(Debug)]
pub(super) struct Follower {
    pub(super) connection: ClientId,
    call: u64,
    wants: Wanted,
    /// Then it is answered with what there is.
    due: Option<Tick>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    /// Those that are not over, once the kernel has said whether one waits.
    Open,
    After(RunNo),
}

impl Keeper {
    /// The runs that are not over.
    pub(super) fn list(&mut self, connection: ClientId, call: u64) -> Option<Answer> {
        let view = self.open_runs();
        if !view.runs.iter().any(|run| self.is_asked(run.run)) {
            return Some(Answer::Runs(view));
        }
        let due = Some(self.now() + ANSWER_PATIENCE);
        self.note_due(due);
        self.followers.push(Follower { connection, call, wants: Wanted::Open, due });
        None
    }

    /// The runs above this one, now or when there are some.
    pub(super) fn follow(
        &mut self,
        connection: ClientId,
        call: u64,
        after: RunNo,
        due: Option<Tick>,
    ) -> Option<Answer> {
        let view = self.runs_after(after);
        if !view.runs.is_empty() {
            return Some(Answer::Runs(view));
        }
        self.note_due(due);
        self.followers.push(Follower { connection, call, wants: Wanted::After(after), due });
        None
    }

    /// A run has its number.
    pub(super) fn answer_followers(&mut self) {
        let is_it = |follower: &Follower| matches!(follower.wants, Wanted::After(_));
        if self.followers.iter().any(is_it) {
            self.answer_where(is_it, None);
        }
    }

    /// The kernel has said whether its run waits for input.
    pub(super) fn answer_listers(&mut self, waiting: Option<RunNo>) {
        self.answer_where(|follower| follower.wants == Wanted::Open, waiting);
    }

    pub(super) fn answer_impatient_followers(&mut self, now: Tick) {
        self.answer_where(|follower| follower.due.is_some_and(|due| due <= now), None);
        let next = self.followers.iter().filter_map(|follower| follower.due).min();
        self.note_due(next);
    }

    fn answer_where(&mut self, is_it: impl Fn(&Follower) -> bool, waiting: Option<RunNo>) {
        let answered: Vec<Follower> =
            self.followers.extract_if(.., |follower| is_it(follower)).collect();
        for follower in answered {
            let mut view = match follower.wants {
                Wanted::Open => self.open_views(),
                Wanted::After(after) => self.runs_after(after),
            };
            for run in view.runs.iter_mut().filter(|run| Some(run.run) == waiting) {
                run.waiting_for_input = true;
            }
            let reply = Reply::new(follower.call, Ok(Answer::Runs(view)));
            self.connections.send(follower.connection, &reply, &self.reactor);
        }
    }

    fn open_runs(&mut self) -> RunsView {
        let mut view = self.open_views();
        for run in &mut view.runs {
            run.waiting_for_input = self.awaits_input(run.run);
        }
        view
    }

    fn open_views(&self) -> RunsView {
        let open = self.runs.iter().filter(|(_, run)| run.phase() < RunPhase::Closed);
        let mut runs = open.map(|(number, run)| (*number, run.open_view(*number))).collect();
        self.add_commands(&mut runs);
        RunsView { runs: runs.into_values().collect() }
    }

    /// A run that is in the history has let go of its text.
    fn add_commands(&self, runs: &mut BTreeMap<RunNo, OpenRun>) {
        let is_recorded = |run: &OpenRun| run.phase >= RunPhase::Exited && run.command.is_empty();
        if !runs.values().any(is_recorded) {
            return;
        }
        for entry in self.history.newest(self.boot.max_history) {
            if let Some(run) = runs.get_mut(&entry.run).filter(|run| is_recorded(run)) {
                run.command = entry.command;
            }
        }
    }

    /// The oldest runs above this one, over or not.
    fn runs_after(&self, after: RunNo) -> RunsView {
        let known = self.runs.range(RunNo(after.0.saturating_add(1))..);
        let mut runs: BTreeMap<RunNo, OpenRun> =
            known.map(|(number, run)| (*number, run.open_view(*number))).collect();
        let last = self.session.last_run();
        // All of them are known here when nothing has been let go.
        if last.0.saturating_sub(after.0) > runs.len() as u64 {
            // All of it: runs are in the order of their ends, and one that began
            // early may have ended last.
            let recorded = self.history.newest(self.boot.max_history).into_iter();
            for entry in recorded.filter(|entry| entry.run > after) {
                runs.entry(entry.run).or_insert_with(|| OpenRun {
                    run: entry.run,
                    language: entry.language,
                    command: entry.command,
                    phase: RunPhase::Closed,
                    timestamp: Some(entry.timestamp),
                    interactive: false,
                    waiting_for_input: false,
                    terminal: false,
                });
            }
        }
        self.add_commands(&mut runs);
        RunsView { runs: runs.into_values().take(LISTED).collect() }
    }
}
