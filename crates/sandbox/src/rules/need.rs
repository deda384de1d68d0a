//! What it takes to enforce the rules: mounts, or a check of every path.

use super::{Rules, Set};
use crate::policy::Level;

/// What it takes to enforce the rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// Every path has this level.
    Uniform(Level),
    /// Paths differ.
    PerPath,
}

impl Rules {
    /// Returns what it takes to enforce them. It may return `PerPath` although no path
    /// differs, never the other way round.
    #[must_use]
    pub fn need(&self) -> Need {
        let mut strictest = Level::Write;
        for set in &self.sets {
            match set.uniform() {
                Some(level) => strictest = strictest.min(level),
                None => return Need::PerPath,
            }
        }
        Need::Uniform(strictest)
    }
}

impl Set {
    /// Returns the one level of all paths, if that is evident.
    fn uniform(&self) -> Option<Level> {
        let last = self.entries.iter().position(|entry| entry.glob.is_everything())?;
        let level = self.entries[last].level;
        self.entries[..last].iter().all(|entry| entry.level == level).then_some(level)
    }
}
