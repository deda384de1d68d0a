//! Runs.

use super::App;
use super::body::{Body, Params, Session, SessionRun};
use super::sessions::{HistoryQuery, WaitQuery};
use super::{stream, wire};
use crate::service::{Caller, ErrorCode, OrderKey, RunAnswer, RunOrder, ServiceError};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Deserializer, Serialize};
use sessile_gateway::answer::{self, Continuity};
use sessile_protocol::{Exec, Language, ReadOutput};
use utoipa::{IntoParams, ToSchema};

/// Default for the bytes of each stream in an answer.
const MAX_OUTPUT: u64 = 1 << 20;

/// The longest time that one request waits. For a longer run, clients ask again.
pub(super) const MAX_WAIT_MS: u64 = 24 * 3600 * 1000;

impl wire::ExecRequest {
    pub(super) fn order(self, app: &App, headers: &HeaderMap) -> Result<RunOrder, ServiceError> {
        let limit = app.service.limits().output;
        let exec = Exec {
            text: self.command.into_bytes(),
            language: self.language,
            timeout_ms: self.timeout.map(|span| span.0),
            queue_timeout_ms: self.queue_timeout.map(|span| span.0),
            silence_ms: self.no_output_timeout.map(|span| span.0),
            stdin: self.stdin.map(|text| text.into_bytes().into()),
            env: self.env.0,
            max_output: self.max_output.map_or(MAX_OUTPUT, |size| size.0).min(limit),
            key: key(headers)?,
            interactive: self.interactive,
            until_input: self.interactive || self.terminal.0.is_some(),
            terminal: self.terminal.0,
            ..Exec::default()
        };
        Ok(RunOrder { exec, wait_ms: self.wait.map(|span| span.0.min(MAX_WAIT_MS)) })
    }
}

pub(super) fn key(headers: &HeaderMap) -> Result<Option<String>, ServiceError> {
    let Some(value) = headers.get("idempotency-key") else { return Ok(None) };
    match value.to_str() {
        Ok(key) if (1..=255).contains(&key.len()) && !key.contains('\t') => {
            Ok(Some(key.to_owned()))
        }
        Ok(_) | Err(_) => {
            let message = "an Idempotency-Key has 1 to 255 printable ASCII characters";
            Err(ServiceError::new(ErrorCode::BadRequest, message))
        }
    }
}

pub(super) fn wants_events(headers: &HeaderMap) -> bool {
    let accept = headers.get_all(header::ACCEPT).into_iter();
    accept.filter_map(|value| value.to_str().ok()).any(|value| value.contains("text/event-stream"))
}

/// Returns the response for a run: its result, or its output so far.
fn respond(told: &RunAnswer, continuity: Option<Continuity>) -> Response {
    match told {
        RunAnswer::Finished(done) => {
            let running = Some(false);
            let result = answer::RunResult { running, continuity, ..(&**done).into() };
            (StatusCode::OK, Json(result)).into_response()
        }
        RunAnswer::Running { run, so_far } => {
            let output = answer::Output { continuity, ..answer::Output::running(*run, so_far) };
            (StatusCode::ACCEPTED, Json(output)).into_response()
        }
    }
}

async fn run(
    app: App,
    caller: Caller,
    id: sessile_protocol::SessionId,
    headers: HeaderMap,
    body: wire::ExecRequest,
) -> Result<Response, ServiceError> {
    let order = body.order(&app, &headers)?;
    if wants_events(&headers) {
        return stream::begin(app, caller, id, order, &headers).await;
    }
    let told = app.service.exec(&caller, &id, order).await?;
    Ok(respond(&told.answer, Some(told.continuity)))
}

/// Run a command
///
/// Returns the result, or after `wait` the run's number (202). With `Accept:
/// text/event-stream`, streams the run's events instead.
#[utoipa::path(
    post, path = "/v1/sessions/{id}/exec", operation_id = "exec", tag = "runs",
    params(
        wire::SessionParam,
        ("Idempotency-Key" = Option<String>, Header, max_length = 255, pattern = "^[!-~]([ -~]*[!-~])?$", description = "A key for this request. A request with the same key gets the run of the first one"),
    ),
    request_body = wire::ExecRequest,
    responses(
        (status = 200, content((answer::RunResult = "application/json"), (wire::ServerSentEvent = "text/event-stream"))),
        (status = 202, body = answer::Output),
    )
)]
pub(super) async fn exec(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Session(id): Session,
    headers: HeaderMap,
    Body(body): Body<wire::ExecRequest>,
) -> Result<Response, ServiceError> {
    run(app, caller, id, headers, body).await
}

