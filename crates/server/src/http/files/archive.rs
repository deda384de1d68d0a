//! A directory tree as a tar archive, in both directions.

use super::{GivenPath, PathQuery};
use crate::http::body::{Params, Session, forward_body};
use crate::http::{App, wire};
use crate::service::{Caller, ErrorCode, ServiceError, incoming};
use axum::body::Body as Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use futures_util::{join, stream};
use sessile_gateway::answer::UnpackedFiles;
use utoipa::ToSchema;

const TAR: &str = "application/x-tar";

/// A tree as a tar.
#[derive(Debug, ToSchema)]
#[schema(value_type = String, format = Binary)]
#[expect(dead_code, reason = "only described: it is streamed")]
pub(in crate::http) struct FileArchive(Vec<u8>);

/// Download a directory or a file as a tar archive
///
/// Names are relative to the directory. Links stay links; sockets, FIFOs and devices are left
/// out. The archive is made while it is sent.
#[utoipa::path(
    get, path = "/v1/sessions/{id}/files/archive", tag = "files", operation_id = "pack_files",
    params(wire::SessionParam, PathQuery),
    responses(
        (status = 200, content((FileArchive = "application/x-tar"))),
        (status = "4XX", body = wire::ErrorBody),
        (status = 503, body = wire::ErrorBody),
    )
)]
pub(in crate::http) async fn pack(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Session(id): Session,
    GivenPath(path): GivenPath,
    Params(_): Params<PathQuery>,
) -> Result<Response, ServiceError> {
    let guard = app.service.open_stream()?;
    let archive = app.service.pack_files(&caller, &id, path).await?;
    let pieces = stream::unfold((archive, guard), |(mut archive, guard)| async move {
        let piece = archive.next().await?;
        Some((piece, (archive, guard)))
    });
    Ok(([(header::CONTENT_TYPE, TAR)], Bytes::from_stream(pieces)).into_response())
}

/// Unpack a tar archive into a directory
///
/// Creates the directory if needed, and replaces existing files one by one. Names that lead
/// out of the directory are refused. Links that lead out of the workspace, devices and FIFOs
/// are left out and listed in the answer. Owners and bits such as setuid are ignored.
#[utoipa::path(
    put, path = "/v1/sessions/{id}/files/archive", tag = "files", operation_id = "unpack_files",
    params(wire::SessionParam, PathQuery),
    request_body(content((FileArchive = "application/x-tar"))),
    responses(
        (status = 200, body = UnpackedFiles),
        (status = "4XX", body = wire::ErrorBody),
        (status = 503, body = wire::ErrorBody),
    )
)]
pub(in crate::http) async fn unpack(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Session(id): Session,
    GivenPath(path): GivenPath,
    Params(_): Params<PathQuery>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Json<UnpackedFiles>, ServiceError> {
    let kind = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    if !kind.is_some_and(|kind| kind.eq_ignore_ascii_case(TAR)) {
        let refused = ServiceError::new(ErrorCode::UnsupportedMediaType, "this takes a tar");
        return Err(refused.with_hint("send it uncompressed, as `Content-Type: application/x-tar`"));
    }
    let _guard = app.service.open_stream()?;
    let (sender, archive) = incoming();
    let unpack = app.service.unpack_files(&caller, &id, path, archive);
    let ((), unpacked) = join!(forward_body(body, sender), unpack);
    Ok(Json(UnpackedFiles::from(&unpacked?)))
}
