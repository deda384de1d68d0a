//! The same events over a WebSocket, which also takes input, signals and
//! window sizes.

use super::App;
use super::body::{Params, Session, SessionRun};
use super::runs::{decode_input, signal_number};
use super::{stream, wire};
use crate::service::{Caller, Cursor, ErrorCode, Follower, ServiceError};
use axum::Extension;
use axum::extract::State;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::http::HeaderMap;
use axum::response::Response;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use sessile_protocol::{RunNo, SessionId, TerminalSize};
use tokio::sync::mpsc;
use utoipa::IntoParams;

/// What a client sends.
#[derive(Debug)]
enum Order {
    /// Begins a run, whose events follow.
    Exec(wire::ExecRequest),
    Stdin(wire::InputRequest),
    Signal(wire::SignalRequest),
    Keys(Keys),
    Resize(Size),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Keys {
    keys: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Size {
    #[serde(alias = "cols")]
    columns: u16,
    rows: u16,
}

impl Order {
    fn parse(text: &[u8]) -> Result<Self, ServiceError> {
        let refuse = |error: String| ServiceError::new(ErrorCode::BadRequest, error);
        let mut fields: Map<String, Value> =
            serde_json::from_slice(text).map_err(|error| refuse(error.to_string()))?;
        let kind = fields.remove("type").unwrap_or_default();
        let rest = Value::Object(fields);
        let order = match kind.as_str() {
            Some("exec") => serde_json::from_value(rest).map(Self::Exec),
            Some("stdin") => serde_json::from_value(rest).map(Self::Stdin),
            Some("eof") => {
                let input = wire::InputRequest { eof: true, ..wire::InputRequest::default() };
                Ok(Self::Stdin(input))
            }
            Some("signal") => serde_json::from_value(rest).map(Self::Signal),
            Some("keys") => serde_json::from_value(rest).map(Self::Keys),
            Some("resize") => serde_json::from_value(rest).map(Self::Resize),
            Some(_) | None => {
                let message =
                    format!("type must be exec, stdin, eof, keys, signal or resize, not {kind}");
                return Err(refuse(message));
            }
        };
        order.map_err(|error| refuse(error.to_string()))
    }
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct AfterQuery {
    /// The id of the last event that was seen
    after: Option<String>,
}

/// A WebSocket for runs of a session, one after the other
///
/// Send `{"type":"exec","command":"…"}`; the run's events come as JSON with
/// `type` and `id`. While it runs, send `stdin`, `eof`, `keys`, `signal` and
/// `resize`. The `stdout` of a run with a terminal is what a terminal emulator
/// takes.
#[utoipa::path(
    get, path = "/v1/sessions/{id}/ws", tag = "runs",
    params(("id" = String, Path, description = "The session")),
    responses((status = 101, description = "Switches to WebSocket"), (status = "4XX", body = wire::ErrorBody))
)]
pub(super) async fn session_socket(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Session(id): Session,
    upgrade: Result<WebSocketUpgrade, axum::extract::ws::rejection::WebSocketUpgradeRejection>,
) -> Result<Response, ServiceError> {
    let upgrade = upgrade.map_err(|refusal| refuse(&refusal))?;
    let guard = app.service.open_stream()?;
    // Unknown sessions are refused before the switch.
    app.service.session(&caller, &id).await?;
    let limit = app.service.limits().body;
    Ok(upgrade.max_message_size(limit).on_upgrade(move |socket| async move {
        let _guard = guard;
        Conversation { app, caller, id }.serve(socket, None).await;
    }))
}

/// A WebSocket for one run
#[utoipa::path(
    get, path = "/v1/sessions/{id}/runs/{run}/ws", tag = "runs",
    params(
        ("id" = String, Path, description = "The session"),
        ("run" = u64, Path, description = "The run's number"),
        AfterQuery,
    ),
    responses((status = 101, description = "Switches to WebSocket"), (status = "4XX", body = wire::ErrorBody))
)]
pub(super) async fn run_socket(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    SessionRun(id, run): SessionRun,
    Params(query): Params<AfterQuery>,
    upgrade: Result<WebSocketUpgrade, axum::extract::ws::rejection::WebSocketUpgradeRejection>,
) -> Result<Response, ServiceError> {
    let cursor = query.after.as_deref().map_or(Ok(Cursor::default()), str::parse)?;
    let upgrade = upgrade.map_err(|refusal| refuse(&refusal))?;
    let guard = app.service.open_stream()?;
    let follower = app.service.follow(&caller, &id, run, cursor).await?;
    let limit = app.service.limits().body;
    Ok(upgrade.max_message_size(limit).on_upgrade(move |socket| async move {
        let _guard = guard;
        Conversation { app, caller, id }.serve(socket, Some(follower)).await;
    }))
}

fn refuse(refusal: &axum::extract::ws::rejection::WebSocketUpgradeRejection) -> ServiceError {
    ServiceError::new(ErrorCode::BadRequest, format!("this wants a WebSocket: {refusal}"))
}

struct Conversation {
    app: App,
    caller: Caller,
    id: SessionId,
}

