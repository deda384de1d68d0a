//! HTTP/1.1 by hand: one request, one connection, one answer.

use crate::PATIENCE;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};

/// A request that is not sent yet.
#[derive(Clone, Debug)]
pub struct Request {
    address: SocketAddr,
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    version: &'static str,
}

impl Request {
    #[must_use]
    pub fn new(address: SocketAddr, method: &str, path: &str) -> Self {
        Self {
            address,
            method: method.to_owned(),
            path: path.to_owned(),
            headers: Vec::new(),
            body: Vec::new(),
            version: "1.1",
        }
    }

    /// Uses HTTP/1.0.
    pub(crate) fn old(mut self) -> Self {
        self.version = "1.0";
        self
    }

    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    #[must_use]
    pub fn token(self, token: &str) -> Self {
        self.header("authorization", &format!("Bearer {token}"))
    }

    #[must_use]
    pub fn json(mut self, body: &Value) -> Self {
        self.body = body.to_string().into_bytes();
        self.header("content-type", "application/json")
    }

    /// Sets a file as the body.
    #[must_use]
    pub fn file(mut self, body: &[u8]) -> Self {
        self.body = body.to_vec();
        self.header("content-type", "application/octet-stream")
    }

    /// Sets another content type.
    #[must_use]
    pub fn with_type(mut self, kind: &str) -> Self {
        self.headers.retain(|(name, _)| name != "content-type");
        self.header("content-type", kind)
    }

    fn head(&self) -> String {
        let mut head = format!("{} {} HTTP/{}\r\n", self.method, self.path, self.version);
        let has_host = self.headers.iter().any(|(name, _)| name == "host");
        if !has_host {
            head.push_str(&format!("host: {}\r\n", self.address));
        }
        for (name, value) in &self.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str(&format!("content-length: {}\r\n\r\n", self.body.len()));
        head
    }

    /// Sends it, and leaves the connection open.
    ///
    /// # Panics
    /// When the server is not there.
    #[track_caller]
    #[must_use]
    pub fn open(&self) -> TcpStream {
        let mut stream = connect(self.address);
        let bytes = [self.head().as_bytes(), &self.body].concat();
        // A server that refuses it may already have closed the connection.
        let _ = stream.write_all(&bytes);
        stream
    }

    /// Sends it and waits for the answer.
    ///
    /// # Panics
    /// When none comes.
    #[track_caller]
    pub fn send(self) -> Response {
        let request = self.header("connection", "close");
        let mut stream = request.open();
        let mut bytes = Vec::new();
        let outcome = stream.read_to_end(&mut bytes);
        Response::parse(&bytes).unwrap_or_else(|| panic!("no answer: {outcome:?}, {bytes:?}"))
    }
}

/// Connects, with a timeout for reads.
///
/// # Panics
/// When no server listens.
#[track_caller]
#[must_use]
pub fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).expect("a server");
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
    stream
}

#[derive(Clone, Debug)]
pub struct Response {
    pub status: u16,
    headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Response {
    /// Parses a whole answer.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n")?;
        let head = std::str::from_utf8(&bytes[..end]).ok()?;
        let mut lines = head.split("\r\n");
        let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
        let header = |line: &str| {
            let (name, value) = line.split_once(':')?;
            Some((name.to_ascii_lowercase(), value.trim().to_owned()))
        };
        let headers = lines.filter_map(header).collect();
        let mut response = Self { status, headers, body: bytes[end + 4..].to_vec() };
        if response.header("transfer-encoding") == Some("chunked") {
            response.body = unchunked(&response.body)?;
        }
        Some(response)
    }

    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// # Panics
    /// When it has another status.
    #[track_caller]
    pub fn is(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}", self.text());
        self
    }

    /// # Panics
    /// When it is not refused with this code and status.
    #[track_caller]
    pub fn is_refused(self, status: u16, code: &str) -> Self {
        let refused = self.is(status);
        let error = &refused.json()["error"];
        assert_eq!(error["code"], code, "{}", refused.text());
        for field in ["message", "hint"] {
            assert!(error[field].as_str().is_some_and(|text| !text.is_empty()), "{error}");
        }
        refused
    }

    /// # Panics
    /// When the body is no JSON.
    #[track_caller]
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|e| panic!("{e} in {:?}", self.text()))
    }

    /// Returns the code of its error.
    #[track_caller]
    #[must_use]
    pub fn code(&self) -> String {
        self.json()["error"]["code"].as_str().unwrap_or_default().to_owned()
    }
}

fn unchunked(mut bytes: &[u8]) -> Option<Vec<u8>> {
    let mut whole = Vec::new();
    loop {
        let end = bytes.windows(2).position(|two| two == b"\r\n")?;
        let size = usize::from_str_radix(std::str::from_utf8(&bytes[..end]).ok()?, 16).ok()?;
        if size == 0 {
            return Some(whole);
        }
        whole.extend_from_slice(bytes.get(end + 2..end + 2 + size)?);
        bytes = bytes.get(end + 4 + size..)?;
    }
}
