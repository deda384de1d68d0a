//! A `sessile serve`, and requests by hand.

use super::peer;
use serde_json::{Value, json};
use sessile_testkit::{Harness, PATIENCE};
use std::io::{Read, Write};
use std::net::TcpStream;

pub(crate) struct Server {
    server: sessile_testkit::Server,
    pub(crate) address: String,
    /// Whom the requests are from.
    pub(crate) token: String,
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    head: String,
    body: String,
}

impl Server {
    pub(crate) fn start(h: &Harness, options: &[&str]) -> Self {
        Self::start_at(h, "127.0.0.1:0", options)
    }

    pub(crate) fn start_at(h: &Harness, address: &str, options: &[&str]) -> Self {
        let server = h.serve_at(address, options);
        let (address, token) = (server.address(), server.token().to_owned());
        Self { server, address, token }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    pub(crate) fn kill(self) {
        self.server.kill();
    }

    /// Sends a message; what comes back is read later, or never.
    pub(crate) fn send(&self, path: &str, headers: &[(&str, &str)], message: &Value) -> TcpStream {
        self.send_text(path, headers, &message.to_string())
    }

    fn send_text(&self, path: &str, headers: &[(&str, &str)], body: &str) -> TcpStream {
        let mut request = format!(
            "POST {path} HTTP/1.0\r\nHost: {}\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: {}\r\n",
            self.address,
            body.len()
        );
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        let mut stream = TcpStream::connect(&self.address).expect("a server");
        stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
        stream.write_all(format!("{request}\r\n{body}").as_bytes()).expect("a server that reads");
        stream
    }

    pub(crate) fn post(&self, headers: &[(&str, &str)], message: &Value) -> Reply {
        Reply::read(self.send("/mcp", headers, message))
    }

    pub(crate) fn post_text(&self, headers: &[(&str, &str)], body: &str) -> Reply {
        Reply::read(self.send_text("/mcp", headers, body))
    }

    fn authorization(&self) -> String {
        format!("Bearer {}", self.token)
    }

    /// A call of a tool by the stateless version.
    pub(crate) fn call(&self, tool: &str, arguments: &Value) -> Value {
        Reply::read(self.begin(tool, arguments)).result()
    }

    pub(crate) fn begin(&self, tool: &str, arguments: &Value) -> TcpStream {
        let params = json!({"name": tool, "arguments": arguments, "_meta": peer::meta()});
        let message = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params});
        let authorization = self.authorization();
        let headers = [
            ("Authorization", authorization.as_str()),
            ("MCP-Protocol-Version", "2026-07-28"),
            ("Mcp-Method", "tools/call"),
            ("Mcp-Name", tool),
        ];
        self.send("/mcp?tools=all", &headers, &message)
    }

    /// A message of an older version, of a client with this session id.
    pub(crate) fn send_as(&self, session: &str, message: &Value) -> TcpStream {
        let authorization = self.authorization();
        let headers = [
            ("Authorization", authorization.as_str()),
            ("MCP-Protocol-Version", "2025-06-18"),
            ("Mcp-Session-Id", session),
        ];
        self.send("/mcp", &headers, message)
    }

    /// A handshake; the session id.
    pub(crate) fn shake_hands(&self) -> String {
        let params = peer::initialize("2025-06-18");
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
        let authorization = self.authorization();
        let reply = self.post(&[("Authorization", &authorization)], &message);
        let session = reply.header("mcp-session-id").expect("a session id").to_owned();
        assert_eq!(reply.result()["protocolVersion"], "2025-06-18");
        session
    }
}

impl Reply {
    pub(crate) fn read(mut stream: TcpStream) -> Self {
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("an answer");
        let (head, body) = text.split_once("\r\n\r\n").expect("a head and a body");
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
        Self { status: status.expect("a status"), head: head.to_owned(), body: body.to_owned() }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (found, value) = line.split_once(": ")?;
            found.eq_ignore_ascii_case(name).then_some(value)
        })
    }

    /// The messages in it, be it one or a stream of them.
    pub(crate) fn messages(&self) -> Vec<Value> {
        let data = self.body.lines().filter_map(|line| line.strip_prefix("data:"));
        let events: Vec<Value> = data.filter_map(|data| serde_json::from_str(data).ok()).collect();
        match serde_json::from_str(&self.body) {
            Ok(message) => vec![message],
            Err(_) => events,
        }
    }

    #[track_caller]
    pub(crate) fn result(&self) -> Value {
        let answer = self.messages().pop().unwrap_or_else(|| panic!("no message in {self:?}"));
        assert!(answer["error"].is_null(), "refused: {answer}");
        answer["result"].clone()
    }
}
