//! The differences between two snapshots.

use super::depot::Depot;
use super::digest::{Digest, TreeId};
use super::error::Error;
use super::listing::{Content, Entry, Node};
use std::cmp::Ordering;
use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// The changes between two snapshots, by paths from the root in the order of a walk. A
/// renamed file is neither created nor deleted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Difference {
    pub created: Vec<PathBuf>,
    pub deleted: Vec<PathBuf>,
    pub changed: Vec<Change>,
    /// Files that were deleted at one path and created at another with the same content.
    pub renamed: Vec<Rename>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    pub path: PathBuf,
    pub what: ChangedProperty,
}

/// The first property that differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangedProperty {
    /// For instance, a file has become a directory.
    Kind,
    /// The bytes of a file, or the target of a link.
    Content,
    Mode,
    /// Only the time. It is not reported for directories.
    Time,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rename {
    pub from: PathBuf,
    pub to: PathBuf,
}

impl Difference {
    /// Returns whether there are no changes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Difference::default()
    }
}

impl Depot {
    /// Returns the changes from the first snapshot to the second, except for paths that
    /// either of them left out.
    ///
    /// # Errors
    ///
    /// If a tree is missing or damaged.
    pub fn diff(&self, from: TreeId, to: TreeId) -> Result<Difference, Error> {
        let _hold = self.hold()?;
        let mut finder = Finder {
            depot: self,
            trees: (from, to),
            told: Difference::default(),
            gone: Vec::new(),
            come: Vec::new(),
        };
        finder.directories(Path::new(""), Some(&from.0), Some(&to.0))?;
        Ok(finder.finish())
    }
}

struct Finder<'a> {
    depot: &'a Depot,
    trees: (TreeId, TreeId),
    told: Difference,
    /// Files that are no longer at their path, or not yet.
    gone: Vec<(PathBuf, Digest)>,
    come: Vec<(PathBuf, Digest)>,
}

impl Finder<'_> {
    fn directories(
        &mut self,
        path: &Path,
        from: Option<&Digest>,
        to: Option<&Digest>,
    ) -> Result<(), Error> {
        if from == to {
            return Ok(());
        }
        let read = |digest: Option<&Digest>| match digest {
            Some(digest) => self.depot.listing(digest),
            None => Ok(Vec::new()),
        };
        let (from, to) = (read(from)?, read(to)?);
        let (mut old, mut new) = (from.iter().peekable(), to.iter().peekable());
        loop {
            let order = match (old.peek(), new.peek()) {
                (None, None) => return Ok(()),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(a), Some(b)) => a.name.cmp(&b.name),
            };
            let a = if order.is_le() { old.next() } else { None };
            let b = if order.is_ge() { new.next() } else { None };
            self.entries(path, a, b)?;
        }
    }

    fn entries(&mut self, path: &Path, a: Option<&Entry>, b: Option<&Entry>) -> Result<(), Error> {
        let Some(name) = a.or(b).map(|entry| &entry.name) else { return Ok(()) };
        let path = path.join(name);
        match (a.map(|entry| &entry.node), b.map(|entry| &entry.node)) {
            (None, None) | (Some(Node::LeftOut), _) | (_, Some(Node::LeftOut)) => Ok(()),
            (Some(a), None) => self.gone(path, a),
            (None, Some(b)) => self.come(path, b),
            (Some(a), Some(b)) => self.both(path, a, b),
        }
    }

    fn gone(&mut self, path: PathBuf, node: &Node) -> Result<(), Error> {
        match node {
            Node::File(content) => self.gone.push((path, content.blob)),
            Node::Symlink { .. } | Node::Link { .. } => self.told.deleted.push(path),
            Node::Directory { listing, .. } => {
                self.told.deleted.push(path.clone());
                self.directories(&path, Some(listing), None)?;
            }
            Node::LeftOut => {}
        }
        Ok(())
    }

    fn come(&mut self, path: PathBuf, node: &Node) -> Result<(), Error> {
        match node {
            Node::File(content) => self.come.push((path, content.blob)),
            Node::Symlink { .. } | Node::Link { .. } => self.told.created.push(path),
            Node::Directory { listing, .. } => {
                self.told.created.push(path.clone());
                self.directories(&path, None, Some(listing))?;
            }
            Node::LeftOut => {}
        }
        Ok(())
    }

    fn both(&mut self, path: PathBuf, a: &Node, b: &Node) -> Result<(), Error> {
        let what = match (a, b) {
            (Node::File(_) | Node::Link { .. }, Node::File(_) | Node::Link { .. }) => {
                let a = self.content(self.trees.0, a)?;
                let b = self.content(self.trees.1, b)?;
                contents(a.as_ref(), b.as_ref())
            }
            (
                Node::Symlink { target: a, modified: x },
                Node::Symlink { target: b, modified: y },
            ) => match (a == b, x == y) {
                (false, _) => Some(ChangedProperty::Content),
                (true, false) => Some(ChangedProperty::Time),
                (true, true) => None,
            },
            (
                Node::Directory { mode: x, listing: from, .. },
                Node::Directory { mode: y, listing: to, .. },
            ) => {
                self.directories(&path, Some(from), Some(to))?;
                (x != y).then_some(ChangedProperty::Mode)
            }
            (a, b) => {
                self.below(&path, a, b)?;
                Some(ChangedProperty::Kind)
            }
        };
        self.told.changed.extend(what.map(|what| Change { path, what }));
        Ok(())
    }

    /// Returns the content of a file, by any of its names. Additional names do not count as
    /// a change.
    fn content(&self, tree: TreeId, node: &Node) -> Result<Option<Content>, Error> {
        match node {
            Node::File(content) => Ok(Some(*content)),
            Node::Link { first } => self.depot.file(tree, first),
            Node::Directory { .. } | Node::Symlink { .. } | Node::LeftOut => Ok(None),
        }
    }

    /// Adds the contents of a path that is a directory on one side only.
    fn below(&mut self, path: &Path, a: &Node, b: &Node) -> Result<(), Error> {
        let listing = |node: &Node| match node {
            Node::Directory { listing, .. } => Some(*listing),
            Node::File(_) | Node::Symlink { .. } | Node::Link { .. } | Node::LeftOut => None,
        };
        self.directories(path, listing(a).as_ref(), listing(b).as_ref())
    }

    fn finish(mut self) -> Difference {
        let mut left: HashMap<Digest, Vec<PathBuf>> = HashMap::new();
        let empty = Digest::of(b"");
        for (path, blob) in self.gone.into_iter().rev() {
            left.entry(blob).or_default().push(path);
        }
        for (to, blob) in self.come {
            // Empty files are all alike.
            let from = left.get_mut(&blob).filter(|_| blob != empty).and_then(Vec::pop);
            match from {
                Some(from) => self.told.renamed.push(Rename { from, to }),
                None => self.told.created.push(to),
            }
        }
        self.told.deleted.extend(left.into_values().flatten());
        self.told.created.sort();
        self.told.deleted.sort();
        self.told
    }
}

fn contents(a: Option<&Content>, b: Option<&Content>) -> Option<ChangedProperty> {
    match (a, b) {
        (Some(a), Some(b)) if a.blob == b.blob && a.mode != b.mode => Some(ChangedProperty::Mode),
        (Some(a), Some(b)) if a.blob == b.blob => {
            (a.modified != b.modified).then_some(ChangedProperty::Time)
        }
        _ => Some(ChangedProperty::Content),
    }
}
