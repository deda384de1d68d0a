//! A server of the harness's sessions, and a plain HTTP client.

use crate::{Harness, PATIENCE, Process};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};

/// `sessile serve` on a port of its own. Killed when dropped, at once.
#[derive(Debug)]
pub struct Server {
    child: Child,
    address: String,
    token: String,
    log: Receiver<String>,
}

impl Harness {
    /// Starts a server.
    #[must_use]
    pub fn serve(&self) -> Server {
        self.serve_with(&[])
    }

    /// # Panics
    /// When it does not say where it is.
    #[must_use]
    #[track_caller]
    pub fn serve_with(&self, args: &[&str]) -> Server {
        self.serve_at("127.0.0.1:0", args)
    }

    /// # Panics
    /// When it does not say where it is.
    #[must_use]
    #[track_caller]
    pub fn serve_at(&self, address: &str, args: &[&str]) -> Server {
        let all = [&["serve", "--listen", address], args].concat();
        let mut child = self
            .command(&all)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("a server");
        let said = lines(child.stdout.take().expect("its stdout"));
        let log = lines(child.stderr.take().expect("its stderr"));
        let line = said.recv_timeout(PATIENCE);
        let Ok(line) = line else {
            panic!("the server says nothing; its log: {:?}", log.iter().collect::<Vec<_>>());
        };
        let address = line
            .split_whitespace()
            .find_map(|word| word.split_once("://"))
            .map(|(_, rest)| rest.trim_end_matches(['/', ',', '.']).to_owned())
            .expect("an address in its first line");
        let token = std::fs::read_to_string(self.sessions_dir().join("token")).unwrap_or_default();
        Server { child, address, token: token.trim().to_owned(), log }
    }
}

/// Lines as they come, read by a thread so that nobody blocks on a full pipe.
fn lines(from: impl Read + Send + 'static) -> Receiver<String> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    receiver
}

impl Server {
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    #[must_use]
    pub fn token(&self) -> &str {
        &self.token
    }

    #[must_use]
    pub fn process(&self) -> Process {
        Process::of(self.child.id().cast_signed())
    }

    /// Kill -9.
    pub fn kill(mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// The next line of the log that has this in it.
    ///
    /// # Panics
    /// When there is none.
    #[track_caller]
    pub fn wait_logged(&self, text: &str) -> String {
        loop {
            let line = self.log.recv_timeout(PATIENCE);
            let line = line.unwrap_or_else(|_| panic!("{text:?} is not in the log"));
            if line.contains(text) {
                return line;
            }
        }
    }

    /// A request, not yet sent.
    #[must_use]
    pub fn request(&self, method: &str, path: &str) -> Call {
        Call {
            address: self.address.clone(),
            head: format!("{method} {path} HTTP/1.0\r\nHost: {}\r\n", self.address),
            body: Vec::new(),
            token: Some(self.token.clone()),
        }
    }

    #[track_caller]
    pub fn get(&self, path: &str) -> Reply {
        self.request("GET", path).send()
    }

    #[track_caller]
    pub fn post(&self, path: &str, body: &Value) -> Reply {
        self.request("POST", path).json(body).send()
    }

    #[track_caller]
    pub fn delete(&self, path: &str) -> Reply {
        self.request("DELETE", path).send()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[derive(Clone, Debug)]
pub struct Call {
    address: String,
    head: String,
    body: Vec<u8>,
    token: Option<String>,
}

impl Call {
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.head.push_str(&format!("{name}: {value}\r\n"));
        self
    }

    #[must_use]
    pub fn json(self, body: &Value) -> Self {
        let mut call = self.header("Content-Type", "application/json");
        call.body = body.to_string().into_bytes();
        call
    }

    #[must_use]
    pub fn token(mut self, token: Option<&str>) -> Self {
        self.token = token.map(str::to_owned);
        self
    }

    fn connect(self) -> BufReader<TcpStream> {
        let mut stream = TcpStream::connect(&self.address).expect("a connection");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        let mut head = self.head;
        if let Some(token) = self.token {
            head.push_str(&format!("Authorization: Bearer {token}\r\n"));
        }
        let head = format!("{head}Content-Length: {}\r\n\r\n", self.body.len());
        stream.write_all(head.as_bytes()).expect("the request's head");
        stream.write_all(&self.body).expect("the request's body");
        BufReader::new(stream)
    }

    /// Sends it and reads the whole answer.
    ///
    /// # Panics
    /// When the server does not answer.
    #[track_caller]
    pub fn send(self) -> Reply {
        let mut answer = Vec::new();
        self.connect().read_to_end(&mut answer).expect("an answer");
        Reply::parse(&answer)
    }

    /// Sends it; whoever drops what comes back leaves before the answer.
    #[must_use]
    pub fn begin(self) -> impl Drop {
        Waiting(self.connect())
    }

    /// Sends it and reads the events as they come.
    ///
    /// # Panics
    /// When it is refused.
    #[must_use]
    #[track_caller]
    pub fn events(self) -> Events {
        let mut reader = self.connect();
        let mut status = String::new();
        reader.read_line(&mut status).expect("a status");
        assert!(status.contains(" 200 "), "{status}");
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).expect("a header");
            if line.trim().is_empty() {
                return Events { reader };
            }
        }
    }
}

