//! Errors, with a stable code and advice on what to do. The same failure has the same
//! code on every surface.

use crate::cursor::InvalidCursor;
use crate::following::FollowingError;
use crate::signal::UnknownSignal;
use serde::Serialize;
use sessile_client::{ClientError, LayerRefused, NoView, PortError};
use sessile_files::FileError;
use sessile_layer::LayerError;
use sessile_protocol::{Code, Failure, Shortage};
use sessile_store::StoreError;
use std::borrow::Cow;
use utoipa::ToSchema;

/// The code of an error. Stable: programs match on these.
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
    PortNotOpen,
    PortFailed,
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
    QueueTimeout,
    TooManySessions,
    TooManyStreams,
    TooManyConnections,
    KernelUnavailable,
    SandboxUnavailable,
    KeeperUnavailable,
    KeeperStopped,
    ShuttingDown,
    Storage,
    Internal,
    OutsideWorkspace,
    BadPath,
    FileNotFound,
    FileExists,
    NotADirectory,
    IsADirectory,
    NotAFile,
    DirectoryNotEmpty,
    PermissionDenied,
    BadArchive,
    BadRange,
    TooManyWatches,
    AgentNotFound,
    AgentMoved,
    NoLayer,
    LayerConflict,
}

impl ErrorCode {
    pub const ALL: [Self; 61] = [
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
        Self::PortNotOpen,
        Self::PortFailed,
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
        Self::QueueTimeout,
        Self::TooManySessions,
        Self::TooManyStreams,
        Self::TooManyConnections,
        Self::KernelUnavailable,
        Self::SandboxUnavailable,
        Self::KeeperUnavailable,
        Self::KeeperStopped,
        Self::ShuttingDown,
        Self::Storage,
        Self::Internal,
        Self::OutsideWorkspace,
        Self::BadPath,
        Self::FileNotFound,
        Self::FileExists,
        Self::NotADirectory,
        Self::IsADirectory,
        Self::NotAFile,
        Self::DirectoryNotEmpty,
        Self::PermissionDenied,
        Self::BadArchive,
        Self::BadRange,
        Self::TooManyWatches,
        Self::AgentNotFound,
        Self::AgentMoved,
        Self::NoLayer,
        Self::LayerConflict,
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
            Self::PortNotOpen => "port_not_open",
            Self::PortFailed => "port_failed",
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
            Self::QueueTimeout => "queue_timeout",
            Self::TooManySessions => "too_many_sessions",
            Self::TooManyStreams => "too_many_streams",
            Self::TooManyConnections => "too_many_connections",
            Self::KernelUnavailable => "kernel_unavailable",
            Self::SandboxUnavailable => "sandbox_unavailable",
            Self::KeeperUnavailable => "keeper_unavailable",
            Self::KeeperStopped => "keeper_stopped",
            Self::ShuttingDown => "shutting_down",
            Self::Storage => "storage",
            Self::Internal => "internal",
            Self::OutsideWorkspace => "outside_workspace",
            Self::BadPath => "bad_path",
            Self::FileNotFound => "file_not_found",
            Self::FileExists => "file_exists",
            Self::NotADirectory => "not_a_directory",
            Self::IsADirectory => "is_a_directory",
            Self::NotAFile => "not_a_file",
            Self::DirectoryNotEmpty => "directory_not_empty",
            Self::PermissionDenied => "permission_denied",
            Self::BadArchive => "bad_archive",
            Self::BadRange => "bad_range",
            Self::TooManyWatches => "too_many_watches",
            Self::AgentNotFound => "agent_not_found",
            Self::AgentMoved => "agent_moved",
            Self::NoLayer => "no_layer",
            Self::LayerConflict => "layer_conflict",
        }
    }

    /// Returns advice for errors whose message has none.
    fn hint(self) -> &'static str {
        match self {
            Self::BadRequest => "compare the request with /openapi.json",
            Self::BadCommand => "put data into a file or on stdin",
            Self::BadDirectory => "name a directory that exists",
            Self::BadFile => "send the file as it was saved, whole",
            Self::Untrusted => "ask with trust=true if you trust whoever made the file",
            Self::UnknownProgram => "use bash, sh, dash, zsh, python3 or node, or the path of one",
            Self::Unauthorized => {
                "send `Authorization: Bearer TOKEN`; `sessile token show --raw` prints the token"
            }
            Self::Forbidden => "use a token that covers this workspace",
            Self::HostNotAllowed => "call the server by its own name, or add --allow-host",
            Self::OriginNotAllowed => "add the page's origin with --allow-origin",
            Self::NotFound => "see /docs for what there is",
            Self::MethodNotAllowed => "see /docs for what this path takes",
            Self::SessionNotFound => {
                "GET /v1/sessions lists those that there are, POST /v1/sessions starts one"
            }
            Self::RunNotFound => "see the session's history for the runs that are kept",
            Self::VersionMismatch => "end the session and start a new one",
            Self::KeyReused => "use a new Idempotency-Key for a new command",
            Self::InputClosed => "start the run with \"interactive\": true to give it input",
            Self::NoTerminal => "start the run with \"terminal\": true",
            Self::PortNotOpen => "start a server in the session that listens on it",
            Self::PortFailed => "look at what the server in the session says",
            Self::JobNotFound => "see the session's jobs for those that there are",
            Self::Busy => "ask with \"wait\": true, or interrupt the run",
            Self::CheckpointNotFound => "see the session's checkpoints for those that there are",
            Self::CheckpointExists => "take another name, or drop that checkpoint first",
            Self::NameTaken => "take another name, or rename or end that session first",
            Self::Ambiguous => "say which one by its id",
            Self::CheckpointLost => "go back to another checkpoint",
            Self::ForkFailed => "look at the memory and process limits of the machine",
            Self::RunCancelled => "run it again",
            Self::SessionEnded => "start a new session",
            Self::RunLost => "look at what it has done, then run what is missing with a new key",
            Self::TooLarge => "send less, or in several parts",
            Self::UnsupportedMediaType => "send JSON with `Content-Type: application/json`",
            Self::QueueFull => "wait for runs of this session to finish",
            Self::QueueTimeout => {
                "it did nothing: ask again later, interrupt the run ahead, or use another session"
            }
            Self::TooManySessions => "end sessions that are not needed any more",
            Self::TooManyConnections => "try again in a moment, over one connection",
            Self::TooManyStreams => "close some streams, or read by cursor",
            Self::KernelUnavailable => {
                "see the message for why; install the interpreter if it is missing, or name another"
            }
            Self::SandboxUnavailable => {
                "`sessile sandbox check` says what this machine can enforce"
            }
            Self::KeeperUnavailable => "try again; with an Idempotency-Key nothing runs twice",
            Self::KeeperStopped => "let its process go on with SIGCONT, or end the session",
            Self::ShuttingDown => "try again in a moment",
            Self::Storage => "look at the sessions directory and its disk",
            Self::Internal => "look at the server's log",
            Self::OutsideWorkspace => "name something in the session's workspace",
            Self::BadPath => "name a path below the workspace",
            Self::FileNotFound => "list the directory to see what is there",
            Self::FileExists => "take another name, or say that it may be replaced",
            Self::NotADirectory => "name a directory",
            Self::IsADirectory => "name a file, or take a directory as an archive",
            Self::NotAFile => "name a file",
            Self::DirectoryNotEmpty => "remove it with recursive=true",
            Self::PermissionDenied => "look at the permissions of the file and its directory",
            Self::BadArchive => "send a whole tar, uncompressed, with names below its directory",
            Self::BadRange => "ask for bytes that the file has",
            Self::TooManyWatches => "watch fewer directories, or raise fs.inotify.max_user_watches",
            Self::AgentNotFound => {
                "make one with POST /v1/agents; GET /v1/agents lists those that there are"
            }
            Self::AgentMoved => "use it where it is now",
            Self::NoLayer => "start the session with a sandbox whose files are an overlay",
            Self::LayerConflict => "compare both, then apply with \"force\": true, or other paths",
        }
    }
}