type Out = SplitSink<WebSocket, Message>;

/// The run that a client watches. Its events come from a task of their own,
/// because a question to the keeper must not be given up when an order comes.
struct Watched {
    run: RunNo,
    events: mpsc::Receiver<Value>,
    _task: AbortOnDrop,
}

struct AbortOnDrop(tokio::task::JoinHandle<()>);

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Watched {
    fn new(mut follower: Follower) -> Self {
        let run = follower.run;
        // One: a client that does not read holds up the task, not the run.
        let (sender, events) = mpsc::channel(1);
        let task = tokio::spawn(async move {
            loop {
                let message = match follower.next().await {
                    Ok(None) => return,
                    Ok(Some((cursor, event))) => {
                        let mut data = stream::data(run, cursor, &event);
                        data["type"] = event.name().into();
                        data["id"] = cursor.to_string().into();
                        data
                    }
                    Err(error) => {
                        let _ = sender.send(complaint(&error)).await;
                        return;
                    }
                };
                if sender.send(message).await.is_err() {
                    return;
                }
            }
        });
        Self { run, events, _task: AbortOnDrop(task) }
    }
}

impl Conversation {
    /// Serves until the client goes, which harms no run.
    async fn serve(&self, socket: WebSocket, follower: Option<Follower>) {
        let (mut out, mut orders) = socket.split();
        let mut watched = follower.map(Watched::new);
        loop {
            // Both arms can be given up at any time without losing anything:
            // one waits on a channel, the other on a stream.
            let message = tokio::select! {
                event = next_event(&mut watched) => match event {
                    Some(event) => event,
                    None => {
                        watched = None;
                        continue;
                    }
                },
                order = next_order(&mut orders) => {
                    let Some(order) = order else { return };
                    match self.obey(order, &mut watched).await {
                        Ok(None) => continue,
                        Ok(Some(message)) => message,
                        Err(error) => complaint(&error),
                    }
                }
            };
            if send(&mut out, &message).await.is_err() {
                return;
            }
        }
    }

    async fn obey(
        &self,
        order: Result<Order, ServiceError>,
        watched: &mut Option<Watched>,
    ) -> Result<Option<Value>, ServiceError> {
        let service = &self.app.service;
        let running = || {
            let none = "no run is going on here; send exec first";
            let run = watched.as_ref().map(|watched| watched.run);
            run.ok_or_else(|| ServiceError::new(ErrorCode::BadRequest, none))
        };
        match order? {
            Order::Exec(exec) => {
                if watched.is_some() {
                    let message = "a run is going on here; open another WebSocket for a second one";
                    return Err(ServiceError::new(ErrorCode::BadRequest, message));
                }
                let order = exec.order(&self.app, &HeaderMap::new())?;
                let run = service.begin(&self.caller, &self.id, order.exec).await?.answer;
                let cursor = Cursor::default();
                let follower = service.follow(&self.caller, &self.id, run, cursor).await?;
                *watched = Some(Watched::new(follower));
                Ok(None)
            }
            Order::Stdin(input) => {
                let bytes = decode_input(input.data, input.encoding)?;
                service.input(&self.caller, &self.id, running()?, bytes, input.eof).await?;
                Ok(None)
            }
            Order::Keys(Keys { keys }) => {
                let run = running()?;
                service.keys(&self.caller, &self.id, run, keys).await?;
                Ok(None)
            }
            Order::Signal(wanted) => {
                let number = signal_number(&wanted.signal)?;
                service.signal(&self.caller, &self.id, running()?, number).await?;
                Ok(None)
            }
            // Clients send it whenever their window changes, whatever runs in
            // it. What has no terminal is not touched, and that is told.
            Order::Resize(Size { columns, rows }) => {
                let (run, size) = (running()?, TerminalSize { cols: columns, rows });
                let has_terminal = match service.resize(&self.caller, &self.id, run, size).await {
                    Ok(()) => true,
                    Err(refusal) if is_without_terminal(&refusal) => false,
                    Err(refusal) => return Err(refusal),
                };
                let size = json!({"columns": columns, "rows": rows});
                let told =
                    json!({"type": "resized", "run": run, "size": size, "terminal": has_terminal});
                Ok(Some(told))
            }
        }
    }
}

/// There is none, or none any more.
fn is_without_terminal(refusal: &ServiceError) -> bool {
    matches!(refusal.code, ErrorCode::NoTerminal | ErrorCode::InputClosed)
}

/// The next event of the run that is watched; for ever if there is none.
async fn next_event(watched: &mut Option<Watched>) -> Option<Value> {
    match watched {
        Some(watched) => watched.events.recv().await,
        None => std::future::pending().await,
    }
}

/// The next order; `None` when the client has gone.
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

async fn send(out: &mut Out, value: &Value) -> Result<(), axum::Error> {
    out.send(Message::Text(value.to_string().into())).await
}

fn complaint(error: &ServiceError) -> Value {
    json!({
        "type": "error",
        "error": {"code": error.code.as_str(), "message": error.message, "hint": error.hint},
    })
}
