//! The cost of runs: the CPU time of all processes that take part.

use crate::memory;
use crate::session::user_state;
use sessile_proc::{Scheduled, TICK};
use sessile_store::Sessions;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Server,
    /// Including its guardian.
    Keeper,
    Kernel,
    /// This process.
    Client,
}

/// CPU time, by kind.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Usage {
    pub(super) all: Duration,
    pub(super) system: Duration,
    /// Time of children that have ended, such as a capture.
    pub(super) forks: Duration,
    /// Number of time slices of a process.
    pub(super) slices: u64,
}

impl Usage {
    fn plus(self, other: Self) -> Self {
        Self {
            all: self.all + other.all,
            system: self.system + other.system,
            forks: self.forks + other.forks,
            slices: self.slices + other.slices,
        }
    }

    fn minus(self, before: Self) -> Self {
        Self {
            all: self.all.saturating_sub(before.all),
            system: self.system.saturating_sub(before.system),
            forks: self.forks.saturating_sub(before.forks),
            slices: self.slices.saturating_sub(before.slices),
        }
    }
}

/// The kind of each process.
#[derive(Clone, Debug, Default)]
pub(super) struct Census {
    pids: Vec<(u32, Kind)>,
}

impl Census {
    pub(super) fn take(server: u32, sessions: &Path) -> anyhow::Result<Self> {
        let mut pids = vec![(server, Kind::Server), (std::process::id(), Kind::Client)];
        for (_, metadata) in Sessions::at(sessions.to_owned(), user_state(sessions)).list()? {
            let Some(keeper) = metadata.keeper_pid else { continue };
            pids.push((keeper, Kind::Keeper));
            pids.extend(memory::parent(keeper).ok().map(|guardian| (guardian, Kind::Keeper)));
            pids.extend(kernels(keeper).into_iter().map(|kernel| (kernel, Kind::Kernel)));
        }
        Ok(Self { pids })
    }

    pub(super) fn kind(&self, kind: Kind) -> impl Iterator<Item = u32> + '_ {
        self.pids.iter().filter(move |(_, of)| *of == kind).map(|(pid, _)| *pid)
    }

    pub(super) fn look(&self) -> Look {
        let mut usage = BTreeMap::new();
        for (pid, kind) in &self.pids {
            let sum: &mut Usage = usage.entry(*kind).or_default();
            *sum = sum.plus(of(*pid).unwrap_or_default());
        }
        Look { usage, machine: sessile_proc::busy_time() }
    }

    /// Waits until the sessions and their server are idle. Gives up after a while:
    /// continuous work shows in the numbers.
    pub(super) fn settle(&self) {
        const PATIENCE: Duration = Duration::from_secs(20);
        const LOOKS: u32 = 4;
        let start = Instant::now();
        let (mut still, mut before) = (0, self.slices());
        while still < LOOKS && start.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(60));
            let now = self.slices();
            still = if now == before { still + 1 } else { 0 };
            before = now;
        }
    }

    fn slices(&self) -> u64 {
        let others = self.pids.iter().filter(|(_, kind)| *kind != Kind::Client);
        others.filter_map(|(pid, _)| of(*pid)).map(|usage| usage.slices).sum()
    }
}

/// Returns the children of a keeper that are not short-lived forks of it.
fn kernels(keeper: u32) -> Vec<u32> {
    let program = |pid: u32| memory::process(pid)?.program();
    let own = program(keeper);
    memory::children(keeper).into_iter().filter(|pid| program(*pid) != own).collect()
}

/// The usage of all processes so far.
#[derive(Clone, Debug)]
pub(super) struct Look {
    pub(super) usage: BTreeMap<Kind, Usage>,
    /// All of the machine's cores.
    pub(super) machine: Duration,
}

impl Look {
    pub(super) fn since(&self, before: &Self) -> Self {
        let gone = |kind| before.usage.get(kind).copied().unwrap_or_default();
        let usage = self.usage.iter().map(|(kind, now)| (*kind, now.minus(gone(kind)))).collect();
        Self { usage, machine: self.machine.saturating_sub(before.machine) }
    }

    /// Returns the look without the client's time for waiting until all were idle.
    pub(super) fn without_looking(mut self, before: &Self) -> Self {
        let client = before.of(Kind::Client);
        let looking = self.of(Kind::Client).minus(client);
        self.machine = self.machine.saturating_sub(looking.all);
        self.usage.insert(Kind::Client, client);
        self
    }

    pub(super) fn plus(&self, other: &Self) -> Self {
        let mut usage = self.usage.clone();
        for (kind, more) in &other.usage {
            let sum = usage.entry(*kind).or_default();
            *sum = sum.plus(*more);
        }
        Self { usage, machine: self.machine + other.machine }
    }

    pub(super) fn of(&self, kind: Kind) -> Usage {
        self.usage.get(&kind).copied().unwrap_or_default()
    }
}

/// Returns a process's own time in nanoseconds, over its threads. Its share in the system,
/// and the time of its ended children, are known only in ticks; over many runs that makes
/// no difference.
fn of(pid: u32) -> Option<Usage> {
    let process = memory::process(pid)?;
    let stat = process.stat()?;
    let Scheduled { time, slices } = process.scheduled();
    let system = time.mul_f64(stat.cpu_in_system as f64 / stat.cpu.max(1) as f64);
    let forks = TICK.mul_f64(stat.cpu_of_children as f64);
    Some(Usage { all: time, system, forks, slices })
}
