//! Sessions.

use super::App;
use super::body::{Body, Params, Session};
use super::wire::{self, span_text};
use crate::service::{Caller, Filter, ServiceError, StartSession};
use axum::extract::State;
use axum::http::StatusCode;
use axum::{Extension, Json};
use serde::{Deserialize, Deserializer};
use serde_json::{Value, json};
use sessile_protocol::{RunNo, SessionId};
use utoipa::IntoParams;

type Answer = Result<Json<Value>, ServiceError>;

impl From<wire::StartSession> for StartSession {
    fn from(body: wire::StartSession) -> Self {
        Self {
            shell: body.shell,
            workspace: body.workspace,
            cwd: body.cwd,
            env: body.env.0,
            idle_timeout_ms: body.idle_timeout.map(|span| span.0),
            command_timeout_ms: body.command_timeout.map(|span| span.0),
            max_history: body.max_history,
            output_cap: body.limits.output,
            name: body.name,
            auto: body.auto.0,
            durable: body.durable,
        }
    }
}

/// Start a session
#[utoipa::path(
    post, path = "/v1/sessions", tag = "sessions",
    request_body = wire::StartSession,
    responses(
        (status = 201, body = wire::Started),
        (status = "4XX", body = wire::ErrorBody),
        (status = 503, body = wire::ErrorBody),
    )
)]
pub(super) async fn start(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Body(body): Body<wire::StartSession>,
) -> Result<(StatusCode, Json<Value>), ServiceError> {
    let metadata = app.service.start(&caller, body.into()).await?;
    let answer = sessile_gateway::started(&metadata);
    Ok((StatusCode::CREATED, Json(answer.into())))
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct ListQuery {
    /// Only sessions of this workspace
    workspace: Option<String>,
    /// Only sessions of this status: starting, active, terminated or lost
    #[param(inline)]
    status: Option<Status>,
    /// Sessions on a page
    #[serde(default, deserialize_with = "page")]
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u64>,
    /// `next` of the page before
    #[param(value_type = Option<String>, pattern = "^sess_[0-9a-f]{4,64}$")]
    after: Option<SessionId>,
}

fn page<'de, D: Deserializer<'de>>(d: D) -> Result<Option<u64>, D::Error> {
    wire::within_text(d, 1, 1000)
}

fn entries<'de, D: Deserializer<'de>>(d: D) -> Result<Option<u64>, D::Error> {
    wire::within_text(d, 0, 100_000)
}

#[derive(Clone, Copy, Debug, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum Status {
    Starting,
    Active,
    Terminated,
    Lost,
}

impl Status {
    fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Active => "active",
            Self::Terminated => "terminated",
            Self::Lost => "lost",
        }
    }
}

/// List sessions, newest first, ended ones included
#[utoipa::path(
    get, path = "/v1/sessions", tag = "sessions", params(ListQuery),
    responses((status = 200, body = wire::SessionPage), (status = "4XX", body = wire::ErrorBody))
)]
pub(super) async fn list(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Params(query): Params<ListQuery>,
) -> Answer {
    let filter = Filter {
        workspace: query.workspace,
        status: query.status.map(|status| status.as_str().to_owned()),
        after: query.after,
        limit: usize::try_from(query.limit.unwrap_or(100)).unwrap_or(1000),
    };
    let (sessions, next) = app.service.list(&caller, &filter).await?;
    Ok(Json(json!({"sessions": sessions, "next": next})))
}

/// End all sessions
#[utoipa::path(
    delete, path = "/v1/sessions", tag = "sessions",
    responses((status = 200, body = wire::Anything), (status = "4XX", body = wire::ErrorBody))
)]
pub(super) async fn end_all(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
) -> Answer {
    let ended = app.service.end_all(&caller).await?;
    Ok(Json(json!({"status": "terminated", "session_ids": ended})))
}

/// A session's metadata
#[utoipa::path(
    get, path = "/v1/sessions/{id}", tag = "sessions",
    params(("id" = String, Path, description = "The session")),
    responses((status = 200, body = wire::SessionInfo), (status = "4XX", body = wire::ErrorBody))
)]
pub(super) async fn show(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Session(id): Session,
) -> Answer {
    Ok(Json(json!(app.service.session(&caller, &id).await?)))
}

/// End a session and everything that it started
#[utoipa::path(
    delete, path = "/v1/sessions/{id}", tag = "sessions",
    params(("id" = String, Path, description = "The session")),
    responses((status = 200, body = wire::Anything), (status = "4XX", body = wire::ErrorBody))
)]
pub(super) async fn end(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Session(id): Session,
) -> Answer {
    app.service.end(&caller, &id).await?;
    Ok(Json(json!({"status": "terminated", "session_id": id})))
}

/// The state of the live kernels
#[utoipa::path(
    get, path = "/v1/sessions/{id}/state", tag = "sessions",
    params(("id" = String, Path, description = "The session")),
    responses((status = 200, body = wire::Anything), (status = "4XX", body = wire::ErrorBody))
)]
pub(super) async fn state(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Session(id): Session,
) -> Answer {
    Ok(Json(app.service.state(&caller, &id).await?.into()))
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct HistoryQuery {
    /// The newest so many
    #[serde(default, deserialize_with = "entries")]
    #[param(minimum = 0, maximum = 100_000)]
    pub(super) limit: Option<u64>,
}

/// What was run, newest last
#[utoipa::path(
    get, path = "/v1/sessions/{id}/history", tag = "sessions",
    params(("id" = String, Path, description = "The session"), HistoryQuery),
    responses((status = 200, body = Vec<wire::HistoryRow>), (status = "4XX", body = wire::ErrorBody))
)]
pub(super) async fn history(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Session(id): Session,
    Params(query): Params<HistoryQuery>,
) -> Answer {
    Ok(Json(app.service.history(&caller, &id, query.limit.unwrap_or(20)).await?))
}

/// Fresh kernels, empty history, same id
#[utoipa::path(
    post, path = "/v1/sessions/{id}/reset", tag = "sessions",
    params(("id" = String, Path, description = "The session")),
    responses((status = 200, body = wire::Anything), (status = "4XX", body = wire::ErrorBody))
)]
pub(super) async fn reset(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Session(id): Session,
) -> Answer {
    let told = app.service.reset(&caller, &id).await?;
    Ok(Json(json!({
        "status": "reset",
        "session_id": id,
        "continuity": told.continuity.to_json(),
    })))
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct WaitQuery {
    /// How long to wait for the result, such as `30s`
    #[serde(default, deserialize_with = "span_text")]
    #[param(value_type = Option<wire::Span>)]
    pub(super) wait: Option<wire::Span>,
    /// Bytes of each stream that the answer may carry
    pub(super) max_output: Option<u64>,
}

/// Interrupt a run, or whatever is running, and keep the state
#[utoipa::path(
    post, path = "/v1/sessions/{id}/interrupt", tag = "sessions",
    params(("id" = String, Path, description = "The session")),
    request_body = wire::InterruptRequest,
    responses((status = 200, body = wire::Anything), (status = "4XX", body = wire::ErrorBody))
)]
pub(super) async fn interrupt(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Session(id): Session,
    Body(body): Body<wire::InterruptRequest>,
) -> Answer {
    let run = app.service.interrupt(&caller, &id, body.run.map(RunNo)).await?;
    Ok(Json(json!({"interrupted": run.is_some(), "run": run})))
}
