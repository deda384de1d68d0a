//! Listings of directories, without what is hidden.
//!
//! The kernel keeps a listing for later readers. One that was not read to its end is
//! continued by the next reader who comes to the same offset. That is right only if
//! offsets mean the same to both, but a directory has other ones when it goes to the layer
//! or is moved within it, and its date need not change: some names would be listed twice,
//! and others not at all. So a directory that was read in part is listed without the
//! kernel's cache from then on, until the kernel forgets it.

use std::ffi::CStr;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};

use rustix::fs::{AtFlags, Mode, OFlags, SeekFrom};
use rustix::io::Errno;

use super::{Handle, NodeId, Outcome, Reply, Request, Sameness, Tree};
use crate::fuse::ahead::UNKEPT;
use crate::fuse::entry::Entry;
use crate::fuse::handles::{Cache, Listing};
use crate::policy::Level;

/// Lets the kernel answer from what it read before.
const KEEP_CACHE: u32 = 1 << 1;
const CACHE_DIR: u32 = 1 << 3;
/// An entry without its name, and one with attributes.
const ENTRY: usize = 24;
const ENTRY_PLUS: usize = 128 + ENTRY;
/// How much is asked of the system at once.
const PIECE: usize = 16 << 10;

impl Tree {
    pub(super) fn open_directory(&mut self, request: &Request<'_>, reply: &mut Reply) -> Outcome {
        let flags = OFlags::from_bits_retain({ request.body }.u32()?);
        let is_kept = !flags.contains(UNKEPT) && !self.nodes.get(request.node)?.is_partly_listed;
        let cache = if is_kept { Cache::Used } else { Cache::Unused };
        let handle = self.handles.add(Handle::Directory(Listing {
            node: request.node,
            fd: None,
            entries: Vec::new(),
            passed: 0,
            position: 0,
            cache,
        }));
        self.granted.handle = Some(handle);
        reply.u64(handle);
        reply.u32(match cache {
            Cache::Used => KEEP_CACHE | CACHE_DIR,
            Cache::Unused => KEEP_CACHE,
        });
        reply.u32(0);
        Ok(())
    }

    pub(super) fn read_directory(&mut self, request: &Request<'_>, reply: &mut Reply) -> Outcome {
        self.list(
            request,
            |tree, parent, entry, reply| {
                // What is hidden is passed over.
                if !entry.is_dots() && tree.level_of(parent, entry.name)? == Level::None {
                    return Ok(());
                }
                put(entry, reply);
                Ok(())
            },
            ENTRY,
            reply,
        )
    }

    pub(super) fn read_directory_plus(
        &mut self,
        request: &Request<'_>,
        reply: &mut Reply,
    ) -> Outcome {
        self.list(
            request,
            |tree, parent, entry, reply| {
                // The kernel knows these, and does not need to be told again.
                if entry.is_dots() || tree.is_known(parent, entry.name) {
                    reply.zeros(ENTRY_PLUS - ENTRY);
                    put(entry, reply);
                    return Ok(());
                }
                let level = tree.level_of(parent, entry.name)?;
                if level == Level::None {
                    return Ok(());
                }
                let directory = tree.directory(parent)?;
                match rustix::fs::statat(&*directory, entry.name, AtFlags::SYMLINK_NOFOLLOW) {
                    Ok(stat) => {
                        tree.tell(parent, entry.name, level, &stat, reply);
                        tree.granted.node = None;
                        put(entry, reply);
                        Ok(())
                    }
                    // Gone meanwhile.
                    Err(Errno::NOENT) => Ok(()),
                    Err(errno) => Err(errno),
                }
            },
            ENTRY_PLUS,
            reply,
        )
    }

    /// Whether the kernel has been told of a name, and still relies on that.
    fn is_known(&self, parent: NodeId, name: &CStr) -> bool {
        self.sameness == Sameness::Name && self.nodes.find(parent, name).is_some()
    }

    /// Puts as many entries as there is room for.
    fn list(
        &mut self,
        request: &Request<'_>,
        put: impl Fn(&mut Self, NodeId, &Entry<'_>, &mut Reply) -> Outcome,
        overhead: usize,
        reply: &mut Reply,
    ) -> Outcome {
        let mut body = request.body;
        let (handle, offset, size) = (body.u64()?, body.u64()?, body.u32()? as usize);
        let listing = self.handles.listing_mut(handle)?;
        let node = listing.node;
        let mut entries = std::mem::take(&mut listing.entries);
        let mut passed = std::mem::replace(&mut listing.passed, 0);
        let is_elsewhere = offset != listing.position;
        let fd = match listing.fd.take() {
            Some(fd) => fd,
            None => open_listing(self.directory(node)?)?,
        };
        if is_elsewhere {
            rustix::fs::seek(&fd, SeekFrom::Start(offset))?;
            entries.clear();
            passed = 0;
        }
        let mut position = offset;
        let outcome = loop {
            if passed >= entries.len() {
                passed = 0;
                match refill(&fd, &mut entries) {
                    Ok(0) => break Ok(()),
                    Ok(_) => {}
                    Err(errno) => break Err(errno),
                }
            }
            let Some(entry) = Entry::parse(&entries[passed..]) else { break Err(Errno::IO) };
            let room = size - reply.length().min(size);
            if room < overhead + entry.name.count_bytes().next_multiple_of(8) {
                break Ok(());
            }
            if let Err(errno) = put(self, node, &entry, reply) {
                break Err(errno);
            }
            (passed, position) = (passed + entry.length, entry.next);
        };
        // Entries of which the kernel was told cannot be taken back.
        let outcome = if reply.length() > 0 { Ok(()) } else { outcome };
        let listing = self.handles.listing_mut(handle)?;
        (listing.entries, listing.passed) = (entries, passed);
        (listing.position, listing.fd) = (position, Some(fd));
        if listing.cache == Cache::Used && outcome.is_ok() {
            // An empty reply is the end.
            self.nodes.get_mut(node)?.is_partly_listed = reply.length() > 0;
        }
        outcome
    }
}

fn open_listing(
    directory: impl AsFd + Sized + std::ops::Deref<Target = OwnedFd>,
) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    rustix::fs::openat(&*directory, c".", flags, Mode::empty())
}

/// The next entries; how many bytes.
fn refill(fd: &OwnedFd, entries: &mut Vec<u8>) -> Result<usize, Errno> {
    entries.clear();
    entries.reserve_exact(PIECE);
    // SAFETY: the buffer has that much room, and the system fills what it says.
    let length = unsafe {
        libc::syscall(
            libc::SYS_getdents64,
            fd.as_raw_fd(),
            entries.as_mut_ptr(),
            entries.capacity(),
        )
    };
    let Ok(length) = usize::try_from(length) else {
        let error = std::io::Error::last_os_error();
        return Err(Errno::from_io_error(&error).unwrap_or(Errno::IO));
    };
    // SAFETY: the system has filled that much.
    unsafe { entries.set_len(length) };
    Ok(length)
}

fn put(entry: &Entry<'_>, reply: &mut Reply) {
    let name = entry.name.to_bytes();
    reply.u64(entry.inode);
    reply.u64(entry.next);
    reply.u32(name.len() as u32);
    reply.u32(u32::from(entry.kind));
    reply.bytes(name);
    reply.align();
}
