//! The changes of a layer: its differences from the real directory.

use crate::base::began;
use crate::beneath::{Tree, join};
use crate::found::{Found, Kind, Mark, Node, Time};
use crate::ledger::{Ledger, Version};
use crate::moving::{self, Moves, Part};
use crate::scope::Selection;
use crate::{Layer, LayerError, Result, Skipped, renames};
use rustix::io::Errno;
use std::io::Read;

/// The attribute with which overlayfs hides the real directory below.
const OPAQUE: &str = "user.overlay.opaque";

/// One path that differs.
#[derive(Clone, Debug)]
pub struct Change {
    /// Relative to the workspace.
    pub path: Vec<u8>,
    /// The real directory's version.
    pub before: Option<Node>,
    /// The session's version.
    pub after: Option<Node>,
    /// The file has all or most of the content of this one, which the session has deleted.
    pub renamed_from: Option<Vec<u8>>,
    /// That deleted file, and how similar it is.
    pub(crate) old: Option<Old>,
    /// The new name of this deleted file.
    pub renamed_to: Option<Vec<u8>>,
    /// What happened to it in the real directory since the session took it over.
    pub conflict: Option<&'static str>,
    /// It contains a path that the session may not see, so it has to stay.
    pub(crate) holds_hidden: bool,
    /// The real file that it was compared with.
    pub(crate) seen: Option<Mark>,
}

/// The earlier file of a renamed one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Old {
    pub(crate) node: Node,
    /// Common content, in percent.
    pub(crate) alike: u64,
}

/// The sort of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    Added,
    Modified,
    Deleted,
    Renamed,
}

impl Change {
    #[must_use]
    pub fn sort(&self) -> Sort {
        match (&self.before, &self.after) {
            (_, None) => Sort::Deleted,
            (None, Some(_)) if self.renamed_from.is_some() => Sort::Renamed,
            (None, Some(_)) => Sort::Added,
            (Some(_), Some(_)) => Sort::Modified,
        }
    }

    /// Returns whether the kind differs: a file replaces a directory, or a link a file.
    pub(crate) fn replaces_another_kind(&self) -> bool {
        matches!((self.before, self.after), (Some(a), Some(b)) if a.kind != b.kind)
    }
}

/// All changes.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    /// In the order of their paths; the contents of a directory come after it.
    pub(crate) list: Vec<Change>,
    /// Paths that could not be looked at.
    pub(crate) skipped: Vec<Skipped>,
}

impl Layer {
    pub(crate) fn changes(&self, ledger: &Ledger, selection: &Selection) -> Result<Changes> {
        let begun = began(&self.upper, ledger, self.begun)?;
        let moves = moving::in_layer(&self.ledger);
        let changes = Changes::default();
        let mut walk = Walk { layer: self, ledger, selection, begun, moves, changes };
        walk.directory(b"", Below::Shows);
        let mut changes = walk.changes;
        changes.list.sort_by(|a, b| a.path.cmp(&b.path));
        renames::find(self, &mut changes.list);
        Ok(changes)
    }
}

/// The effect of a directory of the layer on the real one below it.
#[derive(Clone, Copy)]
enum Below {
    Shows,
    /// It hides the real one since that time.
    Covers(Time),
}

struct Walk<'a> {
    layer: &'a Layer,
    ledger: &'a Ledger,
    selection: &'a Selection,
    /// When the layer was created.
    begun: Time,
    /// Directories that are being moved.
    moves: Moves,
    changes: Changes,
}

