//! What is open.

use std::os::fd::OwnedFd;

use rustix::io::Errno;

use super::nodes::NodeId;

#[derive(Debug)]
pub(super) enum Handle {
    File { node: NodeId, fd: OwnedFd },
    Directory(Listing),
}

/// A directory that is being read.
#[derive(Debug)]
pub(super) struct Listing {
    pub(super) node: NodeId,
    /// Opened when it is read: most are answered from the kernel's cache.
    pub(super) fd: Option<OwnedFd>,
    /// Entries as the system gave them, and how many bytes were passed on.
    pub(super) entries: Vec<u8>,
    pub(super) passed: usize,
    /// Where the next entry is, for those who go on there.
    pub(super) position: u64,
    /// Whether the kernel may cache the entries.
    pub(super) cache: Cache,
}

/// Whether the kernel may cache the entries of a directory for other readers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cache {
    Used,
    Unused,
}

#[derive(Debug, Default)]
pub(super) struct Handles {
    slots: Vec<Option<Handle>>,
    free: Vec<usize>,
}

impl Handles {
    pub(super) fn add(&mut self, handle: Handle) -> u64 {
        if let Some(n) = self.free.pop() {
            self.slots[n] = Some(handle);
            n as u64
        } else {
            self.slots.push(Some(handle));
            (self.slots.len() - 1) as u64
        }
    }

    fn slot(&self, id: u64) -> Option<&Handle> {
        self.slots.get(usize::try_from(id).ok()?)?.as_ref()
    }

    pub(super) fn file(&self, id: u64) -> Result<&OwnedFd, Errno> {
        match self.slot(id) {
            Some(Handle::File { fd, .. }) => Ok(fd),
            Some(Handle::Directory(_)) | None => Err(Errno::BADF),
        }
    }

    /// Any handle of a node.
    pub(super) fn of_node(&self, wanted: NodeId) -> Option<&OwnedFd> {
        self.slots.iter().flatten().find_map(|handle| match handle {
            Handle::File { node, fd } if *node == wanted => Some(fd),
            Handle::File { .. } | Handle::Directory(_) => None,
        })
    }

    /// All files that are open.
    pub(super) fn files(&self) -> impl Iterator<Item = &OwnedFd> {
        self.slots.iter().flatten().filter_map(|handle| match handle {
            Handle::File { fd, .. } => Some(fd),
            Handle::Directory(_) => None,
        })
    }

    /// Takes a listing out, to be put back.
    pub(super) fn listing_mut(&mut self, id: u64) -> Result<&mut Listing, Errno> {
        let slot = usize::try_from(id).ok().and_then(|id| self.slots.get_mut(id));
        match slot.and_then(Option::as_mut) {
            Some(Handle::Directory(listing)) => Ok(listing),
            Some(Handle::File { .. }) | None => Err(Errno::BADF),
        }
    }

    pub(super) fn remove(&mut self, id: u64) -> Option<Handle> {
        let n = usize::try_from(id).ok()?;
        let handle = self.slots.get_mut(n)?.take()?;
        self.free.push(n);
        Some(handle)
    }
}
