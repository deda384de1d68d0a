//! Refusals and errors as a client sees them: a stable code for programs, a
//! sentence for people.

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    pub code: Code,
    pub message: String,
}

impl Failure {
    #[must_use]
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}

/// Stable: programs match on these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Code {
    /// The request makes no sense, or is not known to this keeper.
    BadRequest,
    /// The client speaks a version of the protocol that the keeper does not.
    VersionMismatch,
    CommandHasNul,
    CommandTooLarge,
    QueueFull,
    RunNotFound,
    /// The run was queued or running when the session was reset or ended.
    RunCancelled,
    /// The run was going when its keeper died: how far it got is not known.
    RunLost,
    /// The key of this exec was used for another command.
    KeyReused,
    /// The run takes no input, or no more of it.
    InputClosed,
    /// The run has no terminal.
    NoTerminal,
    /// No process of that number is a job of the session.
    JobNotFound,
    /// A run is going, and what was asked for cannot be done under it.
    Busy,
    /// No checkpoint of that name, or from before that run.
    CheckpointNotFound,
    /// The session has a checkpoint of that name.
    CheckpointExists,
    /// A process of the checkpoint is gone.
    CheckpointLost,
    /// No copy of the session could be made.
    ForkFailed,
    /// The session is ending.
    Ending,
    /// The interpreter could not be started.
    KernelUnavailable,
    /// The keeper could not write its files.
    Storage,
    /// A code of a newer keeper.
    #[serde(other)]
    Unknown,
}
