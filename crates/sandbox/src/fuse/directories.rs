//! Directories of the source, kept open for the names in them.

use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;

use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;

use super::nodes::{NodeId, Nodes, Place, ROOT, Sameness};

/// How many are kept open. Programs go through trees directory by directory.
const KEPT: usize = 64;

/// A directory's descriptor, for as long as an operation needs it.
pub(super) type Directory = Rc<OwnedFd>;

#[derive(Debug)]
pub(super) struct Directories {
    root: Directory,
    open: HashMap<NodeId, (Directory, u64)>,
    sameness: Sameness,
    /// Counts uses, to know which was not used for longest.
    clock: u64,
}

impl Directories {
    pub(super) fn new(root: OwnedFd, sameness: Sameness) -> Self {
        Self { root: Rc::new(root), open: HashMap::new(), sameness, clock: 0 }
    }

    pub(super) fn root(&self) -> BorrowedFd<'_> {
        self.root.as_fd()
    }

    /// The directory that a node is.
    pub(super) fn of(&mut self, nodes: &Nodes, id: NodeId) -> Result<Directory, Errno> {
        if id == ROOT {
            return Ok(Rc::clone(&self.root));
        }
        self.clock += 1;
        if let Some((directory, used)) = self.open.get_mut(&id) {
            *used = self.clock;
            return Ok(Rc::clone(directory));
        }
        let directory = Rc::new(self.open_anew(nodes, id)?);
        if self.open.len() >= KEPT {
            let oldest = self.open.iter().min_by_key(|(_, (_, used))| *used).map(|(id, _)| *id);
            self.open.remove(&oldest.expect("there are some"));
        }
        self.open.insert(id, (Rc::clone(&directory), self.clock));
        Ok(directory)
    }

    fn open_anew(&mut self, nodes: &Nodes, id: NodeId) -> Result<OwnedFd, Errno> {
        let node = nodes.get(id)?;
        match &node.place {
            Place::Named => {}
            Place::Nowhere(Some(fd)) => return rustix::io::fcntl_dupfd_cloexec(fd, 0),
            Place::Nowhere(None) => return Err(Errno::NOENT),
        }
        let parent = self.of(nodes, node.parent.into())?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let directory = rustix::fs::openat(&*parent, &*node.name, flags, Mode::empty())?;
        // Somebody outside may have put another one there.
        let inode = rustix::fs::statat(&directory, c"", AtFlags::EMPTY_PATH)?.st_ino;
        if inode == node.inode || self.sameness == Sameness::Name {
            Ok(directory)
        } else {
            Err(Errno::STALE)
        }
    }

    /// What nodes stand for may be other directories now.
    pub(super) fn close_all(&mut self) {
        self.open.clear();
    }

    /// The node is no directory any more.
    pub(super) fn close(&mut self, id: NodeId) {
        self.open.remove(&id);
    }
}
