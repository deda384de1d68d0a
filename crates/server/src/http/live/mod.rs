//! The same events over a WebSocket, which also takes input, keys, signals and window
//! sizes: everything that a person at `sessile attach` can do.

mod event_feed;
mod message;
mod order;

use super::App;
use super::body::{Params, Session, SessionRun};
use super::runs::{decode_input, signal_number};
use super::wire;
use crate::service::{Caller, Cursor, ErrorCode, JoinPoint, ReadFrom, ServiceError};
use axum::Extension;
use axum::extract::State;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::http::HeaderMap;
use axum::response::Response;
use event_feed::EventFeed;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use message::{PlainMessage, ServerMessage};
use order::{Keys, Order, RunOrder, Size};
use serde::{Deserialize, Deserializer};
use sessile_gateway::following::{Detail, Position};
use sessile_protocol::{RunNo, SessionId, TerminalSize};
use utoipa::IntoParams;

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct SessionQuery {
    /// Send the events of all runs of the session, of any client
    #[serde(default)]
    watch: bool,
    /// With `watch`: begin with this many finished runs
    #[serde(default, deserialize_with = "tail")]
    #[param(minimum = 0, maximum = 1000)]
    tail: Option<u64>,
    /// With `watch`: the id of the last event that was received
    after: Option<String>,
    /// Refuse all messages that change something
    #[serde(default)]
    read_only: bool,
}

fn tail<'de, D: Deserializer<'de>>(d: D) -> Result<Option<u64>, D::Error> {
    wire::within_text(d, 0, 1000)
}

impl SessionQuery {
    /// Returns where watching begins, if it was requested.
    fn beginning(&self) -> Result<Option<ReadFrom>, ServiceError> {
        let refuse = |message: String| ServiceError::new(ErrorCode::BadRequest, message);
        if !self.watch && (self.tail.is_some() || self.after.is_some()) {
            return Err(refuse("tail and after go with watch=true".to_owned()));
        }
        let after: Option<Position> = self.after.as_deref().map(str::parse).transpose().map_err(
            |error: sessile_gateway::following::InvalidPosition| refuse(error.to_string()),
        )?;
        let newest = ReadFrom::Newest(self.tail.unwrap_or(0));
        Ok(self.watch.then(|| after.map_or(newest, ReadFrom::After)))
    }
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct RunQuery {
    /// The id of the last event that was received
    after: Option<String>,
    /// Begin with the current screen of the terminal instead of all its output
    #[serde(default)]
    screen: bool,
    /// Refuse all messages that change something
    #[serde(default)]
    read_only: bool,
}

/// Whether a client may do more than watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rights {
    Full,
    ReadOnly,
}

impl Rights {
    fn of(read_only: bool) -> Self {
        if read_only { Self::ReadOnly } else { Self::Full }
    }
}

/// Open a WebSocket for runs of a session
///
/// Send `{"type":"exec","command":"…"}`; the run's events come as JSON with `type` and `id`.
/// While it runs, send `stdin`, `eof`, `keys`, `signal` and `resize`; they apply to the last
/// run that was begun here, or to `run`. The `stdout` of a run with a terminal is input for a
/// terminal emulator. With `watch=true`, sends the events of all runs of the session, as at
/// `/v1/sessions/{id}/events?output=true`, and answers an `exec` with `accepted` and the
/// run's number.
#[utoipa::path(
    get, path = "/v1/sessions/{id}/ws", operation_id = "open_session_socket", tag = "runs",
    params(wire::SessionParam, SessionQuery),
    responses((status = 101, description = "Switches to WebSocket"))
)]
pub(super) async fn session_socket(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Session(id): Session,
    Params(query): Params<SessionQuery>,
    upgrade: Result<WebSocketUpgrade, axum::extract::ws::rejection::WebSocketUpgradeRejection>,
) -> Result<Response, ServiceError> {
    let beginning = query.beginning()?;
    let upgrade = upgrade.map_err(|refusal| refuse(&refusal))?;
    let guard = app.service.open_stream()?;
    // Unknown sessions are refused before the upgrade.
    app.service.session(&caller, &id).await?;
    let (watching, watched) = match beginning {
        None => (Watching::OwnRuns, None),
        Some(beginning) => {
            let follower =
                app.service.follow_session(&caller, &id, beginning, Detail::Output).await?;
            (Watching::Session, Some(EventFeed::session(follower)))
        }
    };
    let limit = app.service.limits().body;
    Ok(upgrade.max_message_size(limit).on_upgrade(move |socket| async move {
        let _guard = guard;
        let rights = Rights::of(query.read_only);
        let conversation = Conversation { app, caller, id, rights, watching, watched, run: None };
        conversation.serve(socket, None).await;
    }))
}

