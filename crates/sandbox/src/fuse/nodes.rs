//! What the kernel knows: paths that it has looked up, each by a number.

use std::ffi::CStr;
use std::hash::{BuildHasher, RandomState};
use std::os::fd::OwnedFd;

use hashbrown::HashTable;
use rustix::fs::Stat;
use rustix::io::Errno;

use crate::policy::Level;

/// The number of a node, as the kernel has it. The root's is 1.
pub(super) type NodeId = u64;
pub(super) const ROOT: NodeId = 1;

/// A path that the kernel knows.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) parent: u32,
    pub(super) name: Box<CStr>,
    pub(super) level: Level,
    pub(super) inode: u64,
    /// Tells it from those who had its number before.
    generation: u32,
    /// How often the kernel was told of it, and has not forgotten.
    lookups: u64,
    /// Nodes whose parent this is.
    children: u32,
    /// Handles that are open.
    pub(super) opens: u32,
    pub(super) place: Place,
    /// What the kernel reads and writes by itself while it is open.
    pub(super) backing: Option<u32>,
    /// The file has, or had, other names: it changes under this one when it is
    /// written to by another, and the kernel cannot know.
    pub(super) has_links: bool,
    /// The state of the file that the kernel was told of last.
    pub(super) told: Stamp,
    /// The kernel was given its content as of then.
    pub(super) is_given: bool,
    /// The kernel keeps the first names of a listing, and was not told its end.
    pub(super) is_partly_listed: bool,
}

/// Differs from another when the file has changed: a hash of what the system
/// changes with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp(u64);

/// Where a node is.
#[derive(Debug)]
pub(super) enum Place {
    /// In its parent, by its name.
    Named,
    /// Removed, replaced, or never named. Some are still open.
    Nowhere(Option<OwnedFd>),
}

/// What makes two looks at a name find the same file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sameness {
    /// Nobody else changes names. An overlay may give a file another inode when
    /// it is first written to.
    Name,
    /// Somebody outside may put another file there.
    Inode,
}

#[derive(Debug)]
pub(super) struct Nodes {
    slots: Vec<Option<Node>>,
    free: Vec<u32>,
    /// By parent and name.
    names: HashTable<u32>,
    hasher: RandomState,
    /// Grows when a number is used again.
    generation: u32,
    /// Numbers that are free again, for whoever keeps something by them.
    pub(super) gone: Vec<NodeId>,
}

impl Nodes {
    pub(super) fn new(root_level: Level, root_inode: u64) -> Self {
        let root = Node {
            parent: 0,
            name: c"".into(),
            level: root_level,
            inode: root_inode,
            generation: 0,
            lookups: 1,
            children: 0,
            opens: 0,
            place: Place::Named,
            backing: None,
            has_links: false,
            told: Stamp(0),
            is_given: false,
            is_partly_listed: false,
        };
        Self {
            // The kernel has no node 0.
            slots: vec![None, Some(root)],
            free: Vec::new(),
            names: HashTable::new(),
            hasher: RandomState::new(),
            generation: 0,
            gone: Vec::new(),
        }
    }

    pub(super) fn get(&self, id: NodeId) -> Result<&Node, Errno> {
        let slot = usize::try_from(id).ok().and_then(|id| self.slots.get(id));
        slot.and_then(Option::as_ref).ok_or(Errno::STALE)
    }

    pub(super) fn get_mut(&mut self, id: NodeId) -> Result<&mut Node, Errno> {
        let slot = usize::try_from(id).ok().and_then(|id| self.slots.get_mut(id));
        slot.and_then(Option::as_mut).ok_or(Errno::STALE)
    }

    pub(super) fn stamp(&self, stat: &Stat) -> Stamp {
        let changed = (stat.st_ctime, stat.st_ctime_nsec);
        Stamp(self.hasher.hash_one((stat.st_ino, changed, stat.st_size)))
    }

    /// What is kept though it has no name.
    pub(super) fn unnamed(&self) -> impl Iterator<Item = &OwnedFd> {
        self.slots.iter().flatten().filter_map(|node| match &node.place {
            Place::Nowhere(kept) => kept.as_ref(),
            Place::Named => None,
        })
    }

    pub(super) fn generation(&self, id: NodeId) -> u64 {
        self.get(id).map_or(0, |node| node.generation.into())
    }

    /// The node of a name.
    pub(super) fn find(&self, parent: NodeId, name: &CStr) -> Option<NodeId> {
        let hash = self.hasher.hash_one((parent, name));
        let same = |id: &u32| {
            let node = self.slots[*id as usize].as_ref();
            node.is_some_and(|node| NodeId::from(node.parent) == parent && *node.name == *name)
        };
        self.names.find(hash, same).map(|id| NodeId::from(*id))
    }

