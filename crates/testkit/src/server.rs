//! A `sessile serve` process.

use crate::http::{Request, Response};
use crate::{Harness, Process, until};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;

/// A running server; it is stopped when this is dropped.
#[derive(Debug)]
pub struct Server {
    child: Child,
    pub address: SocketAddr,
    /// Its output once it accepted connections.
    pub greeting: String,
    token: Option<String>,
    log: Arc<Mutex<Vec<u8>>>,
    log_reader: Option<JoinHandle<()>>,
}

impl Harness {
    /// Starts a server on its own port, with these additional arguments.
    ///
    /// # Panics
    /// When it does not start.
    #[track_caller]
    #[must_use]
    pub fn server(&self, args: &[&str]) -> Server {
        let own = own_address();
        let words = match args.contains(&"--listen") {
            true => [&["serve"], args].concat(),
            false => [&["serve", "--listen", &own], args].concat(),
        };
        Server::spawn(self.command(&words), self)
    }

    /// Starts a server on its own port.
    #[track_caller]
    #[must_use]
    pub fn serve(&self) -> Server {
        self.server(&[])
    }

    /// Starts a server at this address.
    #[track_caller]
    #[must_use]
    pub fn serve_at(&self, address: &str, args: &[&str]) -> Server {
        self.server(&[&["--listen", address], args].concat())
    }

    /// Starts a server that is expected to fail, and returns its errors.
    ///
    /// # Panics
    /// When it starts.
    #[track_caller]
    #[must_use]
    pub fn no_server(&self, args: &[&str]) -> String {
        self.sessile(&[&["serve"], args].concat()).exits(1).prints("").errors()
    }
}

/// Returns an address that no other test uses, and that the system does not choose for
/// connections (it takes ports from 32768): another server can listen there later, when the
/// first one was killed.
fn own_address() -> String {
    const FIRST: u32 = 10_000;
    const COUNT: u32 = 20_000;
    static NEXT: AtomicU32 = AtomicU32::new(0);
    // Other test executables that run at the same time begin elsewhere.
    let start = std::process::id().wrapping_mul(997);
    let mut ports = std::iter::repeat_with(|| {
        let port = start.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % COUNT + FIRST;
        format!("127.0.0.1:{port}")
    });
    ports.find(|address| TcpStream::connect(address).is_err()).expect("ports without end")
}

impl Server {
    /// Starts it and waits until it accepts connections.
    ///
    /// # Panics
    /// When it does not start.
    #[track_caller]
    #[must_use]
    pub fn spawn(mut command: Command, harness: &Harness) -> Self {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("spawn sessile serve");
        let log = Arc::new(Mutex::new(Vec::new()));
        let log_reader = collect(child.stderr.take().expect("a pipe"), log.clone());
        let said = child.stdout.take().expect("a pipe");
        let Some(greeting) = greeting(said) else {
            let _ = child.wait();
            let _ = log_reader.join();
            panic!("no server: {}", String::from_utf8_lossy(&log.lock().expect("a log")));
        };
        let url = greeting.split_whitespace().find(|word| word.contains("://")).expect("a URL");
        let address = url.split("://").nth(1).expect("an address").parse().expect("an address");
        let token = std::fs::read_to_string(harness.private_dir().join("token")).ok();
        Self { child, address, greeting, token, log, log_reader: Some(log_reader) }
    }

    /// Returns the owner's token.
    #[must_use]
    pub fn token(&self) -> &str {
        self.token.as_deref().unwrap_or_default()
    }

    #[must_use]
    pub fn process(&self) -> Process {
        Process::of(self.child.id().cast_signed())
    }

    /// Returns a request without a token.
    #[must_use]
    pub fn request(&self, method: &str, path: &str) -> Request {
        Request::new(self.address, method, path)
    }

    /// Returns a request with the owner's token.
    #[must_use]
    pub fn owner(&self, method: &str, path: &str) -> Request {
        self.request(method, path).token(self.token())
    }

