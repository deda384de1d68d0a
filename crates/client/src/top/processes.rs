//! CPU and memory of process trees, from /proc.

use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::time::{Duration, Instant};

/// What a tree of processes uses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Usage {
    /// Of one CPU, since the look before; none at the first.
    pub cpu_percent: Option<f64>,
    pub memory_bytes: u64,
    pub processes: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Process {
    parent: u32,
    /// CPU time that it has used, in ticks.
    ticks: u64,
    /// Tells it from another one with the same number.
    started: u64,
    pages: u64,
}

/// All processes at one moment.
#[derive(Debug)]
pub(super) struct Look {
    at: Instant,
    processes: BTreeMap<u32, Process>,
    children: BTreeMap<u32, Vec<u32>>,
}

impl Look {
    pub(super) fn take() -> Self {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let read = |pid: u32| {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            Some((pid, parse(&stat)?))
        };
        let processes: BTreeMap<u32, Process> = pids.filter_map(read).collect();
        let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (pid, process) in &processes {
            children.entry(process.parent).or_default().push(*pid);
        }
        Self { at: Instant::now(), processes, children }
    }

    /// What this process and all below it use; CPU as compared to a look before.
    pub(super) fn usage(&self, root: u32, before: Option<&Self>) -> Usage {
        let mut usage = Usage::default();
        let mut ticks = 0;
        let mut seen = BTreeSet::new();
        let mut rest = vec![root];
        while let Some(pid) = rest.pop() {
            let Some(process) = self.processes.get(&pid).filter(|_| seen.insert(pid)) else {
                continue;
            };
            rest.extend(self.children.get(&pid).into_iter().flatten());
            usage.processes += 1;
            usage.memory_bytes += process.pages * rustix::param::page_size() as u64;
            let then = before.and_then(|look| look.processes.get(&pid));
            let then = then.filter(|then| then.started == process.started);
            ticks += process.ticks.saturating_sub(then.map_or(0, |then| then.ticks));
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

/// A line of /proc/PID/stat. The name may have anything in it, also `)`.
fn parse(stat: &str) -> Option<Process> {
    let (_, fields) = stat.rsplit_once(") ")?;
    let fields: Vec<&str> = fields.split_ascii_whitespace().collect();
    // Counted from 1 in proc(5), where the state is the third.
    let field = |n: usize| fields.get(n - 3)?.parse::<u64>().ok();
    Some(Process {
        parent: u32::try_from(field(4)?).ok()?,
        ticks: field(14)? + field(15)?,
        started: field(22)?,
        pages: field(24)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_may_have_any_name() {
        let stat =
            "12 (a) S 1 (b) R 7 12 12 0 -1 4194560 1 2 3 4 50 6 0 0 20 0 1 0 99 1000 25 1844";
        let process = Process { parent: 7, ticks: 56, started: 99, pages: 25 };
        assert_eq!(parse(stat), Some(process));
        assert_eq!(parse("nonsense"), None);
    }

    #[test]
    fn we_use_cpu_and_memory_ourselves() {
        let before = Look::take();
        let mut n = 0_u64;
        let own = std::process::id();
        loop {
            n = std::hint::black_box(n + 1);
            if n.is_multiple_of(10_000_000) {
                let usage = Look::take().usage(own, Some(&before));
                assert!(usage.memory_bytes > 100_000 && usage.processes >= 1);
                if usage.cpu_percent.is_some_and(|percent| percent > 1.0) {
                    break;
                }
            }
        }
        assert_eq!(before.usage(own, None).cpu_percent, None);
    }
}
