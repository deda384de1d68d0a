//! Sessions.

use super::body::{Body, Params, Session};
use super::runs;
use super::wire::{self, span_text};
use super::{Answer, App};
use crate::serve::Peer;
use crate::service::{Caller, ErrorCode, Filter, OrderKey, ServiceError, StartSession, program_of};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::{Extension, Json};
use serde::{Deserialize, Deserializer};
use sessile_gateway::answer;
use sessile_protocol::{Program, RunNo, SessionId};
use sessile_store::{Entry, Metadata};
use utoipa::IntoParams;

impl From<wire::StartSession> for StartSession {
    fn from(body: wire::StartSession) -> Self {
        Self {
            id: None,
            shell: body.shell,
            from: body.from,
            workspace: body.workspace,
            cwd: body.cwd,
            env: body.env.0,
            idle_timeout_ms: body.idle_timeout.map(|span| span.0),
            idle_without_runs: body.idle_without_runs,
            command_timeout_ms: body.command_timeout.map(|span| span.0),
            max_history: body.max_history,
            output_cap: body.limits.output.map(|size| size.0.min(wire::MOST_KEPT)),
            sandbox: body.sandbox,
            name: body.name,
            auto: body.auto.0,
            durable: body.durable,
        }
    }
}

/// Start a session
///
/// With a key, a repeated request gets the session of the first one, even from another server
/// or after a restart.
#[utoipa::path(
    post, path = "/v1/sessions", operation_id = "start_session", tag = "sessions",
    params(("Idempotency-Key" = Option<String>, Header, max_length = 255, pattern = "^[!-~]([ -~]*[!-~])?$", description = "A key for this request. A request with the same key gets the session of the first one")),
    request_body = wire::StartSession,
    responses((status = 201, body = answer::Started))
)]
pub(super) async fn start(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Extension(peer): Extension<Peer>,
    headers: HeaderMap,
    Body(body): Body<wire::StartSession>,
) -> Result<(StatusCode, Json<answer::Started>), ServiceError> {
    let program = body.ends_with_caller.then(|| calling_program(peer)).transpose()?;
    // Compares the parsed body, not its spelling.
    let key = runs::key(&headers)?.map(|key| OrderKey::new(key, &format!("session {body:?}")));
    let started = app.service.start_once(&caller, key, body.into()).await?;
    let metadata = started.metadata();
    if let Some(program) = program {
        app.service.end_with(program, &metadata.session_id).await?;
    }
    Ok((StatusCode::CREATED, Json(answer::Started::from(metadata))))
}

pub(super) fn calling_program(peer: Peer) -> Result<Program, ServiceError> {
    peer.0.and_then(program_of).ok_or_else(|| {
        let message = "ends_with_caller is for programs on the same machine, over the socket of a local server";
        ServiceError::new(ErrorCode::Forbidden, message).with_hint("leave it out, and give idle_timeout instead")
    })
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
    /// Maximum number of sessions
    #[serde(default, deserialize_with = "page")]
    #[param(minimum = 1, maximum = 1000)]
    limit: Option<u64>,
    /// `next` of the previous page
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

/// List sessions, newest first, including ended ones
#[utoipa::path(
    get, path = "/v1/sessions", operation_id = "list_sessions", tag = "sessions", params(ListQuery),
    responses((status = 200, body = answer::SessionPage))
)]
pub(super) async fn list(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Params(query): Params<ListQuery>,
) -> Answer<answer::SessionPage> {
    let filter = Filter {
        workspace: query.workspace,
        status: query.status.map(|status| status.as_str().to_owned()),
        after: query.after,
        limit: usize::try_from(query.limit.unwrap_or(100)).unwrap_or(1000),
    };
    let (sessions, next) = app.service.list(&caller, &filter).await?;
    Ok(Json(answer::SessionPage { sessions, next }))
}

/// End all sessions
#[utoipa::path(
    delete, path = "/v1/sessions", operation_id = "end_all_sessions", tag = "sessions",
    responses((status = 200, body = answer::EndedAll))
)]
pub(super) async fn end_all(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
) -> Answer<answer::EndedAll> {
    app.service.end_all(&caller).await.map(Json)
}

