//! Notices that a session's directory is gone.
//!
//! A keeper whose directory somebody has deleted is found by nobody any more, and
//! has to end by itself. The system tells it with a signal (dnotify): no thread,
//! no look every so often, and no share of the few watches that inotify has for
//! all programs of a user.

use rustix::fs::{AtFlags, Mode, OFlags};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

/// Without these two nobody finds the keeper, nor what the session was.
const NEEDED: [&str; 2] = ["keeper.sock", "metadata.json"];

#[derive(Debug)]
pub(crate) struct Watch {
    directory: OwnedFd,
}

impl Watch {
    /// From now on, SIGIO tells of whatever is deleted there. It must be blocked.
    pub(crate) fn over(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let watch = Self { directory: rustix::fs::open(path, flags, Mode::empty())? };
        watch.arm()?;
        Ok(watch)
    }

    /// For the next signal: each is the only one of its kind.
    fn arm(&self) -> io::Result<()> {
        // SAFETY: the descriptor is open, and the call touches no memory.
        match unsafe { libc::fcntl(self.directory.as_raw_fd(), libc::F_NOTIFY, DN_DELETE) } {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    }

    /// After a signal. Armed first, so that what goes meanwhile is told, too.
    pub(crate) fn finds_nothing(&self) -> bool {
        let _ = self.arm();
        NEEDED.iter().all(|name| {
            let found = rustix::fs::statat(&self.directory, *name, AtFlags::SYMLINK_NOFOLLOW);
            found.is_err_and(|error| error == rustix::io::Errno::NOENT)
        })
    }
}

/// From Linux' fcntl.h.
const DN_DELETE: libc::c_int = 0x8;
