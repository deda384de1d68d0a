//! Turns for background work, shared by all sessions of a user on a machine.
//!
//! Sessions do not know of each other, and there is no coordinator: a turn is the lock on
//! one of a few files in a private directory in memory. A process that dies releases its
//! lock. A file's time says when the lock was taken or, after that, when others may take
//! it. A process that holds a lock for too long (for example because it was stopped)
//! holds up nobody. If there can be no such directory, turns are unlimited. The contents
//! of the files do not matter.

use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags, Timespec, Timestamps};
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::time::{Duration, SystemTime};

/// Background work takes milliseconds, on a loaded machine a hundred of them.
const TAKES_AT_MOST: Duration = Duration::from_secs(2);

/// Pause between two turns on one file: twenty-five captures of a shell per second, of two
/// milliseconds each, are a twentieth of a core. A hundred busy sessions then have one every
/// four seconds; ten seconds are the most that may be lost on a loaded machine.
const REST: Duration = Duration::from_millis(40);

/// Held during background work.
#[derive(Debug)]
pub(crate) struct Turn {
    lock: Option<OwnedFd>,
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let (Some(lock), Some(now)) = (&self.lock, now()) {
            set_time(lock, now + REST);
        }
    }
}

impl Turn {
    /// Takes a turn, unless others have all of them.
    pub(crate) fn take() -> Option<Self> {
        match directory() {
            Some(directory) => Self::take_in(&directory, count()),
            None => Some(Self { lock: None }),
        }
    }

    fn take_in(directory: &OwnedFd, count: u32) -> Option<Self> {
        let mut is_overdue = false;
        for number in 0..count {
            let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let name = number.to_string();
            let Ok(file) = rustix::fs::openat(directory, name, flags, Mode::RUSR | Mode::WUSR)
            else {
                return Some(Self { lock: None });
            };
            let is_taken =
                rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
            let (Some(now), Some(time)) = (now(), time(&file)) else {
                return Some(Self { lock: None });
            };
            // A time further ahead than this means that the clock was set back.
            let rests = now < time && time < now + 2 * REST;
            if is_taken && !rests {
                set_time(&file, now);
                return Some(Self { lock: Some(file) });
            }
            is_overdue |= !is_taken && time + TAKES_AT_MOST < now;
        }
        is_overdue.then_some(Self { lock: None })
    }
}

fn now() -> Option<Duration> {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).ok()
}

fn time(file: &OwnedFd) -> Option<Duration> {
    let stat = rustix::fs::fstat(file).ok()?;
    let nanos = u32::try_from(stat.st_mtime_nsec).ok()?;
    Some(Duration::new(u64::try_from(stat.st_mtime).ok()?, nanos))
}

fn set_time(file: &OwnedFd, time: Duration) {
    let tv_sec = i64::try_from(time.as_secs()).unwrap_or_default();
    let time = Timespec { tv_sec, tv_nsec: i64::from(time.subsec_nanos()) };
    let _ = rustix::fs::futimens(file, &Timestamps { last_access: time, last_modification: time });
}

/// Returns half of the number of cores: the rest is for runs.
fn count() -> u32 {
    let cores = rustix::thread::sched_getaffinity(None).map_or(1, |set| set.count());
    (cores / 2).max(1)
}

/// Returns the directory of the files, if only this user has access to it.
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

    /// Makes it look like another process's turn, taken that long ago.
    fn taken(turn: &Turn, ago: Duration) {
        set_time(turn.lock.as_ref().unwrap(), now().unwrap() - ago);
    }

    #[test]
    fn there_are_so_many_turns_and_one_that_is_given_back_is_there_again_after_a_rest() {
        let root = tempfile::tempdir().unwrap();
        let directory = open(root.path());
        let turns: Vec<_> = (0..2).map(|_| Turn::take_in(&directory, 2).unwrap()).collect();
        assert!(turns.iter().all(|turn| turn.lock.is_some()));
        assert!(Turn::take_in(&directory, 2).is_none());
        let path = root.path().join("0");
        drop(turns);
        let rested = std::fs::metadata(&path).unwrap().modified().unwrap();
        // From that time on, the turn is available.
        while SystemTime::now() < rested {
            std::thread::yield_now();
        }
        assert!(Turn::take_in(&directory, 1).is_some_and(|turn| turn.lock.is_some()));
    }

    #[test]
    fn a_turn_rests_before_the_next_one() {
        let root = tempfile::tempdir().unwrap();
        let directory = open(root.path());
        let path = root.path().join("0");
        drop(Turn::take_in(&directory, 1).unwrap());
        let file = std::fs::File::open(&path).unwrap();
        file.set_modified(SystemTime::now() + REST + REST / 2).unwrap();
        assert!(Turn::take_in(&directory, 1).is_none());
        // Setting the clock back does not extend it.
        file.set_modified(SystemTime::now() + 1000 * REST).unwrap();
        // Another test may just have forked, and the copy has the lock until it is gone.
        let begun = std::time::Instant::now();
        let turn = loop {
            match Turn::take_in(&directory, 1) {
                Some(turn) => break turn,
                None => assert!(begun.elapsed().as_secs() < 30, "no turn"),
            }
            std::thread::yield_now();
        };
        assert!(turn.lock.is_some());
    }

    #[test]
    fn who_keeps_a_turn_for_too_long_holds_up_nobody() {
        let root = tempfile::tempdir().unwrap();
        let directory = open(root.path());
        let held = Turn::take_in(&directory, 1).unwrap();
        assert!(Turn::take_in(&directory, 1).is_none());
        taken(&held, 2 * TAKES_AT_MOST);
        assert!(Turn::take_in(&directory, 1).is_some_and(|turn| turn.lock.is_none()));
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
