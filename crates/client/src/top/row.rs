//! The description of a session.

use super::processes::Usage;
use serde::Serialize;
use sessile_protocol::{KernelStatus, Language, LimitsView, RunNo, SessionId};

/// What a session is doing. Its JSON is what every surface says.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = TopRow, description = "The activity of a session"))]
pub struct Row {
    pub session_id: SessionId,
    pub name: Option<String>,
    pub workspace: Option<String>,
    pub state: State,
    pub work_dir: String,
    pub keeper_pid: Option<u32>,
    pub kernels: Vec<KernelStatus>,
    pub running: Vec<Running>,
    pub queued: u64,
    #[serde(flatten)]
    pub usage: Usage,
    /// Limits and usage of a sandbox.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(nullable = false))]
    pub resources: Option<LimitsView>,
    /// Time since its last run, if none is active.
    pub idle_ms: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = TopState))]
#[serde(rename_all = "lowercase")]
pub enum State {
    Busy,
    Idle,
    /// Its keeper is there and does not answer.
    Silent,
    Lost,
    Ended,
}

/// An active run.
#[derive(Clone, Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = TopRun))]
pub struct Running {
    pub run: RunNo,
    pub language: Language,
    /// Shortened if it is long.
    pub command: String,
    pub running_ms: Option<u64>,
    pub waiting_for_input: bool,
}

impl State {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Busy => "busy",
            Self::Idle => "idle",
            Self::Silent => "silent",
            Self::Lost => "lost",
            Self::Ended => "ended",
        }
    }
}

impl Row {
    /// Returns its name, or its workspace.
    #[must_use]
    pub fn label(&self) -> Option<&str> {
        self.name.as_deref().or(self.workspace.as_deref())
    }

    #[must_use]
    pub fn is_live(&self) -> bool {
        match self.state {
            State::Busy | State::Idle | State::Silent => true,
            State::Lost | State::Ended => false,
        }
    }
}
