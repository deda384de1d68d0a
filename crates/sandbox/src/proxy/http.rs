//! The head of a request to a proxy: parsed strictly, checked, and rewritten for the
//! server. Pure.
//!
//! Ambiguous requests are refused: if a proxy understands a request differently from the
//! server, it checks something else than what is sent.

use super::admission::{Refusal, Target};
use super::body::Body;
use crate::policy::hosts::clip;
use std::fmt::Write;

/// The longest head that is read.
pub(super) const LONGEST_HEAD: usize = 32 << 10;

/// The kind of a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ParsedRequest {
    /// A connection, through which anything may be sent.
    Tunnel(Target),
    /// One request.
    Request { target: Target, head: Vec<u8>, body: Body },
}

/// Returns where the head ends, if it is complete.
pub(super) fn end_of_head(bytes: &[u8]) -> Option<usize> {
    bytes.windows(4).position(|four| four == b"\r\n\r\n").map(|at| at + 4)
}

/// Parses a head, including the empty line at its end.
pub(super) fn parse(head: &[u8]) -> Result<ParsedRequest, Refusal> {
    let text = std::str::from_utf8(head).map_err(|_| malformed("", "it is not text"))?;
    let text = text.strip_suffix("\r\n\r\n").unwrap_or(text);
    let (line, rest) = text.split_once("\r\n").unwrap_or((text, ""));
    let mut words = line.split(' ');
    let (Some(method), Some(target), Some(version), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(malformed(line, "the first line is no request"));
    };
    let is_token = |text: &str| !text.is_empty() && text.bytes().all(is_token_byte);
    if !is_token(method) || !matches!(version, "HTTP/1.0" | "HTTP/1.1") {
        return Err(malformed(line, "the first line is no request of HTTP/1"));
    }
    let fields = Fields::parse(rest)?;
    if method == "CONNECT" {
        return Ok(ParsedRequest::Tunnel(Target::parse(target, None)?));
    }
    let Some(url) = strip_scheme(target) else {
        let why = "this is a proxy, which takes CONNECT and requests for http:// URLs";
        return Err(malformed(target, why));
    };
    let end = url.find(['/', '?', '#']).unwrap_or(url.len());
    let (authority, path) = url.split_at(end);
    if authority.contains('@') || path.contains('#') || !path.bytes().all(|b| b.is_ascii_graphic())
    {
        return Err(malformed(target, "the URL has a part that does not belong in a request"));
    }
    let target = Target::parse(authority, Some(80))?;
    fields.agree_with(&target)?;
    let body = fields.body(&target)?;
    let slash = if path.starts_with('/') { "" } else { "/" };
    let mut head =
        format!("{method} {slash}{path} {version}\r\nHost: {}\r\n", authority_of(&target));
    fields.write_end_to_end(&mut head);
    head.push_str("Connection: close\r\n\r\n");
    Ok(ParsedRequest::Request { target, head: head.into_bytes(), body })
}

fn strip_scheme(url: &str) -> Option<&str> {
    let (scheme, rest) = url.split_at_checked(7)?;
    scheme.eq_ignore_ascii_case("http://").then_some(rest)
}

fn authority_of(target: &Target) -> String {
    match target.port {
        80 => target.host.to_string(),
        _ => target.to_string(),
    }
}

fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

fn malformed(asked: &str, why: &str) -> Refusal {
    Refusal::Malformed { asked: clip(asked), why: why.to_owned() }
}

/// The fields of a head.
struct Fields<'a>(Vec<(&'a str, &'a str)>);

