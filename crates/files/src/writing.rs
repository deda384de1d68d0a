//! Writes a file under a temporary name, then puts it in its place as a whole. No reader
//! ever sees half of it, and a writer that dies leaves nothing.

use crate::entry::{Entry, Kind};
use crate::path::RelativePath;
use crate::root::{Root, look};
use crate::{FileError, Result};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, RenameFlags, Timespec, Timestamps};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt;

/// Blocks of zeros of this size are not written: they read as zeros anyway, and a sparse
/// file stays sparse.
const HOLE: usize = 4096;

/// Permissions without setuid and similar bits.
const PERMISSIONS: u32 = 0o777;

/// Whether an existing file may be replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replace {
    Yes,
    No,
}

/// How to write a file.
#[derive(Clone, Copy, Debug)]
pub struct Writing {
    /// Its permissions; by default those of the file that it replaces, or the usual ones.
    pub mode: Option<u32>,
    /// Make the directories above it.
    pub parents: bool,
    pub replace: Replace,
    /// Its modification time, in seconds since 1970.
    pub modified: Option<i64>,
}

/// A file that is being written.
#[derive(Debug)]
pub struct Draft {
    path: RelativePath,
    parent: OwnedFd,
    name: OsString,
    file: File,
    /// Its temporary name, if it has one.
    aside: Option<OsString>,
    length: u64,
    was_there: bool,
    writing: Writing,
}

/// The result of writing a file.
#[derive(Debug)]
pub struct Written {
    pub entry: Entry,
    /// There was no file before.
    pub is_new: bool,
}

impl Root {
    /// Begins to write a file. A link at its place is followed as long as it stays inside.
    ///
    /// # Errors
    /// When the file cannot be written there.
    pub fn write(&self, path: &RelativePath, writing: Writing) -> Result<Draft> {
        let (above, _) = path.split()?;
        if writing.parents {
            self.make_all(&above)?;
        }
        let found = match self.stat(path) {
            Err(FileError::NotFound(_)) if self.directory(&above).is_ok() => None,
            outcome => Some(outcome?),
        };
        let found = match found {
            Some(entry) if entry.kind == Kind::Symlink && writing.replace == Replace::Yes => {
                let real = self.behind(path)?;
                return self.begin(&real, Some(&self.stat(&real)?), writing);
            }
            found => found,
        };
        self.begin(path, found.as_ref(), writing)
    }

    /// Begins to write a file that replaces whatever is there, including a link.
    pub(crate) fn write_plainly(&self, path: &RelativePath, writing: Writing) -> Result<Draft> {
        let found = self.stat(path).ok().filter(|entry| entry.kind != Kind::Symlink);
        self.begin(path, found.as_ref(), writing)
    }

    fn begin(
        &self,
        path: &RelativePath,
        found: Option<&Entry>,
        mut writing: Writing,
    ) -> Result<Draft> {
        if let Some(entry) = found {
            match (entry.kind, writing.replace) {
                (Kind::Directory, _) => return Err(FileError::IsADirectory(path.to_string())),
                (_, Replace::No) => return Err(FileError::Exists(path.to_string())),
                (Kind::Other | Kind::Symlink, _) => {
                    return Err(FileError::NotAFile(path.to_string()));
                }
                (Kind::File, Replace::Yes) => writing.mode = writing.mode.or(Some(entry.mode)),
            }
        }
        let (parent, name) = self.parent(path)?;
        let (file, aside) = aside(&parent).map_err(|errno| FileError::of(errno, path))?;
        let (name, path) = (name.to_owned(), path.clone());
        let was_there = found.is_some();
        Ok(Draft { path, parent, name, file, aside, length: 0, was_there, writing })
    }
}

impl Draft {
    /// # Errors
    /// When there is no room.
    pub fn write(&mut self, bytes: &[u8]) -> Result<()> {
        for block in bytes.chunks(HOLE) {
            let is_hole = block.len() == HOLE && block.iter().all(|byte| *byte == 0);
            if !is_hole {
                let written = self.file.write_all_at(block, self.length);
                written.map_err(|error| FileError::io(error, &self.path))?;
            }
            self.length += block.len() as u64;
        }
        Ok(())
    }

