//! Errors of the service: those of the gateway, wrapped so that traits can be
//! implemented.

use crate::keepers::LinkError;
use sessile_client::ClientError;
use sessile_gateway::{Error, ErrorCode};
use std::ops::Deref;

#[derive(Clone, Debug, thiserror::Error)]
#[error(transparent)]
pub struct ServiceError(Error);

impl ServiceError {
    #[must_use]
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self(Error::new(code, message))
    }

    #[must_use]
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self(Error::bad_request(message))
    }

    /// Returns the error for an answer of the wrong kind from a keeper.
    #[must_use]
    pub fn unexpected() -> Self {
        Self(Error::unexpected())
    }

    /// Adds advice that fits better than the code's own.
    #[must_use]
    pub(crate) fn with_hint(self, hint: &'static str) -> Self {
        Self(Error { hint: hint.into(), ..self.0 })
    }
}

impl Deref for ServiceError {
    type Target = Error;

    fn deref(&self) -> &Error {
        &self.0
    }
}

impl<E> From<E> for ServiceError
where
    Error: From<E>,
{
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

/// Returns an error that should not happen: only the log has the details.
pub(crate) fn internal(what: &str) -> ServiceError {
    tracing::error!("internal error: {what}");
    ServiceError::new(ErrorCode::Internal, "something went wrong in the server")
}

impl From<LinkError> for Error {
    fn from(error: LinkError) -> Self {
        match error {
            LinkError::Refused(failure) => failure.into(),
            LinkError::Stopped(stopped) => ClientError::from(stopped).into(),
            LinkError::Gone | LinkError::Silent | LinkError::Io(_) | LinkError::Frame(_) => {
                Self::new(ErrorCode::KeeperUnavailable, error.to_string())
            }
        }
    }
}
