//! Which headers of a request reach a session's server, and which of its answer reach the
//! caller. Pure.
//!
//! The server in the session is not trusted. It must not get the caller's token, and must
//! not make a client use that token: its pages and redirects would belong to our origin.
//! So neither credentials nor cookies pass, a redirect stays below the port, and a page
//! gets an origin of its own.

use axum::http::header::{self, HeaderName, HeaderValue};
use axum::http::{HeaderMap, Method};
use url::Url;

/// Headers of one connection, not of the request.
const HOP_BY_HOP: [HeaderName; 8] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// Headers that are not passed inwards. A server that compares Origin and Referer with
/// its own name would refuse ours.
const NOT_INSIDE: [HeaderName; 7] = [
    header::AUTHORIZATION,
    header::COOKIE,
    header::EXPECT,
    header::FORWARDED,
    header::HOST,
    header::ORIGIN,
    header::REFERER,
];

/// Headers that are not passed outwards: they would apply to all of our origin.
const NOT_OUTSIDE: [HeaderName; 9] = [
    header::SET_COOKIE,
    header::STRICT_TRANSPORT_SECURITY,
    header::ALT_SVC,
    header::REFRESH,
    HeaderName::from_static("clear-site-data"),
    HeaderName::from_static("service-worker-allowed"),
    HeaderName::from_static("proxy-connection"),
    HeaderName::from_static("nel"),
    HeaderName::from_static("report-to"),
];

/// A page may do what pages do, but in an opaque origin, not in ours.
const PAGE: HeaderValue = HeaderValue::from_static(
    "sandbox allow-downloads allow-forms allow-modals allow-popups allow-scripts",
);

/// Marks an answer of the session's server, as opposed to one of ours.
pub(super) const ANSWERED_BY: HeaderName = HeaderName::from_static("sessile-port");

/// The outside address of a server in a session.
#[derive(Clone, Debug)]
pub(super) struct PublicAddress {
    pub(super) port: u16,
    /// `/v1/sessions/ID/ports/PORT`, as the caller wrote it.
    pub(super) prefix: String,
    pub(super) host: Option<HeaderValue>,
    pub(super) scheme: &'static str,
}

/// Whether a client wants a WebSocket.
pub(super) fn is_websocket(method: &Method, headers: &HeaderMap) -> bool {
    let has = |name: HeaderName, word: &str| {
        let values = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
        values.flat_map(|value| value.split(',')).any(|v| v.trim().eq_ignore_ascii_case(word))
    };
    method == Method::GET && has(header::CONNECTION, "upgrade") && has(header::UPGRADE, "websocket")
}

fn remove_hop_by_hop(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in named.iter().chain(&HOP_BY_HOP) {
        headers.remove(name);
    }
}

fn set_upgrade(headers: &mut HeaderMap) {
    headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
}

/// Returns the headers of a request, for the session's server.
pub(super) fn request_headers(
    mut headers: HeaderMap,
    front: &PublicAddress,
    websocket: bool,
) -> HeaderMap {
    remove_hop_by_hop(&mut headers);
    let forwarded: Vec<HeaderName> = headers
        .keys()
        .filter(|name| name.as_str().starts_with("x-forwarded-") || *name == "proxy-connection")
        .cloned()
        .collect();
    for name in forwarded.iter().chain(&NOT_INSIDE) {
        headers.remove(name);
    }
    let text = |text: &str| HeaderValue::from_str(text).ok();
    let set = [
        // Development servers accept no other name.
        (header::HOST, text(&format!("localhost:{}", front.port))),
        (HeaderName::from_static("x-forwarded-host"), front.host.clone()),
        (HeaderName::from_static("x-forwarded-proto"), text(front.scheme)),
        (HeaderName::from_static("x-forwarded-prefix"), text(&front.prefix)),
    ];
    for (name, value) in set {
        if let Some(value) = value {
            headers.insert(name, value);
        }
    }
    if websocket {
        set_upgrade(&mut headers);
    }
    headers
}

/// Returns the headers of an answer, for the caller. `asked` is the path inside the
/// session; `is_ours` says whether this server has a given name.
pub(super) fn response_headers(
    mut headers: HeaderMap,
    front: &PublicAddress,
    asked: &str,
    websocket: bool,
    is_ours: impl Fn(&str) -> bool,
) -> HeaderMap {
    remove_hop_by_hop(&mut headers);
    // Our own guard decides which origins may read the answer.
    let cors: Vec<HeaderName> = headers
        .keys()
        .filter(|name| name.as_str().starts_with("access-control-"))
        .cloned()
        .collect();
    for name in cors.iter().chain(&NOT_OUTSIDE) {
        headers.remove(name);
    }
    for name in [header::LOCATION, header::CONTENT_LOCATION] {
        if let Some(place) = headers.remove(&name)
            && let Some(place) = outside_place(&place, front, asked, &is_ours)
        {
            headers.insert(name, place);
        }
    }
    headers.append(header::CONTENT_SECURITY_POLICY, PAGE);
    headers.insert(ANSWERED_BY, HeaderValue::from(front.port));
    if websocket {
        set_upgrade(&mut headers);
    }
    headers
}