#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    pub code: ErrorCode,
    pub message: String,
    pub hint: Cow<'static, str>,
}

impl Error {
    #[must_use]
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), hint: Cow::Borrowed(code.hint()) }
    }

    /// Adds the advice for the cause, if that is known.
    #[must_use]
    pub fn advised(self, shortage: Option<Shortage>) -> Self {
        let Some(hint) = shortage.map(Shortage::advice) else { return self };
        self.saying(hint.into())
    }

    /// Sets this advice, in the message as well: models read only the message.
    fn saying(self, hint: Cow<'static, str>) -> Self {
        Self { message: format!("{}; {hint}", self.message), hint, ..self }
    }

    /// Returns the error for an invalid request; the message says what to do.
    #[must_use]
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::BadRequest, message)
    }

    /// Returns the error for an answer of the wrong kind from a keeper.
    #[must_use]
    pub fn unexpected() -> Self {
        Self::new(ErrorCode::KeeperUnavailable, ClientError::Unexpected.to_string())
    }
}

/// The result type of every surface.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// An error as JSON.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ErrorDetail {
    /// A stable code for programs
    #[schema(value_type = String)]
    pub code: ErrorCode,
    pub message: String,
    /// What to do
    #[schema(value_type = String)]
    pub hint: Cow<'static, str>,
}