impl<'a> Fields<'a> {
    fn parse(text: &'a str) -> Result<Self, Refusal> {
        let lines = text.split("\r\n").filter(|line| !line.is_empty());
        let field = |line: &'a str| {
            let (name, value) = line.split_once(':')?;
            let is_value = |byte: u8| byte == b'\t' || byte == b' ' || !byte.is_ascii_control();
            let is_field =
                !name.is_empty() && name.bytes().all(is_token_byte) && value.bytes().all(is_value);
            is_field.then(|| (name, value.trim_matches([' ', '\t'])))
        };
        let wrong = |line: &str| malformed(line, "a line of the request's head is no field");
        let fields = lines.map(|line| field(line).ok_or_else(|| wrong(line)));
        fields.collect::<Result<_, _>>().map(Self)
    }

    fn all(&self, name: &str) -> impl Iterator<Item = &'a str> {
        self.0
            .iter()
            .filter(move |(own, _)| own.eq_ignore_ascii_case(name))
            .map(|(_, value)| *value)
    }

    /// Checks the Host header, which decides for the server: it must be the checked target.
    fn agree_with(&self, target: &Target) -> Result<(), Refusal> {
        for host in self.all("host") {
            if Target::parse(host, Some(80)).as_ref() != Ok(target) {
                let (asked, header) = (target.to_string(), clip(host));
                return Err(Refusal::OtherHost { asked, header });
            }
        }
        match self.all("host").count() {
            0 | 1 => Ok(()),
            _ => Err(malformed(&target.to_string(), "the request has several Host headers")),
        }
    }

    fn body(&self, target: &Target) -> Result<Body, Refusal> {
        let wrong = |why| malformed(&target.to_string(), why);
        let lengths: Vec<&str> = self.all("content-length").collect();
        let encodings: Vec<&str> = self.all("transfer-encoding").collect();
        match (lengths.as_slice(), encodings.as_slice()) {
            ([], []) => Ok(Body::None),
            ([length], []) if length.bytes().all(|byte| byte.is_ascii_digit()) => {
                let length = length.parse();
                length.map(Body::Length).map_err(|_| wrong("its length is no number"))
            }
            ([], [encoding]) if encoding.eq_ignore_ascii_case("chunked") => Ok(Body::chunked()),
            (_, _) => Err(wrong("the length of the request's body is not clear")),
        }
    }

    /// Writes all fields except those about this connection, and Host, which is
    /// rewritten.
    fn write_end_to_end(&self, head: &mut String) {
        const OURS: &[&str] = &[
            "host",
            "connection",
            "proxy-connection",
            "proxy-authorization",
            "keep-alive",
            "te",
            "upgrade",
        ];
        let named: Vec<&str> =
            self.all("connection").flat_map(|value| value.split(',')).map(str::trim).collect();
        // A body without its length would be parsed as another request.
        let frames = ["content-length", "transfer-encoding"];
        for (name, value) in &self.0 {
            let is = |other: &&str| name.eq_ignore_ascii_case(other);
            let is_of_body = frames.iter().any(is);
            if is_of_body || !(OURS.iter().any(is) || named.iter().any(is)) {
                let _ = write!(head, "{name}: {value}\r\n");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(head: &str) -> Result<ParsedRequest, Refusal> {
        let head = format!("{}\r\n\r\n", head.replace('\n', "\r\n"));
        assert_eq!(end_of_head(head.as_bytes()), Some(head.len()));
        parse(head.as_bytes())
    }

    fn sent(head: &str) -> String {
        match asked(head) {
            Ok(ParsedRequest::Request { head, .. }) => String::from_utf8(head).unwrap(),
            other => panic!("{head:?}: {other:?}"),
        }
    }

    #[test]
    fn a_request_is_written_anew_for_its_server() {
        assert_eq!(
            sent(
                "GET http://A.example:80/p?q HTTP/1.1\nhost: a.example\nAccept: */*\n\
                 Proxy-Connection: keep-alive\nConnection: x-hop, content-length\nX-Hop: 1\n\
                 Content-Length: 3\nUpgrade: websocket"
            ),
            "GET /p?q HTTP/1.1\r\nHost: a.example\r\nAccept: */*\r\nContent-Length: 3\r\n\
             Connection: close\r\n\r\n"
        );
        assert_eq!(
            sent("GET HTTP://a.example:8080 HTTP/1.0"),
            "GET / HTTP/1.0\r\nHost: a.example:8080\r\nConnection: close\r\n\r\n"
        );
        assert!(sent("GET http://a.example?x HTTP/1.1").starts_with("GET /?x HTTP/1.1\r\n"));
        let target = Target::parse("a.example:443", None).unwrap();
        let connect = asked("CONNECT a.example:443 HTTP/1.1\nHost: other.example:443");
        assert_eq!(connect, Ok(ParsedRequest::Tunnel(target)));
    }

    #[test]
    fn the_host_header_must_agree_with_the_target() {
        for host in ["b.example", "a.example:81", "a.example.", "a.example, b.example", "", "127.1"]
        {
            let head = format!("GET http://a.example/ HTTP/1.1\nHost: {host}");
            let is_same = host == "a.example.";
            assert_eq!(asked(&head).is_ok(), is_same, "{host:?}");
        }
        assert!(asked("GET http://a.example/ HTTP/1.1\nHost: a.example\nHost: a.example").is_err());
    }

    #[test]
    fn what_could_be_read_in_two_ways_is_refused() {
        for head in [
            "GET / HTTP/1.1\nHost: a.example",
            "GET https://a.example/ HTTP/1.1",
            "GET http://u:p@a.example/ HTTP/1.1",
            "GET http://a.example@b.example/ HTTP/1.1",
            "GET http://a.example/ x HTTP/1.1",
            "GET  http://a.example/ HTTP/1.1",
            "GET http://a.example/ HTTP/2.0",
            "GET http://a.example/#x HTTP/1.1",
            "GET http://2130706433/ HTTP/1.1",
            "GET http://a.example/ HTTP/1.1\nX : 1",
            "GET http://a.example/ HTTP/1.1\n folded",
            "GET http://a.example/ HTTP/1.1\nnothing",
            "GET http://a.example/\u{1} HTTP/1.1",
            "POST http://a.example/ HTTP/1.1\nContent-Length: 1\nContent-Length: 1",
            "POST http://a.example/ HTTP/1.1\nContent-Length: 1\nTransfer-Encoding: chunked",
            "POST http://a.example/ HTTP/1.1\nTransfer-Encoding: gzip, chunked",
            "POST http://a.example/ HTTP/1.1\nContent-Length: +1",
            "CONNECT a.example HTTP/1.1",
            "CONNECT http://a.example:1/ HTTP/1.1",
        ] {
            assert!(asked(head).is_err(), "{head:?}");
        }
        assert!(parse(b"GET http://a.example/ HTTP/1.1\r\nX: 1\nHost: b.example\r\n\r\n").is_err());
    }
}
