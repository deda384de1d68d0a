//! The tree that is served: what is known of it, and who does what.

mod attributes;
mod files;
mod listing;
mod names;
mod xattrs;

use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;

use rustix::fs::{AtFlags, Mode, OFlags, Stat};
use rustix::io::Errno;

use super::account::{Account, EACH, Unnamed};
use super::ahead::{Ahead, Window};
use super::directories::{Directories, Directory};
use super::handles::{Handle, Handles};
use super::ids::{IdMap, outside};
use super::message::{Operation, Reply, Request};
use super::nodes::{NodeId, Nodes, Place, ROOT, Sameness};
use super::{Caching, Outcome, device};
use crate::mover::record::Records;
use crate::plan::WORKSPACE;
use crate::policy::Level;
use crate::rules::Rules;

#[derive(Debug)]
pub(super) struct Tree {
    rules: Rules,
    nodes: Nodes,
    directories: Directories,
    handles: Handles,
    ids: IdMap,
    caching: Caching,
    sameness: Sameness,
    passthrough: Passthrough,
    /// The connection, for what the kernel does not ask.
    fuse: Option<Rc<OwnedFd>>,
    /// Who makes files here.
    user: (u32, u32),
    /// To be taken back if nobody receives the last answer.
    granted: Granted,
    /// What may be written, if that is limited.
    account: Option<Account>,
    /// Where moves are written down, if there is a layer.
    records: Option<Records>,
    /// Lists directories before all their names are asked for.
    ahead: Option<Ahead>,
}

/// Whether the kernel reads and writes files by itself.
#[derive(Debug)]
enum Passthrough {
    /// The kernel has not said whether it can.
    Unknown,
    No,
    Yes(Rc<OwnedFd>),
}

/// What an answer gives the kernel: the node and the handle that it may use from then on.
#[derive(Debug, Default)]
struct Granted {
    node: Option<NodeId>,
    handle: Option<u64>,
}

