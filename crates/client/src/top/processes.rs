//! CPU and memory of process trees, from /proc.

use rustix::process::Pid;
use serde::Serialize;
use sessile_proc::{Process, Stat};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

/// The usage of a process tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Usage {
    /// Percent of one CPU since the last measurement; absent in the first.
    pub cpu_percent: Option<f64>,
    pub memory_bytes: u64,
    pub processes: u64,
}

/// All processes at one moment.
#[derive(Debug)]
pub(super) struct ProcessSnapshot {
    at: Instant,
    processes: BTreeMap<u32, Stat>,
    children: BTreeMap<u32, Vec<u32>>,
}

impl ProcessSnapshot {
    pub(super) fn take() -> Self {
        let read = |process: Process| Some((number(process.pid()), process.stat()?));
        let processes: BTreeMap<u32, Stat> = Process::all().filter_map(read).collect();
        let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (pid, stat) in &processes {
            if let Some(parent) = stat.parent {
                children.entry(number(parent)).or_default().push(*pid);
            }
        }
        Self { at: Instant::now(), processes, children }
    }

    /// Returns the usage of this process and its descendants; CPU relative to the look before.
    pub(super) fn usage(&self, root: u32, before: Option<&Self>) -> Usage {
        let mut usage = Usage::default();
        let mut ticks = 0;
        let mut seen = BTreeSet::new();
        let mut rest = vec![root];
        while let Some(pid) = rest.pop() {
            let Some(stat) = self.processes.get(&pid).filter(|_| seen.insert(pid)) else {
                continue;
            };
            rest.extend(self.children.get(&pid).into_iter().flatten());
            usage.processes += 1;
            usage.memory_bytes += stat.resident * rustix::param::page_size() as u64;
            let then = before.and_then(|look| look.processes.get(&pid));
            let then = then.filter(|then| then.started == stat.started);
            ticks += stat.cpu.saturating_sub(then.map_or(0, |then| then.cpu));
        }
        usage.cpu_percent = before.map(|before| percent(ticks, self.at.duration_since(before.at)));
        usage
    }
}

fn percent(ticks: u64, time: Duration) -> f64 {
    let used = ticks as f64 / rustix::param::clock_ticks_per_second() as f64;
    let percent = 100.0 * used / time.as_secs_f64().max(0.001);
    (10.0 * percent).round() / 10.0
}

fn number(pid: Pid) -> u32 {
    pid.as_raw_nonzero().get().cast_unsigned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn we_use_cpu_and_memory_ourselves() {
        let before = ProcessSnapshot::take();
        let mut n = 0_u64;
        let own = std::process::id();
        loop {
            n = std::hint::black_box(n + 1);
            if n.is_multiple_of(10_000_000) {
                let usage = ProcessSnapshot::take().usage(own, Some(&before));
                assert!(usage.memory_bytes > 100_000 && usage.processes >= 1);
                if usage.cpu_percent.is_some_and(|percent| percent > 1.0) {
                    break;
                }
            }
        }
        assert_eq!(before.usage(own, None).cpu_percent, None);
    }
}
