//! One log line for each request: never a token, a query or a body, and of the path only
//! its template and the session.

use super::auth::TokenName;
use super::error::Refused;
use axum::extract::{MatchedPath, Request};
use axum::http::{Method, StatusCode};
use axum::response::Response;
use sessile_protocol::SessionId;
use std::time::Instant;
use tracing::Instrument;

/// Has a request answered, and logs it.
pub(super) async fn logged<F: Future<Output = Response>>(
    request: Request,
    answer: impl FnOnce(Request) -> F,
) -> Response {
    let begun = Instant::now();
    let call = Call {
        method: request.method().clone(),
        path: request.extensions().get::<MatchedPath>().cloned(),
        session: session(request.uri().path()),
    };
    // For traces. Its level is not logged by default, so it costs nothing.
    let span = tracing::debug_span!(
        "request",
        method = call.method.as_str(),
        path = call.path(),
        session_id = call.session.as_ref().map(SessionId::as_str),
        status = tracing::field::Empty,
        token = tracing::field::Empty,
    );
    let response = answer(request).instrument(span.clone()).await;
    span.record("status", response.status().as_u16());
    if let Some(TokenName(Some(name))) = response.extensions().get() {
        span.record("token", name);
    }
    call.log(&response, begun);
    response
}

struct Call {
    method: Method,
    path: Option<MatchedPath>,
    session: Option<SessionId>,
}

impl Call {
    fn path(&self) -> &str {
        self.path.as_ref().map_or("(none)", MatchedPath::as_str)
    }

    fn log(&self, response: &Response, begun: Instant) {
        let status = response.status();
        let method = self.method.as_str();
        let path = self.path();
        let duration_ms = begun.elapsed().as_micros() as f64 / 1000.0;
        let session_id = self.session.as_ref().map(SessionId::as_str);
        let token = response.extensions().get().and_then(|TokenName(name)| name.as_deref());
        let code = response.extensions().get().map(|Refused(code)| code.as_str());
        macro_rules! line {
            ($level:ident) => {
                tracing::$level!(
                    method,
                    path,
                    status = status.as_u16(),
                    duration_ms,
                    session_id,
                    token,
                    code,
                    "request"
                )
            };
        }
        if status.is_server_error() {
            line!(warn);
        } else if is_worth_a_look(status) {
            line!(info);
        } else {
            line!(debug);
        }
    }
}

/// Whether an operator should see it: callers without permission, and limits.
fn is_worth_a_look(status: StatusCode) -> bool {
    [
        StatusCode::UNAUTHORIZED,
        StatusCode::FORBIDDEN,
        StatusCode::PAYLOAD_TOO_LARGE,
        StatusCode::TOO_MANY_REQUESTS,
    ]
    .contains(&status)
}

/// Returns the session in a path, if it has the form of an id.
fn session(path: &str) -> Option<SessionId> {
    let id = path.strip_prefix("/v1/sessions/")?.split('/').next()?;
    id.parse().ok()
}
