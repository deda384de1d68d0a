//! Renamed files: one is deleted, and a new one has the same content, or most of it. As
//! with git, half of the larger file is enough.

use crate::Layer;
use crate::base::REMOVED;
use crate::beneath::Tree;
use crate::changes::{Change, Old};
use crate::found::Kind;
use crate::ledger::digest;
use std::collections::HashMap;

/// Minimum similarity, in percent.
const LEAST_ALIKE: u64 = 50;
/// Each deleted file is compared with each new one; with more on either side, none is.
const MOST_FILES: usize = 100;
/// Maximum size of a file that is compared by its lines.
const LARGEST: u64 = 256 << 10;

/// Connects them. Empty files are all alike, so they do not count.
pub(crate) fn find(layer: &Layer, changes: &mut [Change]) {
    let size = |change: &Change, is_new: bool| {
        let node = match (is_new, change.before, change.after) {
            (true, None, Some(node)) | (false, Some(node), None) => node,
            _ => return None,
        };
        (node.kind == Kind::File && node.size > 0).then_some(node.size)
    };
    let mut gone: HashMap<u64, Vec<usize>> = HashMap::new();
    for (at, change) in changes.iter().enumerate() {
        if let Some(size) = size(change, false) {
            gone.entry(size).or_default().push(at);
        }
    }
    let known = |tree: &Tree, path: &[u8]| digest(tree, path).ok();
    let mut digests: HashMap<usize, Option<blake3::Hash>> = HashMap::new();
    for at in 0..changes.len() {
        let candidates = size(&changes[at], true).and_then(|size| gone.get_mut(&size));
        let Some(candidates) = candidates.filter(|candidates| !candidates.is_empty()) else {
            continue;
        };
        let Some(new) = known(&layer.upper, &changes[at].path) else { continue };
        let same = candidates.iter().position(|old| {
            let path = &changes[*old].path;
            *digests.entry(*old).or_insert_with(|| known(&layer.real, path)) == Some(new)
        });
        if let Some(same) = same {
            let old = candidates.remove(same);
            tie(changes, old, at, 100);
        }
    }
    find_alike(layer, changes);
}

/// Marks one file as the other under its new name.
fn tie(changes: &mut [Change], old: usize, new: usize, alike: u64) {
    changes[new].renamed_from = Some(changes[old].path.clone());
    changes[new].old = changes[old].before.map(|node| Old { node, alike });
    changes[new].conflict = changes[new].conflict.filter(|what| *what != REMOVED);
    changes[old].renamed_to = Some(changes[new].path.clone());
}

/// Finds files that were also changed a little.
fn find_alike(layer: &Layer, changes: &mut [Change]) {
    let is_plain =
        |node: &crate::Node| node.kind == Kind::File && (1..=LARGEST).contains(&node.size);
    let (mut gone, mut new) = (Vec::new(), Vec::new());
    for (at, change) in changes.iter().enumerate() {
        match (change.before, change.after) {
            (Some(node), None) if is_plain(&node) && change.renamed_to.is_none() => gone.push(at),
            (None, Some(node)) if is_plain(&node) && change.renamed_from.is_none() => new.push(at),
            _ => {}
        }
    }
    if gone.is_empty() || new.is_empty() || gone.len().max(new.len()) > MOST_FILES {
        return;
    }
    let lines = |tree: &Tree, all: &[usize]| -> Vec<(usize, Content)> {
        let read = |at: &usize| Some((*at, Content::read(tree, &changes[*at].path)?));
        all.iter().filter_map(read).collect()
    };
    let (gone, new) = (lines(&layer.real, &gone), lines(&layer.upper, &new));
    let mut pairs = Vec::new();
    for (old, before) in &gone {
        for (new, after) in &new {
            let alike = before.alike(after);
            if alike >= LEAST_ALIKE {
                let name = |at: usize| crate::beneath::split(&changes[at].path).1;
                pairs.push((alike, name(*old) == name(*new), *old, *new));
            }
        }
    }
    // The most similar first; among these, files that kept their name.
    pairs.sort_by(|a, b| (b.0, b.1, a.2, a.3).cmp(&(a.0, a.1, b.2, b.3)));
    for (alike, _, old, new) in pairs {
        if changes[old].renamed_to.is_none() && changes[new].renamed_from.is_none() {
            tie(changes, old, new, alike);
        }
    }
}

/// The lines of a text, and how often each occurs.
struct Content {
    lines: HashMap<Vec<u8>, u64>,
    size: u64,
}

impl Content {
    /// Returns none if it is not text.
    fn read(tree: &Tree, path: &[u8]) -> Option<Self> {
        let bytes = tree.content(path, LARGEST).ok()??;
        if bytes.contains(&0) || std::str::from_utf8(&bytes).is_err() {
            return None;
        }
        Some(Self::of(&bytes))
    }

    fn of(bytes: &[u8]) -> Self {
        let mut lines: HashMap<Vec<u8>, u64> = HashMap::new();
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            *lines.entry(line.to_vec()).or_default() += 1;
        }
        Self { lines, size: bytes.len() as u64 }
    }

    /// Returns the common part of the larger file, in percent. It is never 100: such files
    /// were found to be the same before.
    fn alike(&self, other: &Self) -> u64 {
        let larger = self.size.max(other.size);
        if self.size.min(other.size) * 100 < larger * LEAST_ALIKE {
            return 0;
        }
        let common: u64 = self
            .lines
            .iter()
            .filter_map(|(line, count)| {
                let both = other.lines.get(line)?.min(count);
                Some(both * line.len() as u64)
            })
            .sum();
        (common * 100 / larger.max(1)).min(99)
    }
}

#[cfg(test)]
mod tests {
    use super::Content;

    #[test]
    fn texts_are_alike_by_the_lines_that_both_have() {
        let alike = |a: &str, b: &str| Content::of(a.as_bytes()).alike(&Content::of(b.as_bytes()));
        assert_eq!(alike("a\nb\nc\nd\n", "a\nb\nc\nx\n"), 75);
        assert_eq!(alike("a\na\n", "a\nb\n"), 50);
        assert_eq!(alike("a\n", "a\nb\nc\n"), 0);
        assert_eq!(alike("a\nb\n", "b\na\n"), 99);
        assert_eq!(alike("a\n", "b\n"), 0);
    }
}