/// How to get at what a node stands for.
enum Target<'a> {
    Named(Directory, &'a CStr),
    Open(BorrowedFd<'a>),
}

impl Tree {
    pub(super) fn new(
        source: BorrowedFd<'_>,
        rules: Rules,
        ids: IdMap,
        caching: Caching,
    ) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::openat(source, c".", flags, Mode::empty())?;
        let stat = rustix::fs::statat(&root, c"", AtFlags::EMPTY_PATH)?;
        let level = rules.own_level(&[]);
        let sameness = if caching == Caching::SHARED { Sameness::Inode } else { Sameness::Name };
        Ok(Self {
            rules,
            nodes: Nodes::new(level, stat.st_ino),
            directories: Directories::new(root, sameness),
            handles: Handles::default(),
            ids,
            caching,
            sameness,
            passthrough: Passthrough::Unknown,
            fuse: None,
            user: (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw()),
            granted: Granted::default(),
            account: None,
            records: None,
            ahead: None,
        })
    }

    pub(super) fn forbid_passthrough(&mut self) {
        self.passthrough = Passthrough::No;
    }

    pub(super) fn look_ahead(&mut self, window: Window) {
        self.ahead = Some(Ahead::new(window, self.caching.names));
    }

    /// What was killed in the middle is taken back first.
    pub(super) fn keep_records(&mut self, source: BorrowedFd<'_>, records: Records) {
        records.recover(source, WORKSPACE.as_bytes());
        self.records = Some(records);
    }

    pub(super) fn keep_account(&mut self, account: Account) {
        self.account = Some(account);
        // So that it is known from the start what there is.
        let _ = self.charge(0);
    }

    /// Takes room for something that is about to be written.
    fn charge(&mut self, bytes: u64) -> Outcome {
        let Some(account) = &mut self.account else { return Ok(()) };
        if account.take(bytes) {
            return Ok(());
        }
        account.look(&Unnamed::of(&self.handles, &self.nodes));
        if account.take(bytes) { Ok(()) } else { Err(account.refuse()) }
    }

    /// Whether there is room for all of that, which is not taken.
    fn require_room(&mut self, bytes: u64) -> Outcome {
        let Some(account) = &mut self.account else { return Ok(()) };
        account.look(&Unnamed::of(&self.handles, &self.nodes));
        if account.has_room(bytes) { Ok(()) } else { Err(account.refuse()) }
    }

    /// There may be more room than before.
    fn has_freed(&mut self) {
        let Some(account) = &mut self.account else { return };
        if account.has_freed() {
            account.look(&Unnamed::of(&self.handles, &self.nodes));
        }
    }

    /// The same for a file or directory that is to be made.
    fn charge_one(&mut self) -> Outcome {
        self.charge(EACH)
    }

    pub(super) fn set_passthrough(&mut self, is_offered: bool, fuse: Rc<OwnedFd>) {
        self.fuse = Some(Rc::clone(&fuse));
        match self.passthrough {
            Passthrough::Unknown if is_offered => self.passthrough = Passthrough::Yes(fuse),
            Passthrough::Unknown => self.passthrough = Passthrough::No,
            Passthrough::No | Passthrough::Yes(_) => {}
        }
    }

    /// Does what is asked; nothing is to be answered to some.
    pub(super) fn perform(&mut self, request: &Request<'_>, reply: &mut Reply) -> Option<Outcome> {
        self.granted = Granted::default();
        Some(match request.operation {
            Operation::Lookup => self.lookup(request, reply),
            Operation::Forget => {
                let _ = self.forget(request);
                return None;
            }
            Operation::BatchForget => {
                let _ = self.forget_many(request);
                return None;
            }
            Operation::GetAttr => self.get_attributes(request, reply),
            Operation::SetAttr => self.set_attributes(request, reply),
            Operation::ReadLink => self.read_link(request, reply),
            Operation::SymLink => self.make_link(request, reply),
            Operation::MkNod => self.make_node(request, reply),
            Operation::MkDir => self.make_directory(request, reply),
            Operation::Unlink => self.remove(request, AtFlags::empty()),
            Operation::RmDir => self.remove(request, AtFlags::REMOVEDIR),
            Operation::Rename | Operation::Rename2 => self.rename(request),
            Operation::Link => self.link(request, reply),
            Operation::Open => self.open(request, reply),
            Operation::Create => self.create(request, reply),
            Operation::Read => self.read(request, reply),
            Operation::Write => self.write(request, reply),
            Operation::Release | Operation::ReleaseDir => self.release(request),
            Operation::Fsync => self.sync(request),
            Operation::FsyncDir => self.sync_directory(request),
            Operation::SyncFs => self.sync_all(),
            Operation::Fallocate => self.allocate(request),
            Operation::Lseek => self.seek(request, reply),
            Operation::CopyFileRange => self.copy_range(request, reply),
            Operation::StatFs => self.stat_fs(reply),
            Operation::SetXattr => self.set_xattr(request),
            Operation::GetXattr => self.get_xattr(request, reply),
            Operation::ListXattr => self.list_xattrs(request, reply),
            Operation::RemoveXattr => self.remove_xattr(request),
            Operation::OpenDir => self.open_directory(request, reply),
            Operation::ReadDir => self.read_directory(request, reply),
            Operation::ReadDirPlus => self.read_directory_plus(request, reply),
            Operation::Destroy => Ok(()),
            // Nothing is held back here that closing would have to write. The
            // kernel does not ask again.
            Operation::Flush | Operation::Init | Operation::Unknown => Err(Errno::NOSYS),
        })
    }

    /// Whoever asked was killed meanwhile: the kernel does not know the answer.
    pub(super) fn was_not_received(&mut self) {
        if let Some(handle) = self.granted.handle.take() {
            self.close(handle);
        }
        if let Some(node) = self.granted.node.take() {
            self.nodes.forget(node, 1);
            self.clear_up();
        }
    }

    fn forget(&mut self, request: &Request<'_>) -> Outcome {
        let times = { request.body }.u64()?;
        self.nodes.forget(request.node, times);
        self.clear_up();
        self.has_freed();
        Ok(())
    }

    fn forget_many(&mut self, request: &Request<'_>) -> Outcome {
        let mut body = request.body;
        let count = body.u32()?;
        body.skip(4)?;
        for _ in 0..count {
            let (node, times) = (body.u64()?, body.u64()?);
            self.nodes.forget(node, times);
        }
        self.clear_up();
        self.has_freed();
        Ok(())
    }

    fn clear_up(&mut self) {
        while let Some(id) = self.nodes.gone.pop() {
            self.directories.close(id);
            if let Some(ahead) = &mut self.ahead {
                ahead.forget(id);
            }
        }
    }

    /// The level of a name in a directory.
    fn level_of(&self, parent: NodeId, name: &CStr) -> Result<Level, Errno> {
        if let Some(id) = self.nodes.find(parent, name) {
            return Ok(self.nodes.get(id)?.level);
        }
        let mut names = self.nodes.path(parent)?;
        names.push(name.to_bytes());
        Ok(self.rules.own_level(&names))
    }

    fn directory(&mut self, id: NodeId) -> Result<Directory, Errno> {
        self.directories.of(&self.nodes, id)
    }

    fn target(&mut self, id: NodeId) -> Result<Target<'_>, Errno> {
        if id == ROOT {
            return Ok(Target::Open(self.directories.root()));
        }
        let node = self.nodes.get(id)?;
        match &node.place {
            Place::Named => {
                let parent = self.directories.of(&self.nodes, node.parent.into())?;
                Ok(Target::Named(parent, &node.name))
            }
            Place::Nowhere(Some(fd)) => Ok(Target::Open(fd.as_fd())),
            Place::Nowhere(None) => {
                let fd = self.handles.of_node(id).ok_or(Errno::NOENT)?;
                Ok(Target::Open(fd.as_fd()))
            }
        }
    }

    /// What a node is now.
    fn stat(&mut self, id: NodeId) -> Result<Stat, Errno> {
        let stat = self.target(id)?.stat()?;
        let node = self.nodes.get_mut(id)?;
        if stat.st_ino != node.inode && id != ROOT {
            match self.sameness {
                Sameness::Name => node.inode = stat.st_ino,
                // Somebody put another file there; those who have this one open
                // go on with it.
                Sameness::Inode => {
                    let fd = self.handles.of_node(id).ok_or(Errno::STALE)?;
                    return rustix::fs::fstat(fd);
                }
            }
        }
        Ok(stat)
    }

    /// Tells the kernel of a name in a directory.
    fn tell(
        &mut self,
        parent: NodeId,
        name: &CStr,
        level: Level,
        stat: &Stat,
        reply: &mut Reply,
    ) -> NodeId {
        let id = self.nodes.remember(parent, name, stat.st_ino, level, self.sameness);
        self.granted.node = Some(id);
        self.put_entry(id, stat, reply);
        id
    }

    fn lookup(&mut self, request: &Request<'_>, reply: &mut Reply) -> Outcome {
        let name = { request.body }.name()?;
        let level = self.level_of(request.node, name)?;
        let found = if level == Level::None {
            Err(Errno::NOENT)
        } else {
            let directory = self.directory(request.node)?;
            rustix::fs::statat(&*directory, name, AtFlags::SYMLINK_NOFOLLOW)
        };
        match found {
            Ok(stat) => {
                self.tell(request.node, name, level, &stat, reply);
                self.list_ahead(request.node);
                Ok(())
            }
            // No node, and for how long there is none.
            Err(Errno::NOENT) => {
                reply.u64(0);
                reply.u64(0);
                reply.u64(self.caching.names.as_secs());
                reply.zeros(16 + attributes::ATTRIBUTES);
                Ok(())
            }
            Err(errno) => Err(errno),
        }
    }

    /// Other names of the directory may be asked for next.
    fn list_ahead(&mut self, directory: NodeId) {
        let Some(ahead) = &mut self.ahead else { return };
        if let Some(bytes) = ahead.note(directory)
            && let Ok(names) = self.nodes.path(directory)
        {
            ahead.list(&names, bytes);
        }
    }
}

impl Target<'_> {
    fn stat(&self) -> Result<Stat, Errno> {
        match self {
            Self::Named(directory, name) => {
                rustix::fs::statat(&**directory, *name, AtFlags::SYMLINK_NOFOLLOW)
            }
            Self::Open(fd) => rustix::fs::statat(fd, c"", AtFlags::EMPTY_PATH),
        }
    }

    /// A descriptor of it that cannot be read or written.
    fn path_fd(&self) -> Result<OwnedFd, Errno> {
        match self {
            Self::Named(directory, name) => {
                let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                rustix::fs::openat(&**directory, *name, flags, Mode::empty())
            }
            Self::Open(fd) => rustix::io::fcntl_dupfd_cloexec(fd, 0),
        }
    }
}

/// The name of a descriptor in /proc, for calls that take no descriptor of a
/// file that is not opened.
fn proc_path(fd: &OwnedFd) -> String {
    use std::os::fd::AsRawFd;
    format!("/proc/self/fd/{}", fd.as_raw_fd())
}