struct Waiting(BufReader<TcpStream>);

impl Drop for Waiting {
    fn drop(&mut self) {
        let _ = self.0.get_ref().shutdown(std::net::Shutdown::Both);
    }
}

/// An answer.
#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Reply {
    fn parse(bytes: &[u8]) -> Self {
        let end = bytes.windows(4).position(|w| w == b"\r\n\r\n").expect("an end of the head");
        let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).expect("a status");
        Self { status, head, body: bytes[end + 4..].to_vec() }
    }

    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// # Panics
    /// When it is none.
    #[must_use]
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("no JSON: {}", self.text()))
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
        let reply = self.is(status);
        let error = &reply.json()["error"];
        assert_eq!(error["code"], code, "{}", reply.text());
        for field in ["message", "hint"] {
            assert!(error[field].as_str().is_some_and(|text| !text.is_empty()), "{error}");
        }
        reply
    }
}

/// Server-sent events, as they come.
#[derive(Debug)]
pub struct Events {
    reader: BufReader<TcpStream>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    pub id: String,
    pub name: String,
    pub data: Value,
}

impl Iterator for Events {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        let mut event = Event { id: String::new(), name: String::new(), data: Value::Null };
        loop {
            let mut line = String::new();
            if self.reader.read_line(&mut line).expect("an event") == 0 {
                return None;
            }
            let line = line.trim_end();
            match line.split_once(": ").unwrap_or((line, "")) {
                ("id", id) => id.clone_into(&mut event.id),
                ("event", name) => name.clone_into(&mut event.name),
                ("data", data) => event.data = serde_json::from_str(data).expect("JSON"),
                ("", _) if !event.name.is_empty() => return Some(event),
                // A comment, to keep the connection alive.
                (_, _) => {}
            }
        }
    }
}

/// `curl` with these arguments, and what it prints.
///
/// # Panics
/// When it cannot be run.
#[must_use]
#[track_caller]
pub fn curl(args: &[&str]) -> String {
    let output = Command::new("curl")
        .args(["--silent", "--show-error", "--max-time", "30"])
        .args(args)
        .output();
    let output = output.expect("curl");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A WebSocket whose messages are JSON.
#[derive(Debug)]
pub struct Socket {
    socket: tungstenite::WebSocket<TcpStream>,
}

impl Server {
    /// # Panics
    /// When the server does not switch to WebSocket.
    #[must_use]
    #[track_caller]
    pub fn socket(&self, path: &str) -> Socket {
        use tungstenite::client::IntoClientRequest;
        let mut request =
            format!("ws://{}{path}", self.address).into_client_request().expect("a request");
        let token = format!("Bearer {}", self.token).parse().expect("a header");
        request.headers_mut().insert("Authorization", token);
        let stream = TcpStream::connect(&self.address).expect("a connection");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        let (socket, _) = tungstenite::client(request, stream).expect("a WebSocket");
        Socket { socket }
    }
}

impl Socket {
    /// # Panics
    /// When the server is gone.
    #[track_caller]
    pub fn send(&mut self, message: &Value) {
        let text = tungstenite::Message::text(message.to_string());
        self.socket.send(text).expect("the server takes it");
    }

    /// The next message.
    ///
    /// # Panics
    /// When there is none.
    #[track_caller]
    pub fn receive(&mut self) -> Value {
        loop {
            match self.socket.read().expect("a message") {
                tungstenite::Message::Text(text) => {
                    return serde_json::from_str(&text).expect("JSON");
                }
                tungstenite::Message::Ping(_) | tungstenite::Message::Pong(_) => {}
                other => panic!("{other:?}"),
            }
        }
    }

    /// Messages up to one of this type, which is the last.
    #[track_caller]
    pub fn receive_until(&mut self, kind: &str) -> Vec<Value> {
        let mut seen = Vec::new();
        loop {
            let message = self.receive();
            let is_last = message["type"] == kind;
            seen.push(message);
            if is_last {
                return seen;
            }
        }
    }
}