/// Run code and return the value of its last expression. Default language: Python
#[utoipa::path(
    post, path = "/v1/sessions/{id}/eval", operation_id = "eval", tag = "runs",
    params(
        wire::SessionParam,
        ("Idempotency-Key" = Option<String>, Header, max_length = 255, pattern = "^[!-~]([ -~]*[!-~])?$", description = "As for exec"),
    ),
    request_body = wire::ExecRequest,
    responses(
        (status = 200, content((answer::RunResult = "application/json"), (wire::ServerSentEvent = "text/event-stream"))),
        (status = 202, body = answer::Output),
    )
)]
pub(super) async fn eval(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Session(id): Session,
    headers: HeaderMap,
    Body(mut body): Body<wire::ExecRequest>,
) -> Result<Response, ServiceError> {
    body.language.get_or_insert(Language::Python);
    run(app, caller, id, headers, body).await
}

/// Run one command in a temporary session
///
/// With a key, the result is kept for a minute after the answer. A repeated request gets it,
/// even after a restart of the server.
#[utoipa::path(
    post, path = "/v1/exec", operation_id = "exec_once", tag = "runs",
    params(("Idempotency-Key" = Option<String>, Header, max_length = 255, pattern = "^[!-~]([ -~]*[!-~])?$", description = "A key for this request. A request with the same key gets the result of the first one")),
    request_body = wire::OnceRequest,
    responses((status = 200, body = answer::RunResult))
)]
pub(super) async fn once(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    headers: HeaderMap,
    Body(body): Body<wire::OnceRequest>,
) -> Result<Response, ServiceError> {
    let key = key(&headers)?.map(|key| OrderKey::new(key, &format!("exec {body:?}")));
    let limit = app.service.limits().output;
    let exec = Exec {
        text: body.command.into_bytes(),
        language: body.language,
        timeout_ms: body.timeout.map(|span| span.0),
        silence_ms: body.no_output_timeout.map(|span| span.0),
        stdin: body.stdin.map(|text| text.into_bytes().into()),
        env: body.env.0,
        max_output: body.max_output.map_or(MAX_OUTPUT, |size| size.0).min(limit),
        terminal: body.terminal.0,
        ..Exec::default()
    };
    let order = RunOrder { exec, wait_ms: None };
    let done = app.service.once(&caller, key, body.cwd.as_deref(), order).await?;
    Ok(respond(&RunAnswer::Finished(done), None))
}

/// List the runs of a session, newest last: queued, running and finished ones
#[utoipa::path(
    get, path = "/v1/sessions/{id}/runs", operation_id = "list_runs", tag = "runs",
    params(wire::SessionParam, HistoryQuery),
    responses((status = 200, body = Vec<answer::RunRow>))
)]
pub(super) async fn list(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Session(id): Session,
    Params(query): Params<HistoryQuery>,
) -> Result<Json<Vec<answer::RunRow>>, ServiceError> {
    app.service.runs(&caller, &id, query.limit.unwrap_or(20)).await.map(Json)
}

/// Get the result of a run
#[utoipa::path(
    get, path = "/v1/sessions/{id}/runs/{run}", operation_id = "show_run", tag = "runs",
    params(
        wire::SessionParam,
        ("run" = u64, Path, description = "The run's number"),
        WaitQuery,
    ),
    responses(
        (status = 200, body = answer::RunResult),
        (status = 202, body = answer::Output),
    )
)]
pub(super) async fn result(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    SessionRun(id, run): SessionRun,
    Params(query): Params<WaitQuery>,
) -> Result<Response, ServiceError> {
    let limit = app.service.limits().output;
    let max_output = query.max_output.unwrap_or(MAX_OUTPUT).min(limit);
    let wait_ms = query.wait.map_or(0, |span| span.0.min(MAX_WAIT_MS));
    let answer = app.service.result(&caller, &id, run, wait_ms, max_output).await?;
    Ok(respond(&answer, None))
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct OutputQuery {
    /// stdout (the default) or stderr
    #[param(inline)]
    stream: Option<StreamName>,
    /// Where to begin: `next` of the previous answer
    #[serde(default, deserialize_with = "wire::number_text")]
    from: Option<u64>,
    /// Return both streams, from the `cursor` of an earlier answer; replaces `stream` and
    /// `from`
    #[param(pattern = "^[0-9]{1,19}-[0-9]{1,19}$")]
    cursor: Option<String>,
    /// Maximum bytes in the answer
    #[serde(default, deserialize_with = "some_bytes")]
    #[param(minimum = 1)]
    max: Option<u64>,
    /// Wait this long for output if there is none, such as `30s`
    #[serde(default, deserialize_with = "wire::span_text")]
    #[param(value_type = Option<wire::Span>)]
    wait: Option<wire::Span>,
}

fn some_bytes<'de, D: Deserializer<'de>>(d: D) -> Result<Option<u64>, D::Error> {
    wire::within_text(d, 1, i64::MAX.cast_unsigned())
}

#[derive(Clone, Copy, Debug, Default, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum StreamName {
    #[default]
    Stdout,
    Stderr,
}

