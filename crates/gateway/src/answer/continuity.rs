//! What became of a session since it was last used.

use serde::Serialize;
use sessile_protocol::RunNo;
use sessile_store::Metadata;
use utoipa::ToSchema;

/// What became of the session since it was last used
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(tag = "status", rename_all = "lowercase")]
pub enum Continuity {
    /// Its keeper is the one that it had
    Live,
    /// Its keeper had died; the state is the one after `as_of_run`
    Restored {
        /// The run whose state was brought back
        as_of_run: RunNo,
        /// Runs that were going when the keeper died
        lost_runs: Vec<RunNo>,
        /// What of the interpreters was not brought back, by name
        lost: Vec<String>,
        /// The session before
        previous: Box<Metadata>,
    },
    /// Its keeper had died, and no state could be brought back
    Fresh {
        /// Runs that were going when the keeper died
        lost_runs: Vec<RunNo>,
        /// What of the interpreters was not brought back, by name
        lost: Vec<String>,
        /// The session before
        previous: Box<Metadata>,
    },
}

impl Continuity {
    #[must_use]
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Live => "live",
            Self::Restored { .. } => "restored",
            Self::Fresh { .. } => "fresh",
        }
    }

    /// Returns the session's metadata from before its keeper died.
    #[must_use]
    pub fn previous(&self) -> Option<&Metadata> {
        match self {
            Self::Live => None,
            Self::Restored { previous, .. } | Self::Fresh { previous, .. } => Some(previous),
        }
    }
}
