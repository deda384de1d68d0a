//! Speed and memory as ratios, measured in one run with interleaved order: this machine's
//! noise affects both sides of a ratio alike.
//!
//! `cargo xtask bench` builds the binaries and runs this.

mod agents;
mod bombs;
mod branch;
mod floor;
mod http;
mod interrupt;
mod load;
mod memory;
mod output;
mod page;
mod peers;
mod pools;
mod relay;
mod sandbox;
mod server;
mod session;
mod stats;
mod turn;

use anyhow::Context;
use floor::Floor;
use relay::Relay;
use sessile_protocol::Language;
use session::Session;
use stats::Table;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use turn::Turn;

fn main() -> anyhow::Result<()> {
    let sessile = sessile()?;
    interrupt::watch()?;
    match std::env::args().nth(1).as_deref() {
        None => {}
        Some(server::ECHO) => return server::echo_server(),
        Some(relay::RELAY) => return relay::relay(),
        Some("load") => return load::measure(&sessile, &load::Args::of_command_line()?),
        Some("peers") => return peers::measure(&sessile, &peers::Args::of_command_line()),
        Some("warm") => return warm(&sessile),
        Some("http") => return http::measure(&sessile),
        Some("branch") => return branch::measure(&sessile),
        Some("pools") => return pools::measure(&sessile),
        Some("sandbox") => {
            let parts: Vec<String> = std::env::args().skip(2).collect();
            return sandbox::measure(&sessile, &parts);
        }
        Some("bombs") => return bombs::measure(&sessile),
        Some("agents") => return agents::measure(&sessile),
        Some(language) => {
            let policy = std::env::args().nth(2);
            return keep_busy(&sessile, language, policy.as_deref());
        }
    }
    println!("warm round trips (medians of interleaved turns)");
    warm(&sessile)?;
    println!("\nover HTTP");
    http::measure(&sessile)?;
    println!("\ncold starts, to the first answer");
    cold(&sessile)?;
    println!("\n100 MB of output through one run");
    output::measure(&sessile)?;
    println!("\nmemory of idle sessions");
    memory::measure(&sessile)?;
    println!("\nmany sessions at once, over HTTP");
    load::measure(&sessile, &load::Args::default())?;
    println!("\nforks, checkpoints and going back");
    branch::measure(&sessile)?;
    println!("\nnew sessions from prepared ones");
    pools::measure(&sessile)?;
    println!("\nin a sandbox, against the same without");
    sandbox::measure(&sessile, &[])?;
    println!("\nbeside sandboxes under bombs");
    bombs::measure(&sessile)?;
    println!("\nthe loop of an agent");
    agents::measure(&sessile)?;
    Ok(())
}

/// Returns the binary beside this one.
fn sessile() -> anyhow::Result<PathBuf> {
    let path = std::env::current_exe()?.with_file_name("sessile");
    anyhow::ensure!(path.exists(), "{} is missing: use `cargo xtask bench`", path.display());
    Ok(path)
}

fn timed<T>(work: impl FnOnce() -> anyhow::Result<T>) -> anyhow::Result<Duration> {
    let start = Instant::now();
    work()?;
    Ok(start.elapsed())
}

/// Runs an empty command over and over in one session, for a profiler; with a policy, in
/// a sandbox.
fn keep_busy(
    sessile: &std::path::Path,
    language: &str,
    policy: Option<&str>,
) -> anyhow::Result<()> {
    let language: Language = language.parse()?;
    let code = if language == Language::Node { "0" } else { ":" };
    let code = if language == Language::Python { "pass" } else { code };
    let place = tempfile::tempdir()?;
    let mut session = match policy {
        Some(policy) => {
            anyhow::ensure!(language == Language::Bash, "a sandbox is measured with bash");
            sandbox::start(sessile, place.path(), policy)?
        }
        None => Session::start(sessile, language)?,
    };
    session.run(code)?;
    println!("keeper {}", session.keeper);
    let mut table = Table::default();
    for _ in 0..20_000 {
        table.add("a run", timed(|| session.run(code))?);
    }
    table.print(&[]);
    Ok(())
}