/// Open a WebSocket for one run
///
/// Sends its events as JSON with `type` and `id`; accepts `stdin`, `eof`, `keys`, `signal`
/// and `resize`. `screen=true` joins a terminal in use: the first message is `screen`, whose
/// `data` draws the current screen.
#[utoipa::path(
    get, path = "/v1/sessions/{id}/runs/{run}/ws", operation_id = "open_run_socket", tag = "runs",
    params(
        wire::SessionParam,
        ("run" = u64, Path, description = "The run's number"),
        RunQuery,
    ),
    responses((status = 101, description = "Switches to WebSocket"))
)]
pub(super) async fn run_socket(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    SessionRun(id, run): SessionRun,
    Params(query): Params<RunQuery>,
    upgrade: Result<WebSocketUpgrade, axum::extract::ws::rejection::WebSocketUpgradeRejection>,
) -> Result<Response, ServiceError> {
    let after: Option<Cursor> = query.after.as_deref().map(str::parse).transpose()?;
    if query.screen && after.is_some() {
        let message = "a client that comes back with after has drawn the screen already; send after or screen";
        return Err(ServiceError::new(ErrorCode::BadRequest, message));
    }
    let upgrade = upgrade.map_err(|refusal| refuse(&refusal))?;
    let guard = app.service.open_stream()?;
    let JoinPoint { cursor, screen } = match query.screen {
        true => app.service.join(&caller, &id, run).await?,
        false => JoinPoint { cursor: after.unwrap_or_default(), screen: None },
    };
    let follower = app.service.follow(&caller, &id, run, cursor).await?;
    let limit = app.service.limits().body;
    Ok(upgrade.max_message_size(limit).on_upgrade(move |socket| async move {
        let _guard = guard;
        let (rights, watching) = (Rights::of(query.read_only), Watching::OwnRuns);
        let watched = Some(EventFeed::run(follower));
        let conversation =
            Conversation { app, caller, id, rights, watching, watched, run: Some(run) };
        conversation.serve(socket, screen.map(|drawn| PlainMessage::drawn(run, drawn))).await;
    }))
}

fn refuse(refusal: &axum::extract::ws::rejection::WebSocketUpgradeRejection) -> ServiceError {
    ServiceError::new(ErrorCode::BadRequest, format!("this wants a WebSocket: {refusal}"))
}

/// Which events a client gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Watching {
    /// Those of the runs that it starts here, one run at a time.
    OwnRuns,
    Session,
}

struct Conversation {
    app: App,
    caller: Caller,
    id: SessionId,
    rights: Rights,
    watching: Watching,
    watched: Option<EventFeed>,
    /// The run that orders apply to, unless they name another one.
    run: Option<RunNo>,
}

type Out = SplitSink<WebSocket, Message>;

impl Conversation {
    /// Serves until the client goes away, which does not affect runs.
    async fn serve(mut self, socket: WebSocket, first: Option<PlainMessage<'static>>) {
        let (mut out, mut orders) = socket.split();
        if let Some(first) = first
            && send(&mut out, ServerMessage::from(first).text()).await.is_err()
        {
            return;
        }
        loop {
            // Both branches are cancel-safe: one waits on a channel, the other on a stream.
            let message = tokio::select! {
                event = next_event(&mut self.watched) => match event {
                    Some(event) => event,
                    None => {
                        self.watched = None;
                        continue;
                    }
                },
                order = next_order(&mut orders) => {
                    let Some(order) = order else { return };
                    match self.handle(order).await {
                        Ok(None) => continue,
                        Ok(Some(told)) => ServerMessage::from(told).text(),
                        Err(error) => ServerMessage::error(&error).text(),
                    }
                }
            };
            if send(&mut out, message).await.is_err() {
                return;
            }
        }
    }

