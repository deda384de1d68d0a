//! Turns at work for later, which all sessions of a user on a machine share.
//!
//! Sessions do not know of each other, and nobody gives the turns out: a turn is
//! the lock on one of a few files, in a private directory in memory. Who dies
//! gives its lock back. Who has one for too long (it was stopped, say) keeps
//! nobody from going ahead. Where there can be no such directory there is no
//! bound. What the files have in them does not matter.

use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags, Timespec, Timestamps, UTIME_NOW};
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::time::{Duration, SystemTime};

/// Work for later takes milliseconds, and on a loaded machine a hundred of them.
const TAKES_AT_MOST: Duration = Duration::from_secs(2);

/// Held while work for later goes on.
#[derive(Debug)]
pub(crate) struct Turn {
    _lock: Option<OwnedFd>,
}

impl Turn {
    /// A turn, unless others have all of them.
    pub(crate) fn take() -> Option<Self> {
        match directory() {
            Some(directory) => Self::take_in(&directory, count()),
            None => Some(Self { _lock: None }),
        }
    }

    fn take_in(directory: &OwnedFd, count: u32) -> Option<Self> {
        let mut is_overdue = false;
        for number in 0..count {
            let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let name = number.to_string();
            let Ok(file) = rustix::fs::openat(directory, name, flags, Mode::RUSR | Mode::WUSR)
            else {
                return Some(Self { _lock: None });
            };
            match rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => {
                    let now = Timespec { tv_sec: 0, tv_nsec: UTIME_NOW };
                    let times = Timestamps { last_access: now, last_modification: now };
                    let _ = rustix::fs::futimens(&file, &times);
                    return Some(Self { _lock: Some(file) });
                }
                Err(_) => is_overdue |= age(&file).is_some_and(|age| age > TAKES_AT_MOST),
            }
        }
        is_overdue.then_some(Self { _lock: None })
    }
}

/// How long ago a turn was taken.
fn age(file: &OwnedFd) -> Option<Duration> {
    let modified = rustix::fs::fstat(file).ok()?.st_mtime;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).ok()?;
    now.checked_sub(Duration::from_secs(u64::try_from(modified).ok()?))
}

/// Half of the cores: the rest is for runs.
fn count() -> u32 {
    let cores = rustix::thread::sched_getaffinity(None).map_or(1, |set| set.count());
    (cores / 2).max(1)
}

/// Where the files are, if that is a directory of ours alone.
fn directory() -> Option<OwnedFd> {
    let me = rustix::process::geteuid().as_raw();
    let path = format!("/dev/shm/sessile-turns-{me}");
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let open = || rustix::fs::open(&path, flags, Mode::empty());
    let directory = match open() {
        Err(Errno::NOENT) => {
            let _ = rustix::fs::mkdir(&path, Mode::RWXU);
            open()
        }
        found => found,
    };
    let directory = directory.ok()?;
    let stat = rustix::fs::statat(&directory, "", AtFlags::EMPTY_PATH).ok()?;
    let is_private = stat.st_uid == me && stat.st_mode & 0o077 == 0;
    is_private.then_some(directory)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(path: &std::path::Path) -> OwnedFd {
        rustix::fs::open(path, OFlags::PATH | OFlags::DIRECTORY, Mode::empty()).unwrap()
    }

    #[test]
    fn there_are_so_many_turns_and_one_that_is_given_back_is_there_again() {
        let root = tempfile::tempdir().unwrap();
        let directory = open(root.path());
        let first = Turn::take_in(&directory, 2);
        let second = Turn::take_in(&directory, 2);
        assert!(first.is_some() && second.is_some());
        assert!(Turn::take_in(&directory, 2).is_none());
        drop(first);
        let again = Turn::take_in(&directory, 2);
        assert!(again.is_some());
        assert!(Turn::take_in(&directory, 2).is_none());
    }

    #[test]
    fn who_keeps_a_turn_for_too_long_holds_up_nobody() {
        let root = tempfile::tempdir().unwrap();
        let directory = open(root.path());
        let held = Turn::take_in(&directory, 1).unwrap();
        assert!(Turn::take_in(&directory, 1).is_none());
        let long_ago = SystemTime::now() - 2 * TAKES_AT_MOST;
        let lock = std::fs::File::from(held._lock.unwrap());
        lock.set_modified(long_ago).unwrap();
        assert!(Turn::take_in(&directory, 1).is_some());
    }

    #[test]
    fn where_there_can_be_no_locks_there_is_no_bound() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("0")).unwrap();
        let directory = open(root.path());
        let turns: Vec<_> = (0..3).map(|_| Turn::take_in(&directory, 1)).collect();
        assert!(turns.iter().all(Option::is_some));
    }
}
