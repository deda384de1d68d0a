//! Agents as files: export, import, and marking an agent as moved.

use super::bodies::{ExportQuery, ImportQuery, ImportedAgent, MovedAgent};
use crate::agents::{AgentView, restored};
use crate::http::body::{AgentCall, Body, Params, receive};
use crate::http::saving::{AS_OF_RUN, LEFT, SavedFile, pieces};
use crate::http::wire;
use crate::http::{Answer, App, Created};
use crate::service::{Caller, ServiceError};
use axum::body::Body as Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};

const ENTRIES: HeaderName = HeaderName::from_static("sessile-entries");

/// An agent as a file
///
/// The body is one file with its session, the files of the workspace, its thread and
/// how it was made. The headers say in `Sessile-As-Of-Run` the newest run that is in
/// it, in `Sessile-Entries` how long its thread is, and in `Sessile-Left` how many
/// things could not be carried. Keys of models are not in it; what the session has in
/// variables and environment is, secrets included. Refused while a task is not over.
#[utoipa::path(
    get, path = "/v1/agents/{id}/export", operation_id = "export_agent", tag = "agents",
    params(wire::SessionParam, ExportQuery),
    responses((status = 200, content((SavedFile = "application/octet-stream"))))
)]
pub(in crate::http) async fn export(
    AgentCall { service, caller, id }: AgentCall,
    Params(query): Params<ExportQuery>,
) -> Result<Response, ServiceError> {
    let guard = service.open_stream()?;
    let exported = service.export_agent(&caller, &id, query.files).await?;
    let name = format!("attachment; filename=\"{id}.agent\"");
    let name = HeaderValue::from_str(&name).unwrap_or(HeaderValue::from_static("attachment"));
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream")),
        (header::CONTENT_LENGTH, exported.length.into()),
        (header::CONTENT_DISPOSITION, name),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (AS_OF_RUN, exported.as_of_run.0.into()),
        (LEFT, exported.left.into()),
        (ENTRIES, exported.entries.into()),
    ];
    Ok((headers, pieces(exported.file, guard)).into_response())
}

/// Make an agent from an exported one
///
/// The body is the file. The agent goes on with the same thread, in a new session.
/// Importing runs code that is in the file, as the user who runs the server: one that
/// was not exported from the same sessions directory is refused (403 `untrusted`)
/// without `trust`.
#[utoipa::path(
    post, path = "/v1/agents/import", operation_id = "import_agent", tag = "agents",
    params(ImportQuery),
    request_body(content = SavedFile, content_type = "application/octet-stream"),
    responses((status = 201, body = ImportedAgent))
)]
pub(in crate::http) async fn import(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Params(query): Params<ImportQuery>,
    headers: HeaderMap,
    body: Bytes,
) -> Created<ImportedAgent> {
    let _guard = app.service.open_stream()?;
    let upload = receive(&app.service, &headers, body).await?;
    let made = app.service.import_agent(&caller, upload, query.into()).await?;
    let session = restored(&made.session);
    Ok((StatusCode::CREATED, Json(ImportedAgent { agent: made.agent, session })))
}

/// Say that an agent goes on elsewhere
///
/// It takes no more tasks here, and says where it is (410 `agent_moved`); its session
/// ends. Refused (409 `busy`) when it has gone on since it was exported.
#[utoipa::path(
    post, path = "/v1/agents/{id}/moved", operation_id = "agent_moved", tag = "agents",
    params(wire::SessionParam),
    request_body = MovedAgent,
    responses((status = 200, body = AgentView))
)]
pub(in crate::http) async fn moved(
    AgentCall { service, caller, id }: AgentCall,
    Body(body): Body<MovedAgent>,
) -> Answer<AgentView> {
    Ok(Json(service.move_agent(&caller, &id, body.into()).await?))
}