/// One stream, or both
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(super) enum OutputAnswer {
    One(answer::OutputPiece),
    Both(answer::Output),
}

/// Read the output of a run, while it is running or later
///
/// Returns one stream. With `cursor`, returns both, as `stdout` and `stderr`, and the
/// `cursor` for the next call.
#[utoipa::path(
    get, path = "/v1/sessions/{id}/runs/{run}/output", operation_id = "read_output", tag = "runs",
    params(
        wire::SessionParam,
        ("run" = u64, Path, description = "The run's number"),
        OutputQuery,
    ),
    responses((status = 200, body = OutputAnswer))
)]
pub(super) async fn output(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    SessionRun(id, run): SessionRun,
    Params(query): Params<OutputQuery>,
) -> Result<Json<OutputAnswer>, ServiceError> {
    let stream = query.stream.unwrap_or_default();
    let from = query.from.unwrap_or(0);
    let both = both_streams(&query)?;
    let (stdout_from, stderr_from) = match (both, stream) {
        (Some(cursor), _) => (cursor.stdout, cursor.stderr),
        // The other stream never ends the wait: its offset is beyond all bytes.
        (None, StreamName::Stdout) => (from, u64::MAX),
        (None, StreamName::Stderr) => (u64::MAX, from),
    };
    let wait_ms = query.wait.map(|span| span.0.min(MAX_WAIT_MS)).filter(|ms| *ms > 0);
    let read = ReadOutput {
        run,
        stdout_from,
        stderr_from,
        max: query.max.unwrap_or(MAX_OUTPUT).min(app.service.limits().output),
        wait: wait_ms.is_some(),
        known: None,
        patience_ms: wait_ms,
        until_input: true,
    };
    let view = app.service.output(&caller, &id, read).await?;
    if both.is_some() {
        return Ok(Json(OutputAnswer::Both(answer::Output::of(run, &view))));
    }
    let (bytes, next) = match stream {
        StreamName::Stdout => (view.stdout, view.stdout_next),
        StreamName::Stderr => (view.stderr, view.stderr_next),
    };
    Ok(Json(OutputAnswer::One(answer::OutputPiece::of(&bytes, next, view.phase))))
}

/// Returns the offsets of both streams, if the query has a cursor.
fn both_streams(query: &OutputQuery) -> Result<Option<sessile_gateway::Cursor>, ServiceError> {
    let Some(text) = &query.cursor else { return Ok(None) };
    if query.stream.is_some() || query.from.is_some() {
        let message = "cursor is for both streams; send it without stream and from";
        return Err(ServiceError::bad_request(message));
    }
    let cursor = text.parse::<sessile_gateway::Cursor>()?;
    Ok(Some(cursor))
}

/// Send input to an interactive run
#[utoipa::path(
    post, path = "/v1/sessions/{id}/runs/{run}/input", operation_id = "send_input", tag = "runs",
    params(
        wire::SessionParam,
        ("run" = u64, Path, description = "The run's number"),
    ),
    request_body = wire::InputRequest,
    responses((status = 200, body = answer::Input))
)]
pub(super) async fn input(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    SessionRun(id, run): SessionRun,
    Body(body): Body<wire::InputRequest>,
) -> Result<Json<answer::Input>, ServiceError> {
    let bytes = decode_input(body.data, body.encoding)?;
    let unread = app.service.input(&caller, &id, run, bytes, body.eof).await?;
    Ok(Json(answer::Input { run, unread }))
}

pub(super) fn decode_input(
    data: String,
    encoding: Option<wire::Encoding>,
) -> Result<Vec<u8>, ServiceError> {
    match encoding {
        None | Some(wire::Encoding::Utf8) => Ok(data.into_bytes()),
        Some(wire::Encoding::Base64) => STANDARD
            .decode(data)
            .map_err(|_| ServiceError::new(ErrorCode::BadRequest, "data is not base64")),
    }
}

/// Signal the foreground processes of a run, or what is left of it after its end
#[utoipa::path(
    post, path = "/v1/sessions/{id}/runs/{run}/signal", operation_id = "signal_run", tag = "runs",
    params(
        wire::SessionParam,
        ("run" = u64, Path, description = "The run's number"),
    ),
    request_body = wire::SignalRequest,
    responses((status = 200, body = answer::Signalled))
)]
pub(super) async fn signal(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    SessionRun(id, run): SessionRun,
    Body(body): Body<wire::SignalRequest>,
) -> Result<Json<answer::Signalled>, ServiceError> {
    let processes = app.service.signal(&caller, &id, run, signal_number(&body.signal.0)?).await?;
    Ok(Json(answer::Signalled { run, processes }))
}

pub(super) fn signal_number(name: &str) -> Result<i32, ServiceError> {
    Ok(sessile_gateway::signal_number(name)?)
}
