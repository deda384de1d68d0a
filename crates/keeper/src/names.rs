//! Whether the names in a directory are still what they were.
//!
//! The system notes in the directory when one was added, removed or replaced. So a single
//! look at it, at a descriptor that stays open, stands for a look at each of its files.

use rustix::fs::{Mode, OFlags, Stat};
use std::os::fd::OwnedFd;
use std::path::Path;

/// File systems note the time of a change by a clock that ticks every 10 ms at the slowest:
/// two changes within a tick look like one.
const TICK_NANOS: i128 = 20_000_000;

#[derive(Debug, Default)]
pub(crate) struct Names {
    directory: Option<OwnedFd>,
    /// The time of the last change that is known, in nanoseconds.
    known: Option<i128>,
}

impl Names {
    pub(crate) fn of(directory: &Path) -> Self {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let directory = rustix::fs::open(directory, flags, Mode::empty()).ok();
        Self { directory, known: None }
    }

    /// Returns false if no name has changed since the last call, and the directory was not
    /// removed. After a true the caller looks at the files themselves.
    pub(crate) fn may_have_changed(&mut self) -> bool {
        let Some(found) = self.directory.as_ref().and_then(|it| rustix::fs::fstat(it).ok()) else {
            return true;
        };
        let changed = changed_at(&found);
        if self.known == Some(changed) && found.st_nlink > 0 {
            return false;
        }
        self.known = (changed + TICK_NANOS < now()).then_some(changed);
        true
    }
}

/// The time of change, which no program can set, as it can the time of modification.
fn changed_at(found: &Stat) -> i128 {
    i128::from(found.st_ctime) * 1_000_000_000 + i128::from(found.st_ctime_nsec)
}

fn now() -> i128 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
    i128::from(now.tv_sec) * 1_000_000_000 + i128::from(now.tv_nsec)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// Returns when changes no longer fall into the tick of the last one.
    fn until_quiet(names: &mut Names) {
        while names.may_have_changed() {
            std::thread::yield_now();
        }
    }

    #[test]
    fn what_is_removed_replaced_or_added_is_noticed() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("d");
        fs::create_dir(&path).unwrap();
        let (file, other) = (path.join("a"), root.path().join("b"));
        fs::write(&file, "").unwrap();
        fs::write(&other, "").unwrap();
        let mut names = Names::of(&path);
        let changes: [&dyn Fn(); 5] = [
            &|| fs::rename(&other, &file).unwrap(),
            &|| fs::remove_file(&file).unwrap(),
            &|| fs::write(&file, "").unwrap(),
            &|| fs::rename(&file, &other).unwrap(),
            &|| fs::remove_dir_all(&path).unwrap(),
        ];
        for change in changes {
            until_quiet(&mut names);
            assert!(!names.may_have_changed());
            change();
            assert!(names.may_have_changed());
        }
        assert!(names.may_have_changed(), "it is gone for good");
    }

    #[test]
    fn a_change_right_after_another_is_noticed() {
        let root = tempfile::tempdir().unwrap();
        let mut names = Names::of(root.path());
        for number in 0..100 {
            fs::write(root.path().join(number.to_string()), "").unwrap();
            assert!(names.may_have_changed());
        }
    }

    #[test]
    fn what_is_written_to_a_file_is_no_change() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("a");
        fs::write(&file, "").unwrap();
        let mut names = Names::of(root.path());
        until_quiet(&mut names);
        fs::write(&file, "more").unwrap();
        assert!(!names.may_have_changed());
    }

    #[test]
    fn a_directory_that_cannot_be_opened_is_never_trusted() {
        let mut names = Names::of(Path::new("/does/not/exist"));
        assert!(names.may_have_changed() && names.may_have_changed());
    }
}
