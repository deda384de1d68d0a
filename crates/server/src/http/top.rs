//! The activity of sessions: once, or as server-sent events.

use super::body::Params;
use super::runs::wants_events;
use super::stream::KEEP_ALIVE;
use super::wire::{self, span_text};
use super::{App, stream};
use crate::service::{Caller, Scope, ServiceError, StreamGuard, TopWatch, internal};
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::sse::{Event as Message, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use futures_util::stream::unfold;
use serde::{Deserialize, Serialize};
use sessile_client::top::{FIRST, Row};
use std::convert::Infallible;
use std::time::Duration;
use utoipa::{IntoParams, ToSchema};

/// A shorter interval would be a load in itself, and below the resolution of CPU times.
const LEAST_INTERVAL: Duration = Duration::from_millis(100);

/// Callers that want one answer, and proxies, wait at least this long.
const MOST_INTERVAL: Duration = Duration::from_secs(10);

/// Default interval between two events.
const INTERVAL: Duration = Duration::from_secs(1);

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct TopQuery {
    /// The time over which CPU is measured, such as `500ms`; in a stream, the time between
    /// events. Limited to `100ms` … `10s`
    #[serde(default, deserialize_with = "span_text")]
    #[param(value_type = Option<wire::Span>)]
    interval: Option<wire::Span>,
    /// Include ended and lost sessions
    #[serde(default)]
    all: bool,
}

/// The activity of sessions
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Top {
    sessions: Vec<Row>,
}

impl TopQuery {
    fn interval(&self, usual: Duration) -> Duration {
        let given = self.interval.as_ref().map(|span| Duration::from_millis(span.0));
        given.unwrap_or(usual).clamp(LEAST_INTERVAL, MOST_INTERVAL)
    }
}

/// Show runs, CPU and memory of sessions, newest first
///
/// CPU (of one processor) and memory cover everything that a session has started. With
/// `Accept: text/event-stream`, streams an event `top` after each interval.
#[utoipa::path(
    get, path = "/v1/top", operation_id = "top", tag = "sessions", params(TopQuery),
    responses((status = 200, content((Top = "application/json"), (wire::ServerSentEvent = "text/event-stream"))))
)]
pub(super) async fn top(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Params(query): Params<TopQuery>,
    headers: HeaderMap,
) -> Result<Response, ServiceError> {
    let scope = if query.all { Scope::All } else { Scope::Live };
    if !wants_events(&headers) {
        let rows = app.service.top(&caller, scope, query.interval(FIRST)).await?;
        return Ok(Json(Top { sessions: rows }).into_response());
    }
    let guard = app.service.open_stream()?;
    let mut watch = app.service.watch_top(&caller, scope);
    watch.look().await?;
    let interval = query.interval(INTERVAL);
    let looking = TopStream { watch, interval, pause: FIRST.min(interval), _guard: guard };
    let events = unfold(Some(looking), |looking| async move {
        let mut looking = looking?;
        let message = looking.next().await;
        let next = message.is_ok().then_some(looking);
        let message = message.unwrap_or_else(|error| stream::failure(&error));
        Some((Ok::<_, Infallible>(message), next))
    });
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response())
}

struct TopStream {
    watch: TopWatch,
    interval: Duration,
    /// The time until the next look; the first one is short.
    pause: Duration,
    _guard: StreamGuard,
}

impl TopStream {
    async fn next(&mut self) -> Result<Message, ServiceError> {
        tokio::time::sleep(self.pause).await;
        self.pause = self.interval;
        let rows = self.watch.look().await?;
        let message = Message::default().event("top").json_data(Top { sessions: rows });
        message.map_err(|error| internal(&error.to_string()))
    }
}
