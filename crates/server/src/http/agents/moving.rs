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

/// Export an agent
///
/// The body is one file with the session, the files of the workspace, the thread and the
/// settings of the agent. Headers: `Sessile-As-Of-Run` is the newest run in the file,
/// `Sessile-Entries` the length of the thread, `Sessile-Left` the number of things that could
/// not be saved. The file contains the session's variables and environment, including
/// secrets, but no keys of models. Refused while a task is in progress.
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

/// Import an agent
///
/// The body is an exported file. The agent continues its thread in a new session. Importing
/// runs code from the file as the server's user. So a file from another sessions directory is
/// refused (403 `untrusted`) without `trust`.
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

/// Mark an agent as moved to another server
///
/// The agent takes no more tasks here: requests are answered with its new place (410
/// `agent_moved`). Its session ends. Refused (409 `busy`) if the agent has worked since it
/// was exported.
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
