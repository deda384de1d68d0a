//! Answers that say little more than that something is done.

use super::Continuity;
use serde::Serialize;
use sessile_protocol::{RunNo, SessionId, TerminalSize};
use sessile_store::Metadata;
use utoipa::ToSchema;

/// An ended session
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Ended {
    #[schema(value_type = String, example = "terminated")]
    status: &'static str,
    session_id: SessionId,
    /// What could not be written to its files
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    lost: Vec<String>,
}

impl Ended {
    #[must_use]
    pub fn new(metadata: Metadata) -> Self {
        let Metadata { session_id, lost_at_end: lost, .. } = metadata;
        Self { status: "terminated", session_id, lost }
    }
}

/// Ended sessions
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct EndedAll {
    #[schema(value_type = String, example = "terminated")]
    status: &'static str,
    session_ids: Vec<SessionId>,
    /// Sessions that could not be ended
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    failed: Vec<SessionId>,
    /// What could not be written to the files of these sessions
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    lost: Vec<String>,
}

impl EndedAll {
    #[must_use]
    pub fn new(ended: Vec<Metadata>) -> Self {
        let losses = |metadata: &Metadata| -> Vec<String> {
            let id = &metadata.session_id;
            metadata.lost_at_end.iter().map(|lost| format!("{id}: {lost}")).collect()
        };
        let lost = ended.iter().flat_map(losses).collect();
        let session_ids = ended.into_iter().map(|metadata| metadata.session_id).collect();
        Self { status: "terminated", session_ids, failed: Vec::new(), lost }
    }

    #[must_use]
    pub fn with_failed(self, failed: Vec<SessionId>) -> Self {
        Self { failed, ..self }
    }
}

/// A session with fresh kernels
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Reset {
    #[schema(value_type = String, example = "reset")]
    status: &'static str,
    session_id: SessionId,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    continuity: Option<Continuity>,
}

impl Reset {
    #[must_use]
    pub fn new(session_id: SessionId, continuity: Option<Continuity>) -> Self {
        Self { status: "reset", session_id, continuity }
    }
}

/// The result of an interrupt
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
pub struct Interrupted {
    /// Whether something was running
    interrupted: bool,
    #[schema(nullable)]
    run: Option<RunNo>,
}

impl From<Option<RunNo>> for Interrupted {
    fn from(run: Option<RunNo>) -> Self {
        Self { interrupted: run.is_some(), run }
    }
}

/// The same for the command line, with the session
#[derive(Clone, Debug, Serialize)]
pub struct InterruptedSession {
    status: &'static str,
    session_id: SessionId,
    run: Option<RunNo>,
}

impl InterruptedSession {
    #[must_use]
    pub fn new(session_id: SessionId, run: Option<RunNo>) -> Self {
        let status = if run.is_some() { "interrupted" } else { "idle" };
        Self { status, session_id, run }
    }
}

/// Input for a run
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
pub struct Input {
    pub run: RunNo,
    /// Bytes that the run has not read yet
    pub unread: u64,
}

/// A signal sent to a run
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
pub struct Signalled {
    pub run: RunNo,
    /// Number of processes that got it
    pub processes: u64,
}

/// A signal sent to a job
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
pub struct SignalledJob {
    pub pid: u32,
    /// Number of processes that got it
    pub processes: u64,
}

/// A terminal with another size
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
pub struct Resized {
    pub run: RunNo,
    pub cols: u16,
    pub rows: u16,
}

impl Resized {
    #[must_use]
    pub fn new(run: RunNo, TerminalSize { cols, rows }: TerminalSize) -> Self {
        Self { run, cols, rows }
    }
}

/// Session directories that were removed
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Cleaned {
    pub cleaned: Vec<SessionId>,
}
