//! Notices that a session's directory is gone, or is somewhere else.
//!
//! A keeper whose directory somebody has deleted is found by nobody any more, and
//! has to end by itself. The system tells it with a signal (dnotify): no thread,
//! no look every so often, and no share of the few watches that inotify has for
//! all programs of a user.
//!
//! One that was moved (`mv project elsewhere`) is still the session's, and an open
//! descriptor leads to it. Nothing tells of that, so it is looked for when there is
//! something to do anyway.

use rustix::fs::{AtFlags, Mode, OFlags, Stat};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

/// Without these two nobody finds the keeper, nor what the session was.
const NEEDED: [&str; 2] = ["keeper.sock", "metadata.json"];

#[derive(Debug)]
pub(crate) struct Watch {
    directory: OwnedFd,
    /// Its device and number, which it keeps wherever it is moved to.
    identity: (u64, u64),
}

impl Watch {
    /// From now on, SIGIO tells of whatever is deleted there. It must be blocked.
    pub(crate) fn over(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let watch = Self::of(rustix::fs::open(path, flags, Mode::empty())?)?;
        watch.arm()?;
        Ok(watch)
    }

    fn of(directory: OwnedFd) -> io::Result<Self> {
        let identity = identity(&rustix::fs::fstat(&directory)?);
        Ok(Self { directory, identity })
    }

    /// Where the directory is, if it is not where it was: one call of the system
    /// where it is, before each run.
    pub(crate) fn moved_from(&self, path: &Path) -> Option<PathBuf> {
        let is_at = |path: &Path| {
            rustix::fs::stat(path).is_ok_and(|found| identity(&found) == self.identity)
        };
        if is_at(path) {
            return None;
        }
        // The name of one that was deleted leads nowhere, and is left.
        let now = std::fs::read_link(format!("/proc/self/fd/{}", self.directory.as_raw_fd()));
        now.ok().filter(|now| is_at(now))
    }

    /// What leads to the directory wherever it is, for all of the user's processes.
    pub(crate) fn way(&self) -> PathBuf {
        format!("/proc/{}/fd/{}", std::process::id(), self.directory.as_raw_fd()).into()
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

fn identity(found: &Stat) -> (u64, u64) {
    (found.st_dev, found.st_ino)
}

/// From Linux' fcntl.h.
const DN_DELETE: libc::c_int = 0x8;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_found_where_it_was_moved_to() {
        let root = tempfile::tempdir().unwrap();
        let root = std::fs::canonicalize(root.path()).unwrap();
        let (before, after) = (root.join("a/session"), root.join("b/session"));
        std::fs::create_dir_all(&before).unwrap();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let watch = Watch::of(rustix::fs::open(&before, flags, Mode::empty()).unwrap()).unwrap();
        assert_eq!(watch.moved_from(&before), None);
        std::fs::rename(root.join("a"), root.join("b")).unwrap();
        assert_eq!(watch.moved_from(&before), Some(after.clone()));
        assert_eq!(std::fs::read_link(watch.way()).unwrap(), after);
        // Another one in its place is not it.
        std::fs::create_dir_all(&before).unwrap();
        assert_eq!(watch.moved_from(&before), Some(after.clone()));
        std::fs::remove_dir(&after).unwrap();
        assert_eq!(watch.moved_from(&before), None, "it is nowhere");
    }
}
