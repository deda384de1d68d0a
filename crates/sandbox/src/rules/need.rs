//! What it takes to enforce the rules: mounts, or a look at every path.

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
    /// What it takes to enforce them. It may say that paths differ where no
    /// path does, never the other way round.
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
    /// The one level of all paths, if it is plain that there is one.
    fn uniform(&self) -> Option<Level> {
        let last = self.entries.iter().position(|entry| entry.glob.is_everything())?;
        let level = self.entries[last].level;
        self.entries[..last].iter().all(|entry| entry.level == level).then_some(level)
    }
}
