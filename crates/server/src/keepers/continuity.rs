//! What became of a session since it was last used.

use sessile_gateway::answer::Continuity;
use sessile_protocol::RunNo;
use sessile_store::{Directory, Metadata};

/// What was kept of a session without a keeper.
pub(super) struct Before {
    as_of_run: Option<RunNo>,
    lost_runs: Vec<RunNo>,
}

impl Before {
    pub(super) fn of(directory: &Directory) -> Self {
        let restorable = directory.state().into_iter().flat_map(|state| state.kernels);
        let as_of_run = restorable.filter_map(|(_, saved)| saved.comes_back_as_of()).max();
        Self { as_of_run, lost_runs: directory.lost_runs() }
    }

    pub(super) fn into_continuity(self, previous: Box<Metadata>) -> Continuity {
        let lost_runs = self.lost_runs;
        match self.as_of_run {
            Some(as_of_run) => Continuity::Restored { as_of_run, lost_runs, previous },
            None => Continuity::Fresh { lost_runs, previous },
        }
    }
}
