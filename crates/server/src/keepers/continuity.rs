//! What became of a session since it was last used.

use serde_json::{Value, json};
use sessile_protocol::RunNo;
use sessile_store::{Directory, Metadata};

#[derive(Clone, Debug)]
pub(crate) enum Continuity {
    /// Its keeper is the one that it had.
    Live,
    /// Its keeper had died; the state is the one after `as_of_run`.
    Restored { as_of_run: RunNo, lost_runs: Vec<RunNo>, previous: Box<Metadata> },
    /// Its keeper had died, and no state could be brought back.
    Fresh { lost_runs: Vec<RunNo>, previous: Box<Metadata> },
}

impl Continuity {
    pub(crate) fn as_str(&self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Restored { .. } => "restored",
            Self::Fresh { .. } => "fresh",
        }
    }

    /// What the session was before its keeper died.
    pub(crate) fn previous(&self) -> Option<&Metadata> {
        match self {
            Self::Live => None,
            Self::Restored { previous, .. } | Self::Fresh { previous, .. } => Some(previous),
        }
    }

    pub(crate) fn to_json(&self) -> Value {
        match self {
            Self::Live => json!({"status": "live"}),
            Self::Restored { as_of_run, lost_runs, previous } => json!({
                "status": "restored",
                "as_of_run": as_of_run,
                "lost_runs": lost_runs,
                "previous": previous,
            }),
            Self::Fresh { lost_runs, previous } => json!({
                "status": "fresh",
                "lost_runs": lost_runs,
                "previous": previous,
            }),
        }
    }
}

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
