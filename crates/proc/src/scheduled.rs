//! /proc/PID/task/TID/schedstat and /proc/stat: CPU time.

use crate::TICK;
use std::time::Duration;

/// The CPU time of threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Scheduled {
    pub time: Duration,
    /// Number of time slices.
    pub slices: u64,
}

impl Scheduled {
    pub(crate) fn parse(line: &str) -> Option<Self> {
        // Time on a core and time in the run queue, both in nanoseconds; number of slices.
        let mut numbers = line.split_ascii_whitespace().map(|number| number.parse::<u64>().ok());
        let time = Duration::from_nanos(numbers.next()??);
        Some(Self { time, slices: numbers.nth(1)?? })
    }

    pub(crate) fn plus(self, other: Self) -> Self {
        Self { time: self.time + other.time, slices: self.slices + other.slices }
    }
}

/// Returns the busy time of all cores since boot.
#[must_use]
pub fn busy_time() -> Duration {
    let text = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    parse_busy(&text).unwrap_or_default()
}

fn parse_busy(text: &str) -> Option<Duration> {
    let line = text.lines().next()?.strip_prefix("cpu ")?;
    let ticks: Vec<u64> =
        line.split_ascii_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
    // user, nice, system, (idle, iowait), irq, softirq
    let busy: u64 = [0, 1, 2, 5, 6].iter().filter_map(|at| ticks.get(*at)).sum();
    Some(TICK.saturating_mul(u32::try_from(busy).unwrap_or(u32::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_has_its_time_and_slices() {
        let expected = Scheduled { time: Duration::from_nanos(1500), slices: 7 };
        assert_eq!(Scheduled::parse("1500 20 7\n"), Some(expected));
        assert_eq!(Scheduled::parse("1500 20"), None);
    }

    #[test]
    fn a_core_that_waits_is_not_busy() {
        let text = "cpu  1 2 3 1000 500 4 5 0 0 0\ncpu0 1 1 1 1 1 1 1\n";
        assert_eq!(parse_busy(text), Some(15 * TICK));
        assert_eq!(parse_busy("nonsense"), None);
    }
}
