//! Sessions as files: save, download, restore.

use super::App;
use super::body::{Body, Params, Session, expect_nothing, receive};
use super::sessions::calling_program;
use super::wire;
use crate::serve::Peer;
use crate::service::{Caller, RestoreOrder, SaveOrder, ServiceError, Source, StreamGuard};
use axum::body::Body as Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use futures_util::stream;
use serde::Deserialize;
use sessile_client::Trust;
use sessile_gateway::answer::{Restored, Saved};
use sessile_protocol::SessionId;
use std::io;
use tokio::io::AsyncReadExt;
use utoipa::{IntoParams, ToSchema};

/// How many bytes of a file are sent at once.
const PIECE: usize = 64 << 10;

pub(super) const AS_OF_RUN: HeaderName = HeaderName::from_static("sessile-as-of-run");
pub(super) const LEFT: HeaderName = HeaderName::from_static("sessile-left");

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct SaveQuery {
    /// Include the files of the session's directory
    #[serde(default)]
    files: bool,
    /// Wait for active runs instead of refusing
    #[serde(default)]
    wait: bool,
}

/// A file to save a session to.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SaveRequest {
    /// The path, in an allowed directory; an existing file is replaced
    #[schema(example = "work.sessile")]
    path: String,
    /// Include the files of the session's directory
    #[serde(default)]
    files: bool,
    /// Wait for active runs instead of refusing
    #[serde(default)]
    wait: bool,
}

/// A saved session's bytes.
#[derive(Debug, ToSchema)]
#[schema(value_type = String, format = Binary)]
#[expect(dead_code, reason = "only described: it is streamed")]
pub(super) struct SavedFile(Vec<u8>);

/// Download a session as a file
///
/// The body is the file. Headers: `Sessile-As-Of-Run` is the newest run in it, `Sessile-Left`
/// the number of things that could not be saved; they are listed when it is restored. The
/// file contains the session's variables and environment, including secrets.
#[utoipa::path(
    get, path = "/v1/sessions/{id}/save", operation_id = "download_session", tag = "saving",
    params(wire::SessionParam, SaveQuery),
    responses((status = 200, content((SavedFile = "application/octet-stream"))))
)]
pub(super) async fn download(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Session(id): Session,
    Params(query): Params<SaveQuery>,
) -> Result<Response, ServiceError> {
    let guard = app.service.open_stream()?;
    let order = SaveOrder { files: query.files, wait: query.wait };
    let saved = app.service.export_session(&caller, &id, order).await?;
    let headers = [
        (header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream")),
        (header::CONTENT_LENGTH, saved.length.into()),
        (header::CONTENT_DISPOSITION, attachment(&id)),
        (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (AS_OF_RUN, saved.view.as_of_run.0.into()),
        (LEFT, saved.view.left.len().into()),
    ];
    Ok((headers, pieces(saved.file, guard)).into_response())
}

fn attachment(id: &SessionId) -> HeaderValue {
    let text = format!("attachment; filename=\"{id}.sessile\"");
    HeaderValue::from_str(&text).unwrap_or(HeaderValue::from_static("attachment"))
}

/// Streams a file in pieces, each read when the one before is taken.
pub(super) fn pieces(file: std::fs::File, guard: StreamGuard) -> Bytes {
    let file = tokio::fs::File::from_std(file);
    Bytes::from_stream(stream::try_unfold((file, guard), |(mut file, guard)| async move {
        let mut piece = vec![0; PIECE];
        let length = file.read(&mut piece).await?;
        piece.truncate(length);
        Ok::<_, io::Error>((length > 0).then_some((piece, (file, guard))))
    }))
}

/// Save a session to a file on the server's machine
#[utoipa::path(
    post, path = "/v1/sessions/{id}/save", operation_id = "save_session", tag = "saving",
    params(wire::SessionParam),
    request_body = SaveRequest,
    responses((status = 200, body = Saved))
)]
pub(super) async fn save(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Session(id): Session,
    Body(body): Body<SaveRequest>,
) -> Result<Json<Saved>, ServiceError> {
    let order = SaveOrder { files: body.files, wait: body.wait };
    let told = app.service.save(&caller, &id, &body.path, order).await?;
    let saved = Saved::of(&id, &told.answer.path, &told.answer.view);
    Ok(Json(Saved { continuity: Some(told.continuity), ..saved }))
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct RestoreQuery {
    /// Trust the file, and run its code
    #[serde(default)]
    trust: bool,
    /// The directory for the session and its saved files. It must be new or empty if there
    /// are such files. Default: the directory of the saved session, if it is allowed
    cwd: Option<String>,
    /// The name of the session. Default: the name of the saved one
    #[param(
        min_length = 1,
        max_length = 100,
        pattern = r"^(?!sess_)[\p{Alphabetic}\p{N} _.:/-]+$"
    )]
    name: Option<String>,
    /// Save the new session in idle time. Default: the server's setting
    durable: Option<bool>,
    /// A file on the server's machine, instead of a body
    path: Option<String>,
    /// End the session with the calling process, as for a new session. Ignored if it keeps
    /// the name of the saved one
    #[serde(default)]
    ends_with_caller: bool,
}

/// Restore a session
///
/// The body is the file, or `path` names it. Restoring runs code from the file as the
/// server's user. So a file from another sessions directory is refused (403 `untrusted`)
/// without `trust`.
#[utoipa::path(
    post, path = "/v1/restore", operation_id = "restore_session", tag = "saving", params(RestoreQuery),
    request_body(content = SavedFile, content_type = "application/octet-stream"),
    responses((status = 201, body = Restored))
)]
pub(super) async fn restore(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Extension(peer): Extension<Peer>,
    Params(query): Params<RestoreQuery>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<(StatusCode, Json<Restored>), ServiceError> {
    let program = query.ends_with_caller.then(|| calling_program(peer)).transpose()?;
    let _guard = app.service.open_stream()?;
    let source = match query.path {
        Some(path) => {
            expect_nothing(body).await?;
            Source::Path(path)
        }
        None => Source::Upload(receive(&app.service, &headers, body).await?),
    };
    let is_named = query.name.is_some();
    let order = RestoreOrder {
        trust: if query.trust { Trust::Given } else { Trust::Own },
        cwd: query.cwd,
        name: query.name,
        durable: query.durable,
    };
    let made = app.service.restore(&caller, source, order).await?;
    if let Some(program) = program.filter(|_| is_named || made.metadata.name.is_none()) {
        app.service.end_with(program, &made.metadata.session_id).await?;
    }
    let answer = Restored::of(&made.metadata, &made.manifest, &made.left, made.has_files);
    Ok((StatusCode::CREATED, Json(answer)))
}