/// Get a session's metadata
#[utoipa::path(
    get, path = "/v1/sessions/{id}", operation_id = "show_session", tag = "sessions",
    params(wire::SessionParam),
    responses((status = 200, body = Metadata))
)]
pub(super) async fn show(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Session(id): Session,
) -> Answer<Metadata> {
    app.service.session(&caller, &id).await.map(Json)
}

/// Rename a session
///
/// Ended sessions can be renamed, too. Live sessions of one token need different names (409
/// `name_taken`). `null` removes the name.
#[utoipa::path(
    patch, path = "/v1/sessions/{id}", operation_id = "rename_session", tag = "sessions",
    params(wire::SessionParam),
    request_body = wire::RenameRequest,
    responses((status = 200, body = Metadata))
)]
pub(super) async fn rename(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Session(id): Session,
    Body(body): Body<wire::RenameRequest>,
) -> Answer<Metadata> {
    app.service.rename(&caller, &id, body.name).await.map(Json)
}

/// End a session and everything it started
#[utoipa::path(
    delete, path = "/v1/sessions/{id}", operation_id = "end_session", tag = "sessions",
    params(wire::SessionParam),
    responses((status = 200, body = answer::Ended))
)]
pub(super) async fn end(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Session(id): Session,
) -> Answer<answer::Ended> {
    Ok(Json(answer::Ended::new(app.service.end(&caller, &id).await?)))
}

/// Get the state of the live kernels
#[utoipa::path(
    get, path = "/v1/sessions/{id}/state", operation_id = "show_state", tag = "sessions",
    params(wire::SessionParam),
    responses((status = 200, body = answer::State))
)]
pub(super) async fn state(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Session(id): Session,
) -> Answer<answer::State> {
    app.service.state(&caller, &id).await.map(Json)
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct HistoryQuery {
    /// Maximum number; the newest are returned
    #[serde(default, deserialize_with = "entries")]
    #[param(minimum = 0, maximum = 100_000)]
    pub(super) limit: Option<u64>,
}

/// List what was run, newest last
#[utoipa::path(
    get, path = "/v1/sessions/{id}/history", operation_id = "show_history", tag = "sessions",
    params(wire::SessionParam, HistoryQuery),
    responses((status = 200, body = Vec<Entry>))
)]
pub(super) async fn history(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Session(id): Session,
    Params(query): Params<HistoryQuery>,
) -> Answer<Vec<Entry>> {
    app.service.history(&caller, &id, query.limit.unwrap_or(20)).await.map(Json)
}

/// Reset a session: new kernels, empty history, same id
#[utoipa::path(
    post, path = "/v1/sessions/{id}/reset", operation_id = "reset_session", tag = "sessions",
    params(wire::SessionParam),
    responses((status = 200, body = answer::Reset))
)]
pub(super) async fn reset(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Session(id): Session,
) -> Answer<answer::Reset> {
    let told = app.service.reset(&caller, &id).await?;
    Ok(Json(answer::Reset::new(id, Some(told.continuity))))
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct WaitQuery {
    /// Wait this long for the result, such as `30s`
    #[serde(default, deserialize_with = "span_text")]
    #[param(value_type = Option<wire::Span>)]
    pub(super) wait: Option<wire::Span>,
    /// Maximum bytes of each stream in the answer
    #[serde(default, deserialize_with = "wire::number_text")]
    pub(super) max_output: Option<u64>,
}

/// Interrupt a run, or the current one, and keep the state
#[utoipa::path(
    post, path = "/v1/sessions/{id}/interrupt", operation_id = "interrupt", tag = "sessions",
    params(wire::SessionParam),
    request_body = wire::InterruptRequest,
    responses((status = 200, body = answer::Interrupted))
)]
pub(super) async fn interrupt(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Session(id): Session,
    Body(body): Body<wire::InterruptRequest>,
) -> Answer<answer::Interrupted> {
    let run = app.service.interrupt(&caller, &id, body.run.map(RunNo)).await?;
    Ok(Json(run.into()))
}