impl Walk<'_> {
    /// Ignores paths that vanished after they were listed: the session continues meanwhile.
    fn note<T: Default>(&mut self, path: &[u8], outcome: Result<T>) -> T {
        match outcome {
            Ok(value) => value,
            Err(LayerError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
                T::default()
            }
            Err(error) => {
                let system = match &error {
                    LayerError::Io { source, .. } => Some(source),
                    LayerError::BadPath(..)
                    | LayerError::Unchanged(_)
                    | LayerError::Conflict { .. }
                    | LayerError::Halted { .. }
                    | LayerError::Raced { .. } => None,
                };
                let reason = match system.map(|source| (source, Errno::from_io_error(source))) {
                    Some((_, Some(Errno::XDEV))) => {
                        "another file system is mounted there".to_owned()
                    }
                    Some((source, _)) => source.to_string(),
                    None => error.to_string(),
                };
                self.changes.skipped.push(Skipped { path: path.to_vec(), reason });
                T::default()
            }
        }
    }

    fn directory(&mut self, path: &[u8], below: Below) {
        let names = self.layer.upper.names(path);
        let names = self.note(path, names);
        for name in &names {
            let path = join(path, name);
            match self.moves.part(&path) {
                Some(Part::Staging) => continue,
                Some(Part::Old) => {
                    let reason = moving::REASON.to_owned();
                    self.changes.skipped.push(Skipped { path, reason });
                    continue;
                }
                None => {}
            }
            let looked = self.layer.upper.look(&path);
            if let Some(upper) = self.note(&path, looked) {
                let visited = self.visit(&path, &upper);
                self.note(&path, visited);
            }
        }
        let Below::Covers(since) = below else { return };
        let real = self.layer.real.names(path);
        for name in self.note(path, real) {
            if names.binary_search(&name).is_err() {
                let path = join(path, &name);
                let deleted = self.deleted(&path, since);
                self.note(&path, deleted);
            }
        }
    }

    fn visit(&mut self, path: &[u8], upper: &Found) -> Result<()> {
        if self.layer.scope.is_hidden(path) {
            return Ok(());
        }
        let real = self.layer.real.look(path)?;
        let born = upper.born.unwrap_or(self.begun);
        let born = self.ledger.since(path).map_or(born, |since| since.min(born));
        if upper.is_whiteout {
            return self.deleted(path, self.begun).map(drop);
        }
        if !upper.is_directory() {
            if real.is_some_and(|real| real.is_directory()) {
                self.deleted_within(path, born)?;
            }
            return self.compare(path, upper, real.as_ref());
        }
        if real.is_none() && self.only_leads_to_mounts(path) {
            return Ok(());
        }
        self.compare(path, upper, real.as_ref())?;
        let is_opaque = self.layer.upper.has_attribute(path, OPAQUE);
        let covers = is_opaque && real.is_some_and(|real| real.is_directory());
        self.directory(path, if covers { Below::Covers(born) } else { Below::Shows });
        Ok(())
    }

    /// Returns whether the sandbox has made this directory only for mounts below it. If the
    /// session puts something beside them, it is a change.
    fn only_leads_to_mounts(&self, path: &[u8]) -> bool {
        let scope = &self.layer.scope;
        scope.leads_to_mount(path)
            && self.layer.upper.names(path).is_ok_and(|names| {
                names
                    .iter()
                    .map(|name| join(path, name))
                    .all(|below| scope.is_hidden(&below) || self.only_leads_to_mounts(&below))
            })
    }

    fn compare(&mut self, path: &[u8], upper: &Found, real: Option<&Found>) -> Result<()> {
        let (layer, ledger) = (self.layer, self.ledger);
        if !layer.scope.has(path) || !self.selection.has(path) {
            return Ok(());
        }
        if let Some(real) = real
            && are_same((&layer.upper, upper), (&layer.real, real), path)?
        {
            return Ok(());
        }
        if let Some(settled) = ledger.settled(path)
            && settled.version == Version::of(&layer.upper, path, upper)?
        {
            return Ok(());
        }
        let since = upper.born.unwrap_or(self.begun);
        let conflict = layer.conflict(ledger, path, (Some(upper), real), since);
        self.changes.list.push(Change {
            path: path.to_vec(),
            before: real.map(|real| real.node),
            after: Some(upper.node),
            renamed_from: None,
            old: None,
            renamed_to: None,
            conflict,
            holds_hidden: false,
            seen: real.map(Found::mark),
        });
        Ok(())
    }

    /// Adds the deletion of a real path and its contents. Returns false if a part of it is
    /// not the session's.
    fn deleted(&mut self, path: &[u8], since: Time) -> Result<bool> {
        let layer = self.layer;
        if !layer.scope.has(path) {
            return Ok(false);
        }
        let Some(real) = layer.real.look(path)? else { return Ok(true) };
        if self.ledger.settled(path).is_some_and(|settled| settled.version == Version::Gone) {
            return Ok(true);
        }
        let is_whole = if real.is_directory() { self.deleted_within(path, since)? } else { true };
        if self.selection.has(path) {
            let conflict = layer.conflict(self.ledger, path, (None, Some(&real)), since);
            self.changes.list.push(Change {
                path: path.to_vec(),
                before: Some(real.node),
                after: None,
                renamed_from: None,
                old: None,
                renamed_to: None,
                conflict,
                holds_hidden: !is_whole,
                seen: Some(real.mark()),
            });
        }
        Ok(is_whole)
    }

    fn deleted_within(&mut self, path: &[u8], since: Time) -> Result<bool> {
        let mut is_whole = true;
        for name in self.layer.real.names(path)? {
            is_whole &= self.deleted(&join(path, &name), since)?;
        }
        Ok(is_whole)
    }
}

/// Returns whether both trees have the same content at a path.
fn are_same(
    (tree, found): (&Tree, &Found),
    (other_tree, other): (&Tree, &Found),
    path: &[u8],
) -> Result<bool> {
    let (a, b) = (found.node, other.node);
    if a.kind != b.kind {
        return Ok(false);
    }
    match a.kind {
        Kind::Directory => Ok(a.mode == b.mode),
        Kind::Link => Ok(tree.target(path)? == other_tree.target(path)?),
        Kind::Other => Ok(false),
        Kind::File if a.mode != b.mode || a.size != b.size => Ok(false),
        Kind::File => have_same_bytes(tree, other_tree, path),
    }
}

fn have_same_bytes(tree: &Tree, other: &Tree, path: &[u8]) -> Result<bool> {
    const PIECE: u64 = 64 << 10;
    let (mut a, mut b) = (tree.read(path)?, other.read(path)?);
    let (mut left, mut right) = (Vec::new(), Vec::new());
    loop {
        left.clear();
        right.clear();
        let read = a.by_ref().take(PIECE).read_to_end(&mut left);
        read.map_err(|error| LayerError::io(error, path))?;
        let read = b.by_ref().take(PIECE).read_to_end(&mut right);
        read.map_err(|error| LayerError::io(error, path))?;
        if left != right {
            return Ok(false);
        }
        if left.is_empty() {
            return Ok(true);
        }
    }
}
