//! The sets of signals in /proc/PID/status.

/// How a process handles signals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Signals {
    pub blocked: SignalSet,
    pub ignored: SignalSet,
    /// Signals with handlers.
    pub caught: SignalSet,
    /// Signals that were sent and are not delivered yet.
    pub pending: SignalSet,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SignalSet(u64);

impl SignalSet {
    #[must_use]
    pub fn has(self, signal: i32) -> bool {
        let bit = u32::try_from(signal - 1).ok().and_then(|shift| 1_u64.checked_shl(shift));
        bit.is_some_and(|bit| self.0 & bit != 0)
    }
}

impl Signals {
    #[must_use]
    pub fn parse(status: &str) -> Option<Self> {
        let set = |name: &str| {
            let digits = status.lines().find_map(|line| line.strip_prefix(name))?;
            u64::from_str_radix(digits.trim(), 16).ok().map(SignalSet)
        };
        // To the first thread, and to the process as a whole.
        let pending = SignalSet(set("SigPnd:")?.0 | set("ShdPnd:")?.0);
        let (blocked, ignored, caught) = (set("SigBlk:")?, set("SigIgn:")?, set("SigCgt:")?);
        Some(Self { blocked, ignored, caught, pending })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_are_counted_from_one() {
        let status = "Name:\tx\nSigPnd:\t0000000000000100\nShdPnd:\t0000000000004000\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000000002\n\
                      SigCgt:\t8000000000000001\n";
        let signals = Signals::parse(status).unwrap();
        assert!(signals.pending.has(9) && signals.pending.has(15) && !signals.pending.has(1));
        assert!(signals.ignored.has(2) && !signals.ignored.has(1));
        assert!(signals.caught.has(1) && signals.caught.has(64) && !signals.caught.has(2));
        assert!(![-1, 0, 65, 1000].into_iter().any(|none| signals.caught.has(none)));
        assert_eq!(Signals::parse("Name:\tx\n"), None);
    }
}
