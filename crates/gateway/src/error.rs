//! What can be refused, with a code that stays and a word on what to do. The
//! same failure has the same code on every surface.

use crate::cursor::InvalidCursor;
use crate::following::FollowingError;
use crate::signal::UnknownSignal;
use serde::Serialize;
use sessile_client::ClientError;
use sessile_protocol::{Code, Failure};
use sessile_store::StoreError;
use utoipa::ToSchema;

/// Stable: programs match on these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorCode {
    BadRequest,
    BadCommand,
    BadDirectory,
    BadFile,
    Untrusted,
    UnknownProgram,
    Unauthorized,
    Forbidden,
    HostNotAllowed,
    OriginNotAllowed,
    NotFound,
    MethodNotAllowed,
    SessionNotFound,
    RunNotFound,
    VersionMismatch,
    KeyReused,
    InputClosed,
    NoTerminal,
    JobNotFound,
    Busy,
    CheckpointNotFound,
    CheckpointExists,
    NameTaken,
    Ambiguous,
    CheckpointLost,
    ForkFailed,
    RunCancelled,
    SessionEnded,
    RunLost,
    TooLarge,
    UnsupportedMediaType,
    QueueFull,
    TooManySessions,
    TooManyStreams,
    TooManyConnections,
    KernelUnavailable,
    KeeperUnavailable,
    KeeperStopped,
    ShuttingDown,
    Storage,
    Internal,
}

