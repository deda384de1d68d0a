//! The user's own server, on its Unix socket.

use crate::http::Response;
use crate::{Harness, PATIENCE, Process};
use rustix::process::Signal;
use serde_json::Value;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

/// A local server that was found or started. It and its sessions are ended when this is dropped.
#[derive(Debug)]
pub struct LocalServer<'h> {
    harness: &'h Harness,
    pub socket: PathBuf,
    pub process: Process,
}

impl Harness {
    /// Returns the local server, with these additional arguments if it has to be started.
    ///
    /// # Panics
    /// When there is none.
    #[track_caller]
    #[must_use]
    pub fn local_server(&self, args: &[&str]) -> LocalServer<'_> {
        let words = [&["serve", "--local", "--background"], args].concat();
        LocalServer::of(self, &self.sessile(&words).json())
    }
}

impl<'h> LocalServer<'h> {
    /// Returns the server that the output of `sessile serve` describes.
    ///
    /// # Panics
    /// When the output has another form.
    #[must_use]
    pub fn of(harness: &'h Harness, told: &Value) -> Self {
        let pid = told["pid"].as_i64().and_then(|pid| pid.try_into().ok()).expect("a pid");
        let socket = told["socket"].as_str().expect("a socket").into();
        Self { harness, socket, process: Process::of(pid) }
    }

    /// Connects to the server.
    ///
    /// # Errors
    /// When the server is not there.
    pub fn connect(&self) -> io::Result<UnixStream> {
        let stream = UnixStream::connect(&self.socket)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(stream)
    }

    /// # Panics
    /// When no answer comes.
    #[track_caller]
    pub fn get(&self, path: &str) -> Response {
        self.call("GET", path, "")
    }

    /// # Panics
    /// When no answer comes.
    #[track_caller]
    pub fn post(&self, path: &str, body: &Value) -> Response {
        self.call("POST", path, &body.to_string())
    }

    /// # Panics
    /// When no answer comes.
    #[track_caller]
    pub fn call(&self, method: &str, path: &str, body: &str) -> Response {
        let mut stream = self.connect().expect("a server");
        ask(&mut stream, method, path, body).expect("an answer")
    }
}

/// Sends one request, the last of its connection.
///
/// # Errors
/// When no complete answer comes.
pub fn ask(stream: &mut UnixStream, method: &str, path: &str, body: &str) -> io::Result<Response> {
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: sessile\r\nconnection: close\r\n\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes)?;
    Response::parse(&bytes).ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
}

impl Drop for LocalServer<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        let sessions = self.socket.with_extension("");
        if sessions.exists() {
            let sessions = sessions.to_str().expect("a path");
            self.harness.sessile(&["end", "--all", "--sessions-dir", sessions]).exits(0);
        }
        if self.process.is_alive() {
            self.process.signal(Signal::TERM);
        }
    }
}