fn warm(sessile: &std::path::Path) -> anyhow::Result<()> {
    let mut bash = Session::start(sessile, Language::Bash)?;
    let mut bash_floor = Floor::bash()?;
    let mut bash_relay = Relay::start()?;
    let mut python = Session::start(sessile, Language::Python)?;
    let mut python_floor = Floor::python()?;
    let mut node = Session::start(sessile, Language::Node)?;
    let mut node_floor = Floor::node()?;
    for (title, rounds, turn) in
        [("in a steady loop", 5, Turn::Steady), ("a few calls after a pause", 60, Turn::Burst)]
    {
        println!("  {title}:");
        let mut table = Table::default();
        for _ in 0..rounds {
            turn.take(&mut table, BASH_FLOOR, || bash_floor.call(":"))?;
            turn.take(&mut table, BASH_RELAY, || bash_relay.call(":"))?;
            turn.take(&mut table, BASH, || bash.run(":"))?;
            turn.take(&mut table, BASH_ECHO, || bash.run("echo hi"))?;
            // The session's work in idle time would be measured with the next row.
            bash.settle()?;
            turn.take(&mut table, PYTHON_FLOOR, || python_floor.call("pass"))?;
            turn.take(&mut table, PYTHON, || python.run("pass"))?;
            python.settle()?;
            turn.take(&mut table, NODE_FLOOR, || node_floor.call("0"))?;
            turn.take(&mut table, NODE, || node.run("0"))?;
            node.settle()?;
        }
        let held = |limit| (turn == Turn::Steady).then_some(limit);
        table.print(&[
            (BASH, BASH_FLOOR, held(3.0)),
            (BASH, BASH_RELAY, None),
            (BASH_ECHO, BASH_FLOOR, None),
            (PYTHON, PYTHON_FLOOR, held(3.0)),
            (NODE, NODE_FLOOR, None),
        ]);
    }
    println!("  with a program:");
    let mut table = Table::default();
    for _ in 0..240 {
        table.add("bash floor, `/bin/true`", timed(|| bash_floor.call("/bin/true"))?);
        table.add("bash session, `/bin/true`", timed(|| bash.run("/bin/true"))?);
        bash.settle()?;
        table.add("fresh `bash -c :`", timed(|| floor::fresh("bash", "-c", ":"))?);
        table.add(BASH, timed(|| bash.run(":"))?);
    }
    table.print(&[
        ("bash session, `/bin/true`", "bash floor, `/bin/true`", None),
        ("bash session, `/bin/true`", "fresh `bash -c :`", Some(1.0)),
        (BASH, "fresh `bash -c :`", Some(1.0)),
    ]);
    Ok(())
}

const BASH_FLOOR: &str = "bash floor: read/eval loop, `:`";
const BASH_RELAY: &str = "the same through a bare relay";
const BASH: &str = "bash session, `:`";
const BASH_ECHO: &str = "bash session, `echo hi`";
const PYTHON_FLOOR: &str = "python floor: exec loop, `pass`";
const PYTHON: &str = "python session, `pass`";
const NODE_FLOOR: &str = "node floor: vm loop, `0`";
const NODE: &str = "node session, `0`";

fn cold(sessile: &std::path::Path) -> anyhow::Result<()> {
    const ROUNDS: usize = 15;
    let mut table = Table::default();
    for _ in 0..ROUNDS {
        for (language, code) in
            [(Language::Bash, ":"), (Language::Python, "pass"), (Language::Node, "0")]
        {
            let start = Instant::now();
            let mut session = Session::start(sessile, language)?;
            session.run(code)?;
            table.add(&format!("{language} session"), start.elapsed());
        }
        table.add("`bash -c :`", timed(|| floor::fresh("bash", "-c", ":"))?);
        table.add("`python3 -c pass`", timed(|| floor::fresh("python3", "-c", "pass"))?);
        table.add("`node -e 0`", timed(|| floor::fresh("node", "-e", "0"))?);
    }
    table.print(&[
        ("bash session", "`bash -c :`", None),
        ("python session", "`python3 -c pass`", Some(3.0)),
        ("node session", "`node -e 0`", Some(2.0)),
    ]);
    Ok(())
}

/// Returns a program's stdin and stdout, for a bare loop.
fn pipes(
    child: &mut std::process::Child,
) -> anyhow::Result<(std::process::ChildStdin, std::process::ChildStdout)> {
    let stdin = child.stdin.take().context("no stdin")?;
    let stdout = child.stdout.take().context("no stdout")?;
    Ok((stdin, stdout))
}
