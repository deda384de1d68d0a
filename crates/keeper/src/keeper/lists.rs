//! Lists of runs.
//!
//! A client that follows a session asks for the runs above the last one that it knows.
//! Nothing is kept for it in between: a run that ended before it asks again is in the
//! history.

use crate::runs::{Run, Runs};
use sessile_protocol::{Behind, OpenRun, Queued, RunNo, RunPhase, RunsView};
use sessile_session::Core;
use sessile_store::History;
use std::collections::BTreeMap;

/// Maximum number of runs in one answer: it fits into a frame with room to spare.
const LISTED: usize = 256;

/// The sources of lists.
#[derive(Clone, Copy)]
pub(super) struct Lists<'a> {
    pub(super) runs: &'a Runs,
    pub(super) session: &'a Core,
    pub(super) history: &'a History,
    pub(super) max_history: u64,
    pub(super) last: RunNo,
}

impl Lists<'_> {
    /// Returns the runs that have not ended.
    pub(super) fn open(&self) -> RunsView {
        let open = self.runs.iter().filter(|(_, run)| run.phase() < RunPhase::Closed);
        let view = |number: RunNo, run: &Run| OpenRun {
            queued: queued(number, self.session, self.runs),
            ..run.open_view(number)
        };
        let mut runs = open.map(|(number, run)| (*number, view(*number, run))).collect();
        self.add_commands(&mut runs);
        RunsView { runs: runs.into_values().collect() }
    }

    /// Adds the commands of runs that are in the history: such a run has dropped its
    /// text.
    fn add_commands(&self, runs: &mut BTreeMap<RunNo, OpenRun>) {
        let is_recorded = |run: &OpenRun| run.phase >= RunPhase::Exited && run.command.is_empty();
        if !runs.values().any(is_recorded) {
            return;
        }
        for entry in self.history.newest(self.max_history) {
            if let Some(run) = runs.get_mut(&entry.run).filter(|run| is_recorded(run)) {
                run.command = entry.command;
            }
        }
    }

    /// Returns the oldest runs above this one, ended or not.
    pub(super) fn after(&self, after: RunNo) -> RunsView {
        let known = self.runs.range(RunNo(after.0.saturating_add(1))..);
        let mut runs: BTreeMap<RunNo, OpenRun> =
            known.map(|(number, run)| (*number, run.open_view(*number))).collect();
        // If no run has been released, all of them are known here.
        if self.last.0.saturating_sub(after.0) > runs.len() as u64 {
            // The whole history is read: it is in the order of the runs' ends, and a run
            // that began early may have ended last.
            let recorded = self.history.newest(self.max_history).into_iter();
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
                    queued: None,
                });
            }
        }
        self.add_commands(&mut runs);
        RunsView { runs: runs.into_values().take(LISTED).collect() }
    }
}

/// Returns the queue position of a run that has not begun.
pub(super) fn queued(run: RunNo, session: &Core, runs: &Runs) -> Option<Box<Queued>> {
    let place = session.place(run)?;
    let behind = place
        .behind
        .map(|run| Behind { run, command: runs.get(&run).map(Run::title).unwrap_or_default() });
    Some(Box::new(Queued { place: place.number as u64, behind }))
}