    #[track_caller]
    pub fn get(&self, path: &str) -> Response {
        self.owner("GET", path).send()
    }

    #[track_caller]
    pub fn post(&self, path: &str, body: &Value) -> Response {
        self.owner("POST", path).json(body).send()
    }

    /// Starts a session, and returns its path.
    #[track_caller]
    #[must_use]
    pub fn started(&self, body: &Value) -> String {
        session_path(&self.post("/v1/sessions", body).is(201).json()["session_id"])
    }

    /// Runs a command in the session at that path, and returns the answer.
    #[track_caller]
    pub fn exec_at(&self, session: &str, command: &str) -> Value {
        self.post(&format!("{session}/exec"), &json!({"command": command})).is(200).json()
    }

    /// Runs a command, and returns its stdout.
    #[track_caller]
    pub fn prints_at(&self, session: &str, command: &str) -> String {
        self.exec_at(session, command)["stdout"].as_str().unwrap_or_default().to_owned()
    }

    #[track_caller]
    pub fn delete(&self, path: &str) -> Response {
        self.owner("DELETE", path).send()
    }

    /// Returns its address.
    #[must_use]
    pub fn address(&self) -> String {
        self.address.to_string()
    }

    /// Starts a session, and returns its id.
    #[track_caller]
    #[must_use]
    pub fn session(&self) -> String {
        let started = self.owner("POST", "/v1/sessions").json(&json!({})).send().is(201);
        started.json()["session_id"].as_str().expect("an id").to_owned()
    }

    /// Runs a command in a session, and returns the answer.
    #[track_caller]
    #[must_use]
    pub fn exec(&self, session: &str, command: &str) -> Value {
        let path = format!("/v1/sessions/{session}/exec");
        self.owner("POST", &path).json(&json!({"command": command})).send().is(200).json()
    }

    /// Returns its log so far.
    ///
    /// # Panics
    /// When a reader of it has panicked.
    #[must_use]
    pub fn log(&self) -> String {
        String::from_utf8_lossy(&self.log.lock().expect("a log")).into_owned()
    }

    /// Waits for a line of the log that contains this, and returns it.
    #[track_caller]
    pub fn wait_for_log(&self, part: &str) -> String {
        until(part, || {
            let log = self.log();
            let whole = log.rsplit_once('\n').map_or("", |(whole, _)| whole);
            whole.lines().find(|line| line.contains(part)).map(str::to_owned)
        })
    }

    /// Terminates it, and returns its exit code and its whole log.
    ///
    /// # Panics
    /// When it does not exit.
    #[track_caller]
    pub fn stop(mut self) -> (Option<i32>, String) {
        self.process().signal(Signal::TERM).wait_ended();
        let status = self.child.wait().expect("a child");
        self.log_reader.take().map(JoinHandle::join);
        (status.code(), self.log())
    }

    /// Kills it.
    ///
    /// # Panics
    /// When it does not exit.
    pub fn kill(mut self) {
        self.child.kill().expect("a child");
        self.child.wait().expect("a child");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Reads the output at the start, up to the line with the stdio form.
fn greeting(from: impl Read) -> Option<String> {
    let mut lines = BufReader::new(from).lines();
    let mut text = String::new();
    loop {
        let line = lines.next()?.ok()?;
        text.push_str(&line);
        text.push('\n');
        if line.contains("\"args\"") {
            return Some(text);
        }
    }
}

fn collect(mut from: impl Read + Send + 'static, into: Arc<Mutex<Vec<u8>>>) -> JoinHandle<()> {
    std::thread::spawn(move || {
        let mut part = [0; 4096];
        while let Ok(n @ 1..) = from.read(&mut part) {
            into.lock().expect("a log").extend_from_slice(&part[..n]);
        }
    })
}

/// Runs `curl` with these arguments, and returns its output.
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

/// Returns the path of a session with this id.
///
/// # Panics
/// When it is not an id.
#[must_use]
pub fn session_path(id: &Value) -> String {
    format!("/v1/sessions/{}", id.as_str().expect("an id"))
}
