//! Attributes: telling them, changing them.

use std::time::Duration;

use rustix::fs::{
    AtFlags, FileType, Gid, Mode, OFlags, Stat, Timespec, Timestamps, UTIME_NOW, UTIME_OMIT, Uid,
};
use rustix::io::Errno;

use super::{NodeId, Outcome, Reply, Request, Target, Tree, outside, proc_path};
use crate::fuse::guard;

/// The size of a file's attributes in messages.
pub(super) const ATTRIBUTES: usize = 88;

// Which attributes are to be changed.
const MODE: u32 = 1;
const UID: u32 = 1 << 1;
const GID: u32 = 1 << 2;
const SIZE: u32 = 1 << 3;
const ATIME: u32 = 1 << 4;
const MTIME: u32 = 1 << 5;
const FH: u32 = 1 << 6;
const ATIME_NOW: u32 = 1 << 7;
const MTIME_NOW: u32 = 1 << 8;
const KILL_SUIDGID: u32 = 1 << 11;

/// A change as the kernel asks for it.
struct Change {
    valid: u32,
    handle: u64,
    size: u64,
    times: Timestamps,
    mode: u32,
    uid: u32,
    gid: u32,
}

impl Change {
    fn parse(request: &Request<'_>) -> Result<Self, Errno> {
        let mut body = request.body;
        let valid = body.u32()?;
        body.skip(4)?;
        let (handle, size) = (body.u64()?, body.u64()?);
        body.skip(8)?;
        let (atime, mtime) = (body.i64()?, body.i64()?);
        body.skip(8)?;
        let (atime_ns, mtime_ns) = (body.u32()?, body.u32()?);
        body.skip(4)?;
        let mode = body.u32()?;
        body.skip(4)?;
        let (uid, gid) = (body.u32()?, body.u32()?);
        let time = |given: u32, now: u32, tv_sec: i64, nanoseconds: u32| match () {
            () if valid & now != 0 => Timespec { tv_sec: 0, tv_nsec: UTIME_NOW },
            () if valid & given != 0 => Timespec { tv_sec, tv_nsec: nanoseconds.into() },
            () => Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        };
        let times = Timestamps {
            last_access: time(ATIME, ATIME_NOW, atime, atime_ns),
            last_modification: time(MTIME, MTIME_NOW, mtime, mtime_ns),
        };
        Ok(Self { valid, handle, size, times, mode, uid, gid })
    }

    fn has(&self, bits: u32) -> bool {
        self.valid & bits != 0
    }
}

impl Tree {
    pub(super) fn get_attributes(&mut self, request: &Request<'_>, reply: &mut Reply) -> Outcome {
        let stat = self.stat(request.node)?;
        self.put_attributes_reply(request.node, &stat, reply);
        Ok(())
    }

    pub(super) fn set_attributes(&mut self, request: &Request<'_>, reply: &mut Reply) -> Outcome {
        let change = Change::parse(request)?;
        guard::change(self.nodes.get(request.node)?.level)?;
        match self.change(request.node, &change) {
            Err(Errno::OVERFLOW) => {
                self.take_over(request.node)?;
                self.change(request.node, &change)?;
            }
            outcome => outcome?,
        }
        let stat = self.stat(request.node)?;
        self.put_attributes_reply(request.node, &stat, reply);
        Ok(())
    }

    fn change(&mut self, id: NodeId, change: &Change) -> Outcome {
        let users = |id| outside(&self.ids.users, id).map(Uid::from_raw).ok_or(Errno::INVAL);
        let groups = |id| outside(&self.ids.groups, id).map(Gid::from_raw).ok_or(Errno::INVAL);
        let uid = change.has(UID).then(|| users(change.uid)).transpose()?;
        let gid = change.has(GID).then(|| groups(change.gid)).transpose()?;
        if change.has(SIZE) {
            self.set_size(id, change)?;
            self.has_freed();
        }
        let target = self.target(id)?;
        if change.has(UID | GID) {
            target.set_owner(uid, gid)?;
        }
        if change.has(MODE) {
            target.set_mode(Mode::from_raw_mode(change.mode))?;
        } else if change.has(KILL_SUIDGID) {
            target.clear_privileges()?;
        }
        if change.has(ATIME | MTIME | ATIME_NOW | MTIME_NOW) {
            target.set_times(&change.times)?;
        }
        Ok(())
    }

    fn set_size(&mut self, id: NodeId, change: &Change) -> Outcome {
        if change.has(FH) {
            return rustix::fs::ftruncate(self.handles.file(change.handle)?, change.size);
        }
        let fd = self.target(id)?.open(OFlags::WRONLY)?;
        rustix::fs::ftruncate(fd, change.size)
    }

    pub(super) fn read_link(&mut self, request: &Request<'_>, reply: &mut Reply) -> Outcome {
        let text = match self.target(request.node)? {
            Target::Named(directory, name) => rustix::fs::readlinkat(&*directory, name, Vec::new()),
            Target::Open(fd) => rustix::fs::readlinkat(fd, c"", Vec::new()),
        }?;
        reply.bytes(text.to_bytes());
        Ok(())
    }

    pub(super) fn stat_fs(&mut self, reply: &mut Reply) -> Outcome {
        let mut stat = rustix::fs::fstatfs(self.directories.root())?;
        if let Some(account) = &self.account {
            account.show(&mut stat);
        }
        let small = |value: i64| u32::try_from(value).unwrap_or(4096);
        reply.u64(stat.f_blocks);
        reply.u64(stat.f_bfree);
        reply.u64(stat.f_bavail);
        reply.u64(stat.f_files);
        reply.u64(stat.f_ffree);
        reply.u32(small(stat.f_bsize));
        reply.u32(small(stat.f_namelen));
        reply.u32(small(stat.f_frsize));
        reply.zeros(28);
        Ok(())
    }

