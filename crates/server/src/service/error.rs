//! What can be refused, with a code that stays and a word on what to do.

use crate::keepers::LinkError;
use sessile_client::ClientError;
use sessile_protocol::{Code, Failure};
use sessile_store::StoreError;

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
    ShuttingDown,
    Storage,
    Internal,
}

impl ErrorCode {
    pub const ALL: [Self; 38] = [
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
                "send `Authorization: Bearer TOKEN`; the token is in the file `token` of the sessions directory"
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
            Self::ShuttingDown => "try again in a moment",
            Self::Storage => "look at the disk of the sessions directory",
            Self::Internal => "look at the server's log",
        }
    }
}

#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct ServiceError {
    pub code: ErrorCode,
    pub message: String,
    pub hint: &'static str,
}

impl ServiceError {
    #[must_use]
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), hint: code.hint() }
    }

    #[must_use]
    pub fn internal(what: &str) -> Self {
        tracing::error!("internal error: {what}");
        Self::new(ErrorCode::Internal, "something went wrong in the server")
    }
}

impl From<Failure> for ServiceError {
    fn from(failure: Failure) -> Self {
        let code = match failure.code {
            Code::BadRequest => ErrorCode::BadRequest,
            Code::VersionMismatch => ErrorCode::VersionMismatch,
            Code::CommandHasNul => ErrorCode::BadCommand,
            Code::CommandTooLarge => ErrorCode::TooLarge,
            Code::QueueFull => ErrorCode::QueueFull,
            Code::RunNotFound => ErrorCode::RunNotFound,
            Code::RunCancelled => ErrorCode::RunCancelled,
            Code::RunLost => ErrorCode::RunLost,
            Code::KeyReused => ErrorCode::KeyReused,
            Code::InputClosed => ErrorCode::InputClosed,
            Code::NoTerminal => ErrorCode::NoTerminal,
            Code::JobNotFound => ErrorCode::JobNotFound,
            Code::Busy => ErrorCode::Busy,
            Code::CheckpointNotFound => ErrorCode::CheckpointNotFound,
            Code::CheckpointExists => ErrorCode::CheckpointExists,
            Code::CheckpointLost => ErrorCode::CheckpointLost,
            Code::ForkFailed => ErrorCode::ForkFailed,
            Code::Ending => ErrorCode::KeeperUnavailable,
            Code::KernelUnavailable => ErrorCode::KernelUnavailable,
            Code::Storage => ErrorCode::Storage,
            Code::Unknown => ErrorCode::Internal,
        };
        Self::new(code, failure.message)
    }
}

impl From<StoreError> for ServiceError {
    fn from(error: StoreError) -> Self {
        let code = match &error {
            StoreError::NotFound(_) => ErrorCode::SessionNotFound,
            StoreError::Ambiguous { .. }
            | StoreError::NameTaken { .. }
            | StoreError::BadName(_) => ErrorCode::BadRequest,
            StoreError::Io { .. } | StoreError::Damaged { .. } => ErrorCode::Storage,
        };
        Self::new(code, error.to_string())
    }
}

impl From<ClientError> for ServiceError {
    fn from(error: ClientError) -> Self {
        let message = error.to_string();
        let code = match error {
            ClientError::Store(error) => return error.into(),
            ClientError::Refused(failure) => return failure.into(),
            ClientError::Ended(_) => ErrorCode::SessionEnded,
            ClientError::UnknownProgram(_) => ErrorCode::UnknownProgram,
            ClientError::BadDirectory { .. } => ErrorCode::BadDirectory,
            ClientError::Gone
            | ClientError::Io(_)
            | ClientError::Frame(_)
            | ClientError::Unexpected
            | ClientError::Launch(_)
            | ClientError::Stopped(_)
            | ClientError::Silent => ErrorCode::KeeperUnavailable,
        };
        Self::new(code, message)
    }
}

impl From<LinkError> for ServiceError {
    fn from(error: LinkError) -> Self {
        match error {
            LinkError::Refused(failure) => failure.into(),
            LinkError::Gone | LinkError::Silent | LinkError::Io(_) | LinkError::Frame(_) => {
                Self::new(ErrorCode::KeeperUnavailable, error.to_string())
            }
        }
    }
}
