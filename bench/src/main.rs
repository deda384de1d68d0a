//! Speed and memory as ratios, measured in one run with interleaved order:
//! this machine's noise hits both sides of a ratio alike.
//!
//! `cargo xtask bench` builds what is needed and runs this.

mod branch;
mod floor;
mod http;
mod memory;
mod output;
mod relay;
mod session;
mod stats;

use anyhow::Context;
use floor::Floor;
use relay::Relay;
use sessile_protocol::Language;
use session::Session;
use stats::Table;
use std::path::PathBuf;
use std::time::{Duration, Instant};

fn main() -> anyhow::Result<()> {
    let sessile = sessile()?;
    match std::env::args().nth(1).as_deref() {
        None => {}
        Some(http::ECHO) => return http::echo_server(),
        Some(relay::RELAY) => return relay::relay(),
        Some("http") => return http::measure(&sessile),
        Some("branch") => return branch::measure(&sessile),
        Some(language) => return keep_busy(&sessile, language),
    }
    println!("warm round trips (median of interleaved rounds)");
    warm(&sessile)?;
    println!("\nover HTTP");
    http::measure(&sessile)?;
    println!("\ncold starts, to the first answer");
    cold(&sessile)?;
    println!("\n100 MB of output through one run");
    output::measure(&sessile)?;
    println!("\nmemory of idle sessions");
    memory::measure(&sessile)?;
    println!("\nforks, checkpoints and going back");
    branch::measure(&sessile)?;
    Ok(())
}

/// The binary beside this one.
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

/// Runs nothing, over and over, in one session: for a profiler to look at.
fn keep_busy(sessile: &std::path::Path, language: &str) -> anyhow::Result<()> {
    let language: Language = language.parse()?;
    let code = if language == Language::Node { "0" } else { ":" };
    let code = if language == Language::Python { "pass" } else { code };
    let mut session = Session::start(sessile, language)?;
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
    const ROUNDS: usize = 60;
    const CALLS: usize = 40;
    let mut bash = Session::start(sessile, Language::Bash)?;
    let mut bash_floor = Floor::bash()?;
    let mut bash_relay = Relay::start()?;
    let mut python = Session::start(sessile, Language::Python)?;
    let mut python_floor = Floor::python()?;
    let mut node = Session::start(sessile, Language::Node)?;
    let mut node_floor = Floor::node()?;
    let mut table = Table::default();
    for _ in 0..ROUNDS {
        let mut repeat = |name: &str, call: &mut dyn FnMut() -> anyhow::Result<()>| {
            for _ in 0..CALLS {
                table.add(name, timed(&mut *call)?);
            }
            anyhow::Ok(())
        };
        repeat("bash floor: read/eval loop, `:`", &mut || bash_floor.call(":"))?;
        repeat("the same through a bare relay", &mut || bash_relay.call(":"))?;
        repeat("bash session, `:`", &mut || bash.run(":"))?;
        repeat("bash session, `echo hi`", &mut || bash.run("echo hi"))?;
        // What a session does in idle time would be measured with the next.
        bash.settle()?;
        repeat("python floor: exec loop, `pass`", &mut || python_floor.call("pass"))?;
        repeat("python session, `pass`", &mut || python.run("pass"))?;
        python.settle()?;
        repeat("node floor: vm loop, `0`", &mut || node_floor.call("0"))?;
        repeat("node session, `0`", &mut || node.run("0"))?;
        node.settle()?;
        for _ in 0..4 {
            table.add("bash floor, `/bin/true`", timed(|| bash_floor.call("/bin/true"))?);
            table.add("bash session, `/bin/true`", timed(|| bash.run("/bin/true"))?);
            bash.settle()?;
            table.add("fresh `bash -c :`", timed(|| floor::fresh("bash", "-c", ":"))?);
        }
    }
    table.print(&[
        ("bash session, `:`", "bash floor: read/eval loop, `:`", Some(3.0)),
        ("bash session, `:`", "the same through a bare relay", None),
        ("bash session, `echo hi`", "bash floor: read/eval loop, `:`", None),
        ("bash session, `/bin/true`", "bash floor, `/bin/true`", None),
        ("bash session, `:`", "fresh `bash -c :`", Some(1.0)),
        ("python session, `pass`", "python floor: exec loop, `pass`", Some(3.0)),
        ("node session, `0`", "node floor: vm loop, `0`", None),
    ]);
    Ok(())
}

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

/// A program's standard streams, for a bare loop to talk to.
fn pipes(
    child: &mut std::process::Child,
) -> anyhow::Result<(std::process::ChildStdin, std::process::ChildStdout)> {
    let stdin = child.stdin.take().context("no stdin")?;
    let stdout = child.stdout.take().context("no stdout")?;
    Ok((stdin, stdout))
}
