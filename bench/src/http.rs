//! A run over HTTP keep-alive, against the keeper's socket and a bare echo; and
//! what a busy session does to another.

use crate::session::Session;
use crate::stats::Table;
use crate::timed;
use anyhow::Context;
use sessile_protocol::Language;
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
struct Server {
    child: Child,
    address: String,
}

impl Server {
    fn start(mut command: Command) -> anyhow::Result<Self> {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
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
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A connection that stays.
struct Http {
    reader: BufReader<TcpStream>,
}

impl Http {
    fn connect(address: &str) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        Ok(Self { reader: BufReader::new(stream) })
    }

    fn post(&mut self, path: &str, body: &str) -> anyhow::Result<String> {
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        self.reader.get_mut().write_all(request.as_bytes())?;
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

    fn start_session(&mut self) -> anyhow::Result<String> {
        let answer: serde_json::Value = serde_json::from_str(&self.post("/v1/sessions", "{}")?)?;
        let id = answer["session_id"].as_str().context("no session")?;
        Ok(format!("/v1/sessions/{id}/exec"))
    }
}

const NOTHING: &str = r#"{"command":":"}"#;

pub(crate) fn measure(sessile: &Path) -> anyhow::Result<()> {
    const ROUNDS: usize = 40;
    const CALLS: usize = 40;
    // Long enough for a flood to get past what is kept of it, which takes
    // some 50 ms: forty calls would see only its beginning.
    const BUSY_CALLS: usize = 1500;
    let directory = tempfile::tempdir()?;
    let mut serve = Command::new(sessile);
    serve
        .args(["serve", "--listen", "127.0.0.1:0", "--auth", "none"])
        .current_dir(directory.path())
        .stderr(Stdio::null());
    let server = Server::start(serve)?;
    let mut bare = Command::new(std::env::current_exe()?);
    bare.arg(ECHO);
    let echo = Server::start(bare)?;
    let (mut http, mut echo_http) =
        (Http::connect(&server.address)?, Http::connect(&echo.address)?);
    let exec = http.start_session()?;
    let busy = http.start_session()?;
    let mut socket = Session::start(sessile, Language::Bash)?;
    let mut table = Table::default();
    for _ in 0..ROUNDS {
        for _ in 0..CALLS {
            table.add("bare axum echo", timed(|| echo_http.post("/", NOTHING))?);
        }
        for _ in 0..CALLS {
            table.add("`:` over the keeper's socket", timed(|| socket.run(":"))?);
        }
        socket.settle()?;
        for _ in 0..CALLS {
            table.add("`:` over HTTP keep-alive", timed(|| http.post(&exec, NOTHING))?);
        }
    }
    for (name, command) in [("sleeps", "sleep 1000"), ("floods", "yes")] {
        let alone = format!("`:` over HTTP, before another {name}");
        let beside = format!("`:` over HTTP, while another {name}");
        for _ in 0..6 {
            for _ in 0..BUSY_CALLS {
                table.add(&alone, timed(|| http.post(&exec, NOTHING))?);
            }
            let body = format!(r#"{{"command":"{command}","wait":0,"timeout":0}}"#);
            http.post(&busy, &body)?;
            for _ in 0..BUSY_CALLS {
                table.add(&beside, timed(|| http.post(&exec, NOTHING))?);
            }
            http.post(&busy.replace("/exec", "/interrupt"), "{}")?;
            http.post(&busy, NOTHING)?;
        }
    }
    table.print(&[
        ("`:` over HTTP keep-alive", "`:` over the keeper's socket", Some(3.0)),
        ("`:` over HTTP keep-alive", "bare axum echo", None),
        ("`:` over HTTP, while another sleeps", "`:` over HTTP, before another sleeps", Some(1.2)),
        ("`:` over HTTP, while another floods", "`:` over HTTP, before another floods", Some(1.2)),
    ]);
    for name in ["sleeps", "floods"] {
        table.print_tail(
            &format!("`:` over HTTP, while another {name}"),
            &format!("`:` over HTTP, before another {name}"),
        );
    }
    let _ = Command::new(sessile).args(["end", "--all"]).current_dir(directory.path()).output();
    Ok(())
}
