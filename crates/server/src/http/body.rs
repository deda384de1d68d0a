//! Extractors for requests, with our own error messages.

use super::App;
use super::wire::whole;
use crate::service::{Caller, CutOff, ErrorCode, Piece, Service, ServiceError, Upload, internal};
use axum::body::BodyDataStream;
use axum::extract::rejection::QueryRejection;
use axum::extract::{FromRequest, FromRequestParts, Query, RawPathParams, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use futures_util::StreamExt;
use serde::de::DeserializeOwned;
use sessile_gateway::input;
use sessile_protocol::{RunNo, SessionId};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::Sender;

/// A JSON body.
pub(super) struct Body<T>(pub(super) T);

impl<T: DeserializeOwned> FromRequest<App> for Body<T> {
    type Rejection = ServiceError;

    async fn from_request(request: Request, app: &App) -> Result<Self, ServiceError> {
        if !is_json(request.headers()) {
            let message = "this takes JSON";
            return Err(ServiceError::new(ErrorCode::UnsupportedMediaType, message));
        }
        let announced = BodyHeaders::by(request.headers());
        let bytes = read(request.into_body(), announced, app.service.limits().body).await?;
        if bytes.is_empty() {
            let message = "the request body is empty; send a JSON object, {} at the least";
            return Err(ServiceError::new(ErrorCode::BadRequest, message));
        }
        match input::from_slice(&bytes) {
            Ok(value) => Ok(Self(value)),
            Err(error) => {
                let message = format!("the request body is not valid: {error}");
                Err(ServiceError::new(ErrorCode::BadRequest, message))
            }
        }
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let kind = kind.and_then(|kind| kind.split(';').next()).unwrap_or_default().trim();
    kind.eq_ignore_ascii_case("application/json")
        || (kind.starts_with("application/") && kind.ends_with("+json"))
}

/// How much of an oversized body is still read, and for how long: a client that is cut
/// off while it sends does not read the refusal.
const PATIENCE_BYTES: usize = 256 << 20;
const PATIENCE: Duration = Duration::from_secs(10);

/// A client that sends nothing for this long waits for the answer.
const SILENCE: Duration = Duration::from_secs(1);

fn cut_off() -> ServiceError {
    ServiceError::new(ErrorCode::BadRequest, "the body was cut off")
}

async fn discard(chunks: &mut BodyDataStream) {
    let rest = async {
        let mut discarded = 0;
        while let Ok(Some(Ok(chunk))) = tokio::time::timeout(SILENCE, chunks.next()).await
            && discarded < PATIENCE_BYTES
        {
            discarded += chunk.len();
        }
    };
    let _ = tokio::time::timeout(PATIENCE, rest).await;
}

/// Receives a file in a body, of any permitted size, without holding all of it in memory.
pub(super) async fn receive(
    service: &Service,
    headers: &HeaderMap,
    body: axum::body::Body,
) -> Result<Upload, ServiceError> {
    service.check_restoring()?;
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    if !kind.is_some_and(|kind| kind.eq_ignore_ascii_case("application/octet-stream")) {
        let hint = "send the file with `Content-Type: application/octet-stream`";
        let refused = ServiceError::new(ErrorCode::UnsupportedMediaType, "this takes a file");
        return Err(refused.with_hint(hint));
    }
    let mut upload = service.begin_upload().await?;
    let mut chunks = body.into_data_stream();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(|_| cut_off())?;
        if let Err(refused) = upload.write(&chunk).await {
            discard(&mut chunks).await;
            return Err(refused);
        }
    }
    Ok(upload)
}

/// Passes a body on as it comes, of any size. When the receiver is gone, the rest is
/// still read, up to a limit: a client that is cut off while it sends does not read the refusal.
pub(super) async fn forward_body(body: axum::body::Body, into: Sender<Piece>) {
    let mut chunks = body.into_data_stream();
    while let Some(chunk) = chunks.next().await {
        let piece = chunk.map_err(|_| CutOff);
        let is_cut_off = piece.is_err();
        if into.send(piece).await.is_err() {
            discard(&mut chunks).await;
            return;
        }
        if is_cut_off {
            return;
        }
    }
}

/// Fails if the body is not empty.
pub(super) async fn expect_nothing(body: axum::body::Body) -> Result<(), ServiceError> {
    let mut chunks = body.into_data_stream();
    while let Some(chunk) = chunks.next().await {
        if !chunk.map_err(|_| cut_off())?.is_empty() {
            discard(&mut chunks).await;
            let message = "the file is in the body, or named by path, not both";
            return Err(ServiceError::new(ErrorCode::BadRequest, message));
        }
    }
    Ok(())
}

/// What the headers say about the body.
struct BodyHeaders {
    length: Option<usize>,
    /// The client sends the body only after `100 Continue`.
    is_held_back: bool,
}

impl BodyHeaders {
    fn by(headers: &HeaderMap) -> Self {
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
        let length = text(header::CONTENT_LENGTH).and_then(|length| length.parse().ok());
        let expected = text(header::EXPECT).unwrap_or_default();
        Self { length, is_held_back: expected.eq_ignore_ascii_case("100-continue") }
    }
}

/// Reads the body of a request with these headers, as a whole.
pub(crate) async fn read_all(
    headers: &HeaderMap,
    body: axum::body::Body,
    limit: usize,
) -> Result<Vec<u8>, ServiceError> {
    read(body, BodyHeaders::by(headers), limit).await
}

/// Reads a body as a whole. A body announced as too large is not kept at all; one of
/// unknown length is kept up to the limit.
async fn read(
    body: axum::body::Body,
    BodyHeaders { length, is_held_back }: BodyHeaders,
    limit: usize,
) -> Result<Vec<u8>, ServiceError> {
    let too_large = || {
        let message = format!("the body is over the limit of {limit} bytes");
        ServiceError::new(ErrorCode::TooLarge, message)
    };
    let mut chunks = body.into_data_stream();
    if length.is_some_and(|length| length > limit) {
        // Reading would send `100 Continue`.
        if !is_held_back {
            discard(&mut chunks).await;
        }
        return Err(too_large());
    }
    // Reserved at once: a growing vector would hold the body twice at its last copy.
    // Reserved memory costs nothing until it is used.
    let mut bytes = Vec::with_capacity(length.unwrap_or(0));
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(|_| cut_off())?;
        if bytes.len() + chunk.len() > limit {
            drop(bytes);
            discard(&mut chunks).await;
            return Err(too_large());
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
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
    let text = rejection.body_text();
    let why = text.strip_prefix("Failed to deserialize query string: ").unwrap_or(&text);
    ServiceError::bad_request(format!("the query is not valid: {why}"))
}

/// The session in a path, by id or name.
pub(super) struct Session(pub(super) SessionId);

impl FromRequestParts<App> for Session {
    type Rejection = ServiceError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ServiceError> {
        let given = path_parameter(parts, app, "id").await?;
        app.service.resolve(caller(parts)?, &given).await.map(Self)
    }
}

/// A call for the agent in a path, by its session. An agent whose session is gone goes on
/// from what is left of it.
pub(super) struct AgentCall {
    pub(super) service: Arc<Service>,
    pub(super) caller: Caller,
    pub(super) id: SessionId,
}

impl FromRequestParts<App> for AgentCall {
    type Rejection = ServiceError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ServiceError> {
        let given = path_parameter(parts, app, "id").await?;
        let (service, caller) = (app.service.clone(), caller(parts)?.clone());
        let id = service.resolve_agent(&caller, &given).await?;
        Ok(Self { service, caller, id })
    }
}

/// The session and run in a path.
pub(super) struct SessionRun(pub(super) SessionId, pub(super) RunNo);

impl FromRequestParts<App> for SessionRun {
    type Rejection = ServiceError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ServiceError> {
        let Session(id) = Session::from_request_parts(parts, app).await?;
        let run = path_parameter(parts, app, "run").await?;
        match whole(&run) {
            Some(number) => Ok(Self(id, RunNo(number))),
            None => {
                let message = format!("{run:?} is not the number of a run");
                Err(ServiceError::new(ErrorCode::RunNotFound, message))
            }
        }
    }
}

/// A checkpoint of a session.
pub(super) struct SessionCheckpoint(pub(super) SessionId, pub(super) String);

impl FromRequestParts<App> for SessionCheckpoint {
    type Rejection = ServiceError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ServiceError> {
        let Session(id) = Session::from_request_parts(parts, app).await?;
        let name = path_parameter(parts, app, "name").await?;
        Ok(Self(id, name))
    }
}

/// A process of a session.
pub(super) struct SessionJob(pub(super) SessionId, pub(super) u32);

impl FromRequestParts<App> for SessionJob {
    type Rejection = ServiceError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ServiceError> {
        let Session(id) = Session::from_request_parts(parts, app).await?;
        let pid = path_parameter(parts, app, "pid").await?;
        match whole(&pid).and_then(|pid| u32::try_from(pid).ok()) {
            Some(pid) => Ok(Self(id, pid)),
            None => {
                let message = format!("{pid:?} is not the number of a process");
                Err(ServiceError::new(ErrorCode::JobNotFound, message))
            }
        }
    }
}

/// A port of a session.
pub(super) struct SessionPort(pub(super) SessionId, pub(super) u16);

impl FromRequestParts<App> for SessionPort {
    type Rejection = ServiceError;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, ServiceError> {
        let Session(id) = Session::from_request_parts(parts, app).await?;
        let port = path_parameter(parts, app, "port").await?;
        match port.parse() {
            Ok(port @ 1..) => Ok(Self(id, port)),
            Ok(0) | Err(_) => {
                let message = format!("{port:?} is not the number of a port");
                Err(ServiceError::new(ErrorCode::PortNotOpen, message))
            }
        }
    }
}

/// Returns a parameter of the path.
async fn path_parameter(
    parts: &mut Parts,
    app: &App,
    name: &'static str,
) -> Result<String, ServiceError> {
    match RawPathParams::from_request_parts(parts, app).await {
        Ok(all) => {
            let found = all.iter().find(|(known, _)| *known == name);
            let missing = || internal("a path without one of its parameters");
            found.map(|(_, value)| value.to_owned()).ok_or_else(missing)
        }
        Err(refused) => {
            let message = format!("Invalid URL: {}", refused.body_text());
            Err(ServiceError::new(ErrorCode::NotFound, message))
        }
    }
}

fn caller(parts: &Parts) -> Result<&Caller, ServiceError> {
    parts.extensions.get::<Caller>().ok_or_else(|| internal("a request without a caller"))
}
