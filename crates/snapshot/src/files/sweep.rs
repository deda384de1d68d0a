//! Removes objects that no tree needs.

use super::depot::{Depot, Lock, ObjectKind};
use super::digest::{Digest, TreeId, digest};
use super::error::{Error, ErrorAt};
use super::index::{GENERATION, Generation};
use super::listing::{Node, Object};
use rustix::fs::FlockOperation;
use std::collections::HashSet;
use std::io;
use std::path::Path;

/// Exclusive use of the depot. Read the list of trees to keep after the sweep has begun:
/// any earlier snapshot is on that list by then.
#[derive(Debug)]
pub struct Sweep<'a> {
    depot: &'a Depot,
    _lock: Lock,
}

/// Statistics of a sweep.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Swept {
    pub removed: u64,
    pub removed_bytes: u64,
    pub kept: u64,
    pub kept_bytes: u64,
}

impl Depot {
    /// Begins a sweep, if the depot is not in use.
    ///
    /// # Errors
    ///
    /// [`Error::Busy`], or an error of the lock.
    pub fn sweep(&self) -> Result<Sweep<'_>, Error> {
        let lock = self.lock(FlockOperation::NonBlockingLockExclusive)?;
        Ok(Sweep { depot: self, _lock: lock })
    }
}

/// Objects that are needed.
#[derive(Debug, Default)]
struct NeededObjects {
    trees: HashSet<Digest>,
    blobs: HashSet<Digest>,
}

impl Sweep<'_> {
    /// Removes everything that these trees do not need. If it is killed, the next sweep
    /// removes the rest.
    ///
    /// # Errors
    ///
    /// If a tree to keep cannot be read: then nothing was removed. Also if removing fails.
    pub fn keep(self, trees: &[TreeId]) -> Result<Swept, Error> {
        let mut needed = NeededObjects::default();
        for tree in trees {
            self.mark(&tree.0, &mut needed)?;
        }
        // First, so that no index is relied on from now on.
        if self.begin_generation().is_err() {
            // Probably there is no room, and a sweep is meant to make some.
            self.empty("index", &mut Swept::default())?;
        }
        let mut swept = Swept::default();
        self.clear(ObjectKind::Trees, &needed.trees, &mut swept)?;
        self.clear(ObjectKind::Blobs, &needed.blobs, &mut swept)?;
        // Their writers are dead: live ones would hold the lock.
        self.empty("tmp", &mut swept)?;
        Ok(swept)
    }

    fn begin_generation(&self) -> Result<(), Error> {
        let mut generation: Generation = [0; GENERATION];
        rustix::rand::getrandom(&mut generation, rustix::rand::GetRandomFlags::empty())
            .error_at("change", self.depot.at("generation"))?;
        self.depot.replace("generation", &generation)
    }

    fn empty(&self, name: &str, swept: &mut Swept) -> Result<(), Error> {
        let directory = self.depot.at(name);
        for entry in std::fs::read_dir(&directory).error_at("list", &directory)? {
            remove(&entry.error_at("list", &directory)?.path(), swept)?;
        }
        Ok(())
    }

    fn mark(&self, digest: &Digest, needed: &mut NeededObjects) -> Result<(), Error> {
        let mut waiting = vec![*digest];
        while let Some(digest) = waiting.pop() {
            if !needed.trees.insert(digest) {
                continue;
            }
            match self.depot.tree_object(&digest)? {
                Object::Index(pages) => waiting.extend(pages),
                Object::Page(entries) => {
                    for entry in entries {
                        match entry.node {
                            Node::File(content) => {
                                needed.blobs.insert(content.blob);
                            }
                            Node::Directory { listing, .. } => waiting.push(listing),
                            Node::Symlink { .. } | Node::Link { .. } | Node::LeftOut => {}
                        }
                    }
                }
            }
        }
        Ok(())
    }

    fn clear(
        &self,
        kind: ObjectKind,
        keep: &HashSet<Digest>,
        swept: &mut Swept,
    ) -> Result<(), Error> {
        let top = self.depot.at(kind.name());
        for below in std::fs::read_dir(&top).error_at("list", &top)? {
            let below = below.error_at("list", &top)?;
            let directory = below.path();
            for entry in std::fs::read_dir(&directory).error_at("list", &directory)? {
                let entry = entry.error_at("list", &directory)?;
                let mut name = below.file_name().into_encoded_bytes();
                name.extend(entry.file_name().as_encoded_bytes());
                if digest(&name).is_some_and(|digest| keep.contains(&digest)) {
                    swept.kept += 1;
                    swept.kept_bytes += entry.metadata().map_or(0, |data| data.len());
                } else {
                    remove(&entry.path(), swept)?;
                }
            }
        }
        Ok(())
    }
}

fn remove(path: &Path, swept: &mut Swept) -> Result<(), Error> {
    let length = path.symlink_metadata().map_or(0, |data| data.len());
    match std::fs::remove_file(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error).error_at("remove", path),
        Ok(()) => {
            swept.removed += 1;
            swept.removed_bytes += length;
            Ok(())
        }
    }
}
