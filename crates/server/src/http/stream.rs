//! The events of a run, as server-sent events.

use super::App;
use super::body::SessionRun;
use super::wire;
use crate::service::{Caller, Cursor, Event, Follower, RunOrder, ServiceError, StreamGuard};
use axum::Extension;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::sse::{Event as Message, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde::Serialize;
use sessile_gateway::ErrorDetail;
use sessile_gateway::answer::{Continuity, OutputText, RunResult};
use sessile_protocol::{RunNo, SessionId};
use std::convert::Infallible;
use std::time::Duration;

/// Proxies close a connection that is silent for a minute.
pub(super) const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// The data of an event, the same for server-sent events and WebSocket.
#[derive(Debug, Serialize)]
pub(super) struct EventData {
    seq: u64,
    run: RunNo,
    #[serde(flatten)]
    output: Option<OutputText>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Box<RunResult>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    continuity: Option<Continuity>,
}

impl EventData {
    pub(super) fn of(run: RunNo, cursor: Cursor, event: &Event) -> Self {
        let mut fields =
            Self { seq: cursor.seq, run, output: None, result: None, continuity: None };
        match event {
            Event::Started | Event::Closed => {}
            Event::Stdout(written) | Event::Stderr(written) => {
                fields.output = Some(OutputText::new(&written.bytes, written.skipped));
            }
            Event::Exited(done) => fields.result = Some(Box::new(RunResult::from(&**done))),
        }
        fields
    }
}

/// Returns the position from which a reconnecting client continues.
pub(super) fn cursor(headers: &HeaderMap) -> Result<Cursor, ServiceError> {
    match headers.get("last-event-id") {
        None => Ok(Cursor::default()),
        Some(id) => id.to_str().unwrap_or_default().parse(),
    }
}

/// Begins a run and streams its events.
pub(super) async fn begin(
    app: App,
    caller: Caller,
    id: SessionId,
    order: RunOrder,
    headers: &HeaderMap,
) -> Result<Response, ServiceError> {
    let cursor = cursor(headers)?;
    let guard = app.service.open_stream()?;
    let told = app.service.begin(&caller, &id, order.exec).await?;
    let follower = app.service.follow(&caller, &id, told.answer, cursor).await?;
    Ok(respond(follower, guard, Some(told.continuity)))
}

/// Stream the events of a run
///
/// `started`, `stdout`, `stderr`, `exited` and `closed`, each with an id. `Last-Event-ID`
/// continues after that event.
#[utoipa::path(
    get, path = "/v1/sessions/{id}/runs/{run}/events", operation_id = "follow_run", tag = "runs",
    params(
        wire::SessionParam,
        ("run" = u64, Path, description = "The run's number"),
        ("Last-Event-ID" = Option<String>, Header, pattern = "^[0-9]{1,19}-[0-9]{1,19}-[0-9]{1,19}-[qrxc]$", description = "The id of the last event that was received"),
    ),
    responses((status = 200, content_type = "text/event-stream", body = wire::ServerSentEvent))
)]
pub(super) async fn events(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    SessionRun(id, run): SessionRun,
    headers: HeaderMap,
) -> Result<Response, ServiceError> {
    let cursor = cursor(&headers)?;
    let guard = app.service.open_stream()?;
    let follower = app.service.follow(&caller, &id, run, cursor).await?;
    Ok(respond(follower, guard, None))
}

struct Streaming {
    follower: Follower,
    _guard: StreamGuard,
    continuity: Option<Continuity>,
    has_failed: bool,
}

fn respond(follower: Follower, guard: StreamGuard, continuity: Option<Continuity>) -> Response {
    let streaming = Streaming { follower, _guard: guard, continuity, has_failed: false };
    let events = stream::unfold(streaming, |mut streaming| async move {
        let message = streaming.next().await?;
        Some((Ok::<_, Infallible>(message), streaming))
    });
    Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response()
}

impl Streaming {
    async fn next(&mut self) -> Option<Message> {
        if self.has_failed {
            return None;
        }
        let message = match self.follower.next().await {
            Ok(None) => return None,
            Ok(Some((cursor, event))) => {
                let mut data = EventData::of(self.follower.run, cursor, &event);
                data.continuity = self.continuity.take();
                Message::default().id(cursor.to_string()).event(event.name()).json_data(data)
            }
            // The stream ends here; the client may reconnect with its last id.
            Err(error) => {
                self.has_failed = true;
                Ok(failure(&error))
            }
        };
        message.ok()
    }
}

/// Returns the event that says why a stream ends.
pub(super) fn failure(error: &ServiceError) -> Message {
    let data = ErrorDetail::from(&**error);
    Message::default().event("error").json_data(data).unwrap_or_default()
}
