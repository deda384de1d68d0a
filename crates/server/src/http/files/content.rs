//! The content of a file: read it, as a whole or in ranges, and write it.

use super::GivenPath;
use crate::http::body::{Params, Session, forward_body};
use crate::http::{App, wire};
use crate::service::{Caller, ErrorCode, ServiceError, StreamGuard, incoming};
use axum::body::Body as Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use futures_util::{join, stream};
use serde::{Deserialize, Deserializer};
use sessile_files::{Content, Replace, Writing};
use sessile_gateway::answer::FileEntry;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use utoipa::{IntoParams, ToSchema};

/// How many bytes of a file are sent at once.
const PIECE: u64 = 256 << 10;

/// A file's bytes.
#[derive(Debug, ToSchema)]
#[schema(value_type = String, format = Binary)]
#[expect(dead_code, reason = "only described: it is streamed")]
pub(in crate::http) struct FileContent(Vec<u8>);

/// A part of a file: its offset and length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Part {
    from: u64,
    length: u64,
}

/// The part of a file that a request wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RequestedPart {
    All,
    Some(Part),
    /// The range is beyond the end of the file.
    Nothing,
}

/// Read a file
///
/// `Range: bytes=…` returns a part (206). `If-None-Match` with its `ETag` returns nothing if
/// the file is unchanged (304).
#[utoipa::path(
    get, path = "/v1/sessions/{id}/files/content", tag = "files", operation_id = "read_file",
    params(
        wire::SessionParam,
        super::PathQuery,
        ("Range" = Option<String>, Header, description = "A range of bytes"),
        ("If-None-Match" = Option<String>, Header, description = "The ETag of an earlier answer"),
    ),
    responses(
        (status = 200, content((FileContent = "application/octet-stream"))),
        (status = 206, content((FileContent = "application/octet-stream"))),
        (status = 304, description = "The file is unchanged"),
        (status = "4XX", body = wire::ErrorBody),
        (status = 503, body = wire::ErrorBody),
    )
)]
pub(in crate::http) async fn read(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Session(id): Session,
    GivenPath(path): GivenPath,
    Params(_): Params<super::PathQuery>,
    headers: HeaderMap,
) -> Result<Response, ServiceError> {
    let guard = app.service.open_stream()?;
    let Content { file, entry } = app.service.read_file(&caller, &id, path).await?;
    let tag = format!("\"{}\"", entry.tag());
    let mut head = HeaderMap::new();
    head.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    put(&mut head, header::ETAG, &tag);
    if text(&headers, &header::IF_NONE_MATCH).is_some_and(|known| matches(known, &tag)) {
        return Ok((StatusCode::NOT_MODIFIED, head).into_response());
    }
    head.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    head.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream"));
    let same = text(&headers, &header::IF_RANGE).is_none_or(|known| known == tag);
    let range = text(&headers, &header::RANGE).filter(|_| same);
    let size = entry.size;
    let (status, part) = match range.map_or(RequestedPart::All, |range| requested_part(range, size))
    {
        RequestedPart::All => (StatusCode::OK, Part { from: 0, length: size }),
        RequestedPart::Some(part) => {
            let last = part.from + part.length - 1;
            put(&mut head, header::CONTENT_RANGE, &format!("bytes {}-{last}/{size}", part.from));
            (StatusCode::PARTIAL_CONTENT, part)
        }
        RequestedPart::Nothing => {
            let message = format!("the file has {size} bytes, and none where it is asked for");
            let mut response = ServiceError::new(ErrorCode::BadRange, message).into_response();
            put(response.headers_mut(), header::CONTENT_RANGE, &format!("bytes */{size}"));
            return Ok(response);
        }
    };
    head.insert(header::CONTENT_LENGTH, part.length.into());
    Ok((status, head, pieces(file, part, guard)).into_response())
}

fn text<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

fn put(headers: &mut HeaderMap, name: HeaderName, text: &str) {
    if let Ok(value) = HeaderValue::from_str(text) {
        headers.insert(name, value);
    }
}

/// Whether a list of entity tags contains this one.
fn matches(known: &str, tag: &str) -> bool {
    known.trim() == "*" || known.split(',').any(|one| one.trim().trim_start_matches("W/") == tag)
}

/// Parses a range. Several ranges, or another unit, count as none.
fn requested_part(range: &str, size: u64) -> RequestedPart {
    let Some((first, last)) = range.strip_prefix("bytes=").and_then(|r| r.split_once('-')) else {
        return RequestedPart::All;
    };
    let number = |text: &str| text.trim().parse::<u64>().ok();
    let (from, end) = match (first.trim().is_empty(), number(first), number(last)) {
        (false, Some(from), last) if last.is_some() || last_is_open(range) => {
            (from, last.map_or(size, |last| last.saturating_add(1)).min(size))
        }
        (true, _, Some(length)) => (size.saturating_sub(length), size),
        _ => return RequestedPart::All,
    };
    match end.checked_sub(from) {
        Some(length @ 1..) => RequestedPart::Some(Part { from, length }),
        Some(0) | None => RequestedPart::Nothing,
    }
}

