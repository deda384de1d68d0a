//! Notices that a session's directory is gone, or is somewhere else.
//!
//! A keeper whose directory was deleted can no longer be found, and has to end by itself.
//! The system reports the deletion with a signal (dnotify): this needs no thread, no
//! polling, and none of the few inotify watches that all programs of a user share.
//!
//! A directory that was moved (`mv project elsewhere`) still belongs to the session, and
//! an open descriptor leads to it. No event reports the move, so it is checked when there
//! is work to do anyway.

use rustix::fs::{AtFlags, Mode, OFlags, Stat};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

/// Without these two, neither the keeper nor the session's description can be found.
const NEEDED: [&str; 2] = ["keeper.sock", "metadata.json"];

#[derive(Debug)]
pub(crate) struct DirectoryWatch {
    directory: OwnedFd,
    /// Its device and number, which it keeps wherever it is moved to.
    identity: (u64, u64),
}

impl DirectoryWatch {
    /// Reports deletions in the directory by SIGIO from now on. The signal must be
    /// blocked.
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

    /// Returns where the directory is, if it was moved. Costs one system call before each
    /// run if it was not.
    pub(crate) fn moved_from(&self, path: &Path) -> Option<PathBuf> {
        let is_at = |path: &Path| {
            rustix::fs::stat(path).is_ok_and(|found| identity(&found) == self.identity)
        };
        if is_at(path) {
            return None;
        }
        // The link of a deleted directory leads nowhere, and is ignored.
        let now = std::fs::read_link(format!("/proc/self/fd/{}", self.directory.as_raw_fd()));
        now.ok().filter(|now| is_at(now))
    }

    /// Returns a path that leads to the directory wherever it is, for all of the user's
    /// processes.
    pub(crate) fn way(&self) -> PathBuf {
        format!("/proc/{}/fd/{}", std::process::id(), self.directory.as_raw_fd()).into()
    }

    /// Requests the next signal: each request yields only one.
    fn arm(&self) -> io::Result<()> {
        // SAFETY: the descriptor is open, and the call touches no memory.
        match unsafe { libc::fcntl(self.directory.as_raw_fd(), libc::F_NOTIFY, DN_DELETE) } {
            -1 => Err(io::Error::last_os_error()),
            _ => Ok(()),
        }
    }

    /// Whether the directory is gone, checked after a signal. The signal is requested
    /// again first, so that deletions meanwhile are reported too.
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
        let watch =
            DirectoryWatch::of(rustix::fs::open(&before, flags, Mode::empty()).unwrap()).unwrap();
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
