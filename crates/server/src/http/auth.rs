//! Authentication: who calls, from which origin, and under which host name. Checked
//! before anything else.

use super::App;
use super::error::Refused;
use crate::metrics::CodeLabels;
use crate::serve::Authentication;
use crate::service::{Caller, ErrorCode, ServiceError};
use crate::tokens::Tokens;
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use jiff::Timestamp;

#[derive(Debug)]
pub enum Access {
    /// Everybody who reaches the server: only for loopback.
    Anybody,
    Tokens(Tokens),
}

#[derive(Debug)]
pub struct Guard {
    pub access: Access,
    /// Names of the server, besides its loopback names. A page that points its own name
    /// at this server (DNS rebinding) sends another one.
    pub hosts: Vec<String>,
    /// Origins that may call from a browser, as `https://name:port`.
    pub origins: Vec<String>,
    /// The scheme of this server: `http` or `https`.
    pub scheme: &'static str,
}

/// The name of the token, passed to the outer layers for the log.
#[derive(Clone, Debug)]
pub(super) struct TokenName(pub(super) Option<String>);

/// Paths without data about sessions, for probes and documentation.
const OPEN: [&str; 4] = ["/healthz", "/readyz", "/openapi.json", "/docs"];

fn is_open(request: &Request) -> bool {
    OPEN.contains(&request.uri().path())
}

/// Has a request answered if its caller may call at all.
pub(super) async fn checked<F: Future<Output = Response>>(
    app: &App,
    mut request: Request,
    answer: impl FnOnce(Request) -> F,
) -> Response {
    let guard = &app.guard;
    let origin = request.headers().get(header::ORIGIN).cloned();
    let outcome = match guard.admit(&request) {
        Ok(admitted) => guard.caller(admitted).await,
        Err(refusal) => Err(refusal),
    };
    let mut response = match outcome {
        Ok(Some(caller)) => {
            if let Some(authentication) = request.extensions().get::<Authentication>()
                && !is_open(&request)
            {
                authentication.succeeded();
            }
            let called_by = TokenName(caller.token.clone());
            request.extensions_mut().insert(caller);
            let mut response = answer(request).await;
            response.extensions_mut().insert(called_by);
            response
        }
        // A CORS preflight request.
        Ok(None) => preflight(request.headers()),
        Err(refusal) => refusal.into_response(),
    };
    if let Some(Refused(code)) = response.extensions().get() {
        let labels = CodeLabels { code: code.as_str() };
        app.service.metrics.refusals.get_or_create(&labels).inc();
    }
    if let Some(origin) = origin.filter(|origin| guard.knows_origin(origin)) {
        let headers = response.headers_mut();
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(header::VARY, HeaderValue::from_static("Origin"));
    }
    response
}

/// What the headers of a request claim.
enum Credentials {
    /// A CORS preflight request.
    Preflight,
    Owner,
    /// A caller with this token.
    Bearer(String),
}

impl Guard {
    /// Returns the caller; `None` for a CORS preflight request.
    async fn caller(&self, admitted: Credentials) -> Result<Option<Caller>, ServiceError> {
        match (admitted, &self.access) {
            (Credentials::Preflight, _) => Ok(None),
            (Credentials::Owner, _) | (Credentials::Bearer(_), Access::Anybody) => {
                Ok(Some(Caller::owner()))
            }
            (Credentials::Bearer(token), Access::Tokens(tokens)) => {
                tokens.caller(&token, Timestamp::now()).await.map(Some)
            }
        }
    }

    fn admit(&self, request: &Request) -> Result<Credentials, ServiceError> {
        let headers = request.headers();
        let host = self.host(request)?;
        if let Some(origin) = only(headers, &header::ORIGIN)?
            && !self.knows_origin(origin)
            && !self.is_own_page(origin, host)
        {
            let message = "pages of that origin may not call this server";
            return Err(ServiceError::new(ErrorCode::OriginNotAllowed, message));
        }
        if request.method() == Method::OPTIONS
            && headers.contains_key(header::ACCESS_CONTROL_REQUEST_METHOD)
        {
            return Ok(Credentials::Preflight);
        }
        if is_open(request) {
            return Ok(Credentials::Owner);
        }
        match &self.access {
            Access::Anybody => Ok(Credentials::Owner),
            Access::Tokens(_) => {
                let token = bearer(headers).ok_or_else(|| {
                    ServiceError::new(ErrorCode::Unauthorized, "this server wants a token")
                })?;
                Ok(Credentials::Bearer(token.to_owned()))
            }
        }
    }

