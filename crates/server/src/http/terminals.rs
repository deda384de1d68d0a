//! Terminals of runs.

use super::App;
use super::body::{Body, Params, SessionRun};
use super::runs::MAX_WAIT_MS;
use super::wire::{self, Span};
use crate::keepers::blocking;
use crate::service::{AwaitedScreen, Caller, ScreenWait, ServiceError, check_drawable, internal};
use axum::extract::State;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use sessile_gateway::answer::{Resized, Screen};
use sessile_gateway::input;
use sessile_protocol::TerminalSize;
use sessile_terminal::render;
use utoipa::openapi::schema::{ObjectBuilder, OneOfBuilder, Schema, Type};
use utoipa::openapi::{Ref, RefOr};
use utoipa::{IntoParams, PartialSchema, ToSchema};

/// Default for how long a request waits for a screen.
const WAIT_MS: u64 = 10_000;

/// Default for how long a screen must be unchanged after keys: longer than programs pause
/// between two writes.
const SETTLE: Span = Span(50);

/// Header for the outcome of the wait, for bodies that have no field for it.
const WAIT_HEADER: &str = "sessile-wait";

/// Whether a run gets a terminal: its size, or `true`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Terminal(pub(super) Option<TerminalSize>);

impl<'de> Deserialize<'de> for Terminal {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        const FORMS: &str = "expected true, or a terminal's size: {\"cols\": 80, \"rows\": 24}, each from 1 to 1000";
        Ok(Self(match Value::deserialize(deserializer)? {
            Value::Null | Value::Bool(false) => None,
            Value::Bool(true) => Some(TerminalSize::DEFAULT),
            value @ Value::Object(_) => {
                let size: WindowSize = input::from_value(value).map_err(D::Error::custom)?;
                Some(size.into())
            }
            Value::Number(_) | Value::String(_) | Value::Array(_) => {
                return Err(D::Error::custom(FORMS));
            }
        }))
    }
}

impl PartialSchema for Terminal {
    fn schema() -> RefOr<Schema> {
        let any = ObjectBuilder::new()
            .schema_type(Type::Boolean)
            .description(Some("true: 80 columns and 24 rows"));
        let either = OneOfBuilder::new()
            .item(any)
            .item(Ref::from_schema_name("WindowSize"))
            .description(Some("A terminal: true, or its size"));
        Schema::OneOf(either.build()).into()
    }
}

impl ToSchema for Terminal {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((WindowSize::name().into_owned(), WindowSize::schema()));
        WindowSize::schemas(schemas);
    }
}

/// A terminal's size in characters.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct WindowSize {
    #[schema(minimum = 1, maximum = 1000, example = 80)]
    cols: u16,
    #[schema(minimum = 1, maximum = 1000, example = 24)]
    rows: u16,
}

impl From<WindowSize> for TerminalSize {
    fn from(WindowSize { cols, rows }: WindowSize) -> Self {
        Self { cols, rows }
    }
}

#[derive(Clone, Copy, Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum Format {
    /// The text, the cursor and the title
    #[default]
    Json,
    /// The text alone
    Text,
    /// As json, and with colours
    Cells,
    Svg,
    Png,
}

#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct ScreenQuery {
    /// json (the default), text, cells (with colours), svg or png
    #[param(inline)]
    format: Option<Format>,
    /// Wait until this regular expression is found on the screen; `^` and `$`
    /// are the ends of a line
    wait_for: Option<String>,
    /// Wait until the screen has not changed for this long, such as `200ms`
    #[serde(default, deserialize_with = "wire::span_text")]
    #[param(value_type = Option<Span>)]
    settle: Option<Span>,
    /// Maximum time to wait. Default: 10 s
    #[serde(default, deserialize_with = "wire::span_text")]
    #[param(value_type = Option<Span>)]
    wait: Option<Span>,
}

/// Keys for a terminal.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct KeysRequest {
    /// Text is typed as it is; other keys are named in angle brackets:
    /// `<Enter>`, `<Esc>`, `<Tab>`, `<Up>`, `<PageDown>`, `<F1>`, `<C-c>`,
    /// `<M-x>`; a literal `<` is `<lt>`
    #[schema(example = "ihello<Esc>:wq<Enter>")]
    pub(super) keys: String,
    /// Then wait until this regular expression is found on the screen
    #[serde(default)]
    #[schema(nullable)]
    wait_for: Option<String>,
    /// Then wait until the screen has not changed for this long. Default without `wait_for`:
    /// 50 ms
    #[serde(default)]
    #[schema(nullable, value_type = Option<Span>)]
    settle: Option<Span>,
    /// Maximum time to wait. Default: 10 s
    #[serde(default)]
    #[schema(nullable, value_type = Option<Span>)]
    wait: Option<Span>,
}

