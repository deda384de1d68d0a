//! The connection to the kernel: `/dev/fuse`.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;
use std::time::Instant;

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::Outcome;
use super::lookout::Lookout;
use super::message::{Operation, Reply, Request};

/// How much one write carries at most. Larger ones gain little, and this is
/// memory of each session that writes much.
const MAX_WRITE: u32 = 256 << 10;
/// Beyond what is written: headers, and the longest two names.
const BUFFER: usize = MAX_WRITE as usize + 4096 + 8192;

pub(super) struct Device {
    fuse: Rc<OwnedFd>,
    buffer: Vec<u8>,
    reading: Reading,
    lookout: Lookout,
}

/// What reading does where there is no request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reading {
    Waits,
    ReturnsAtOnce,
}

impl std::fmt::Debug for Device {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("Device").field("fuse", &self.fuse).finish_non_exhaustive()
    }
}

pub(super) enum Received {
    /// So many bytes in the buffer.
    Request(usize),
    Unmounted,
}

impl Device {
    pub(super) fn new(fuse: OwnedFd) -> io::Result<Self> {
        let flags = rustix::fs::fcntl_getfl(&fuse)?;
        rustix::fs::fcntl_setfl(&fuse, flags - OFlags::NONBLOCK)?;
        let (buffer, lookout) = (vec![0; BUFFER], Lookout::new());
        Ok(Self { fuse: Rc::new(fuse), buffer, reading: Reading::Waits, lookout })
    }

    pub(super) fn handle(&self) -> Rc<OwnedFd> {
        Rc::clone(&self.fuse)
    }

    pub(super) fn request(&self, length: usize) -> &[u8] {
        &self.buffer[..length]
    }

    /// Waits for a request, at first without sleeping if it is likely to come soon.
    pub(super) fn receive(&mut self) -> io::Result<Received> {
        let received = match self.look_out()? {
            Some(received) => received,
            None => self.read(Reading::Waits)?.unwrap_or(Received::Unmounted),
        };
        self.lookout.came(Instant::now());
        Ok(received)
    }

    fn look_out(&mut self) -> io::Result<Option<Received>> {
        let Some(until) = self.lookout.until() else { return Ok(None) };
        let mut before = Instant::now();
        while before < until {
            if let Some(received) = self.read(Reading::ReturnsAtOnce)? {
                return Ok(Some(received));
            }
            // Whoever is to ask may wait for this very core.
            rustix::thread::sched_yield();
            let after = Instant::now();
            if self.lookout.offered(after.duration_since(before), after) {
                break;
            }
            before = after;
        }
        Ok(None)
    }

    /// Reads a request, if there is one.
    fn read(&mut self, reading: Reading) -> io::Result<Option<Received>> {
        if self.reading != reading {
            let flags = rustix::fs::fcntl_getfl(&*self.fuse)? - OFlags::NONBLOCK;
            let own = match reading {
                Reading::Waits => OFlags::empty(),
                Reading::ReturnsAtOnce => OFlags::NONBLOCK,
            };
            rustix::fs::fcntl_setfl(&*self.fuse, flags | own)?;
            self.reading = reading;
        }
        loop {
            match (rustix::io::read(&*self.fuse, &mut self.buffer), reading) {
                (Ok(length), _) => return Ok(Some(Received::Request(length))),
                (Err(Errno::AGAIN), Reading::ReturnsAtOnce) => return Ok(None),
                // Whoever asked was interrupted before it could be read.
                (Err(Errno::INTR | Errno::NOENT | Errno::AGAIN), _) => {}
                (Err(Errno::NODEV), _) => return Ok(Some(Received::Unmounted)),
                (Err(errno), _) => return Err(errno.into()),
            }
        }
    }

    /// A request of this kind is done with.
    pub(super) fn is_done_with(&mut self, operation: Operation) {
        self.lookout.answered(operation, Instant::now());
    }

    /// Answers. Says whether nobody is left to hear it.
    pub(super) fn answer(
        &self,
        unique: u64,
        outcome: Outcome,
        reply: &mut Reply,
    ) -> io::Result<bool> {
        match rustix::io::write(&*self.fuse, reply.finish(unique, outcome)) {
            Ok(_) => Ok(false),
            Err(Errno::NOENT | Errno::NODEV) => Ok(true),
            Err(errno) => Err(errno.into()),
        }
    }
}

/// What kernel and server agree on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Abilities {
    pub(super) passthrough: bool,
}

const ASYNC_READ: u64 = 1;
const ATOMIC_O_TRUNC: u64 = 1 << 3;
const BIG_WRITES: u64 = 1 << 5;
const AUTO_INVAL_DATA: u64 = 1 << 12;
const DO_READDIRPLUS: u64 = 1 << 13;
const READDIRPLUS_AUTO: u64 = 1 << 14;
const PARALLEL_DIROPS: u64 = 1 << 18;
const MAX_PAGES: u64 = 1 << 22;
const CACHE_SYMLINKS: u64 = 1 << 23;
const HANDLE_KILLPRIV_V2: u64 = 1 << 28;
const INIT_EXT: u64 = 1 << 30;
const DIRECT_IO_ALLOW_MMAP: u64 = 1 << 36;
const PASSTHROUGH: u64 = 1 << 37;

