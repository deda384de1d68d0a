//! In addition to the rates: the cost of open sessions, bare loops, and sessions that are
//! used now and then while others are busy.

use super::args::Args;
use super::clients::{Answers, Client, Pace, Until, drive};
use super::cost::Kind;
use super::crowd::Crowd;
use super::page::Page;
use crate::floor::Floor;
use crate::memory;
use crate::server::Serve;
use crate::stats::{Limit, micros, quantile};
use sessile_protocol::Language;
use std::path::Path;
use std::time::Duration;

/// Number of busy sessions among many.
const BUSY: usize = 16;

/// The cost of many open sessions.
#[derive(Debug, Default)]
pub(super) struct Outlook {
    sessions: usize,
    started: usize,
    /// Time to start the missing ones.
    start: Duration,
    /// Kilobytes of the server, proportional (PSS).
    server: u64,
    /// CPU microseconds per second of an idle session.
    idle: f64,
    /// Time slices per second of an idle session's processes.
    wakeups: f64,
    /// The rate of some busy sessions among all, and of the same ones alone.
    beside: f64,
    alone: f64,
}

/// Opens this many sessions, and measures the effect on the existing ones. They stay open
/// for the measurements that follow.
pub(super) fn open_many(
    crowd: &mut Crowd,
    sessions: usize,
    args: &Args,
) -> anyhow::Result<Outlook> {
    let busy = BUSY.min(sessions);
    crowd.open(busy)?;
    crowd.close_beyond(busy)?;
    let mut alone = crowd.turn(busy, args.turn())?;
    let started = sessions - busy;
    let start = crowd.open(sessions)?;
    let mut outlook = Outlook { sessions, started, start, ..Outlook::default() };
    std::thread::sleep(rest(crowd.language));
    crowd.census.settle();
    let window = Duration::from_secs(3);
    let before = crowd.census.look();
    std::thread::sleep(window);
    let spent = crowd.census.look().since(&before);
    let (keepers, kernels) = (spent.of(Kind::Keeper), spent.of(Kind::Kernel));
    let each = sessions as f64 * window.as_secs_f64();
    outlook.idle = (keepers.all + kernels.all).as_secs_f64() * 1e6 / each;
    outlook.wakeups = (keepers.slices + kernels.slices) as f64 / each;
    let beside = crowd.turn(busy, args.turn())?;
    outlook.server = memory::of(crowd.serve.server.pid())?.1;
    // The others are closed and opened again, so that both are measured twice, in turns.
    crowd.close_beyond(busy)?;
    let again = crowd.turn(busy, args.turn())?;
    alone.driven.answered += again.driven.answered;
    alone.driven.elapsed += again.driven.elapsed;
    crowd.open(sessions)?;
    outlook.beside = beside.driven.answered as f64 / beside.driven.elapsed.as_secs_f64();
    outlook.alone = alone.driven.answered as f64 / alone.driven.elapsed.as_secs_f64();
    Ok(outlook)
}

/// Returns how long after its last run an interpreter is idle. V8 returns memory about 8 s
/// and 10 s later, and does nothing from then on.
fn rest(language: Language) -> Duration {
    match language {
        Language::Node => Duration::from_secs(13),
        Language::Bash | Language::Sh | Language::Zsh | Language::Python => Duration::ZERO,
    }
}

impl Outlook {
    pub(super) fn print(&self, language: Language, page: &mut Page) {
        if self.sessions == 0 {
            return;
        }
        let Self { sessions, started, .. } = self;
        let busy = BUSY.min(*sessions);
        let is_bash = language == Language::Bash;
        let held = |limit: Limit| if is_bash { limit } else { Limit::None };
        let a_thousand = self.start.as_secs_f64() * 1000.0 / (*started).max(1) as f64;
        let name = format!("{language}: seconds to start 1,000 sessions ({started} were)");
        page.held(&name, a_thousand, held(Limit::AtMost(8.0)));
        let name = format!("{language}: MiB of the server with {sessions} sessions");
        page.held(&name, self.server as f64 / 1024.0, Limit::AtMost(40.0));
        println!("    idle sessions are given a core {:.3} times a second each", self.wakeups);
        let name = format!("{language}: CPU of an idle session, µs a second");
        page.held(&name, self.idle.round(), Limit::AtMost(0.0));
        println!(
            "    {busy} busy sessions: {:.0} runs/s alone, {:.0} among {sessions} open ones",
            self.alone, self.beside
        );
        let name = format!("{language}: rate of {busy} busy among {sessions} / of {busy} alone");
        page.held(&name, self.beside / self.alone, Limit::AtLeast(0.9));
    }
}

/// Measures bare bash loops on pipes, driven like the sessions.
pub(super) fn floor(args: &Args) -> anyhow::Result<()> {
    println!("  bare bash loops driven by one process, `:`");
    let (steps, _) = args.steps();
    let most = steps.iter().copied().max().unwrap_or(1);
    let mut floors = Vec::new();
    let mut clients = Vec::new();
    for _ in 0..most {
        let floor = Floor::bash()?;
        let (to, from) = floor.files()?;
        clients.push(Client::new(to, from, b":\n".to_vec(), Answers::Byte));
        floors.push(floor);
    }
    for sessions in steps {
        let busy = &mut clients[..sessions];
        drive(busy, Until::Elapsed(args.turn() / 8))?;
        busy.iter_mut().for_each(|client| client.took.clear());
        let driven = drive(busy, Until::Elapsed(args.turn()))?;
        let mut took: Vec<_> =
            busy.iter_mut().flat_map(|client| std::mem::take(&mut client.took)).collect();
        took.sort();
        let rate = driven.answered as f64 / driven.elapsed.as_secs_f64();
        println!(
            "    {sessions:>8} {rate:>8.0} runs/s, median {}, p99 {}",
            micros(quantile(&took, 0.5)),
            micros(quantile(&took, 0.99))
        );
    }
    Ok(())
}

/// Measures sessions that are used now and then, as by people and agents, beside sessions
/// that are busy all the time.
pub(super) fn quiet_beside_busy(sessile: &Path, args: &Args) -> anyhow::Result<()> {
    const QUIET: usize = 16;
    const PACE: Duration = Duration::from_millis(100);
    println!("  {QUIET} quiet bash sessions, a run each {} ms", PACE.as_millis());
    let mut crowd = Crowd::new(Serve::start(sessile)?, Language::Bash);
    crowd.open(QUIET + BUSY)?;
    let mut took = [Vec::new(), Vec::new()];
    for _ in 0..args.rounds {
        for (at, all) in [QUIET, QUIET + BUSY].into_iter().enumerate() {
            crowd.census.settle();
            let clients = &mut crowd.clients[..all];
            for client in clients.iter_mut() {
                client.took.clear();
            }
            for client in &mut clients[..QUIET] {
                client.pace = Pace::Every(PACE);
            }
            drive(clients, Until::Elapsed(args.turn()))?;
            let quiet = clients[..QUIET].iter_mut();
            took[at].extend(quiet.flat_map(|client| std::mem::take(&mut client.took)));
        }
    }
    for (name, took) in
        ["alone".to_owned(), format!("beside {BUSY} busy ones")].iter().zip(&mut took)
    {
        took.sort();
        let [half, most, worst] = [0.5, 0.9, 0.99].map(|q| micros(quantile(took, q)));
        println!("    {name:22} median {half:>8}, p90 {most:>8}, p99 {worst:>8}");
    }
    Ok(())
}
