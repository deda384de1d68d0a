//! runs/accepted: the last run number given out. With it, a run that was active when its
//! keeper died is recognized by its absence from the history.
//!
//! The file has two numbers of twenty digits. Up to the first, a missing record means
//! nothing (it was dropped, or the session was reset); the second is the last accepted run.
//! Both are written in place; they are in one page, so the death of a process never leaves
//! half of a write.

use crate::atomic::PRIVATE_FILE;
use rustix::fs::OFlags;
use sessile_protocol::RunNo;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;

const LENGTH: usize = 42;

#[derive(Debug)]
pub struct Accepted {
    file: File,
    marks: RunMarks,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RunMarks {
    pub(crate) floor: RunNo,
    pub(crate) last: RunNo,
}

impl RunMarks {
    /// Reads the file; `None` if there is none in our format.
    pub(crate) fn read(path: &Path) -> Option<Self> {
        let text = std::fs::read_to_string(path).ok()?;
        let (floor, last) = text.trim_end().split_once(' ')?;
        Some(Self { floor: RunNo(floor.parse().ok()?), last: RunNo(last.parse().ok()?) })
    }
}

impl Accepted {
    /// Opens the file. `last` is the last run that other files mention.
    pub(crate) fn open(path: &Path, last: RunNo) -> io::Result<Self> {
        // Without this file, lost runs are unknown.
        let found = RunMarks::read(path).unwrap_or(RunMarks { floor: last, last });
        let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let file = File::from(rustix::fs::open(path, flags, PRIVATE_FILE)?);
        let mut accepted = Self { file, marks: found };
        accepted.accept(found.last.max(last))?;
        Ok(accepted)
    }

    #[must_use]
    pub fn last(&self) -> RunNo {
        self.marks.last
    }

    /// Records an accepted run. This is on the path of every run: one small write.
    ///
    /// # Errors
    /// When a write fails.
    pub fn accept(&mut self, run: RunNo) -> io::Result<()> {
        self.marks.last = run;
        self.write()
    }

    /// Records that runs up to this one may be missing from the history from now on.
    ///
    /// # Errors
    /// When a write fails.
    pub fn forget_through(&mut self, run: RunNo) -> io::Result<()> {
        if run > self.marks.floor {
            self.marks.floor = run;
            self.write()?;
        }
        Ok(())
    }

    fn write(&self) -> io::Result<()> {
        let mut text = [0; LENGTH];
        let RunMarks { floor, last } = self.marks;
        writeln!(&mut text[..], "{:020} {:020}", floor.0, last.0)?;
        self.file.write_all_at(&text, 0)
    }
}