/// Returns the outside address of a redirect. A redirect to the server itself, however
/// written, stays below the port. A redirect to us is dropped: a client would follow it
/// with the caller's token.
fn outside_place(
    place: &HeaderValue,
    front: &PublicAddress,
    asked: &str,
    is_ours: impl Fn(&str) -> bool,
) -> Option<HeaderValue> {
    let inside = Url::parse(&format!("http://localhost:{}", front.port)).ok()?;
    let asked = inside.join(asked).ok()?;
    let place = asked.join(place.to_str().ok()?).ok()?;
    let is_inside = place.host_str().is_some_and(is_loopback)
        && place.port_or_known_default() == Some(front.port);
    if is_inside {
        // Parsing has removed any `..` from the path.
        let mut text = format!("{}{}", front.prefix, place.path());
        if let Some(query) = place.query() {
            text = format!("{text}?{query}");
        }
        if let Some(fragment) = place.fragment() {
            text = format!("{text}#{fragment}");
        }
        return HeaderValue::from_str(&text).ok();
    }
    if !matches!(place.scheme(), "http" | "https") || is_ours(place.host_str()?) {
        return None;
    }
    HeaderValue::from_str(place.as_str()).ok()
}

fn is_loopback(host: &str) -> bool {
    let host = host.trim_matches(['[', ']']);
    host == "localhost" || host.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn front() -> PublicAddress {
        PublicAddress {
            port: 8000,
            prefix: "/v1/sessions/s/ports/8000".to_owned(),
            host: Some(HeaderValue::from_static("box.example:7377")),
            scheme: "https",
        }
    }

    fn headers(all: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in all {
            headers.append(*name, HeaderValue::from_static(value));
        }
        headers
    }

    fn told(headers: &HeaderMap) -> Vec<String> {
        let line = |(name, value): (&HeaderName, &HeaderValue)| {
            format!("{name}: {}", value.to_str().unwrap())
        };
        let mut lines: Vec<String> = headers.iter().map(line).collect();
        lines.sort();
        lines
    }

    #[test]
    fn credentials_and_what_belongs_to_the_connection_stay_outside() {
        let sent = headers(&[
            ("authorization", "Bearer secret"),
            ("cookie", "a=b"),
            ("connection", "close, X-Mine"),
            ("x-mine", "1"),
            ("transfer-encoding", "chunked"),
            ("host", "box.example:7377"),
            ("origin", "https://box.example:7377"),
            ("x-forwarded-for", "1.2.3.4"),
            ("proxy-authorization", "Basic eA=="),
            ("accept", "text/html"),
            ("x-api-key", "of the app"),
        ]);
        assert_eq!(
            told(&request_headers(sent, &front(), false)),
            [
                "accept: text/html",
                "host: localhost:8000",
                "x-api-key: of the app",
                "x-forwarded-host: box.example:7377",
                "x-forwarded-prefix: /v1/sessions/s/ports/8000",
                "x-forwarded-proto: https",
            ]
        );
    }

    #[test]
    fn an_answer_has_no_power_over_our_origin() {
        let answered = headers(&[
            ("set-cookie", "a=b"),
            ("set-cookie", "c=d"),
            ("access-control-allow-origin", "*"),
            ("strict-transport-security", "max-age=1"),
            ("clear-site-data", "\"*\""),
            ("refresh", "0; url=/v1/sessions"),
            ("content-type", "text/html"),
            ("content-security-policy", "default-src 'self'"),
        ]);
        assert_eq!(
            told(&response_headers(answered, &front(), "/", false, |_| false)),
            [
                "content-security-policy: default-src 'self'",
                &format!("content-security-policy: {}", PAGE.to_str().unwrap()),
                "content-type: text/html",
                "sessile-port: 8000",
            ]
        );
    }

    #[test]
    fn a_redirect_stays_below_the_port_or_leads_away_from_us() {
        let leads = |place: &str| {
            let is_ours = |host: &str| is_loopback(host) || host == "box.example";
            let place = HeaderValue::from_str(place).unwrap();
            outside_place(&place, &front(), "/a/b?q", is_ours)
                .map(|place| place.to_str().unwrap().to_owned())
        };
        for (place, outside) in [
            ("/login?next=1#top", "/v1/sessions/s/ports/8000/login?next=1#top"),
            ("c", "/v1/sessions/s/ports/8000/a/c"),
            ("../../../../v1/sessions", "/v1/sessions/s/ports/8000/v1/sessions"),
            ("/%2e%2e/%2E%2E/v1", "/v1/sessions/s/ports/8000/v1"),
            ("/..\\..\\v1", "/v1/sessions/s/ports/8000/v1"),
            ("http://127.0.0.1:8000/x", "/v1/sessions/s/ports/8000/x"),
            ("http://localhost:8000", "/v1/sessions/s/ports/8000/"),
            ("https://elsewhere.example/x", "https://elsewhere.example/x"),
        ] {
            assert_eq!(leads(place).as_deref(), Some(outside), "{place}");
        }
        for place in [
            "http://localhost:7377/v1/sessions",
            "http://127.1:7377/v1/sessions",
            "//0x7f.1:7377/v1/sessions",
            "\\\\box.example/v1/sessions",
            "https://BOX.example:7377/v1/sessions",
            "javascript:alert(1)",
            "http://[::1]:7377/",
        ] {
            assert_eq!(leads(place), None, "{place}");
        }
    }

    #[test]
    fn a_websocket_is_asked_for_in_many_ways() {
        let asked = headers(&[("connection", "keep-alive, Upgrade"), ("upgrade", "WebSocket")]);
        assert!(is_websocket(&Method::GET, &asked));
        assert!(!is_websocket(&Method::POST, &asked));
        let other = headers(&[("connection", "upgrade"), ("upgrade", "h2c")]);
        assert!(!is_websocket(&Method::GET, &other));
    }
}