fn last_is_open(range: &str) -> bool {
    range.trim_end().ends_with('-')
}

/// Streams a part of a file in pieces, each read when the one before is taken.
fn pieces(file: File, part: Part, guard: StreamGuard) -> Bytes {
    let file = Arc::new(file);
    Bytes::from_stream(stream::try_unfold((file, part, guard), |(file, part, guard)| async move {
        if part.length == 0 {
            return Ok(None);
        }
        let length = part.length.min(PIECE);
        let reading = Arc::clone(&file);
        let read = tokio::task::spawn_blocking(move || -> io::Result<Vec<u8>> {
            let mut piece = vec![0; usize::try_from(length).unwrap_or_default()];
            // If the file was truncated meanwhile, the connection breaks: the answer must
            // not look complete.
            reading.read_exact_at(&mut piece, part.from)?;
            Ok(piece)
        });
        let piece = read.await.map_err(io::Error::other)??;
        let rest = Part { from: part.from + length, length: part.length - length };
        Ok::<_, io::Error>(Some((piece, (file, rest, guard))))
    }))
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct WriteQuery {
    /// Relative to the workspace, or absolute and within it
    #[serde(rename = "path")]
    #[param(rename = "path", min_length = 1, example = "notes.txt")]
    _path: String,
    /// Permissions in octal, such as `0755`. Default: those of the existing file
    #[serde(default, deserialize_with = "mode")]
    #[param(value_type = Option<String>, pattern = "^0?[0-7]{3}$")]
    mode: Option<u32>,
    /// Create missing parent directories
    #[serde(default)]
    parents: bool,
}

fn mode<'de, D: Deserializer<'de>>(d: D) -> Result<Option<u32>, D::Error> {
    let text = String::deserialize(d)?;
    let mode = u32::from_str_radix(&text, 8).ok().filter(|mode| *mode <= 0o777);
    let wrong = || serde::de::Error::custom("mode is octal, from 0 to 0777, such as 0644");
    mode.ok_or_else(wrong).map(Some)
}

/// Write a file
///
/// The body is the content, of any size. The file is replaced once the whole body has
/// arrived: nobody reads a partial file, and an incomplete body changes nothing.
/// `If-None-Match: *` only creates a new file.
#[utoipa::path(
    put, path = "/v1/sessions/{id}/files/content", tag = "files", operation_id = "write_file",
    params(
        wire::SessionParam,
        WriteQuery,
        ("If-None-Match" = Option<String>, Header, description = "`*`: do not replace an existing file"),
    ),
    request_body(content = Option<FileContent>, content_type = "application/octet-stream"),
    responses(
        (status = 200, body = FileEntry, description = "The file was replaced"),
        (status = 201, body = FileEntry, description = "The file was created"),
        (status = "4XX", body = wire::ErrorBody),
        (status = 503, body = wire::ErrorBody),
    )
)]
pub(in crate::http) async fn write(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Session(id): Session,
    GivenPath(path): GivenPath,
    Params(query): Params<WriteQuery>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, ServiceError> {
    let _guard = app.service.open_stream()?;
    let is_new = text(&headers, &header::IF_NONE_MATCH).is_some_and(|known| known.trim() == "*");
    let writing = Writing {
        mode: query.mode,
        parents: query.parents,
        replace: if is_new { Replace::No } else { Replace::Yes },
        modified: None,
    };
    let (sender, content) = incoming();
    let write = app.service.write_file(&caller, &id, path, writing, content);
    let ((), written) = join!(forward_body(body, sender), write);
    let written = written?;
    let status = if written.is_new { StatusCode::CREATED } else { StatusCode::OK };
    let mut head = HeaderMap::new();
    put(&mut head, header::ETAG, &format!("\"{}\"", written.entry.tag()));
    Ok((status, head, Json(FileEntry::from(&written.entry))).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_what_the_file_has_of_it() {
        let some = |from, length| RequestedPart::Some(Part { from, length });
        for (range, means) in [
            ("bytes=0-0", some(0, 1)),
            ("bytes=2-", some(2, 8)),
            ("bytes=2-4", some(2, 3)),
            ("bytes=2-99", some(2, 8)),
            ("bytes=-3", some(7, 3)),
            ("bytes=-99", some(0, 10)),
            ("bytes=10-", RequestedPart::Nothing),
            ("bytes=-0", RequestedPart::Nothing),
            ("bytes=4-2", RequestedPart::Nothing),
            ("bytes=0-1,4-5", RequestedPart::All),
            ("bytes=x-", RequestedPart::All),
            ("bytes=-", RequestedPart::All),
            ("lines=1-2", RequestedPart::All),
        ] {
            assert_eq!(requested_part(range, 10), means, "{range}");
        }
        assert_eq!(requested_part("bytes=0-", 0), RequestedPart::Nothing);
    }
}