    /// The node of a name, told to the kernel once more.
    pub(super) fn remember(
        &mut self,
        parent: NodeId,
        name: &CStr,
        inode: u64,
        level: Level,
        sameness: Sameness,
    ) -> NodeId {
        if let Some(id) = self.find(parent, name) {
            let node = self.get_mut(id).expect("named nodes exist");
            if node.inode == inode || sameness == Sameness::Name {
                node.inode = inode;
                node.lookups += 1;
                return id;
            }
            self.detach(id, None);
        }
        let id = self.add(parent, name, inode, level, Place::Named);
        self.index(id);
        id
    }

    /// A node that never had a name.
    pub(super) fn remember_nameless(&mut self, parent: NodeId, inode: u64, fd: OwnedFd) -> NodeId {
        self.add(parent, c"", inode, Level::Write, Place::Nowhere(Some(fd)))
    }

    fn add(
        &mut self,
        parent: NodeId,
        name: &CStr,
        inode: u64,
        level: Level,
        place: Place,
    ) -> NodeId {
        let node = Node {
            parent: u32::try_from(parent).expect("nodes are counted in 32 bits"),
            name: name.into(),
            level,
            inode,
            generation: self.generation,
            lookups: 1,
            children: 0,
            opens: 0,
            place,
            backing: None,
            has_links: false,
            told: Stamp(0),
            is_given: false,
            is_partly_listed: false,
        };
        if let Ok(parent) = self.get_mut(parent) {
            parent.children += 1;
        }
        if let Some(id) = self.free.pop() {
            self.slots[id as usize] = Some(node);
            NodeId::from(id)
        } else {
            self.slots.push(Some(node));
            (self.slots.len() - 1) as NodeId
        }
    }

    fn hash_of(&self, id: u32) -> u64 {
        let node = self.slots[id as usize].as_ref().expect("named nodes exist");
        self.hasher.hash_one((NodeId::from(node.parent), &*node.name))
    }

    fn index(&mut self, id: NodeId) {
        let id = id as u32;
        let hash = self.hash_of(id);
        let (slots, hasher) = (&self.slots, &self.hasher);
        self.names.insert_unique(hash, id, |id| {
            let node = slots[*id as usize].as_ref().expect("named nodes exist");
            hasher.hash_one((NodeId::from(node.parent), &*node.name))
        });
    }

    /// Its name is gone, or another's.
    pub(super) fn detach(&mut self, id: NodeId, fd: Option<OwnedFd>) {
        let hash = self.hash_of(id as u32);
        if let Ok(entry) = self.names.find_entry(hash, |known| *known == id as u32) {
            entry.remove();
        }
        if let Ok(node) = self.get_mut(id) {
            node.place = Place::Nowhere(fd);
        }
    }

    /// It has another name now.
    pub(super) fn rename(&mut self, id: NodeId, parent: NodeId, name: &CStr) {
        self.detach(id, None);
        let Ok(node) = self.get_mut(id) else { return };
        let old = NodeId::from(node.parent);
        node.parent = parent as u32;
        node.name = name.into();
        node.place = Place::Named;
        if let Ok(parent) = self.get_mut(parent) {
            parent.children += 1;
        }
        self.index(id);
        self.let_go_of_child(old);
    }

    /// The kernel forgets it, so many times.
    pub(super) fn forget(&mut self, id: NodeId, times: u64) {
        if let Ok(node) = self.get_mut(id) {
            node.lookups = node.lookups.saturating_sub(times);
        }
        self.remove_unused(id);
    }

    fn let_go_of_child(&mut self, id: NodeId) {
        if let Ok(node) = self.get_mut(id) {
            node.children -= 1;
        }
        self.remove_unused(id);
    }

    fn remove_unused(&mut self, mut id: NodeId) {
        while id != ROOT
            && let Ok(node) = self.get(id)
            && node.lookups == 0
            && node.children == 0
        {
            let parent = NodeId::from(node.parent);
            if matches!(node.place, Place::Named) {
                self.detach(id, None);
            }
            self.slots[id as usize] = None;
            self.free.push(id as u32);
            self.generation = self.generation.wrapping_add(1);
            self.gone.push(id);
            if let Ok(parent) = self.get_mut(parent) {
                parent.children -= 1;
            }
            id = parent;
        }
    }

    /// The names on the way to a node; nothing if it has none.
    pub(super) fn path(&self, id: NodeId) -> Result<Vec<&[u8]>, Errno> {
        let mut names = Vec::with_capacity(16);
        let mut at = id;
        while at != ROOT {
            let node = self.get(at)?;
            if matches!(node.place, Place::Nowhere(_)) {
                return Err(Errno::NOENT);
            }
            names.push(node.name.to_bytes());
            at = NodeId::from(node.parent);
        }
        names.reverse();
        Ok(names)
    }
}
