//! Refusals and errors as a client sees them: a stable code for programs, a
//! sentence for people.

use crate::Shortage;
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::fmt::Display;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    pub code: Code,
    pub message: String,
    /// What the machine has run out of, if that is the cause.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shortage: Option<Shortage>,
}

impl Failure {
    #[must_use]
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), shortage: None }
    }

    /// What could not be done, and because of what.
    #[must_use]
    pub fn because(code: Code, what: impl Display, error: &(dyn Error + 'static)) -> Self {
        let shortage = Shortage::behind(error);
        Self { code, message: format!("{what}: {error}"), shortage }
    }

    /// An error that says by itself what could not be done.
    #[must_use]
    pub fn from_error(code: Code, error: &(dyn Error + 'static)) -> Self {
        Self { code, message: error.to_string(), shortage: Shortage::behind(error) }
    }

    /// What an interpreter says, in its own words.
    #[must_use]
    pub fn in_words(code: Code, message: impl Into<String>) -> Self {
        let message = message.into();
        Self { code, shortage: Shortage::in_words(&message), message }
    }

    /// The same, with what it is about before it.
    #[must_use]
    pub fn about(self, what: impl Display) -> Self {
        Self { message: format!("{what}: {}", self.message), ..self }
    }

    #[must_use]
    pub fn with_shortage(self, shortage: Option<Shortage>) -> Self {
        Self { shortage, ..self }
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
    /// The run waited for its turn as long as it was allowed to, and never began.
    QueueTimeout,
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
    /// The session's sandbox cannot be had here.
    Sandbox,
    /// The keeper could not write its files.
    Storage,
    /// A code of a newer keeper.
    #[serde(other)]
    Unknown,
}