    fn put_attributes_reply(&mut self, id: NodeId, stat: &Stat, reply: &mut Reply) {
        let valid = self.attributes_valid(id, stat);
        reply.u64(valid.as_secs());
        reply.u32(valid.subsec_nanos());
        reply.u32(0);
        self.put_attributes(stat, reply);
    }

    fn attributes_valid(&mut self, id: NodeId, stat: &Stat) -> Duration {
        let stamp = self.nodes.stamp(stat);
        let Ok(node) = self.nodes.get_mut(id) else { return Duration::ZERO };
        // The kernel drops what it has of a file that has changed.
        node.is_given &= node.told == stamp;
        node.told = stamp;
        let is_directory = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
        node.has_links |= stat.st_nlink > 1 && !is_directory;
        if node.has_links { Duration::ZERO } else { self.caching.attributes }
    }

    pub(super) fn put_entry(&mut self, id: NodeId, stat: &Stat, reply: &mut Reply) {
        self.put_entry_for(id, stat, self.caching.names, reply);
    }

    pub(super) fn put_entry_for(
        &mut self,
        id: NodeId,
        stat: &Stat,
        names: Duration,
        reply: &mut Reply,
    ) {
        let attributes = self.attributes_valid(id, stat);
        reply.u64(id);
        reply.u64(self.nodes.generation(id));
        reply.u64(names.as_secs());
        reply.u64(attributes.as_secs());
        reply.u32(names.subsec_nanos());
        reply.u32(attributes.subsec_nanos());
        self.put_attributes(stat, reply);
    }

    fn put_attributes(&self, stat: &Stat, reply: &mut Reply) {
        reply.u64(stat.st_ino);
        reply.u64(stat.st_size.cast_unsigned());
        reply.u64(stat.st_blocks.cast_unsigned());
        reply.u64(stat.st_atime.cast_unsigned());
        reply.u64(stat.st_mtime.cast_unsigned());
        reply.u64(stat.st_ctime.cast_unsigned());
        reply.u32(stat.st_atime_nsec as u32);
        reply.u32(stat.st_mtime_nsec as u32);
        reply.u32(stat.st_ctime_nsec as u32);
        reply.u32(stat.st_mode);
        // A directory's count would tell how many there are in it, hidden ones
        // included; 1 stands for unknown.
        let is_directory = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
        reply.u32(if is_directory { 1 } else { stat.st_nlink as u32 });
        reply.u32(self.ids.user_inside(stat.st_uid));
        reply.u32(self.ids.group_inside(stat.st_gid));
        let (major, minor) = (rustix::fs::major(stat.st_rdev), rustix::fs::minor(stat.st_rdev));
        reply.u32((minor & 0xff) | (major << 8) | ((minor & !0xff) << 12));
        reply.u32(stat.st_blksize as u32);
        reply.u32(0);
    }
}

impl Target<'_> {
    /// Opens a file for reading or writing, never through a link, and without
    /// waiting for whoever is at the other end.
    pub(super) fn open(&self, flags: OFlags) -> Result<std::os::fd::OwnedFd, Errno> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        match self {
            Self::Named(directory, name) => {
                rustix::fs::openat(&**directory, *name, flags, Mode::empty())
            }
            Self::Open(fd) => {
                let fd = rustix::io::fcntl_dupfd_cloexec(fd, 0)?;
                rustix::fs::open(proc_path(&fd), flags - OFlags::NOFOLLOW, Mode::empty())
            }
        }
    }

    pub(super) fn set_owner(&self, uid: Option<Uid>, gid: Option<Gid>) -> Outcome {
        match self {
            Self::Named(directory, name) => {
                rustix::fs::chownat(&**directory, *name, uid, gid, AtFlags::SYMLINK_NOFOLLOW)
            }
            Self::Open(fd) => rustix::fs::chownat(fd, c"", uid, gid, AtFlags::EMPTY_PATH),
        }
    }

    fn set_mode(&self, mode: Mode) -> Outcome {
        let fd = self.path_fd()?;
        rustix::fs::chmod(proc_path(&fd), mode)
    }

    /// Whoever writes to a file, or gives it away, must not keep its privileges.
    pub(super) fn clear_privileges(&self) -> Outcome {
        let mode = Mode::from_raw_mode(self.stat()?.st_mode);
        let kept = without_privileges(mode);
        if kept == mode { Ok(()) } else { self.set_mode(kept) }
    }

    fn set_times(&self, times: &Timestamps) -> Outcome {
        match self {
            Self::Named(directory, name) => {
                rustix::fs::utimensat(&**directory, *name, times, AtFlags::SYMLINK_NOFOLLOW)
            }
            Self::Open(fd) => {
                let fd = rustix::io::fcntl_dupfd_cloexec(fd, 0)?;
                rustix::fs::utimensat(rustix::fs::CWD, proc_path(&fd), times, AtFlags::empty())
            }
        }
    }
}

/// Without setuid; and without setgid, where that is no mark for locking.
pub(super) fn without_privileges(mode: Mode) -> Mode {
    let mut kept = mode - Mode::SUID;
    if kept.contains(Mode::XGRP) {
        kept -= Mode::SGID;
    }
    kept
}