impl ErrorCode {
    pub const ALL: [Self; 41] = [
        Self::BadRequest,
        Self::BadCommand,
        Self::BadDirectory,
        Self::BadFile,
        Self::Untrusted,
        Self::UnknownProgram,
        Self::Unauthorized,
        Self::Forbidden,
        Self::HostNotAllowed,
        Self::OriginNotAllowed,
        Self::NotFound,
        Self::MethodNotAllowed,
        Self::SessionNotFound,
        Self::RunNotFound,
        Self::VersionMismatch,
        Self::KeyReused,
        Self::InputClosed,
        Self::NoTerminal,
        Self::JobNotFound,
        Self::Busy,
        Self::CheckpointNotFound,
        Self::CheckpointExists,
        Self::NameTaken,
        Self::Ambiguous,
        Self::CheckpointLost,
        Self::ForkFailed,
        Self::RunCancelled,
        Self::SessionEnded,
        Self::RunLost,
        Self::TooLarge,
        Self::UnsupportedMediaType,
        Self::QueueFull,
        Self::TooManySessions,
        Self::TooManyStreams,
        Self::TooManyConnections,
        Self::KernelUnavailable,
        Self::KeeperUnavailable,
        Self::KeeperStopped,
        Self::ShuttingDown,
        Self::Storage,
        Self::Internal,
    ];

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::BadRequest => "bad_request",
            Self::BadCommand => "bad_command",
            Self::BadDirectory => "bad_directory",
            Self::BadFile => "bad_file",
            Self::Untrusted => "untrusted",
            Self::UnknownProgram => "unknown_program",
            Self::Unauthorized => "unauthorized",
            Self::Forbidden => "forbidden",
            Self::HostNotAllowed => "host_not_allowed",
            Self::OriginNotAllowed => "origin_not_allowed",
            Self::NotFound => "not_found",
            Self::MethodNotAllowed => "method_not_allowed",
            Self::SessionNotFound => "session_not_found",
            Self::RunNotFound => "run_not_found",
            Self::VersionMismatch => "version_mismatch",
            Self::KeyReused => "key_reused",
            Self::InputClosed => "input_closed",
            Self::NoTerminal => "no_terminal",
            Self::JobNotFound => "job_not_found",
            Self::Busy => "busy",
            Self::CheckpointNotFound => "checkpoint_not_found",
            Self::CheckpointExists => "checkpoint_exists",
            Self::NameTaken => "name_taken",
            Self::Ambiguous => "ambiguous",
            Self::CheckpointLost => "checkpoint_lost",
            Self::ForkFailed => "fork_failed",
            Self::RunCancelled => "run_cancelled",
            Self::SessionEnded => "session_ended",
            Self::RunLost => "run_lost",
            Self::TooLarge => "too_large",
            Self::UnsupportedMediaType => "unsupported_media_type",
            Self::QueueFull => "queue_full",
            Self::TooManySessions => "too_many_sessions",
            Self::TooManyStreams => "too_many_streams",
            Self::TooManyConnections => "too_many_connections",
            Self::KernelUnavailable => "kernel_unavailable",
            Self::KeeperUnavailable => "keeper_unavailable",
            Self::KeeperStopped => "keeper_stopped",
            Self::ShuttingDown => "shutting_down",
            Self::Storage => "storage",
            Self::Internal => "internal",
        }
    }

    /// What to do about it, where the message does not say.
    fn hint(self) -> &'static str {
        match self {
            Self::BadRequest => "compare the request with /openapi.json",
            Self::BadCommand => "put data into a file or on stdin",
            Self::BadDirectory => "name a directory that exists",
            Self::BadFile => "send the file as it was saved, whole",
            Self::Untrusted => "ask with trust=true if you trust whoever made the file",
            Self::UnknownProgram => "use bash, sh, dash, zsh, python3 or node, or the path of one",
            Self::Unauthorized => {
                "send `Authorization: Bearer TOKEN`; `sessile token show` prints the token"
            }
            Self::Forbidden => "use a token that covers this workspace",
            Self::HostNotAllowed => "call the server by its own name, or add --allow-host",
            Self::OriginNotAllowed => "add the page's origin with --allow-origin",
            Self::NotFound => "see /docs for what there is",
            Self::MethodNotAllowed => "see /docs for what this path takes",
            Self::SessionNotFound => "start one with POST /v1/sessions",
            Self::RunNotFound => "see the session's history for the runs that are kept",
            Self::VersionMismatch => "end the session and start a new one",
            Self::KeyReused => "use a new Idempotency-Key for a new command",
            Self::InputClosed => "start the run with \"interactive\": true to give it input",
            Self::NoTerminal => "start the run with \"terminal\": true",
            Self::JobNotFound => "see the session's jobs for those that there are",
            Self::Busy => "ask with \"wait\": true, or interrupt the run",
            Self::CheckpointNotFound => "see the session's checkpoints for those that there are",
            Self::CheckpointExists => "take another name, or drop that checkpoint first",
            Self::NameTaken => "take another name, or rename or end that session first",
            Self::Ambiguous => "say which one by its id",
            Self::CheckpointLost => "go back to another checkpoint",
            Self::ForkFailed => "look at the memory and process limits of the machine",
            Self::RunCancelled => "run it again",
            Self::SessionEnded => "start a new one with POST /v1/sessions",
            Self::RunLost => "look at what it has done, then run what is missing with a new key",
            Self::TooLarge => "send less, or in several parts",
            Self::UnsupportedMediaType => "send JSON with `Content-Type: application/json`",
            Self::QueueFull => "wait for runs of this session to finish",
            Self::TooManySessions => "end sessions that are not needed any more",
            Self::TooManyConnections => "try again in a moment, over one connection",
            Self::TooManyStreams => "close some streams, or read by cursor",
            Self::KernelUnavailable => "install the interpreter, or name another program",
            Self::KeeperUnavailable => "try again; with an Idempotency-Key nothing runs twice",
            Self::KeeperStopped => "let its process go on with SIGCONT, or end the session",
            Self::ShuttingDown => "try again in a moment",
            Self::Storage => "look at the disk of the sessions directory",
            Self::Internal => "look at the server's log",
        }
    }
}

#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    pub code: ErrorCode,
    pub message: String,
    pub hint: &'static str,
}

impl Error {
    #[must_use]
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), hint: code.hint() }
    }

    /// The request makes no sense; the message says what to do.
    #[must_use]
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::BadRequest, message)
    }

    /// A keeper's answer to something else.
    #[must_use]
    pub fn unexpected() -> Self {
        Self::new(ErrorCode::KeeperUnavailable, ClientError::Unexpected.to_string())
    }
}

/// What every surface can say.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error as JSON.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ErrorDetail {
    /// Stable: programs match on it
    #[schema(value_type = String)]
    pub code: ErrorCode,
    pub message: String,
    /// What to do
    #[schema(value_type = String)]
    pub hint: &'static str,
}

