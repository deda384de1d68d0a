//! Forks, checkpoints and rewinds.

use crate::memory;
use crate::session::{Place, Session, user_state};
use crate::stats::{Table, print_ratio};
use crate::timed;
use anyhow::{Context, bail};
use sessile_protocol::{
    Answer, ForkFiles, ForkOrder, Language, NewCheckpoint, Request, Rewind, RewindTo, SessionId,
};
use sessile_store::{Liveness, Sessions};
use std::path::Path;
use std::time::Duration;

const FORKS: u32 = 100;

/// Times `os.fork()` alone, in the process itself, in seconds.
const BARE_FORK: &str = "\
import os, time
def bare():
    before = time.perf_counter()
    child = os.fork()
    if child == 0:
        os._exit(0)
    took = time.perf_counter() - before
    os.waitpid(child, 0)
    return took
";

pub(crate) fn measure(sessile: &Path) -> anyhow::Result<()> {
    forks(sessile, 20, 40)?;
    forks(sessile, 500, 12)?;
    memory_of_fork(sessile)?;
    automatic(sessile)?;
    going_back(sessile)?;
    many(sessile)
}

/// Starts a Python session with this much memory of its own.
fn filled(sessile: &Path, megabytes: u64, place: Place) -> anyhow::Result<Session> {
    let mut session = Session::start_at(sessile, Language::Python, place)?;
    session.run(&format!("data = bytearray(b'x') * ({megabytes} << 20)\n{BARE_FORK}"))?;
    session.settle()?;
    Ok(session)
}

fn fork(session: &mut Session, count: u32) -> anyhow::Result<Vec<SessionId>> {
    let order = ForkOrder { count, files: ForkFiles::Share, wait: false, name: None, new: None };
    let Answer::Forked(view) = session.call(Request::Fork(order))? else {
        bail!("no fork");
    };
    Ok(view.forks.into_iter().map(|fork| fork.session).collect())
}

/// Returns a client of a fork.
fn connect(session: &Session, fork: &SessionId) -> anyhow::Result<sessile_client::Client> {
    let directory =
        Sessions::at(session.directory().to_owned(), user_state(session.directory())).find(fork)?;
    let Liveness::Live(socket) = directory.connect() else { bail!("the fork is not there") };
    Ok(sessile_client::Client::new(socket))
}

fn forks(sessile: &Path, megabytes: u64, rounds: u32) -> anyhow::Result<()> {
    let mut table = Table::default();
    let bare = format!("bare os.fork() of {megabytes} MB");
    let whole = format!("fork of a {megabytes} MB session");
    let on_disk = "the same, its directory on disk";
    for (place, name) in [(Place::Memory, whole.as_str()), (Place::Disk, on_disk)] {
        let mut session = filled(sessile, megabytes, place)?;
        for _ in 0..rounds {
            let done = session.complete("bare()", 0)?;
            let took = done.result.context("a number")?.text.parse()?;
            table.add(&bare, Duration::from_secs_f64(took));
            session.settle()?;
            let mut made = Vec::new();
            table.add(name, timed(|| fork(&mut session, 1).map(|ids| made = ids))?);
            for id in &made {
                connect(&session, id)?.call(Request::End)?;
            }
        }
    }
    let limit = (megabytes >= 500).then_some(3.0);
    table.print(&[(&whole, &bare, limit), (on_disk, &bare, limit)]);
    let milliseconds = table.median(&whole).as_secs_f64() * 1000.0;
    print_ratio(&format!("{whole}, ms"), milliseconds, (megabytes < 500).then_some(10.0));
    Ok(())
}

fn memory_of_fork(sessile: &Path) -> anyhow::Result<()> {
    let mut session = filled(sessile, 20, Place::Memory)?;
    let kernel = *memory::children(session.keeper).first().context("a kernel")?;
    let (before, _) = memory::of(kernel)?;
    let made = fork(&mut session, 1)?;
    let is_fork = |pid: &u32| *pid != kernel;
    let process = memory::children(session.keeper).into_iter().find(is_fork).context("a fork")?;
    let (own, _) = memory::of(process)?;
    println!("  private memory: 20 MB session {before} kB, its idle fork {own} kB");
    print_ratio("idle fork / its parent's private memory", own as f64 / before as f64, Some(0.15));
    for id in &made {
        connect(&session, id)?.call(Request::End)?;
    }
    Ok(())
}

/// Measures the cost of a checkpoint before each run.
fn automatic(sessile: &Path) -> anyhow::Result<()> {
    let mut table = Table::default();
    for (place, without, with) in [
        (Place::Memory, "python run, `x = 1`", "the same with a checkpoint before it"),
        (Place::Disk, "both with a directory on disk: without", "and with"),
    ] {
        let mut plain = Session::start_at(sessile, Language::Python, place)?;
        let mut auto = Session::start_auto(sessile, Language::Python, place)?;
        for _ in 0..200 {
            table.add(without, timed(|| plain.run("x = 1"))?);
            plain.settle()?;
            table.add(with, timed(|| auto.run("x = 1"))?);
            auto.settle()?;
        }
        let added = table.median(with).saturating_sub(table.median(without));
        let name = format!("ms that a checkpoint adds, {place:?}").to_lowercase();
        print_ratio(&name, added.as_secs_f64() * 1000.0, Some(1.0));
    }
    table.print(&[]);
    Ok(())
}

fn going_back(sessile: &Path) -> anyhow::Result<()> {
    let mut session = filled(sessile, 20, Place::Memory)?;
    let mut table = Table::default();
    let new = NewCheckpoint { name: Some("here".to_owned()), ..NewCheckpoint::default() };
    session.call(Request::Checkpoint(new))?;
    let name = "rewind of a 20 MB python session";
    for _ in 0..40 {
        session.run("data[0] = 1")?;
        let to = RewindTo::Name("here".to_owned());
        let order = Rewind { to, keep_files: false, wait: false };
        table.add(name, timed(|| session.call(Request::Rewind(order.clone())))?);
    }
    table.print(&[]);
    print_ratio("ms of a rewind", table.median(name).as_secs_f64() * 1000.0, Some(20.0));
    Ok(())
}

fn many(sessile: &Path) -> anyhow::Result<()> {
    let mut session = filled(sessile, 20, Place::Memory)?;
    let mut made = Vec::new();
    let took = timed(|| fork(&mut session, FORKS).map(|ids| made = ids))?;
    let mut clients = Vec::new();
    for id in &made {
        clients.push(connect(&session, id)?);
    }
    let mut pss = 0;
    for pid in memory::children(session.keeper) {
        pss += memory::of(pid)?.1;
    }
    for client in &mut clients {
        let text = b"data[0] = 2; len(data)".to_vec();
        let order = sessile_protocol::Exec { text, ..sessile_protocol::Exec::default() };
        let Answer::Completed(done) = client.call(Request::Exec(order))? else {
            bail!("no answer")
        };
        anyhow::ensure!(done.exit_code == 0, "{done:?}");
    }
    println!(
        "  {} forks of a 20 MB session live at once: made in {:.0} ms, all processes together {} MB of memory",
        clients.len(),
        took.as_secs_f64() * 1000.0,
        pss / 1024
    );
    for client in &mut clients {
        client.call(Request::End)?;
    }
    Ok(())
}
