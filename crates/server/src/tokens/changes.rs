//! Detects changes of files in a directory without reading them.

use rustix::fs::inotify::{self, CreateFlags, Reader, WatchFlags};
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Changes that the system does not report, such as those by other clients of a file
/// server, are found by checking the files after this time.
const LOOK_AFTER: Duration = Duration::from_secs(1);

/// Room for a few events at a time.
const BUFFER: usize = 1 << 10;

/// Counts the changes to some files of a directory.
#[derive(Debug)]
pub(super) struct Changes {
    /// Locked while its queue is read: a caller that finds it empty must see the final count.
    inotify: Mutex<OwnedFd>,
    names: [&'static str; 2],
    count: AtomicU64,
}

/// When files were last read.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Freshness {
    read: Option<(u64, Instant)>,
}

impl Freshness {
    /// Read at this time, after this many changes.
    pub(super) fn new(seen: u64, at: Instant) -> Self {
        Self { read: Some((seen, at)) }
    }

    pub(super) fn is_of(&self, seen: u64, now: Instant) -> bool {
        self.read.is_some_and(|(of, at)| of >= seen && now.duration_since(at) < LOOK_AFTER)
    }
}

impl Changes {
    /// Returns `None` if the system cannot watch the directory.
    pub(super) fn of(directory: &Path, names: [&'static str; 2]) -> Option<Self> {
        let inotify = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).ok()?;
        let what = WatchFlags::CREATE
            | WatchFlags::DELETE
            | WatchFlags::MOVE
            | WatchFlags::CLOSE_WRITE
            | WatchFlags::MODIFY
            | WatchFlags::ATTRIB
            | WatchFlags::DELETE_SELF
            | WatchFlags::MOVE_SELF;
        inotify::add_watch(&inotify, directory, what).ok()?;
        Some(Self { inotify: Mutex::new(inotify), names, count: AtomicU64::new(0) })
    }

    /// Returns the number of changes, up to this moment.
    pub(super) fn seen(&self) -> u64 {
        let inotify = crate::keepers::lock(&self.inotify);
        let mut buffer = [MaybeUninit::uninit(); BUFFER];
        let mut reader = Reader::new(&*inotify, &mut buffer);
        // An error means that the queue is empty.
        while let Ok(event) = reader.next() {
            let name = event.file_name().map(|name| name.to_bytes());
            // Without a name: the directory itself, or a queue that has overflowed.
            let is_one = |name: &[u8]| self.names.iter().any(|own| own.as_bytes() == name);
            if name.is_none_or(is_one) {
                self.count.fetch_add(1, Ordering::Relaxed);
            }
        }
        self.count.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_of_the_files_are_counted_and_those_of_others_are_not() {
        let root = tempfile::tempdir().unwrap();
        let changes = Changes::of(root.path(), ["a", "b"]).expect("inotify");
        assert_eq!(changes.seen(), 0);
        std::fs::write(root.path().join("other"), "1").unwrap();
        assert_eq!(changes.seen(), 0);
        std::fs::rename(root.path().join("other"), root.path().join("a")).unwrap();
        let first = changes.seen();
        assert!(first > 0);
        std::fs::remove_file(root.path().join("a")).unwrap();
        assert!(changes.seen() > first);
    }

    #[test]
    fn what_is_known_is_looked_at_again_after_a_change_and_after_a_while() {
        let now = Instant::now();
        assert!(!Freshness::default().is_of(0, now));
        let known = Freshness::new(3, now);
        assert!(known.is_of(3, now));
        assert!(!known.is_of(4, now));
        assert!(!known.is_of(3, now + LOOK_AFTER));
    }
}
