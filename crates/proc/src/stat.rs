//! /proc/PID/stat: the status of a process in one line.

use rustix::process::Pid;

/// Set by the system before it frees any resource of a process that ends.
const PF_EXITING: u64 = 4;

/// The status of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stat {
    /// `R`, `S`, `T`, `Z`, …
    pub state: char,
    pub parent: Option<Pid>,
    pub group: Option<Pid>,
    /// The leader of its session.
    pub leader: Option<Pid>,
    /// Its controlling terminal in the system's encoding; zero for none.
    pub terminal: i32,
    pub is_exiting: bool,
    /// Ticks of its own CPU time.
    pub cpu: u64,
    /// The part of it in the system.
    pub cpu_in_system: u64,
    /// Ticks of the children that it has waited for.
    pub cpu_of_children: u64,
    pub nice: i64,
    pub threads: u64,
    /// In ticks after boot. Distinguishes a process from a later one with the same pid.
    pub started: u64,
    /// Resident memory, in pages.
    pub resident: u64,
}

impl Stat {
    #[must_use]
    pub fn parse(line: &str) -> Option<Self> {
        // The second field is the program's name in parentheses. It may contain
        // any character, parentheses and spaces included.
        let rest = &line[line.rfind(')')? + 1..];
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        // Counted as in proc(5), where the state is field 3.
        let field = |n: usize| fields.get(n - 3).copied();
        let number = |n: usize| field(n)?.parse::<u64>().ok();
        Some(Self {
            state: field(3)?.chars().next()?,
            parent: process(field(4)?),
            group: process(field(5)?),
            leader: process(field(6)?),
            terminal: field(7)?.parse().ok()?,
            is_exiting: number(9)? & PF_EXITING != 0,
            cpu: number(14)? + number(15)?,
            cpu_in_system: number(15)?,
            cpu_of_children: number(16)? + number(17)?,
            nice: field(19)?.parse().ok()?,
            threads: number(20)?,
            started: number(22)?,
            resident: number(24)?,
        })
    }

    /// Returns whether it is ending, or has ended and only waits to be reaped: it has no
    /// memory and no descriptors any more.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        // The first thread may have ended before the others.
        let is_over = matches!(self.state, 'Z' | 'X') || self.is_exiting;
        is_over && self.threads <= 1
    }

    #[must_use]
    pub fn is_stopped(&self) -> bool {
        matches!(self.state, 'T' | 't')
    }

    /// Returns the major and minor number of the controlling terminal.
    #[must_use]
    pub fn terminal_device(&self) -> Option<(u32, u32)> {
        let number = self.terminal.cast_unsigned();
        let (major, minor) = ((number >> 8) & 0xfff, (number & 0xff) | ((number >> 12) & 0xf_ff00));
        (number != 0).then_some((major, minor))
    }
}

/// Parses a pid. For a process that is ending, the system reports -1.
fn process(number: &str) -> Option<Pid> {
    number.parse().ok().filter(|number| *number > 0).and_then(Pid::from_raw)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_may_have_any_name() {
        let line = "12 (a) S 1 (b) R 7 8 9 34816 -1 4194560 1 2 3 4 50 6 70 8 20 -5 1 0 99 1000 25";
        let stat = Stat::parse(line).unwrap();
        let expected = Stat {
            state: 'R',
            parent: Pid::from_raw(7),
            group: Pid::from_raw(8),
            leader: Pid::from_raw(9),
            terminal: 34816,
            is_exiting: false,
            cpu: 56,
            cpu_in_system: 6,
            cpu_of_children: 78,
            nice: -5,
            threads: 1,
            started: 99,
            resident: 25,
        };
        assert_eq!(stat, expected);
        assert_eq!(stat.terminal_device(), Some((136, 0)));
        assert!(!stat.has_ended() && !stat.is_stopped());
    }

    #[test]
    fn a_process_that_is_ending_is_in_no_group() {
        let line = "7 (a) b) X 0 -1 -1 0 -1 4 0 0 0 0 3 4 0 0 20 0 1 0 99 0 5 0";
        let stat = Stat::parse(line).unwrap();
        assert_eq!((stat.group, stat.leader, stat.started), (None, None, 99));
        assert!(stat.has_ended());
    }

    #[test]
    fn other_text_is_no_process() {
        for line in ["", "nonsense", "1 (a)", "1 (a) S", "1 (a) S x y z"] {
            assert_eq!(Stat::parse(line), None, "{line}");
        }
    }
}