    /// Puts the file in its place.
    ///
    /// # Errors
    /// When it cannot be put there; then nothing is left of it.
    pub fn finish(mut self) -> Result<Written> {
        let path = self.path.clone();
        let wrong = |errno: Errno| FileError::of(errno, &path);
        self.file.set_len(self.length).map_err(|error| FileError::io(error, &path))?;
        if let Some(mode) = self.writing.mode {
            let mode = Mode::from_raw_mode(mode & PERMISSIONS);
            rustix::fs::fchmod(&self.file, mode).map_err(wrong)?;
        }
        if let Some(seconds) = self.writing.modified {
            let time = Timespec { tv_sec: seconds, tv_nsec: 0 };
            let times = Timestamps { last_access: time, last_modification: time };
            rustix::fs::futimens(&self.file, &times).map_err(wrong)?;
        }
        self.put().map_err(wrong)?;
        let entry = look(&self.parent, &self.name, path)?;
        Ok(Written { entry, is_new: !self.was_there })
    }

    fn put(&mut self) -> rustix::io::Result<()> {
        if self.aside.is_none() {
            // A file without a name can only get one that is free.
            match self.link(&self.name) {
                Err(Errno::EXIST) if self.writing.replace == Replace::Yes => {}
                outcome => return outcome,
            }
            let name = unused()?;
            self.link(&name)?;
            self.aside = Some(name);
        }
        let Some(aside) = &self.aside else { return Ok(()) };
        // So that watchers see a new file, not a replaced one.
        if !self.was_there && self.link(&self.name).is_ok() {
            return rustix::fs::unlinkat(&self.parent, aside, AtFlags::empty());
        }
        let flags = match self.writing.replace {
            Replace::Yes => RenameFlags::empty(),
            Replace::No => RenameFlags::NOREPLACE,
        };
        rustix::fs::renameat_with(&self.parent, aside, &self.parent, &self.name, flags)?;
        self.aside = None;
        Ok(())
    }

    fn link(&self, name: &OsStr) -> rustix::io::Result<()> {
        let file = format!("/proc/self/fd/{}", self.file.as_raw_fd());
        rustix::fs::linkat(CWD, file, &self.parent, name, AtFlags::SYMLINK_FOLLOW)
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if let Some(aside) = &self.aside {
            let _ = rustix::fs::unlinkat(&self.parent, aside, AtFlags::empty());
        }
    }
}

/// Makes a new file in a directory. It has no name, so that nothing is left of it whatever
/// happens, or a unique one if the file system does not support that.
fn aside(parent: &OwnedFd) -> rustix::io::Result<(File, Option<OsString>)> {
    let usual = Mode::from_raw_mode(0o666);
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    match rustix::fs::openat(parent, ".", flags, usual) {
        Ok(file) => return Ok((file.into(), None)),
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::NOENT | Errno::INVAL | Errno::NOSYS) => {}
        Err(errno) => return Err(errno),
    }
    let name = unused()?;
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::CLOEXEC;
    let file = rustix::fs::openat(parent, &name, flags, usual)?;
    Ok((file.into(), Some(name)))
}

/// Prefix of the temporary names.
const ASIDE: &str = ".sessile-";

/// Returns an unused name.
fn unused() -> rustix::io::Result<OsString> {
    let mut random = [0; 8];
    rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
    Ok(format!("{ASIDE}{:016x}", u64::from_ne_bytes(random)).into())
}

/// Returns whether a file of this name is a temporary file of ours.
pub(crate) fn is_aside(name: &[u8]) -> bool {
    let number = name.strip_prefix(ASIDE.as_bytes());
    number.is_some_and(|number| number.len() == 16 && number.iter().all(u8::is_ascii_hexdigit))
}
