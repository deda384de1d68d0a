//! A reverse proxy for servers that run in sessions.
//!
//! Each request has its own connection to the session's server. Bodies pass as they come,
//! in both directions, and are not kept.

mod headers;

use super::body::{Session, SessionPort};
use super::{App, wire};
use crate::service::{Caller, ErrorCode, ServiceError};
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{StatusCode, Uri, header};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::any;
use axum::{Extension, Json, Router};
use headers::PublicAddress;
use hyper::client::conn::http1;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use sessile_gateway::answer;

/// Routes requests to ports, with any method and any path below the port.
pub(super) fn router() -> Router<App> {
    Router::new()
        .route("/v1/sessions/{id}/ports/{port}", any(to_root))
        .route("/v1/sessions/{id}/ports/{port}/", any(through))
        .route("/v1/sessions/{id}/ports/{port}/{*path}", any(through))
}

/// List the ports that the session's processes listen on
#[utoipa::path(
    get, path = "/v1/sessions/{id}/ports", operation_id = "list_ports", tag = "ports",
    params(wire::SessionParam),
    responses((status = 200, body = Vec<answer::Port>))
)]
pub(super) async fn list(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Session(id): Session,
) -> Result<Json<Vec<answer::Port>>, ServiceError> {
    let ports = app.service.ports(&caller, &id).await?;
    Ok(Json(ports.iter().map(answer::Port::from).collect()))
}

/// Send a request to a server in the session
///
/// Supports any method, any path, bodies of any length, and WebSockets. Path and query are
/// passed on unchanged. `Authorization` and cookies are removed, in both directions. Answers
/// of the session's server have the header `sessile-port`; answers of Sessile do not.
#[utoipa::path(
    get, path = "/v1/sessions/{id}/ports/{port}/{path}", operation_id = "call_port", tag = "ports",
    params(
        wire::SessionParam,
        ("port" = u16, Path, description = "A port that a process of the session listens on"),
        ("path" = String, Path, description = "The path for the session's server"),
    ),
    responses(
        (status = "default", description = "The answer of the session's server"),
        (status = 502, description = "The session's server closed the connection", body = wire::ErrorBody),
    )
)]
pub(super) async fn through(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    SessionPort(id, port): SessionPort,
    mut request: Request,
) -> Result<Response, ServiceError> {
    let (prefix, inside) = split(request.uri());
    let host = request.headers().get(header::HOST).cloned();
    let front = PublicAddress { port, prefix, host, scheme: app.guard.scheme };
    let websocket = headers::is_websocket(request.method(), request.headers());
    let guard = if websocket { Some(app.service.open_stream()?) } else { None };
    let stream = app.service.connect(&caller, &id, port).await?;
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(|error| broke_off(&error))?;
    // It ends with the answer, or when the caller is gone.
    tokio::spawn(connection.with_upgrades());
    let outside = websocket.then(|| hyper::upgrade::on(&mut request));
    let request = inner_request(request, &front, &inside, websocket)?;
    let mut answer = sender.send_request(request).await.map_err(|error| broke_off(&error))?;
    let is_switched = answer.status() == StatusCode::SWITCHING_PROTOCOLS;
    if let (true, Some(outside)) = (is_switched, outside) {
        let inside = hyper::upgrade::on(&mut answer);
        tokio::spawn(async move {
            relay(outside, inside).await;
            drop(guard);
        });
    } else if is_switched {
        let message = "the session's server switches protocols, which was not asked for";
        return Err(ServiceError::new(ErrorCode::PortFailed, message));
    }
    let (mut parts, body) = answer.into_parts();
    let is_ours = |host: &str| app.guard.knows_host(host);
    parts.headers = headers::response_headers(parts.headers, &front, &inside, is_switched, is_ours);
    Ok(Response::from_parts(parts, Body::new(body)))
}

/// Redirects to the path with a slash, which relative links of a page need.
async fn to_root(uri: Uri) -> Response {
    let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    Redirect::permanent(&format!("{}/{query}", uri.path())).into_response()
}

/// Splits a path into our prefix, `/v1/sessions/ID/ports/PORT`, and the path inside.
fn split(uri: &Uri) -> (String, String) {
    let path = uri.path();
    let end = path.match_indices('/').nth(5).map_or(path.len(), |(at, _)| at);
    let (prefix, inside) = path.split_at(end);
    let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    (prefix.to_owned(), format!("{inside}{query}"))
}

fn inner_request(
    request: Request,
    front: &PublicAddress,
    inside: &str,
    websocket: bool,
) -> Result<Request, ServiceError> {
    let (mut parts, body) = request.into_parts();
    let wrong = |_| ServiceError::bad_request("the path is not one that can be passed on");
    parts.uri = inside.parse().map_err(wrong)?;
    parts.version = axum::http::Version::HTTP_11;
    parts.headers = headers::request_headers(parts.headers, front, websocket);
    Ok(Request::from_parts(parts, body))
}

/// Copies both ways until either side ends.
async fn relay(outside: OnUpgrade, inside: OnUpgrade) {
    let Ok((outside, inside)) = tokio::try_join!(outside, inside) else { return };
    let (mut outside, mut inside) = (TokioIo::new(outside), TokioIo::new(inside));
    let _ = tokio::io::copy_bidirectional(&mut outside, &mut inside).await;
}

fn broke_off(error: &hyper::Error) -> ServiceError {
    let message = format!("the session's server did not answer in HTTP: {error}");
    ServiceError::new(ErrorCode::PortFailed, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_of_a_path_is_passed_on_as_it_is() {
        let split_of = |text: &str| split(&text.parse().unwrap());
        let prefix = "/v1/sessions/a%2Fb/ports/80".to_owned();
        let cases = [("/", "/"), ("/x//y/%2e?q=1", "/x//y/%2e?q=1"), ("/?a=/b", "/?a=/b")];
        for (rest, inside) in cases {
            assert_eq!(split_of(&format!("{prefix}{rest}")), (prefix.clone(), inside.to_owned()));
        }
    }
}
