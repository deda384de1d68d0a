//! How much may be written: the layer and the private directories together.
//!
//! What is there is looked at, and a part of what is left is handed out. What is
//! written takes from that, and when it is used up, somebody looks again. So no
//! count can go wrong for long, and a file that is removed gives its room back.
//! The private directories, which are a file system of their own, get what
//! neither is there nor was handed out.

use std::collections::HashSet;
use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat, StatFs};
use rustix::io::Errno;

use super::handles::Handles;
use super::nodes::Nodes;
use crate::apply::Tally;
use crate::sys;

/// What a file counts at least: its place in a directory, its attributes.
pub(super) const EACH: u64 = 4096;

/// A part of what is left is handed out at once: so much of the limit.
const PARTS: u64 = 16;
const LEAST_PART: u64 = 256 << 10;

/// A layer that is full is not looked at for each write.
const PAUSE: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub(crate) struct Account {
    limit: u64,
    upper: OwnedFd,
    /// The file system of the private directories, and how its size is changed.
    private: OwnedFd,
    size: OwnedFd,
    tally: Tally,
    /// Bytes in use at the last look.
    used: u64,
    /// Of what was handed out then.
    left: u64,
    /// When it was found to be full.
    full: Option<Instant>,
    /// The last look, and how long it took.
    looked: Option<(Instant, Duration)>,
    /// What the private directories may have at the most.
    most_private: u64,
    /// What they were given at the last look.
    given: u64,
}

impl Account {
    pub(crate) fn new(
        (limit, most_private): (u64, u64),
        [upper, private, size]: [OwnedFd; 3],
        tally: Tally,
    ) -> Self {
        Self {
            limit,
            upper,
            private,
            size,
            tally,
            used: 0,
            left: 0,
            full: None,
            looked: None,
            most_private,
            given: most_private,
        }
    }

    /// Takes from what was handed out. False: look again.
    pub(super) fn take(&mut self, bytes: u64) -> bool {
        if self.looked.is_none() || self.left == 0 || bytes > self.left {
            return false;
        }
        self.left -= bytes;
        true
    }

    /// By the last look.
    pub(super) fn has_room(&self, bytes: u64) -> bool {
        bytes <= self.limit.saturating_sub(self.used)
    }

    /// Something has gone, or has become shorter. Whether to look again at once:
    /// where little is left, and looking takes little of the time.
    pub(super) fn has_freed(&mut self) -> bool {
        let is_tight = self.full.take().is_some() || self.given < self.most_private;
        is_tight && self.looked.is_none_or(|(at, took)| at.elapsed() > took * 10)
    }

    /// Looks at what is there, and hands out anew.
    pub(super) fn look(&mut self, unnamed: &Unnamed) {
        let begun = Instant::now();
        if self.full.is_some_and(|since| since.elapsed() < PAUSE) {
            return;
        }
        let layer = bytes_below(&self.upper).unwrap_or(self.limit) + unnamed.bytes;
        let private = private_bytes(&self.private);
        self.used = layer + private;
        let rest = self.limit.saturating_sub(self.used);
        self.left = rest.min((self.limit / PARTS).max(LEAST_PART));
        self.full = (rest == 0).then(Instant::now);
        self.looked = Some((Instant::now(), begun.elapsed()));
        self.tally.set_used(self.used);
        let most = self.limit.saturating_sub(layer + self.left).min(self.most_private);
        self.given = most;
        let most = most.max(private).max(EACH);
        if let Ok(text) = CString::new(most.to_string()) {
            // One that has grown meanwhile keeps its size until the next look.
            let _ = sys::resize(self.size.as_fd(), &text);
        }
    }

    pub(super) fn refuse(&mut self) -> Errno {
        self.tally.add_refusal();
        self.full.get_or_insert_with(Instant::now);
        Errno::NOSPC
    }

    /// As programs see it that ask how much room there is.
    pub(super) fn show(&self, stat: &mut StatFs) {
        let block = u64::try_from(stat.f_bsize).unwrap_or(EACH).max(1);
        let free = self.limit.saturating_sub(self.used) / block;
        stat.f_blocks = self.limit / block;
        stat.f_bfree = free.min(stat.f_bfree);
        stat.f_bavail = free.min(stat.f_bavail);
    }
}

/// Files that take room and have no name any more, each once.
#[derive(Debug, Default)]
pub(super) struct Unnamed {
    known: HashSet<(u64, u64)>,
    bytes: u64,
}

impl Unnamed {
    pub(super) fn of(handles: &Handles, nodes: &Nodes) -> Self {
        let mut all = Self::default();
        handles.files().for_each(|fd| all.add(fd.as_fd()));
        nodes.unnamed().for_each(|fd| all.add(fd.as_fd()));
        all
    }

    fn add(&mut self, fd: BorrowedFd<'_>) {
        let Ok(stat) = rustix::fs::statat(fd, c"", AtFlags::EMPTY_PATH) else { return };
        if stat.st_nlink == 0 && self.known.insert((stat.st_dev, stat.st_ino)) {
            self.bytes += bytes_of(&stat);
        }
    }
}

fn bytes_of(stat: &Stat) -> u64 {
    (stat.st_blocks.cast_unsigned() * 512).max(EACH)
}

fn private_bytes(fd: &OwnedFd) -> u64 {
    let Ok(stat) = rustix::fs::fstatfs(fd) else { return 0 };
    let used = stat.f_blocks.saturating_sub(stat.f_bfree);
    used * u64::try_from(stat.f_bsize).unwrap_or(0)
}

/// What a directory takes, with all below it. A file with several names is
/// counted once. Directories are opened from the one above, so that none is too
/// deep to be found.
pub(crate) fn bytes_below(top: &OwnedFd) -> io::Result<u64> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut links = HashSet::new();
    let mut bytes = 0;
    let top = Rc::new(rustix::io::fcntl_dupfd_cloexec(top, 0)?);
    let mut unseen = vec![(top, c".".to_owned())];
    while let Some((above, name)) = unseen.pop() {
        let opened = match rustix::fs::openat(&*above, &*name, flags, Mode::empty()) {
            Ok(opened) => Rc::new(opened),
            // Gone by now.
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => continue,
            Err(errno) => return Err(errno.into()),
        };
        for entry in Dir::read_from(&*opened)? {
            let entry = entry?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            let look = AtFlags::SYMLINK_NOFOLLOW;
            let Ok(stat) = rustix::fs::statat(&*opened, name, look) else { continue };
            let is_directory = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
            if is_directory || stat.st_nlink == 1 || links.insert(stat.st_ino) {
                bytes += bytes_of(&stat);
            }
            if is_directory {
                unseen.push((Rc::clone(&opened), name.to_owned()));
            }
        }
    }
    Ok(bytes)
}