fn screen_wait(
    pattern: Option<&str>,
    settle: Option<Span>,
    at_most: Option<Span>,
) -> Result<ScreenWait, ServiceError> {
    let at_most_ms = at_most.map_or(WAIT_MS, |span| span.0.min(MAX_WAIT_MS));
    ScreenWait::new(pattern, settle.map(|span| span.0), at_most_ms)
}

/// Show the terminal of a run as a person would see it
///
/// Returns the screen at once, or when it shows what is waited for; also after the run's end.
/// `wait` and the header `Sessile-Wait` have the outcome of the wait.
#[utoipa::path(
    get, path = "/v1/sessions/{id}/runs/{run}/screen", operation_id = "show_screen", tag = "terminals",
    params(
        wire::SessionParam,
        ("run" = u64, Path, description = "The run's number"),
        ScreenQuery,
    ),
    responses(
        (status = 200, content(
            (Screen = "application/json"),
            (String = "text/plain"),
            (String = "image/svg+xml"),
            (Vec<u8> = "image/png"),
        )),
    )
)]
pub(super) async fn screen(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    SessionRun(id, run): SessionRun,
    Params(query): Params<ScreenQuery>,
) -> Result<Response, ServiceError> {
    let wait = screen_wait(query.wait_for.as_deref(), query.settle, query.wait)?;
    let seen = app.service.screen(&caller, &id, run, &wait).await?;
    let word = seen.awaited.word();
    let mut response = picture(seen, query.format.unwrap_or_default()).await?;
    if let Some(word) = word {
        response.headers_mut().insert(WAIT_HEADER, HeaderValue::from_static(word));
    }
    Ok(response)
}

/// Draws on another thread: a large screen takes time.
async fn picture(seen: AwaitedScreen, format: Format) -> Result<Response, ServiceError> {
    match format {
        Format::Json | Format::Text => {}
        Format::Cells | Format::Svg | Format::Png => check_drawable(&seen.view)?,
    }
    blocking(move || {
        let screen = &seen.view.screen;
        let as_kind = |kind: &'static str, body: Vec<u8>| {
            ([(header::CONTENT_TYPE, HeaderValue::from_static(kind))], body).into_response()
        };
        Ok(match format {
            Format::Json => Json(Screen::of(&seen.view, seen.awaited)).into_response(),
            Format::Cells => Json(Screen::with_cells(&seen.view, seen.awaited)).into_response(),
            Format::Text => {
                let text = format!("{}\n", render::text(screen));
                as_kind("text/plain; charset=utf-8", text.into_bytes())
            }
            Format::Svg => as_kind("image/svg+xml", render::svg(screen).into_bytes()),
            Format::Png => {
                let drawn = render::png(screen);
                as_kind("image/png", drawn.map_err(|e| internal(&e.to_string()))?)
            }
        })
    })
    .await
}

/// Press keys on the terminal of a run
///
/// Returns the screen once it has settled, or shows what is waited for. Only what appears
/// after the keys counts.
#[utoipa::path(
    post, path = "/v1/sessions/{id}/runs/{run}/keys", operation_id = "press_keys", tag = "terminals",
    params(
        wire::SessionParam,
        ("run" = u64, Path, description = "The run's number"),
    ),
    request_body = KeysRequest,
    responses((status = 200, body = Screen))
)]
pub(super) async fn keys(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    SessionRun(id, run): SessionRun,
    Body(body): Body<KeysRequest>,
) -> Result<Json<Screen>, ServiceError> {
    let settle = match body.wait_for {
        Some(_) => body.settle,
        None => body.settle.or(Some(SETTLE)),
    };
    let wait = screen_wait(body.wait_for.as_deref(), settle, body.wait)?;
    let seen = app.service.press(&caller, &id, run, body.keys, &wait).await?;
    Ok(Json(Screen::of(&seen.view, seen.awaited)))
}

/// Resize the terminal of a run
#[utoipa::path(
    post, path = "/v1/sessions/{id}/runs/{run}/resize", operation_id = "resize_terminal", tag = "terminals",
    params(
        wire::SessionParam,
        ("run" = u64, Path, description = "The run's number"),
    ),
    request_body = WindowSize,
    responses((status = 200, body = Resized))
)]
pub(super) async fn resize(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    SessionRun(id, run): SessionRun,
    Body(size): Body<WindowSize>,
) -> Result<Json<Resized>, ServiceError> {
    app.service.resize(&caller, &id, run, size.into()).await?;
    Ok(Json(Resized::new(run, size.into())))
}
