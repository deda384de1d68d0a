//! Answers of a session beside twenty sandboxed ones under bombs: before, meanwhile and
//! after.

use crate::session::Session;
use crate::stats::{Table, micros};
use crate::timed;
use anyhow::Context;
use sessile_protocol::{Exec, Request};
use sessile_sandbox::Draft;
use sessile_sandbox::policy::Limits;
use std::path::Path;
use std::thread;

const SESSIONS: usize = 20;
const ANSWERS: usize = 300;
const TIMEOUT_MS: u64 = 15_000;

const FORKS: &str = "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass";

/// Each takes what it can get of something else.
fn bombs() -> [String; 10] {
    [
        "b() { b | b & }; b; sleep 100".to_owned(),
        format!("python3 -c '{FORKS}'"),
        format!("setsid python3 -c '{FORKS}' >/dev/null 2>&1 & sleep 100"),
        "python3 -c 'import threading, time\nwhile True:\n  try: threading.Thread(\
         target=time.sleep, args=(9,)).start()\n  except RuntimeError: pass'"
            .to_owned(),
        "while :; do y=$y$y-; done".to_owned(),
        "python3 -c 'a = []\nwhile 1: a.append(bytearray(1 << 20))'; while :; do :; done"
            .to_owned(),
        "yes >a & yes >/tmp/b & yes >/dev/shm/c & wait; while :; do yes >>d; done".to_owned(),
        "n=0; while :; do : >$n; : >/tmp/$n; n=$((n + 1)); done 2>/dev/null".to_owned(),
        "python3 -c 'import os\nwhile 1:\n  try: os.dup(0)\n  except OSError: pass'".to_owned(),
        "yes".to_owned(),
    ]
}

pub(crate) fn measure(sessile: &Path) -> anyhow::Result<()> {
    let place = tempfile::tempdir()?;
    let mut policy = Draft::of_preset("full-access").resolve()?;
    policy.limits = Limits {
        memory_bytes: Some(64 << 20),
        pids: Some(40),
        open_files: Some(128),
        layer_bytes: Some(32 << 20),
        ..policy.limits
    };
    let policy = serde_json::to_value(policy)?;
    let start = |_| Session::start_in(sessile, place.path(), Some(policy.clone()));
    let sessions: Vec<Session> = (0..SESSIONS)
        .map(start)
        .collect::<anyhow::Result<_>>()
        .context("this machine cannot hold these limits")?;
    let mut beside = Session::start_in(sessile, place.path(), None)?;
    let mut table = Table::default();
    answers(&mut beside, &mut table, "before")?;
    let bombs = bombs();
    let sessions = thread::scope(|scope| -> anyhow::Result<Vec<Session>> {
        let under = |(n, mut session): (usize, Session)| {
            let text = bombs[n % bombs.len()].clone().into_bytes();
            scope.spawn(move || {
                let order = Exec { text, timeout_ms: Some(TIMEOUT_MS), ..Exec::default() };
                session.call(Request::Exec(order)).map(|_| session)
            })
        };
        let threads: Vec<_> = sessions.into_iter().enumerate().map(under).collect();
        answers(&mut beside, &mut table, "meanwhile")?;
        let ended = threads.into_iter().map(|one| one.join().expect("a thread of ours"));
        ended.collect()
    })?;
    answers(&mut beside, &mut table, "after")?;
    for mut session in sessions {
        session.run("echo alive | cat")?;
    }
    for name in ["before", "meanwhile", "after"] {
        let [half, most, worst] = [0.5, 0.99, 1.0].map(|q| micros(table.quantile(name, q)));
        println!(
            "  an answer beside {SESSIONS} bombs, {name:10} {half:>10} (p99 {most}, worst {worst})"
        );
    }
    Ok(())
}

/// Each run starts two processes.
fn answers(beside: &mut Session, table: &mut Table, name: &str) -> anyhow::Result<()> {
    for _ in 0..ANSWERS {
        table.add(name, timed(|| beside.run("true | cat"))?);
    }
    Ok(())
}
