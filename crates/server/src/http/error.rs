//! Errors as HTTP responses.

use super::wire::ErrorBody;
use crate::service::{ErrorCode, ServiceError};
use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

fn status(code: ErrorCode) -> StatusCode {
    match code {
        ErrorCode::BadRequest
        | ErrorCode::BadCommand
        | ErrorCode::BadDirectory
        | ErrorCode::BadFile
        | ErrorCode::BadPath
        | ErrorCode::BadArchive
        | ErrorCode::NotADirectory
        | ErrorCode::IsADirectory
        | ErrorCode::NotAFile
        | ErrorCode::UnknownProgram => StatusCode::BAD_REQUEST,
        ErrorCode::Unauthorized => StatusCode::UNAUTHORIZED,
        ErrorCode::Forbidden
        | ErrorCode::Untrusted
        | ErrorCode::OutsideWorkspace
        | ErrorCode::PermissionDenied
        | ErrorCode::HostNotAllowed
        | ErrorCode::OriginNotAllowed => StatusCode::FORBIDDEN,
        ErrorCode::NotFound
        | ErrorCode::SessionNotFound
        | ErrorCode::RunNotFound
        | ErrorCode::JobNotFound
        | ErrorCode::PortNotOpen
        | ErrorCode::FileNotFound
        | ErrorCode::AgentNotFound
        | ErrorCode::CheckpointNotFound => StatusCode::NOT_FOUND,
        ErrorCode::Busy
        | ErrorCode::FileExists
        | ErrorCode::NoLayer
        | ErrorCode::LayerConflict
        | ErrorCode::DirectoryNotEmpty
        | ErrorCode::CheckpointExists
        | ErrorCode::NameTaken
        | ErrorCode::Ambiguous => StatusCode::CONFLICT,
        ErrorCode::CheckpointLost => StatusCode::GONE,
        ErrorCode::ForkFailed => StatusCode::SERVICE_UNAVAILABLE,
        ErrorCode::PortFailed => StatusCode::BAD_GATEWAY,
        ErrorCode::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
        ErrorCode::VersionMismatch
        | ErrorCode::KeyReused
        | ErrorCode::InputClosed
        | ErrorCode::NoTerminal
        | ErrorCode::QueueTimeout
        | ErrorCode::RunCancelled => StatusCode::CONFLICT,
        ErrorCode::SessionEnded | ErrorCode::RunLost | ErrorCode::AgentMoved => StatusCode::GONE,
        ErrorCode::BadRange => StatusCode::RANGE_NOT_SATISFIABLE,
        ErrorCode::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        ErrorCode::UnsupportedMediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
        ErrorCode::QueueFull
        | ErrorCode::TooManySessions
        | ErrorCode::TooManyStreams
        | ErrorCode::TooManyWatches => StatusCode::TOO_MANY_REQUESTS,
        ErrorCode::KernelUnavailable
        | ErrorCode::SandboxUnavailable
        | ErrorCode::KeeperUnavailable
        | ErrorCode::KeeperStopped
        | ErrorCode::TooManyConnections
        | ErrorCode::ShuttingDown
        | ErrorCode::Storage => StatusCode::SERVICE_UNAVAILABLE,
        ErrorCode::Internal => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// Returns the seconds to wait before another try.
fn retry_after(status: StatusCode) -> Option<HeaderValue> {
    match status {
        StatusCode::TOO_MANY_REQUESTS => Some(HeaderValue::from_static("5")),
        StatusCode::SERVICE_UNAVAILABLE => Some(HeaderValue::from_static("1")),
        _ => None,
    }
}

/// The code of a refusal, passed to the outer layers for the metrics.
#[derive(Clone, Copy, Debug)]
pub(super) struct Refused(pub(super) ErrorCode);

impl IntoResponse for ServiceError {
    fn into_response(self) -> Response {
        let status = status(self.code);
        let mut response = (status, Json(ErrorBody::from(&self))).into_response();
        if let Some(seconds) = retry_after(status) {
            response.headers_mut().insert(header::RETRY_AFTER, seconds);
        }
        if status == StatusCode::UNAUTHORIZED {
            let scheme = HeaderValue::from_static("Bearer");
            response.headers_mut().insert(header::WWW_AUTHENTICATE, scheme);
        }
        response.extensions_mut().insert(Refused(self.code));
        response
    }
}
