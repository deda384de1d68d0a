//! When the pipes of a run are watched.
//!
//! A run that is soon over needs nobody who reads its output meanwhile: to watch its pipes
//! takes more system calls than all the rest, and wakes the keeper twice. How soon depends
//! on the machine. Among a hundred busy sessions a kernel waits for several milliseconds
//! until it gets a core. So the patience is a multiple of how long the last runs took, unless
//! they wrote so much that they had to wait for a reader.

use sessile_session::Tick;

/// How long a run is left to itself at least, and at most: who follows it waits for its
/// first output.
pub(super) const LEAST: Tick = 2;
const MOST: Tick = 20;

/// A pipe takes 64 KiB. A run that has written a good part of that may have waited.
const MUCH: u64 = 16 << 10;

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Patience {
    /// How long the last runs took; the longest counts, and less with every further run. In
    /// eighths of a tick.
    longest: Tick,
}

impl Patience {
    /// Notes the end of a run.
    pub(super) fn ended(&mut self, took: Tick, wrote: u64) {
        let faded = self.longest - self.longest.div_ceil(8);
        self.longest = if wrote < MUCH { faded.max(took.min(MOST) * 8) } else { 0 };
    }

    /// Returns how long after its beginning a run is watched.
    pub(super) fn of_next(self) -> Tick {
        (self.longest / 4).clamp(LEAST, MOST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_follows_how_long_runs_take() {
        let mut patience = Patience::default();
        assert_eq!(patience.of_next(), LEAST);
        patience.ended(0, 0);
        assert_eq!(patience.of_next(), LEAST);
        patience.ended(6, 100);
        assert_eq!(patience.of_next(), 12);
        patience.ended(60_000, 0);
        assert_eq!(patience.of_next(), MOST);
        (0..40).for_each(|_| patience.ended(0, 0));
        assert_eq!(patience.of_next(), LEAST);
    }

    #[test]
    fn runs_that_write_much_are_read_soon() {
        let mut patience = Patience::default();
        patience.ended(10, 0);
        patience.ended(10, 1 << 20);
        assert_eq!(patience.of_next(), LEAST);
    }
}
