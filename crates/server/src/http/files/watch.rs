//! Changes of files, as server-sent events.

use super::GivenPath;
use crate::http::body::{Params, Session};
use crate::http::stream::{KEEP_ALIVE, failure};
use crate::http::{App, wire};
use crate::service::{Caller, ServiceError, StreamGuard, internal};
use axum::Extension;
use axum::extract::State;
use axum::response::sse::{Event as Message, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde::Deserialize;
use serde_json::json;
use sessile_files::{Change, Watcher};
use sessile_gateway::answer::{FileChange, change_name};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::pin::Pin;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::task::spawn_blocking;
use utoipa::IntoParams;

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct WatchQuery {
    /// A directory, relative to the workspace, or absolute and within it
    #[serde(rename = "path", default)]
    #[param(rename = "path", value_type = Option<String>)]
    _path: String,
    /// Include all subdirectories, at most 4096
    #[serde(default)]
    recursive: bool,
}

/// Watch the files of a directory
///
/// The first event is `ready`: later changes are reported. `created`, `modified` (a writer
/// has closed the file, or its permissions changed) and `removed` have the `path`; a move is
/// a `removed` and a `created`. `overflow` means that changes were missed: list the directory
/// again, as after a lost connection. The last event is `ended`: the session has ended.
#[utoipa::path(
    get, path = "/v1/sessions/{id}/files/watch", tag = "files", operation_id = "watch_files",
    params(wire::SessionParam, WatchQuery),
    responses(
        (status = 200, content_type = "text/event-stream", body = String),
        (status = "4XX", body = wire::ErrorBody),
        (status = 503, body = wire::ErrorBody),
    )
)]
pub(in crate::http) async fn watch(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Session(id): Session,
    GivenPath(path): GivenPath,
    Params(query): Params<WatchQuery>,
) -> Result<Response, ServiceError> {
    let guard = app.service.open_stream()?;
    let watcher = app.service.watch_files(&caller, &id, path, query.recursive).await?;
    let news =
        news(&watcher).map_err(|error| internal(&format!("cannot wait for files: {error}")))?;
    let ready = Message::default().event("ready").data("{}");
    let told = VecDeque::from([ready]);
    let end = Box::pin(app.service.session_end(&caller, &id).await?);
    let watching = Watching { watcher: Some(watcher), news, end, told, _guard: guard };
    let events = stream::unfold(watching, |mut watching| async move {
        let message = watching.next().await?;
        Some((Ok::<_, Infallible>(message), watching))
    });
    Ok(Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response())
}

/// Duplicates the watcher's descriptor for polling: the watcher is read on another thread.
fn news(watcher: &Watcher) -> io::Result<AsyncFd<OwnedFd>> {
    let descriptor = watcher.as_fd().try_clone_to_owned()?;
    // SAFETY: the descriptor is owned, and stays the same until it is dropped.
    let news = unsafe { AsyncFd::register_with_interest(descriptor, Interest::READABLE) };
    Ok(news?)
}

struct Watching {
    /// `None` after a failure.
    watcher: Option<Watcher>,
    /// Readable when there are changes.
    news: AsyncFd<OwnedFd>,
    /// Completes when the session has ended.
    end: Pin<Box<dyn Future<Output = ()> + Send>>,
    told: VecDeque<Message>,
    _guard: StreamGuard,
}

impl Watching {
    async fn next(&mut self) -> Option<Message> {
        loop {
            if let Some(message) = self.told.pop_front() {
                return Some(message);
            }
            self.watcher.as_ref()?;
            // Both are cancel-safe: `end` is the same future each time, and unread
            // changes stay in the descriptor.
            let mut ready = tokio::select! {
                biased;
                ready = self.news.readable() => ready.ok()?,
                () = &mut self.end => {
                    self.watcher = None;
                    self.told.push_back(Message::default().event("ended").data("{}"));
                    continue;
                }
            };
            let mut watcher = self.watcher.take()?;
            // On another thread: a new directory is watched with everything already in it.
            let read = spawn_blocking(move || (watcher.changes(), watcher));
            let (changes, watcher) = read.await.ok()?;
            self.watcher = Some(watcher);
            match changes {
                // Nothing left to read: wait for the next change.
                Ok(changes) if changes.is_empty() => ready.clear_ready(),
                Ok(changes) => self.told.extend(changes.iter().map(message)),
                Err(error) => {
                    self.watcher = None;
                    self.told.push_back(failure(&error.into()));
                }
            }
        }
    }
}

fn message(change: &Change) -> Message {
    let data = json!(FileChange::from(change)).to_string();
    Message::default().event(change_name(change.kind)).data(data)
}
