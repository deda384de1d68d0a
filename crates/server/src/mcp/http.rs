//! MCP over HTTP, behind the same checks as the API.
//!
//! Each request stands alone. Clients of the older versions get a session id in the
//! handshake, because they send it back with every request: it identifies the client
//! whose request a `notifications/cancelled` is about. The server keeps nothing under the
//! id, and accepts any id, including one from before a restart.

use super::calls::Calls;
use super::handler::{Client, Handler, Surface};
use super::inspected_input::complaint;
use super::{OfferedTools, WorkspaceServices};
use crate::http::{App, read_all};
use crate::service::{Caller, ErrorCode, ServiceError, internal};
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use axum::{Json, Router};
use rmcp::handler::server::ServerHandler;
use rmcp::model::RequestId;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::sync::Arc;

const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");

#[derive(Clone)]
struct Gateway<H> {
    service: StreamableHttpService<H, NeverSessionManager>,
    calls: Arc<Calls>,
    limit: usize,
}

/// The parts of a message that are needed here.
#[derive(Debug, Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    params: Option<Cancelled>,
}

#[derive(Debug, Deserialize)]
struct Cancelled {
    #[serde(rename = "requestId")]
    request: Option<RequestId>,
}

pub(crate) fn router(app: &App) -> Router<App> {
    let calls = Arc::new(Calls::default());
    let handler = Handler {
        home: Arc::new(WorkspaceServices::one(app.service.clone())),
        calls: calls.clone(),
        turns: Arc::default(),
        wait: app.mcp_wait,
        surface: Surface::Http,
    };
    routed(handler, calls, app.service.limits().body)
}

/// Returns the route to a handler: ours, or one of a test.
pub(super) fn routed<H: ServerHandler + Clone>(
    handler: H,
    calls: Arc<Calls>,
    limit: usize,
) -> Router<App> {
    let config = StreamableHttpServerConfig::default()
        // Hosts and origins are already checked.
        .disable_allowed_hosts()
        .with_legacy_session_mode(false)
        .with_max_request_body_bytes(limit);
    let sessions = Arc::new(NeverSessionManager::default());
    let service = StreamableHttpService::new(move || Ok(handler.clone()), sessions, config);
    let gateway = Gateway { service, calls, limit };
    Router::new().route("/mcp", any(serve::<H>).with_state(gateway))
}

async fn serve<H: ServerHandler + Clone>(
    State(gateway): State<Gateway<H>>,
    request: Request,
) -> Result<Response, ServiceError> {
    let (parts, body) = request.into_parts();
    offer(&parts)?;
    let body = Bytes::from(read_all(&parts.headers, body, gateway.limit).await?);
    if parts.method == Method::POST
        && let Some(complaint) = complaint(&body)
    {
        return Ok(refusal(-32700, &complaint));
    }
    let message = serde_json::from_slice(&body).unwrap_or(Message { method: None, params: None });
    let method = message.method.as_deref().unwrap_or_default();
    if method == "notifications/cancelled" {
        gateway.cancel(&parts, message.params);
        return Ok(StatusCode::ACCEPTED.into_response());
    }
    let is_handshake = method == "initialize";
    let kind = parts.headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
    let is_json = kind.is_some_and(|kind| kind.starts_with(b"application/json"));
    let request = Request::from_parts(parts, Body::from(body.clone()));
    let mut response = gateway.service.handle(request).await.map(Body::new);
    if is_json && response.status() == StatusCode::UNSUPPORTED_MEDIA_TYPE {
        let why = "Invalid request: this is JSON, but no message of JSON-RPC 2.0 that MCP knows";
        return Ok(refusal(-32600, why));
    }
    if is_handshake && response.status().is_success() {
        response.headers_mut().insert(SESSION, new_name()?);
    }
    let seen = HeaderValue::from_static("Mcp-Session-Id");
    response.headers_mut().insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, seen);
    Ok(response)
}

/// An error of JSON-RPC.
#[derive(Serialize)]
struct Refusal<'a> {
    jsonrpc: &'static str,
    /// Null: the number of the message is not known.
    id: (),
    error: RefusalReason<'a>,
}

#[derive(Serialize)]
struct RefusalReason<'a> {
    code: i32,
    message: &'a str,
}

fn refusal(code: i32, message: &str) -> Response {
    let refusal = Refusal { jsonrpc: "2.0", id: (), error: RefusalReason { code, message } };
    (StatusCode::BAD_REQUEST, Json(refusal)).into_response()
}

impl<H> Gateway<H> {
    /// Cancels a call. Without the client's name, it could be any client's request.
    fn cancel(&self, parts: &Parts, cancelled: Option<Cancelled>) {
        if let Some(request) = cancelled.and_then(|cancelled| cancelled.request)
            && let Some(client) = client(parts).filter(|client| client.name.is_some())
        {
            self.calls.cancel(&client.call(request));
        }
    }
}

/// Returns the sender of a request, as established by the earlier checks.
pub(super) fn client(parts: &Parts) -> Option<Client> {
    let caller = parts.extensions.get::<Caller>()?.clone();
    let name = parts.headers.get(SESSION).and_then(|name| name.to_str().ok());
    Some(Client { caller, offer: offer(parts).ok()?, name: name.map(str::to_owned) })
}

/// Returns the tools that a client wants, by `?tools=`.
fn offer(parts: &Parts) -> Result<OfferedTools, ServiceError> {
    let query = parts.uri.query().unwrap_or_default().split('&');
    let Some(wanted) = query.filter_map(|pair| pair.strip_prefix("tools=")).next_back() else {
        return Ok(OfferedTools::Runtime);
    };
    OfferedTools::named(wanted).ok_or_else(|| {
        let message = format!("tools must be runtime, sessions or all, not {wanted}");
        ServiceError::new(ErrorCode::BadRequest, message)
    })
}

/// Returns an unguessable name for a client.
fn new_name() -> Result<HeaderValue, ServiceError> {
    let mut bytes = [0u8; 16];
    let failed = |_| internal("no random numbers");
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty()).map_err(failed)?;
    let name: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    HeaderValue::from_str(&name).map_err(|_| internal("hex is a header"))
}
