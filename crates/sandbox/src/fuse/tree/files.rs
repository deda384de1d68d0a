//! Files: opening, reading, writing.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::rc::Rc;

use rustix::fs::{
    AtFlags, FallocateFlags, FileType, Mode, OFlags, SeekFrom, Stat, Timespec, Timestamps,
};
use rustix::io::Errno;

use super::attributes::without_privileges;
use super::{
    EACH, Handle, NodeId, Outcome, Passthrough, Reply, Request, Sameness, Target, Tree, device,
};
use crate::fuse::guard;
use crate::plan::Claim;

/// The kernel keeps nothing of it, or all when it is opened again.
const DIRECT_IO: u32 = 1;
const KEEP_CACHE: u32 = 1 << 1;
const NO_FLUSH: u32 = 1 << 5;
const PASSTHROUGH: u32 = 1 << 7;
/// In requests to open and to write: setuid bits are to be cleared.
const OPEN_KILL_SUIDGID: u32 = 1;
const WRITE_KILL_SUIDGID: u32 = 1 << 2;

/// Files up to this size are read by way of the kernel's cache. To let the kernel
/// read them by itself takes as long as to read them.
const SMALL: u64 = 64 << 10;

/// How an open file is read and written.
#[derive(Debug, Clone, Copy)]
pub(super) enum Access {
    /// By the kernel itself, where it can.
    Direct,
    /// Through the kernel's cache.
    Cached(Cache),
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Cache {
    Current,
    Outdated,
}

impl Tree {
    pub(super) fn open(&mut self, request: &Request<'_>, reply: &mut Reply) -> Outcome {
        let mut body = request.body;
        let flags = OFlags::from_bits_retain(body.u32()?);
        let extra = body.u32()?;
        let node = self.nodes.get(request.node)?;
        guard::open(node.level, flags)?;
        if flags.intersects(OFlags::WRONLY | OFlags::RDWR) {
            // It may be copied to the layer for that. Whether it is there already
            // the next look tells.
            self.charge(0)?;
        }
        let fd = match self.target(request.node)?.open(kept_flags(flags)) {
            Err(Errno::OVERFLOW) => {
                self.take_over(request.node)?;
                self.target(request.node)?.open(kept_flags(flags))?
            }
            opened => opened?,
        };
        let stat = rustix::fs::fstat(&fd)?;
        self.check_same(request.node, &stat)?;
        if flags.contains(OFlags::TRUNC) {
            // It may be opened for reading, and be emptied all the same.
            let writable = self.target(request.node)?.open(OFlags::WRONLY)?;
            rustix::fs::ftruncate(&writable, 0)?;
            if extra & OPEN_KILL_SUIDGID != 0 {
                Target::Open(std::os::fd::AsFd::as_fd(&fd)).clear_privileges()?;
            }
        }
        if flags.contains(OFlags::TRUNC) {
            self.has_freed();
        }
        self.nodes.get_mut(request.node)?.has_links |= stat.st_nlink > 1;
        let is_read_only = flags & (OFlags::RWMODE | OFlags::TRUNC) == OFlags::RDONLY;
        let how = if is_read_only && stat.st_size.cast_unsigned() <= SMALL {
            self.give(request.node, &fd, &stat)
        } else {
            Access::Direct
        };
        self.opened(request.node, fd, how, reply)
    }

    /// Gives the kernel the content of a small file, in the place of the reads
    /// that it would ask for; and tells it if what it has is of an earlier state.
    fn give(&mut self, id: NodeId, fd: &OwnedFd, stat: &Stat) -> Access {
        let stamp = self.nodes.stamp(stat);
        let (Ok(node), Some(fuse)) = (self.nodes.get_mut(id), &self.fuse) else {
            return Access::Direct;
        };
        if node.has_links {
            return Access::Direct;
        }
        if node.told != stamp {
            node.is_given = false;
            device::forget_attributes(&**fuse, id);
            return Access::Cached(Cache::Outdated);
        }
        // Where somebody has it open, a read may be under way.
        if !node.is_given && node.opens == 0 && stat.st_size > 0 {
            let size = stat.st_size.cast_unsigned() as usize;
            node.is_given = device::give_content(&**fuse, id, fd, size);
        }
        Access::Cached(Cache::Current)
    }

    /// Somebody outside may have put something else there meanwhile.
    fn check_same(&mut self, id: NodeId, stat: &Stat) -> Outcome {
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(Errno::STALE);
        }
        let node = self.nodes.get_mut(id)?;
        match self.sameness {
            Sameness::Name => node.inode = stat.st_ino,
            Sameness::Inode if node.inode == stat.st_ino => {}
            Sameness::Inode => return Err(Errno::STALE),
        }
        Ok(())
    }