    async fn handle(
        &mut self,
        order: Result<Order, ServiceError>,
    ) -> Result<Option<PlainMessage<'static>>, ServiceError> {
        let order = order?;
        match self.rights {
            Rights::Full => {}
            Rights::ReadOnly => {
                let message = "this WebSocket is read-only; open another one to do something";
                return Err(ServiceError::new(ErrorCode::Forbidden, message));
            }
        }
        match order {
            Order::Exec(exec) => self.begin(exec).await,
            Order::To(named, order) => {
                let none = "no run is going on here; send exec first, or name one with run";
                let here = self.run.filter(|_| self.watched.is_some());
                let run = named.or(here);
                let run = run.ok_or_else(|| ServiceError::new(ErrorCode::BadRequest, none))?;
                self.pass(run, order).await
            }
        }
    }

    async fn begin(
        &mut self,
        exec: wire::ExecRequest,
    ) -> Result<Option<PlainMessage<'static>>, ServiceError> {
        let service = &self.app.service;
        let order = exec.order(&self.app, &HeaderMap::new())?;
        match self.watching {
            Watching::Session => {
                let run = service.begin(&self.caller, &self.id, order.exec).await?.answer;
                self.run = Some(run);
                Ok(Some(PlainMessage::Accepted { run }))
            }
            Watching::OwnRuns if self.watched.is_some() => {
                let message = "a run is going on here; open another WebSocket for a second one";
                Err(ServiceError::new(ErrorCode::BadRequest, message))
            }
            Watching::OwnRuns => {
                let run = service.begin(&self.caller, &self.id, order.exec).await?.answer;
                let cursor = Cursor::default();
                let follower = service.follow(&self.caller, &self.id, run, cursor).await?;
                (self.run, self.watched) = (Some(run), Some(EventFeed::run(follower)));
                Ok(None)
            }
        }
    }

    async fn pass(
        &self,
        run: RunNo,
        order: RunOrder,
    ) -> Result<Option<PlainMessage<'static>>, ServiceError> {
        let (service, caller, id) = (&self.app.service, &self.caller, &self.id);
        match order {
            RunOrder::Stdin(input) => {
                let bytes = decode_input(input.data, input.encoding)?;
                service.input(caller, id, run, bytes, input.eof).await?;
                Ok(None)
            }
            RunOrder::Keys(Keys { keys }) => {
                service.keys(caller, id, run, keys).await?;
                Ok(None)
            }
            RunOrder::Signal(wanted) => {
                service.signal(caller, id, run, signal_number(&wanted.signal.0)?).await?;
                Ok(None)
            }
            // Clients send this whenever their window changes, whatever runs in it. A run
            // without a terminal is left alone, and the answer says so.
            RunOrder::Resize(Size { columns, rows }) => {
                let size = TerminalSize { cols: columns, rows };
                let has_terminal = match service.resize(caller, id, run, size).await {
                    Ok(()) => true,
                    Err(refusal) if is_without_terminal(&refusal) => false,
                    Err(refusal) => return Err(refusal),
                };
                let size = message::Size { columns, rows };
                Ok(Some(PlainMessage::Resized { run, size, terminal: has_terminal }))
            }
        }
    }
}

/// Whether the run has no terminal, or none any more.
fn is_without_terminal(refusal: &ServiceError) -> bool {
    matches!(refusal.code, ErrorCode::NoTerminal | ErrorCode::InputClosed)
}

/// Returns the next event; waits for ever if nothing is watched.
async fn next_event(watched: &mut Option<EventFeed>) -> Option<String> {
    match watched {
        Some(watched) => watched.next().await,
        None => std::future::pending().await,
    }
}

/// Returns the next order; `None` when the client is gone.
async fn next_order(orders: &mut SplitStream<WebSocket>) -> Option<Result<Order, ServiceError>> {
    loop {
        match orders.next().await {
            None | Some(Err(_) | Ok(Message::Close(_))) => return None,
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
            Some(Ok(Message::Text(text))) => return Some(Order::parse(text.as_bytes())),
            Some(Ok(Message::Binary(bytes))) => return Some(Order::parse(&bytes)),
        }
    }
}

async fn send(out: &mut Out, text: String) -> Result<(), axum::Error> {
    out.send(Message::Text(text.into())).await
}
