//! Which directories will be looked into next. A program that walks through a tree by an
//! index of its own, as git does, goes from one directory to the next by name. So when
//! one is looked into after the one before it, the ones after it are listed as well:
//! more of them each time, like the read-ahead of a file.
//!
//! Decides only; `ahead` lists.

use std::cmp::Ordering;
use std::ops::Range;

/// How many are listed ahead the first time, and at most. git's threads go through a
/// thousand files each.
const LEAST: u8 = 4;
const MOST: u8 = 32;

/// The directories in a directory, by name.
#[derive(Debug)]
pub(super) struct Siblings {
    names: Vec<Vec<u8>>,
    /// For each: with how many others it was listed; 0 if it was not.
    listed: Vec<u8>,
}

impl Siblings {
    pub(super) fn new(mut names: Vec<Vec<u8>>) -> Self {
        names.sort_unstable_by(|one, other| in_paths(one, other));
        let listed = vec![0; names.len()];
        Self { names, listed }
    }

    /// A program looks into this one, whose names are being listed. Returns the ones to
    /// list next.
    pub(super) fn looked_into(&mut self, name: &[u8]) -> &[Vec<u8>] {
        let Ok(at) = self.names.binary_search_by(|known| in_paths(known, name)) else {
            return &[];
        };
        let before = at.checked_sub(1).map_or(0, |before| self.listed[before]);
        let next = match before {
            0 => at + 1..at + 1,
            before => self.after(at, before.saturating_mul(2).clamp(LEAST, MOST)),
        };
        self.listed[at] = self.listed[at].max(1);
        &self.names[next]
    }

    /// The next ones that were not listed, as far as this.
    fn after(&mut self, at: usize, count: u8) -> Range<usize> {
        let end = (at + 1 + usize::from(count)).min(self.names.len());
        let begin = (at + 1..end).find(|next| self.listed[*next] == 0).unwrap_or(end);
        let end = (begin..end).find(|next| self.listed[*next] != 0).unwrap_or(end);
        self.listed[begin..end].fill(count);
        begin..end
    }
}

/// The order of paths through these directories, as in git's index: `a.b/` comes before
/// `a/`.
fn in_paths(one: &[u8], other: &[u8]) -> Ordering {
    one.iter().chain(b"/").cmp(other.iter().chain(b"/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn siblings(count: usize) -> Siblings {
        Siblings::new((0..count).map(name).collect())
    }

    fn name(number: usize) -> Vec<u8> {
        format!("d{number:03}").into_bytes()
    }

    fn names(range: Range<usize>) -> Vec<Vec<u8>> {
        range.map(name).collect()
    }

    #[test]
    fn after_two_neighbours_more_are_listed_each_time() {
        let mut siblings = siblings(100);
        assert!(siblings.looked_into(&name(10)).is_empty());
        assert_eq!(siblings.looked_into(&name(11)), names(12..16));
        assert_eq!(siblings.looked_into(&name(16)), names(17..25));
        assert_eq!(siblings.looked_into(&name(25)), names(26..42));
        assert_eq!(siblings.looked_into(&name(42)), names(43..75));
        assert_eq!(siblings.looked_into(&name(75)), names(76..100));
    }

    #[test]
    fn those_that_are_looked_into_here_and_there_say_nothing_of_others() {
        let mut siblings = siblings(100);
        for number in [50, 3, 97, 20, 18, 22] {
            assert!(siblings.looked_into(&name(number)).is_empty());
        }
    }

    #[test]
    fn no_directory_is_listed_ahead_twice() {
        let mut siblings = siblings(20);
        siblings.looked_into(&name(8));
        assert_eq!(siblings.looked_into(&name(9)), names(10..14));
        siblings.looked_into(&name(6));
        assert!(siblings.looked_into(&name(7)).is_empty());
        siblings.looked_into(&name(4));
        // Up to where the others begin.
        assert!(siblings.looked_into(&name(5)).is_empty());
        siblings.looked_into(&name(1));
        assert_eq!(siblings.looked_into(&name(2)), names(3..4));
    }

    #[test]
    fn the_last_one_and_one_that_is_not_there_are_no_fault() {
        let mut siblings = siblings(3);
        siblings.looked_into(&name(1));
        assert!(siblings.looked_into(&name(2)).is_empty());
        assert!(siblings.looked_into(b"other").is_empty());
        assert!(Siblings::new(Vec::new()).looked_into(b"x").is_empty());
    }

    #[test]
    fn the_order_is_that_of_paths() {
        let mut siblings =
            Siblings::new([&b"a"[..], b"a.b", b"a-b", b"b"].map(<[u8]>::to_vec).into());
        assert!(siblings.looked_into(b"a-b").is_empty());
        assert_eq!(siblings.looked_into(b"a.b"), [b"a".to_vec(), b"b".to_vec()]);
    }
}