impl From<&Error> for ErrorDetail {
    fn from(error: &Error) -> Self {
        Self { code: error.code, message: error.message.clone(), hint: error.hint }
    }
}

impl Serialize for ErrorCode {
    fn serialize<S: serde::Serializer>(
        &self,
        serializer: S,
    ) -> std::result::Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl From<Code> for ErrorCode {
    fn from(code: Code) -> Self {
        match code {
            Code::BadRequest => Self::BadRequest,
            Code::VersionMismatch => Self::VersionMismatch,
            Code::CommandHasNul => Self::BadCommand,
            Code::CommandTooLarge => Self::TooLarge,
            Code::QueueFull => Self::QueueFull,
            Code::RunNotFound => Self::RunNotFound,
            Code::RunCancelled => Self::RunCancelled,
            Code::RunLost => Self::RunLost,
            Code::KeyReused => Self::KeyReused,
            Code::InputClosed => Self::InputClosed,
            Code::NoTerminal => Self::NoTerminal,
            Code::JobNotFound => Self::JobNotFound,
            Code::Busy => Self::Busy,
            Code::CheckpointNotFound => Self::CheckpointNotFound,
            Code::CheckpointExists => Self::CheckpointExists,
            Code::CheckpointLost => Self::CheckpointLost,
            Code::ForkFailed => Self::ForkFailed,
            Code::Ending => Self::KeeperUnavailable,
            Code::KernelUnavailable => Self::KernelUnavailable,
            Code::Storage => Self::Storage,
            Code::Unknown => Self::Internal,
        }
    }
}

impl From<&StoreError> for ErrorCode {
    fn from(error: &StoreError) -> Self {
        match error {
            StoreError::NotFound(_) => Self::SessionNotFound,
            StoreError::Ambiguous { .. } => Self::Ambiguous,
            StoreError::NameTaken { .. } => Self::NameTaken,
            StoreError::BadName(_) => Self::BadRequest,
            StoreError::Io { .. } | StoreError::Damaged { .. } => Self::Storage,
        }
    }
}

impl From<&ClientError> for ErrorCode {
    fn from(error: &ClientError) -> Self {
        match error {
            ClientError::Store(error) => error.into(),
            ClientError::Refused(failure) => failure.code.into(),
            ClientError::Ended(_) => Self::SessionEnded,
            ClientError::Stopped(_) => Self::KeeperStopped,
            ClientError::UnknownProgram(_) => Self::UnknownProgram,
            ClientError::BadDirectory { .. } => Self::BadDirectory,
            ClientError::Gone
            | ClientError::Io(_)
            | ClientError::Frame(_)
            | ClientError::Unexpected
            | ClientError::Launch(_)
            | ClientError::Silent => Self::KeeperUnavailable,
        }
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        Self::new(failure.code.into(), failure.message)
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        Self::new((&error).into(), error.to_string())
    }
}

impl From<ClientError> for Error {
    fn from(error: ClientError) -> Self {
        Self::new((&error).into(), error.to_string())
    }
}

impl From<InvalidCursor> for Error {
    fn from(error: InvalidCursor) -> Self {
        Self::bad_request(error.to_string())
    }
}

impl From<UnknownSignal> for Error {
    fn from(error: UnknownSignal) -> Self {
        Self::bad_request(error.to_string())
    }
}

impl From<FollowingError> for Error {
    fn from(error: FollowingError) -> Self {
        match error {
            FollowingError::Refused(failure) => failure.into(),
            FollowingError::Unexpected => Self::unexpected(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_distinct_and_in_snake_case() {
        let codes: std::collections::BTreeSet<&str> =
            ErrorCode::ALL.iter().map(|code| code.as_str()).collect();
        assert_eq!(codes.len(), ErrorCode::ALL.len());
        assert!(codes.iter().all(|code| code.bytes().all(|b| b == b'_' || b.is_ascii_lowercase())));
    }

    #[test]
    fn a_failure_has_its_code_however_it_comes() {
        let failure = || Failure::new(Code::RunCancelled, "run 3 was cancelled");
        let code = ErrorCode::RunCancelled;
        assert_eq!(Error::from(failure()).code, code);
        assert_eq!(Error::from(ClientError::Refused(failure())).code, code);
        assert_eq!(Error::from(FollowingError::Refused(failure())).code, code);
    }
}