    /// Puts a copy in the place of a file that the layer cannot take over, because its
    /// group has no id inside. The copy has the user's group.
    pub(super) fn take_over(&mut self, id: NodeId) -> Outcome {
        match (self.ids.claims, self.sameness) {
            (Claim::Groups, Sameness::Name) => {}
            (Claim::Own | Claim::All | Claim::Groups, _) => return Err(Errno::OVERFLOW),
        }
        let Target::Named(directory, name) = self.target(id)? else { return Err(Errno::OVERFLOW) };
        let name = name.to_owned();
        let old = Target::Named(Rc::clone(&directory), &name).open(OFlags::RDONLY)?;
        let stat = rustix::fs::fstat(&old)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(Errno::OVERFLOW);
        }
        self.charge(stat.st_size.cast_unsigned() + EACH)?;
        let aside = CString::new(format!(".sessile-taking-{id}")).map_err(|_| Errno::INVAL)?;
        let how = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
        let new = rustix::fs::openat(&*directory, &*aside, how, Mode::RUSR | Mode::WUSR)?;
        let mut new = File::from(new);
        let copied = io::copy(&mut File::from(old), &mut new)
            .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
            .and_then(|_| rustix::fs::fchmod(&new, Mode::from_raw_mode(stat.st_mode)))
            .and_then(|()| rustix::fs::futimens(&new, &times_of(&stat)))
            .and_then(|()| rustix::fs::renameat(&*directory, &*aside, &*directory, &*name));
        if copied.is_err() {
            let _ = rustix::fs::unlinkat(&*directory, &*aside, AtFlags::empty());
        }
        copied
    }

    /// Tells the kernel of an open file.
    pub(super) fn opened(
        &mut self,
        id: NodeId,
        fd: OwnedFd,
        access: Access,
        reply: &mut Reply,
    ) -> Outcome {
        let backing = self.backing(id, &fd, access)?;
        let node = self.nodes.get_mut(id)?;
        node.opens += 1;
        let caching = match access {
            Access::Cached(Cache::Outdated) => 0,
            Access::Cached(Cache::Current) | Access::Direct if node.has_links => DIRECT_IO,
            Access::Cached(Cache::Current) | Access::Direct => KEEP_CACHE,
        };
        let handle = self.handles.add(Handle::File { node: id, fd });
        self.granted.handle = Some(handle);
        reply.u64(handle);
        match backing {
            Some(backing) => {
                reply.u32(PASSTHROUGH | NO_FLUSH);
                reply.u32(backing);
            }
            None => {
                reply.u32(NO_FLUSH | caching);
                reply.u32(0);
            }
        }
        Ok(())
    }

    /// The file for the kernel to read and write by itself. All who have a node
    /// open share one, and do it the same way.
    fn backing(&mut self, id: NodeId, fd: &OwnedFd, access: Access) -> Result<Option<u32>, Errno> {
        let node = self.nodes.get_mut(id)?;
        if node.opens > 0 {
            return Ok(node.backing);
        }
        match access {
            Access::Direct => node.is_given = false,
            Access::Cached(_) => return Ok(None),
        }
        let Passthrough::Yes(fuse) = &self.passthrough else { return Ok(None) };
        match device::open_backing(&**fuse, fd) {
            Ok(backing) => node.backing = Some(backing),
            // Not privileged, or on a file system that cannot: so it will stay.
            Err(_) => self.passthrough = Passthrough::No,
        }
        Ok(node.backing)
    }

    pub(super) fn release(&mut self, request: &Request<'_>) -> Outcome {
        self.close({ request.body }.u64()?);
        Ok(())
    }

    pub(super) fn close(&mut self, handle: u64) {
        let Some(Handle::File { node: id, fd }) = self.handles.remove(handle) else { return };
        drop(fd);
        let Ok(node) = self.nodes.get_mut(id) else { return };
        node.opens = node.opens.saturating_sub(1);
        if node.opens == 0
            && let Some(backing) = node.backing.take()
            && let Passthrough::Yes(fuse) = &self.passthrough
        {
            device::close_backing(&**fuse, backing);
        }
    }

    pub(super) fn read(&mut self, request: &Request<'_>, reply: &mut Reply) -> Outcome {
        let mut body = request.body;
        let (handle, offset, size) = (body.u64()?, body.u64()?, body.u32()? as usize);
        let fd = self.handles.file(handle)?;
        let mut got = 0;
        // A short answer is the end of the file to the kernel.
        while got < size {
            let buffer = rustix::buffer::spare_capacity(reply.buffer(size - got));
            match rustix::io::pread(fd, buffer, offset + got as u64) {
                Ok(0) => break,
                Ok(more) => got += more,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
        }
        reply.shorten(size);
        Ok(())
    }

    pub(super) fn write(&mut self, request: &Request<'_>, reply: &mut Reply) -> Outcome {
        let mut body = request.body;
        let (handle, offset, size) = (body.u64()?, body.u64()?, body.u32()? as usize);
        let flags = body.u32()?;
        body.skip(8)?;
        let how = OFlags::from_bits_retain(body.u32()?);
        body.skip(4)?;
        let data = body.rest().get(..size).ok_or(Errno::INVAL)?;
        let has_links = self.nodes.get(request.node)?.has_links;
        if self.account.is_some() {
            let growth = growth(&rustix::fs::fstat(self.handles.file(handle)?)?, offset, size);
            self.charge(growth)?;
        }
        let fd = self.handles.file(handle)?;
        // The kernel does not know how long the file has become by another name.
        let offset = match how.contains(OFlags::APPEND) && has_links {
            true => rustix::fs::fstat(fd)?.st_size.cast_unsigned(),
            false => offset,
        };
        if flags & WRITE_KILL_SUIDGID != 0 {
            let mode = Mode::from_raw_mode(rustix::fs::fstat(fd)?.st_mode);
            if without_privileges(mode) != mode {
                rustix::fs::fchmod(fd, without_privileges(mode))?;
            }
        }
        let written = rustix::io::pwrite(fd, data, offset)?;
        reply.u32(written as u32);
        reply.u32(0);
        Ok(())
    }

    pub(super) fn sync(&mut self, request: &Request<'_>) -> Outcome {
        let mut body = request.body;
        let (handle, flags) = (body.u64()?, body.u32()?);
        let fd = self.handles.file(handle)?;
        if flags & 1 != 0 { rustix::fs::fdatasync(fd) } else { rustix::fs::fsync(fd) }
    }

    pub(super) fn sync_directory(&mut self, request: &Request<'_>) -> Outcome {
        let directory = self.directory(request.node)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        rustix::fs::fsync(rustix::fs::openat(&*directory, c".", flags, Mode::empty())?)
    }

    pub(super) fn sync_all(&mut self) -> Outcome {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let root = rustix::fs::openat(self.directories.root(), c".", flags, Mode::empty())?;
        rustix::fs::syncfs(root)
    }

    pub(super) fn allocate(&mut self, request: &Request<'_>) -> Outcome {
        let mut body = request.body;
        let (handle, offset, length) = (body.u64()?, body.u64()?, body.u64()?);
        let mode = FallocateFlags::from_bits_retain(body.u32()?);
        if !mode.intersects(FallocateFlags::PUNCH_HOLE | FallocateFlags::COLLAPSE_RANGE) {
            self.charge(length)?;
        }
        rustix::fs::fallocate(self.handles.file(handle)?, mode, offset, length)
    }

    pub(super) fn seek(&mut self, request: &Request<'_>, reply: &mut Reply) -> Outcome {
        let mut body = request.body;
        let (handle, offset, whence) = (body.u64()?, body.u64()?, body.u32()?);
        let to = match whence.cast_signed() {
            libc::SEEK_DATA => SeekFrom::Data(offset),
            libc::SEEK_HOLE => SeekFrom::Hole(offset),
            _ => return Err(Errno::INVAL),
        };
        reply.u64(rustix::fs::seek(self.handles.file(handle)?, to)?);
        Ok(())
    }

    pub(super) fn copy_range(&mut self, request: &Request<'_>, reply: &mut Reply) -> Outcome {
        // What the kernel has cached of the files would not follow. It copies
        // through its cache then.
        if !matches!(self.passthrough, Passthrough::Yes(_)) {
            return Err(Errno::NOSYS);
        }
        let mut body = request.body;
        let (from, mut from_offset) = (body.u64()?, body.u64()?);
        body.skip(8)?;
        let (to, mut to_offset, length) = (body.u64()?, body.u64()?, body.u64()?);
        let copied = rustix::fs::copy_file_range(
            self.handles.file(from)?,
            Some(&mut from_offset),
            self.handles.file(to)?,
            Some(&mut to_offset),
            length.min(1 << 30) as usize,
        )?;
        reply.u32(copied as u32);
        reply.u32(0);
        Ok(())
    }
}

fn times_of(stat: &Stat) -> Timestamps {
    let time = |tv_sec: i64, nanoseconds| Timespec { tv_sec, tv_nsec: nanoseconds as _ };
    Timestamps {
        last_access: time(stat.st_atime, stat.st_atime_nsec),
        last_modification: time(stat.st_mtime, stat.st_mtime_nsec),
    }
}

/// Bytes that a file may take more when something is written to it.
fn growth(stat: &Stat, offset: u64, size: usize) -> u64 {
    let (length, size) = (stat.st_size.cast_unsigned(), size as u64);
    let has_holes = stat.st_blocks.cast_unsigned() * 512 < length;
    if has_holes { size } else { (offset + size).saturating_sub(length).min(size) }
}

/// What of the flags is for the file itself. Appending, sharing of offsets and
/// caching are the kernel's, which says where each write goes.
pub(super) fn kept_flags(flags: OFlags) -> OFlags {
    flags & (OFlags::RWMODE | OFlags::SYNC | OFlags::DSYNC)
}
