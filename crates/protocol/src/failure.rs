//! Refusals and errors as a client sees them: a stable code for programs, a sentence for people.

use crate::Shortage;
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::fmt::Display;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    pub code: Code,
    pub message: String,
    /// The resource that the machine has run out of, if that is the cause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shortage: Option<Shortage>,
}

impl Failure {
    #[must_use]
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), shortage: None }
    }

    /// Returns a failure to do `what`, with the error that caused it.
    #[must_use]
    pub fn because(code: Code, what: impl Display, error: &(dyn Error + 'static)) -> Self {
        let shortage = Shortage::behind(error);
        Self { code, message: format!("{what}: {error}"), shortage }
    }

    /// Returns a failure from an error whose text says what could not be done.
    #[must_use]
    pub fn from_error(code: Code, error: &(dyn Error + 'static)) -> Self {
        Self { code, message: error.to_string(), shortage: Shortage::behind(error) }
    }

    /// Returns a failure with the message of an interpreter.
    #[must_use]
    pub fn in_words(code: Code, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { code, shortage: Shortage::in_words(&message), message }
    }

    /// Returns the failure with its subject before the message.
    #[must_use]
    pub fn about(self, what: impl Display) -> Self {
        Self { message: format!("{what}: {}", self.message), ..self }
    }

    #[must_use]
    pub fn with_shortage(self, shortage: Option<Shortage>) -> Self {
        Self { shortage, ..self }
    }
}

/// Stable codes: programs match on these.
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
    /// The queue timeout of the run passed before it began.
    QueueTimeout,
    RunNotFound,
    /// The run was queued or running when the session was reset or ended.
    RunCancelled,
    /// The run was active when its keeper died: how far it got is unknown.
    RunLost,
    /// The key of this exec was used for another command.
    KeyReused,
    /// The run takes no input, or no more of it.
    InputClosed,
    /// The run has no terminal.
    NoTerminal,
    /// No process of that number is a job of the session.
    JobNotFound,
    /// A run is active, and the request cannot be done during a run.
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
    /// The session's sandbox is not available on this machine.
    Sandbox,
    /// The keeper could not write its files.
    Storage,
    /// A code of a newer keeper.
    #[serde(other)]
    Unknown,
}
