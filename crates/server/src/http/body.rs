//! Reading requests, with refusals in our own words.

use crate::service::{ErrorCode, ServiceError};
use axum::extract::rejection::{JsonRejection, PathRejection, QueryRejection};
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::StatusCode;
use axum::http::request::Parts;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use sessile_protocol::{RunNo, SessionId};

/// A JSON body.
pub(super) struct Body<T>(pub(super) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = ServiceError;

    async fn from_request(request: Request, state: &S) -> Result<Self, ServiceError> {
        match axum::Json::<T>::from_request(request, state).await {
            Ok(axum::Json(value)) => Ok(Self(value)),
            Err(rejection) => Err(refuse_body(&rejection)),
        }
    }
}

fn refuse_body(rejection: &JsonRejection) -> ServiceError {
    let code = match rejection.status() {
        StatusCode::PAYLOAD_TOO_LARGE => ErrorCode::TooLarge,
        StatusCode::UNSUPPORTED_MEDIA_TYPE => ErrorCode::UnsupportedMediaType,
        _ => ErrorCode::BadRequest,
    };
    ServiceError::new(code, rejection.body_text())
}

/// A query.
pub(super) struct Params<T>(pub(super) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Params<T> {
    type Rejection = ServiceError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ServiceError> {
        match Query::<T>::from_request_parts(parts, state).await {
            Ok(Query(value)) => Ok(Self(value)),
            Err(rejection) => Err(refuse_query(&rejection)),
        }
    }
}

fn refuse_query(rejection: &QueryRejection) -> ServiceError {
    ServiceError::new(ErrorCode::BadRequest, rejection.body_text())
}

/// The session in a path. What cannot be a session's id is none that is here.
pub(super) struct Session(pub(super) SessionId);

impl<S: Send + Sync> FromRequestParts<S> for Session {
    type Rejection = ServiceError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ServiceError> {
        #[derive(Deserialize)]
        struct Place {
            id: String,
        }
        let Path(place) =
            Path::<Place>::from_request_parts(parts, state).await.map_err(|r| refuse_path(&r))?;
        match place.id.parse() {
            Ok(id) => Ok(Self(id)),
            Err(invalid) => {
                Err(ServiceError::new(ErrorCode::SessionNotFound, format!("{invalid}")))
            }
        }
    }
}

/// The session and run in a path.
pub(super) struct SessionRun(pub(super) SessionId, pub(super) RunNo);

impl<S: Send + Sync> FromRequestParts<S> for SessionRun {
    type Rejection = ServiceError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ServiceError> {
        #[derive(Deserialize)]
        struct Place {
            run: String,
        }
        let Session(id) = Session::from_request_parts(parts, state).await?;
        let Path(place) =
            Path::<Place>::from_request_parts(parts, state).await.map_err(|r| refuse_path(&r))?;
        match place.run.parse() {
            Ok(number) => Ok(Self(id, RunNo(number))),
            Err(_) => {
                let message = format!("{:?} is not the number of a run", place.run);
                Err(ServiceError::new(ErrorCode::RunNotFound, message))
            }
        }
    }
}

fn refuse_path(rejection: &PathRejection) -> ServiceError {
    ServiceError::new(ErrorCode::NotFound, rejection.body_text())
}
