//! The events of a session, as server-sent events.

use super::body::{Params, Session};
use super::stream::{KEEP_ALIVE, failure};
use super::{App, wire};
use crate::service::{
    Caller, ErrorCode, ReadFrom, RunsFollower, ServiceError, SessionEvent, SessionFollower,
    TranscriptEvent,
};
use axum::Extension;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::sse::{Event as Message, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::{Stream, stream};
use serde::{Deserialize, Deserializer};
use serde_json::json;
use sessile_gateway::answer::RunRow;
use sessile_gateway::following::Detail;
use sessile_protocol::RunNo;
use sessile_store::SessionStatus;
use std::convert::Infallible;
use std::str::FromStr;
use utoipa::IntoParams;

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct EventsQuery {
    /// Include the output and the end of the runs
    #[serde(default)]
    output: bool,
    /// With `output`: begin with this many finished runs
    #[serde(default, deserialize_with = "tail")]
    #[param(minimum = 0, maximum = 1000)]
    tail: Option<u64>,
}

fn tail<'de, D: Deserializer<'de>>(d: D) -> Result<Option<u64>, D::Error> {
    wire::within_text(d, 0, 1000)
}

/// Stream the runs of a session
///
/// Starts with the unfinished runs. Sends `run` for each accepted run of any client, with its
/// number as id; the run's own events are at `/v1/sessions/{id}/runs/{run}/events`. With
/// `output=true`, sends the events of all runs instead: `started` with the command, `stdout`,
/// `stderr`, `exited` with the exit code, and `closed` when nothing can write any more.
/// `cancelled`, with the `code` and `message` of the error, is for a run that never began or
/// whose end is unknown. `ended` is sent when the session has ended or is lost.
/// `Last-Event-ID` continues after that event.
#[utoipa::path(
    get, path = "/v1/sessions/{id}/events", operation_id = "follow_session", tag = "sessions",
    params(
        wire::SessionParam,
        EventsQuery,
        ("Last-Event-ID" = Option<String>, Header, pattern = r"^[0-9]{1,18}(_[0-9.~qrx]{1,80}){0,100}$", description = "The id of the last event that was received"),
    ),
    responses((status = 200, content_type = "text/event-stream", body = wire::ServerSentEvent))
)]
pub(super) async fn session_events(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Session(id): Session,
    Params(query): Params<EventsQuery>,
    headers: HeaderMap,
) -> Result<Response, ServiceError> {
    let guard = app.service.open_stream()?;
    if query.output {
        let beginning = match last_id(&headers)? {
            Some(position) => ReadFrom::After(position),
            None => ReadFrom::Newest(query.tail.unwrap_or(0)),
        };
        let follower = app.service.follow_session(&caller, &id, beginning, Detail::Output).await?;
        return Ok(respond(stream::unfold(
            (Some(follower), guard),
            |(follower, guard)| async move {
                let mut follower = follower?;
                let message = happening(&mut follower).await.transpose()?;
                let (message, follower) = match message {
                    Ok(message) => (message, Some(follower)),
                    // The client may reconnect with its last id.
                    Err(error) => (failure(&error), None),
                };
                Some((Ok(message), (follower, guard)))
            },
        )));
    }
    if query.tail.is_some() {
        let message = "tail goes with output=true";
        return Err(ServiceError::new(ErrorCode::BadRequest, message));
    }
    let after = last_id(&headers)?.map(RunNo);
    let follower = app.service.follow_runs(&caller, &id, after).await?;
    Ok(respond(stream::unfold((follower, guard), |(mut follower, guard)| async move {
        let message = accepted(&mut follower).await?;
        Some((Ok(message), (follower, guard)))
    })))
}

fn respond(events: impl Stream<Item = Result<Message, Infallible>> + Send + 'static) -> Response {
    Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response()
}

/// Returns the position from which a reconnecting client continues.
fn last_id<T: FromStr>(headers: &HeaderMap) -> Result<Option<T>, ServiceError> {
    let Some(last) = headers.get("last-event-id") else { return Ok(None) };
    let text = last.to_str().unwrap_or_default();
    text.parse().map(Some).map_err(|_| {
        let shown: String = text.chars().take(100).collect();
        let message = format!("{shown:?} is not the id of an event; use the `id` of one that you were sent, or leave it out");
        ServiceError::new(ErrorCode::BadRequest, message)
    })
}

async fn happening(follower: &mut SessionFollower) -> Result<Option<Message>, ServiceError> {
    Ok(match follower.next().await? {
        None => None,
        Some(TranscriptEvent::Ended(status)) => Some(ended(status)),
        Some(TranscriptEvent::Run(event)) => {
            let data = json!(event.fields()).to_string();
            let id = follower.position().to_string();
            Some(Message::default().id(id).event(event.name()).data(data))
        }
    })
}

async fn accepted(follower: &mut RunsFollower) -> Option<Message> {
    // A failed stream ends; the client may reconnect with its last id.
    match follower.next().await.ok()?? {
        SessionEvent::Run(run) => {
            let data = json!(RunRow::from(&*run)).to_string();
            Some(Message::default().id(run.run.to_string()).event("run").data(data))
        }
        SessionEvent::NotARun(entry) => {
            let data = json!(RunRow::from(&*entry)).to_string();
            let name = entry.event.as_deref().unwrap_or_default();
            Some(Message::default().id(entry.run.to_string()).event(name).data(data))
        }
        SessionEvent::Ended(status) => Some(ended(status)),
    }
}

fn ended(status: SessionStatus) -> Message {
    Message::default().event("ended").data(json!(wire::SessionEnd { status }).to_string())
}