const WANTED: u64 = ASYNC_READ
    | ATOMIC_O_TRUNC
    | BIG_WRITES
    | AUTO_INVAL_DATA
    | DO_READDIRPLUS
    | READDIRPLUS_AUTO
    | PARALLEL_DIROPS
    | MAX_PAGES
    | CACHE_SYMLINKS
    | HANDLE_KILLPRIV_V2
    | INIT_EXT
    | DIRECT_IO_ALLOW_MMAP
    | PASSTHROUGH;

/// The major and the newest minor version that is spoken here.
const MAJOR: u32 = 7;
const MINOR: u32 = 40;
/// Passthrough over an overlay, which is a file system on others itself.
const STACK_DEPTH: u32 = 2;

/// Answers the first request.
pub(super) fn greet(request: &Request<'_>, reply: &mut Reply) -> Result<Abilities, Errno> {
    let mut body = request.body;
    let (major, _minor, readahead) = (body.u32()?, body.u32()?, body.u32()?);
    if major != MAJOR {
        return Err(Errno::PROTO);
    }
    let mut offered = u64::from(body.u32()?);
    if offered & INIT_EXT != 0 {
        offered |= u64::from(body.u32()?) << 32;
    }
    let agreed = offered & WANTED;
    reply.clear();
    reply.u32(MAJOR);
    reply.u32(MINOR);
    reply.u32(readahead);
    reply.u32((agreed & 0xffff_ffff) as u32);
    reply.u16(64);
    reply.u16(48);
    reply.u32(MAX_WRITE);
    reply.u32(1); // times to the nanosecond
    reply.u16((MAX_WRITE >> 12) as u16);
    reply.u16(0);
    reply.u32((agreed >> 32) as u32);
    reply.u32(STACK_DEPTH);
    reply.zeros(24);
    Ok(Abilities { passthrough: agreed & PASSTHROUGH != 0 })
}

/// Makes the kernel ask for a node's attributes again.
pub(super) fn forget_attributes(fuse: impl AsFd, node: u64) {
    /// An answer to nothing, with what it is about in place of an error.
    const INVALIDATE_INODE: u32 = 2;
    let mut message = Reply::default();
    message.u64(node);
    message.u64(u64::MAX); // nothing of the content
    message.u64(0);
    let _ = rustix::io::write(fuse, message.notify(INVALIDATE_INODE));
}

/// Gives the kernel the content of a file before it is asked for. Nobody may have
/// the file open: the kernel would wait for a read that waits for this process.
pub(super) fn give_content(fuse: impl AsFd, node: u64, file: impl AsFd, size: usize) -> bool {
    const STORE: u32 = 4;
    let mut message = Reply::with_room(24 + size);
    message.u64(node);
    message.u64(0);
    message.u32(size as u32);
    message.u32(0);
    let room = rustix::buffer::spare_capacity(message.buffer(size));
    // Of a file that has become longer meanwhile, this is not all.
    let is_all = rustix::io::pread(file, room, 0) == Ok(size);
    is_all && rustix::io::write(fuse, message.notify(STORE)).is_ok()
}

/// Lets the kernel read and write a file by itself. That takes privileges over
/// the machine; without them it says so, once.
pub(super) fn open_backing(fuse: impl AsFd, file: impl AsFd) -> Result<u32, Errno> {
    use std::os::fd::AsRawFd;
    #[repr(C)]
    struct Map {
        fd: i32,
        flags: u32,
        padding: u64,
    }
    const BACKING_OPEN: libc::Ioctl = 0x4010_e501;
    let map = Map { fd: file.as_fd().as_raw_fd(), flags: 0, padding: 0 };
    // SAFETY: the number stands for a read of such a struct, which outlives the call.
    let id = unsafe { libc::ioctl(fuse.as_fd().as_raw_fd(), BACKING_OPEN, &raw const map) };
    if id > 0 {
        Ok(id.cast_unsigned())
    } else {
        Err(Errno::from_io_error(&io::Error::last_os_error()).unwrap_or(Errno::IO))
    }
}

/// Takes back what `open_backing` gave. Files that are open stay so.
pub(super) fn close_backing(fuse: impl AsFd, id: u32) {
    use std::os::fd::AsRawFd;
    const BACKING_CLOSE: libc::Ioctl = 0x4004_e502;
    // SAFETY: the number stands for a read of a u32, which outlives the call.
    unsafe { libc::ioctl(fuse.as_fd().as_raw_fd(), BACKING_CLOSE, &raw const id) };
}
