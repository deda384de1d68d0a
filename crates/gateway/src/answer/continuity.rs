//! What became of a session since it was last used.

use serde::Serialize;
use sessile_protocol::RunNo;
use sessile_store::Metadata;
use utoipa::ToSchema;

/// What happened to the session since it was last used
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(tag = "status", rename_all = "lowercase")]
pub enum Continuity {
    /// The session has the same keeper as before
    Live,
    /// Its keeper died; the state is the one after `as_of_run`
    Restored {
        /// The run whose state was restored
        as_of_run: RunNo,
        /// Runs that were active when the keeper died
        lost_runs: Vec<RunNo>,
        /// Names of what was not restored in the interpreters
        lost: Vec<String>,
        /// The previous metadata of the session
        previous: Box<Metadata>,
    },
    /// Its keeper died, and no state could be restored
    Fresh {
        /// Runs that were active when the keeper died
        lost_runs: Vec<RunNo>,
        /// Names of what was not restored in the interpreters
        lost: Vec<String>,
        /// The previous metadata of the session
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
