//! Servers to measure, and a connection to one.

use crate::interrupt;
use anyhow::Context;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// The first argument of this program as a bare server.
pub(crate) const ECHO: &str = "echo-server";

/// A bare axum server that answers a POST with its body.
pub(crate) fn echo_server() -> anyhow::Result<()> {
    tokio::runtime::Runtime::new()?.block_on(async {
        let router = axum::Router::new()
            .route("/", axum::routing::post(|body: axum::body::Bytes| async { body }));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        println!("http://{}", listener.local_addr()?);
        axum::serve(listener, router).await?;
        Ok(())
    })
}

/// A server process, killed when dropped.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    pub(crate) address: String,
}

impl Server {
    /// Starts a server that prints its address in the first line.
    pub(crate) fn start(command: &mut Command) -> anyhow::Result<Self> {
        let mut child =
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn()?;
        let stdout = child.stdout.take().context("no stdout")?;
        let mut line = String::new();
        BufReader::new(stdout).read_line(&mut line)?;
        let address = line
            .split_whitespace()
            .find_map(|word| word.split_once("://"))
            .map(|(_, rest)| rest.trim_end_matches('/').to_owned())
            .with_context(|| format!("no address in {line:?}"))?;
        Ok(Self { child, address })
    }

    pub(crate) fn echo() -> anyhow::Result<Self> {
        Self::start(Command::new(std::env::current_exe()?).arg(ECHO))
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `sessile serve` with its own directory. Its sessions end with it.
#[derive(Debug)]
pub(crate) struct Serve {
    pub(crate) server: Server,
    pub(crate) sessions: interrupt::Sessions,
    _temporary: tempfile::TempDir,
}

impl Serve {
    pub(crate) fn start(sessile: &Path) -> anyhow::Result<Self> {
        Self::with_configuration(sessile, "")
    }

    /// Starts a server with this configuration.
    pub(crate) fn with_configuration(sessile: &Path, text: &str) -> anyhow::Result<Self> {
        let temporary = tempfile::tempdir()?;
        let configuration = temporary.path().join("sessile.toml");
        std::fs::write(&configuration, text)?;
        let sessions = interrupt::Sessions::within(sessile, temporary.path(), ".sessions");
        let server = Server::start(
            Command::new(sessile)
                .env("XDG_STATE_HOME", temporary.path())
                .arg("--sessions-dir")
                .arg(sessions.path())
                .args(["serve", "--listen", "127.0.0.1:0", "--auth", "none"])
                .args(["--max-sessions", "4000", "--max-connections", "4000"])
                // Connections of idle clients must stay open.
                .args(["--request-timeout", "1h"])
                .arg("--config")
                .arg(configuration)
                .current_dir(temporary.path()),
        )?;
        Ok(Self { server, sessions, _temporary: temporary })
    }

    pub(crate) fn connect(&self) -> anyhow::Result<Http> {
        Http::connect(&self.server.address)
    }
}

/// A keep-alive connection.
#[derive(Debug)]
pub(crate) struct Http {
    reader: BufReader<TcpStream>,
}

impl Http {
    pub(crate) fn connect(address: &str) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        Ok(Self { reader: BufReader::new(stream) })
    }

    pub(crate) fn post(&mut self, path: &str, body: &str) -> anyhow::Result<String> {
        self.call("POST", path, body)
    }

    pub(crate) fn get(&mut self, path: &str) -> anyhow::Result<String> {
        self.call("GET", path, "")
    }

    pub(crate) fn delete(&mut self, path: &str) -> anyhow::Result<String> {
        self.call("DELETE", path, "")
    }

    fn call(&mut self, method: &str, path: &str, body: &str) -> anyhow::Result<String> {
        self.reader.get_mut().write_all(&request(method, path, body))?;
        let mut line = String::new();
        self.reader.read_line(&mut line)?;
        let is_good = line.contains(" 200 ") || line.contains(" 201 ") || line.contains(" 202 ");
        let mut length = 0;
        loop {
            line.clear();
            self.reader.read_line(&mut line)?;
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse()?;
            }
            if line.trim().is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        self.reader.read_exact(&mut body)?;
        let body = String::from_utf8(body)?;
        anyhow::ensure!(is_good, "{path}: {body}");
        Ok(body)
    }

    /// Starts a session with this interpreter, and returns its path.
    pub(crate) fn start_session(&mut self, program: &str) -> anyhow::Result<String> {
        let body = format!(r#"{{"shell":"{program}"}}"#);
        let answer: serde_json::Value = serde_json::from_str(&self.post("/v1/sessions", &body)?)?;
        let id = answer["session_id"].as_str().context("no session")?;
        Ok(format!("/v1/sessions/{id}"))
    }
}

pub(crate) fn request(method: &str, path: &str, body: &str) -> Vec<u8> {
    format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}
