//! /proc/PID/task/TID/syscall: the system call that a thread is blocked in.

/// A system call that a thread is blocked in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    pub number: i64,
    pub args: [u64; 6],
}

impl Call {
    /// Parses `0 0x0 0x7f… …`: the number, then the arguments. The line of a thread that is
    /// running, or blocked outside of a system call, has another form.
    #[must_use]
    pub fn parse(line: &str) -> Option<Self> {
        let mut words = line.split_ascii_whitespace();
        let number = words.next()?.parse().ok()?;
        let mut args = [0; 6];
        for arg in &mut args {
            *arg = u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok()?;
        }
        Some(Self { number, args })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_that_run_are_in_no_call() {
        assert_eq!(Call::parse("running\n"), None);
        assert_eq!(Call::parse("-1 0x7ffd 0x7f00\n"), None);
        let call = Call::parse("0 0x3 0x1 0x2 0x3 0x4 0x5 0x7ffd 0x7f00\n").unwrap();
        assert_eq!((call.number, call.args), (0, [3, 1, 2, 3, 4, 5]));
    }
}
