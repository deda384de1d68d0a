//! A run over HTTP keep-alive, compared with the keeper's socket and a bare echo; and the
//! effect of a sleeping session on another.

use crate::server::{Http, Serve, Server};
use crate::session::Session;
use crate::stats::Table;
use crate::timed;
use sessile_protocol::Language;
use std::path::Path;

const NOTHING: &str = r#"{"command":":"}"#;

pub(crate) fn measure(sessile: &Path) -> anyhow::Result<()> {
    const ROUNDS: usize = 40;
    const CALLS: usize = 40;
    let serve = Serve::start(sessile)?;
    let echo = Server::echo()?;
    let (mut http, mut echo_http) = (serve.connect()?, Http::connect(&echo.address)?);
    let exec = http.start_session("bash")? + "/exec";
    let busy = http.start_session("bash")?;
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
    let (alone, beside) =
        ("`:` over HTTP, before another sleeps", "`:` over HTTP, while another sleeps");
    for _ in 0..ROUNDS {
        for _ in 0..CALLS {
            table.add(alone, timed(|| http.post(&exec, NOTHING))?);
        }
        let sleep = r#"{"command":"sleep 1000","wait":0,"timeout":0}"#;
        http.post(&format!("{busy}/exec"), sleep)?;
        for _ in 0..CALLS {
            table.add(beside, timed(|| http.post(&exec, NOTHING))?);
        }
        http.post(&format!("{busy}/interrupt"), "{}")?;
        http.post(&format!("{busy}/exec"), NOTHING)?;
    }
    table.print(&[
        ("`:` over HTTP keep-alive", "`:` over the keeper's socket", Some(3.0)),
        ("`:` over HTTP keep-alive", "bare axum echo", None),
        (beside, alone, Some(1.2)),
    ]);
    table.print_tail(beside, alone, 1.2);
    Ok(())
}
