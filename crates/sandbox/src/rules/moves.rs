//! What a move of a directory means for its content.

use super::{Rules, Set};
use crate::policy::Level;

impl Rules {
    /// Whether everything that can lie beneath has the same level at both places, and
    /// this is `none` or `write`, whatever its name. If not, the existing entries have to
    /// be checked.
    #[must_use]
    pub fn can_move_unseen(&self, from: &[&[u8]], to: &[&[u8]]) -> bool {
        self.sets.iter().all(|set| set.can_move_unseen(from, to))
    }

    /// Whether a path may move along with its directory: one that may be changed, to
    /// where it may be changed; or one that is hidden, to where it stays hidden.
    #[must_use]
    pub fn can_move_along(&self, from: &[&[u8]], to: &[&[u8]]) -> bool {
        match (self.own_level(from), self.own_level(to)) {
            (Level::Write, Level::Write) | (Level::None, Level::None) => true,
            (Level::None | Level::View | Level::Read | Level::Write, _) => false,
        }
    }
}

impl Set {
    fn can_move_unseen(&self, from: &[&[u8]], to: &[&[u8]]) -> bool {
        self.entries.iter().all(|entry| {
            matches!(entry.level, Level::None | Level::Write)
                && entry.glob.standing(from) == entry.glob.standing(to)
        })
    }
}
