//! Files of a session's workspace.

mod archive;
mod content;
mod given;
mod watch;

pub(super) use archive::{__path_pack, __path_unpack, pack, unpack};
pub(super) use content::{__path_read, __path_write, read, write};
pub(super) use watch::{__path_watch, watch};

use super::body::{Body, Params, Session};
use super::{App, wire};
use crate::service::{Caller, ListOrder, ServiceError};
use axum::extract::State;
use axum::http::StatusCode;
use axum::{Extension, Json};
pub(super) use given::GivenPath;
use given::bytes;
use serde::{Deserialize, Deserializer};
use sessile_files::Replace;
use sessile_gateway::answer::{FileEntry, FileList, RemovedFile};
use utoipa::{IntoParams, ToSchema};

/// Default for the number of entries in a list.
const ENTRIES: u64 = 10_000;

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct PathQuery {
    /// Relative to the workspace, or absolute and within it; any bytes,
    /// percent-encoded
    #[serde(rename = "path", default)]
    #[param(rename = "path", value_type = Option<String>, example = "src/main.rs")]
    _path: String,
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct ListFilesQuery {
    /// A directory, relative to the workspace, or absolute and within it. Default: the
    /// workspace
    #[serde(rename = "path", default)]
    #[param(rename = "path", value_type = Option<String>)]
    _path: String,
    /// Levels to list; 1 is the directory itself
    #[serde(default, deserialize_with = "depth")]
    #[param(minimum = 1, maximum = 1000)]
    depth: Option<u64>,
    /// Maximum number of entries. Default: 10000
    #[serde(default, deserialize_with = "limit")]
    #[param(minimum = 1, maximum = 100_000)]
    limit: Option<u64>,
}

fn depth<'de, D: Deserializer<'de>>(d: D) -> Result<Option<u64>, D::Error> {
    wire::within_text(d, 1, 1000)
}

fn limit<'de, D: Deserializer<'de>>(d: D) -> Result<Option<u64>, D::Error> {
    wire::within_text(d, 1, 100_000)
}

/// List a directory of the workspace
///
/// `depth` includes subdirectories. Links are listed, but not followed.
#[utoipa::path(
    get, path = "/v1/sessions/{id}/files", tag = "files", operation_id = "list_files",
    params(wire::SessionParam, ListFilesQuery),
    responses(
        (status = 200, body = FileList),
        (status = "4XX", body = wire::ErrorBody),
        (status = 503, body = wire::ErrorBody),
    )
)]
pub(super) async fn list(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Session(id): Session,
    GivenPath(path): GivenPath,
    Params(query): Params<ListFilesQuery>,
) -> Result<Json<FileList>, ServiceError> {
    let order = ListOrder {
        depth: query.depth.and_then(|depth| depth.try_into().ok()).unwrap_or(1),
        limit: usize::try_from(query.limit.unwrap_or(ENTRIES)).unwrap_or(usize::MAX),
    };
    let (entries, truncated) = app.service.list_files(&caller, &id, path, order).await?;
    Ok(Json(FileList { entries: entries.iter().map(FileEntry::from).collect(), truncated }))
}

/// Get metadata of a path. Links are not followed
#[utoipa::path(
    get, path = "/v1/sessions/{id}/files/stat", tag = "files", operation_id = "stat_file",
    params(wire::SessionParam, PathQuery),
    responses(
        (status = 200, body = FileEntry),
        (status = "4XX", body = wire::ErrorBody),
        (status = 503, body = wire::ErrorBody),
    )
)]
pub(super) async fn stat(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Session(id): Session,
    GivenPath(path): GivenPath,
    Params(_): Params<PathQuery>,
) -> Result<Json<FileEntry>, ServiceError> {
    let entry = app.service.stat_file(&caller, &id, path).await?;
    Ok(Json(FileEntry::from(&entry)))
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DirectoryRequest {
    #[schema(example = "build/output")]
    path: String,
    /// Create missing parents, and accept an existing directory
    #[serde(default)]
    parents: bool,
    /// The encoding of `path`
    #[schema(nullable)]
    encoding: Option<wire::Encoding>,
}

/// Create a directory
#[utoipa::path(
    post, path = "/v1/sessions/{id}/files/directory", tag = "files",
    operation_id = "make_directory",
    params(wire::SessionParam),
    request_body = DirectoryRequest,
    responses(
        (status = 201, body = FileEntry),
        (status = "4XX", body = wire::ErrorBody),
        (status = 503, body = wire::ErrorBody),
    )
)]
pub(super) async fn make(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Session(id): Session,
    Body(body): Body<DirectoryRequest>,
) -> Result<(StatusCode, Json<FileEntry>), ServiceError> {
    let path = bytes(body.path, body.encoding)?;
    let entry = app.service.make_directory(&caller, &id, path, body.parents).await?;
    Ok((StatusCode::CREATED, Json(FileEntry::from(&entry))))
}

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct MoveRequest {
    #[schema(min_length = 1)]
    from: String,
    /// The new path, including the name
    #[schema(min_length = 1)]
    to: String,
    /// Replace an existing file
    #[serde(default)]
    overwrite: bool,
    /// The encoding of `from` and `to`
    #[schema(nullable)]
    encoding: Option<wire::Encoding>,
}

/// Move or rename a file or a directory
#[utoipa::path(
    post, path = "/v1/sessions/{id}/files/move", tag = "files", operation_id = "move_file",
    params(wire::SessionParam),
    request_body = MoveRequest,
    responses(
        (status = 200, body = FileEntry),
        (status = "4XX", body = wire::ErrorBody),
        (status = 503, body = wire::ErrorBody),
    )
)]
pub(super) async fn rename(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Session(id): Session,
    Body(body): Body<MoveRequest>,
) -> Result<Json<FileEntry>, ServiceError> {
    let (from, to) = (bytes(body.from, body.encoding)?, bytes(body.to, body.encoding)?);
    let replace = if body.overwrite { Replace::Yes } else { Replace::No };
    let entry = app.service.move_file(&caller, &id, from, to, replace).await?;
    Ok(Json(FileEntry::from(&entry)))
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct RemoveQuery {
    /// Relative to the workspace, or absolute and within it
    #[serde(rename = "path")]
    #[param(rename = "path", min_length = 1)]
    _path: String,
    /// Remove a directory with its contents
    #[serde(default)]
    recursive: bool,
}

/// Remove a file, a link or a directory
#[utoipa::path(
    delete, path = "/v1/sessions/{id}/files", tag = "files", operation_id = "remove_file",
    params(wire::SessionParam, RemoveQuery),
    responses(
        (status = 200, body = RemovedFile),
        (status = "4XX", body = wire::ErrorBody),
        (status = 503, body = wire::ErrorBody),
    )
)]
pub(super) async fn remove(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Session(id): Session,
    GivenPath(path): GivenPath,
    Params(query): Params<RemoveQuery>,
) -> Result<Json<RemovedFile>, ServiceError> {
    app.service.remove_file(&caller, &id, path, query.recursive).await?;
    Ok(Json(RemovedFile { removed: true }))
}
