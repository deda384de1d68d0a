//! Writing a file: aside first, then in its place as a whole. Nobody ever sees
//! half of it, and a writer that goes away leaves nothing.

use crate::entry::{Entry, Kind};
use crate::path::Inside;
use crate::root::{Root, look};
use crate::{FileError, Result};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, RenameFlags, Timespec, Timestamps};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::FileExt;

/// Blocks of zeros this large are left out of the file: they are read as zeros
/// all the same, and a sparse file stays one.
const HOLE: usize = 4096;

/// Permissions without setuid and its like.
const PERMISSIONS: u32 = 0o777;

/// Whether what is there already may be replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replace {
    Yes,
    No,
}

/// How a file is to be written.
#[derive(Clone, Copy, Debug)]
pub struct Writing {
    /// Its permissions; else those of the file that was there, or the usual ones.
    pub mode: Option<u32>,
    /// Make the directories above it.
    pub parents: bool,
    pub replace: Replace,
    /// When it is to have been changed last: seconds since 1970.
    pub modified: Option<i64>,
}

/// A file that is being written.
#[derive(Debug)]
pub struct Draft {
    path: Inside,
    parent: OwnedFd,
    name: OsString,
    file: File,
    /// The name that it has meanwhile, if it has one.
    aside: Option<OsString>,
    length: u64,
    was_there: bool,
    writing: Writing,
}

/// A file that was written.
#[derive(Debug)]
pub struct Written {
    pub entry: Entry,
    /// There was none before.
    pub is_new: bool,
}

impl Root {
    /// Begins to write a file. A link at its place is followed as far as it
    /// stays within.
    ///
    /// # Errors
    /// When it cannot be written there.
    pub fn write(&self, path: &Inside, writing: Writing) -> Result<Draft> {
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

    /// The same in the place of whatever is there, links included.
    pub(crate) fn write_plainly(&self, path: &Inside, writing: Writing) -> Result<Draft> {
        let found = self.stat(path).ok().filter(|entry| entry.kind != Kind::Symlink);
        self.begin(path, found.as_ref(), writing)
    }

    fn begin(&self, path: &Inside, found: Option<&Entry>, mut writing: Writing) -> Result<Draft> {
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
    /// When it cannot be put there; nothing is left of it then.
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
            // A file without a name can be given one that is free.
            match self.link(&self.name) {
                Err(Errno::EXIST) if self.writing.replace == Replace::Yes => {}
                outcome => return outcome,
            }
            let name = unused()?;
            self.link(&name)?;
            self.aside = Some(name);
        }
        let Some(aside) = &self.aside else { return Ok(()) };
        // So that who watches is told of a new file, and not of one that was replaced.
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

/// A new file in a directory: without a name, so that nothing is left of it
/// whatever happens, or under one that nobody uses where there is no such thing.
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

/// What files are called until they are put in their place.
const ASIDE: &str = ".sessile-";

/// A name that nothing has.
fn unused() -> rustix::io::Result<OsString> {
    let mut random = [0; 8];
    rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
    Ok(format!("{ASIDE}{:016x}", u64::from_ne_bytes(random)).into())
}

/// Whether a file of this name is on its way to its place.
pub(crate) fn is_aside(name: &[u8]) -> bool {
    let number = name.strip_prefix(ASIDE.as_bytes());
    number.is_some_and(|number| number.len() == 16 && number.iter().all(u8::is_ascii_hexdigit))
}