    /// Returns the host name of the request. Every name in the request must be one of
    /// ours: a later reader of the request may use another one of them.
    fn host<'a>(&self, request: &'a Request) -> Result<&'a str, ServiceError> {
        let named = only(request.headers(), &header::HOST)?;
        let named = named.map(|host| host.to_str().unwrap_or_default());
        // The target in the request line, as sent to a proxy.
        let target = request.uri().authority().map(|authority| authority.as_str());
        for host in [named, target].into_iter().flatten() {
            if !self.knows_host(host) {
                let message = format!("this server is not called {host:?}");
                return Err(ServiceError::new(ErrorCode::HostNotAllowed, message));
            }
        }
        match (target, named) {
            (Some(target), Some(named)) if !target.eq_ignore_ascii_case(named) => {
                let message = "the request's target and its Host name different servers";
                Err(ServiceError::bad_request(message))
            }
            (Some(host), _) | (None, Some(host)) => Ok(host),
            (None, None) => {
                let message = "the request does not name the server; send a Host header";
                Err(ServiceError::new(ErrorCode::HostNotAllowed, message))
            }
        }
    }

    /// Whether the origin is this server itself, such as the documentation page.
    fn is_own_page(&self, origin: &HeaderValue, host: &str) -> bool {
        let origin = origin.to_str().unwrap_or_default();
        let name = origin.split_once("://").filter(|(scheme, _)| *scheme == self.scheme);
        name.is_some_and(|(_, name)| name.eq_ignore_ascii_case(host))
    }

    pub(super) fn knows_host(&self, host: &str) -> bool {
        let name = without_port(host);
        let is_loopback = name.eq_ignore_ascii_case("localhost")
            || name
                .trim_matches(['[', ']'])
                .parse::<std::net::IpAddr>()
                .is_ok_and(|ip| ip.is_loopback());
        is_loopback
            || self.hosts.iter().any(|known| {
                known == "*" || known.eq_ignore_ascii_case(name) || known.eq_ignore_ascii_case(host)
            })
    }

    fn knows_origin(&self, origin: &HeaderValue) -> bool {
        let origin = origin.as_bytes();
        self.origins.iter().any(|known| known.as_bytes().eq_ignore_ascii_case(origin))
    }
}

/// Returns a header that may appear only once.
fn only<'a>(
    headers: &'a HeaderMap,
    name: &header::HeaderName,
) -> Result<Option<&'a HeaderValue>, ServiceError> {
    let mut values = headers.get_all(name).iter();
    let first = values.next();
    match values.next() {
        None => Ok(first),
        Some(_) => Err(ServiceError::bad_request(format!("the header {name} is there twice"))),
    }
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) && !name.ends_with(':') => {
            name
        }
        Some(_) | None => host,
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
}

fn preflight(asked: &HeaderMap) -> Response {
    let mut response = StatusCode::NO_CONTENT.into_response();
    let headers = response.headers_mut();
    let methods = HeaderValue::from_static("GET, HEAD, POST, PUT, PATCH, DELETE");
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, methods);
    if let Some(wanted) = asked.get(header::ACCESS_CONTROL_REQUEST_HEADERS) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, wanted.clone());
    }
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guard() -> Guard {
        Guard {
            access: Access::Anybody,
            hosts: vec!["box.example".to_owned()],
            origins: vec!["https://app.example".to_owned()],
            scheme: "http",
        }
    }

    #[test]
    fn only_names_of_ours_are_answered() {
        for host in
            ["localhost", "LocalHost:7377", "127.0.0.1:7377", "[::1]:7377", "::1", "box.example:1"]
        {
            assert!(guard().knows_host(host), "{host}");
        }
        for host in [
            "",
            "evil.example",
            "127.0.0.1.evil.example",
            "localhost.evil.example:80",
            "10.0.0.1",
            "box.example.evil",
        ] {
            assert!(!guard().knows_host(host), "{host}");
        }
    }

    #[test]
    fn a_page_of_another_origin_is_not_ours() {
        let origin = HeaderValue::from_static("http://localhost:7377");
        assert!(guard().is_own_page(&origin, "localhost:7377"));
        assert!(!guard().is_own_page(&origin, "localhost:80"));
        assert!(!guard().is_own_page(&HeaderValue::from_static("null"), "null"));
        let secure = Guard { scheme: "https", ..guard() };
        assert!(!secure.is_own_page(&origin, "localhost:7377"), "another scheme, another origin");
        assert!(guard().knows_origin(&HeaderValue::from_static("https://app.example")));
        assert!(!guard().knows_origin(&HeaderValue::from_static("https://app.example.evil")));
    }
}