impl From<&Error> for ErrorDetail {
    fn from(error: &Error) -> Self {
        Self { code: error.code, message: error.message.clone(), hint: error.hint.clone() }
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
            Code::QueueTimeout => Self::QueueTimeout,
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
            Code::Sandbox => Self::SandboxUnavailable,
            Code::Storage => Self::Storage,
            Code::Unknown => Self::Internal,
        }
    }
}

impl From<&StoreError> for ErrorCode {
    fn from(error: &StoreError) -> Self {
        match error {
            StoreError::NotFound(_)
            | StoreError::Elsewhere { .. }
            | StoreError::TooShort(_)
            | StoreError::NoLast => Self::SessionNotFound,
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
            | ClientError::Unstarted
            | ClientError::Silent => Self::KeeperUnavailable,
        }
    }
}

impl From<&FileError> for ErrorCode {
    fn from(error: &FileError) -> Self {
        match error {
            FileError::Outside(_) => Self::OutsideWorkspace,
            FileError::BadPath(..) => Self::BadPath,
            FileError::NotFound(_) => Self::FileNotFound,
            FileError::Exists(_) => Self::FileExists,
            FileError::NotADirectory(_) => Self::NotADirectory,
            FileError::IsADirectory(_) => Self::IsADirectory,
            FileError::NotAFile(_) => Self::NotAFile,
            FileError::NotEmpty(_) => Self::DirectoryNotEmpty,
            FileError::Denied(_) => Self::PermissionDenied,
            FileError::TooManyWatches(_) => Self::TooManyWatches,
            FileError::BadArchive(_) => Self::BadArchive,
            FileError::NoRoom(_) | FileError::Io { .. } => Self::Storage,
        }
    }
}

impl From<NoView> for Error {
    fn from(error: NoView) -> Self {
        let hint = "run a command in the session, which starts its kernel".into();
        Self { hint, ..Self::new(ErrorCode::KernelUnavailable, error.to_string()) }
    }
}

impl From<FileError> for Error {
    fn from(error: FileError) -> Self {
        let no_room = matches!(error, FileError::NoRoom(_)).then_some(Shortage::Disk);
        let shortage = no_room.or_else(|| Shortage::behind(&error));
        Self::new((&error).into(), error.to_string()).advised(shortage)
    }
}

impl From<LayerRefused> for Error {
    fn from(refused: LayerRefused) -> Self {
        let message = refused.to_string();
        match refused {
            LayerRefused::NoSandbox(_) | LayerRefused::Direct(_) => {
                Self::new(ErrorCode::NoLayer, message)
            }
            LayerRefused::Policy(_) => Self::new(ErrorCode::Storage, message),
            LayerRefused::NoView(error) => error.into(),
            LayerRefused::Layer(error) => Self::new((&error).into(), message),
            LayerRefused::Store(error) => error.into(),
        }
    }
}

impl From<&LayerError> for ErrorCode {
    fn from(error: &LayerError) -> Self {
        match error {
            LayerError::BadPath(..) => Self::BadPath,
            LayerError::Unchanged(_) => Self::FileNotFound,
            LayerError::Conflict { .. } | LayerError::Raced { .. } => Self::LayerConflict,
            LayerError::Halted { why, .. } => (&**why).into(),
            LayerError::Io { source, .. }
                if source.kind() == std::io::ErrorKind::PermissionDenied =>
            {
                Self::PermissionDenied
            }
            LayerError::Io { .. } => Self::Storage,
        }
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        Self::new(failure.code.into(), failure.message).advised(failure.shortage)
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        Self::new((&error).into(), error.to_string()).advised(Shortage::behind(&error))
    }
}

impl From<ClientError> for Error {
    fn from(error: ClientError) -> Self {
        if let ClientError::Ended(ended) = &error {
            return Self::new(ErrorCode::SessionEnded, ended.what_happened())
                .saying(ended.advice_for_callers().into());
        }
        Self::new((&error).into(), error.to_string()).advised(error.shortage())
    }
}

impl From<PortError> for Error {
    fn from(error: PortError) -> Self {
        let code = match error {
            PortError::NotOpen { .. } => ErrorCode::PortNotOpen,
            PortError::Connect { .. } | PortError::Network(_) => ErrorCode::PortFailed,
        };
        Self::new(code, error.to_string())
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
