//! Streams of events: server-sent, and over a WebSocket.

use crate::Server;
use crate::http::{Request, connect};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::net::TcpStream;

impl Request {
    /// Sends it and reads the events as they arrive.
    ///
    /// # Panics
    /// When it is refused.
    #[must_use]
    #[track_caller]
    pub fn events(self) -> Events {
        // HTTP/1.0, so that the body is not chunked.
        let mut reader = BufReader::new(self.old().open());
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

/// Server-sent events, as they arrive.
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
        let token = format!("Bearer {}", self.token()).parse().expect("a header");
        request.headers_mut().insert("Authorization", token);
        let stream = connect(self.address);
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

    /// Returns the next message.
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
                other @ (tungstenite::Message::Binary(_)
                | tungstenite::Message::Close(_)
                | tungstenite::Message::Frame(_)) => panic!("{other:?}"),
            }
        }
    }

    /// Returns the messages up to and including one of this type.
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
