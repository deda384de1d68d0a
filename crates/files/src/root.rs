//! The directory, and the resolution of paths below it.

use crate::entry::Entry;
use crate::path::RelativePath;
use crate::{FileError, Result};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// How often to retry when the system asks for it, because of concurrent renames.
const ATTEMPTS: u32 = 64;

/// How a link at the end of a path is treated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Links {
    Followed,
    NotFollowed,
}

/// A directory with accessible files.
#[derive(Debug)]
pub struct Root {
    directory: OwnedFd,
    /// The path under which callers know it.
    called: PathBuf,
}

impl Root {
    /// Opens the directory at this path, which callers may use as a prefix of theirs.
    ///
    /// # Errors
    /// When there is none.
    pub fn open(path: &Path) -> Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(CWD, path, flags, Mode::empty());
        let directory = opened.map_err(|errno| match errno {
            Errno::NOENT => FileError::NotFound(path.display().to_string()),
            errno => FileError::Io { path: path.display().to_string(), source: errno.into() },
        })?;
        Ok(Self { directory, called: path.to_owned() })
    }

    /// Sets another path for callers: the one of the directory inside a sandbox.
    #[must_use]
    pub fn called(self, called: PathBuf) -> Self {
        Self { called, ..self }
    }

    /// Parses a path from a caller.
    ///
    /// # Errors
    /// When it is not below the directory.
    pub fn path(&self, given: &[u8]) -> Result<RelativePath> {
        RelativePath::parse(given, &self.called)
    }

    /// Opens a path beneath the directory.
    pub(crate) fn at(&self, path: &RelativePath, flags: OFlags, links: Links) -> Result<OwnedFd> {
        let flags = flags | OFlags::CLOEXEC;
        let flags = match links {
            Links::Followed => flags,
            Links::NotFollowed => flags | OFlags::NOFOLLOW,
        };
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        for _ in 0..ATTEMPTS {
            let opened =
                rustix::fs::openat2(&self.directory, path.os(), flags, Mode::empty(), resolve);
            match opened {
                Ok(fd) => return Ok(fd),
                Err(Errno::AGAIN | Errno::INTR) => {}
                // A system without this call, such as some sandboxes.
                Err(Errno::NOSYS) => return self.at_step_by_step(path, flags),
                Err(errno) => return Err(FileError::of(errno, path)),
            }
        }
        Err(FileError::of(Errno::AGAIN, path))
    }

    /// Opens a path one name at a time, without following any link.
    fn at_step_by_step(&self, path: &RelativePath, flags: OFlags) -> Result<OwnedFd> {
        let plain = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let open = |base: &OwnedFd, name: &OsStr, flags: OFlags| {
            rustix::fs::openat(base, name, flags, Mode::empty())
                .map_err(|errno| FileError::of(errno, path))
        };
        let Ok((parent, name)) = path.split() else {
            return open(&self.directory, OsStr::new("."), flags);
        };
        let mut base = open(&self.directory, OsStr::new("."), plain)?;
        for step in parent.steps() {
            base = open(&base, OsStr::from_bytes(step.name()), plain)?;
        }
        open(&base, name, flags | OFlags::NOFOLLOW)
    }

    pub(crate) fn directory(&self, path: &RelativePath) -> Result<OwnedFd> {
        self.at(path, OFlags::PATH | OFlags::DIRECTORY, Links::Followed)
    }

    /// Opens the parent directory of a path, and returns it with the name.
    pub(crate) fn parent<'p>(&self, path: &'p RelativePath) -> Result<(OwnedFd, &'p OsStr)> {
        let (parent, name) = path.split()?;
        Ok((self.directory(&parent)?, name))
    }

    /// Returns the metadata of a path; for a link, that of the link itself.
    ///
    /// # Errors
    /// When it does not exist.
    pub fn stat(&self, path: &RelativePath) -> Result<Entry> {
        if path.is_root() {
            let stat = rustix::fs::fstat(&self.directory).map_err(|e| FileError::of(e, path))?;
            return Ok(Entry::of(path.clone(), &stat));
        }
        let (parent, name) = self.parent(path)?;
        look(&parent, name, path.clone())
    }

    /// Opens the file of a descriptor again with other flags. No path is resolved.
    pub(crate) fn reopen(fd: &OwnedFd, flags: OFlags, path: &RelativePath) -> Result<File> {
        let place = format!("/proc/self/fd/{}", fd.as_raw_fd());
        let opened = rustix::fs::openat(CWD, place, flags | OFlags::CLOEXEC, Mode::empty());
        Ok(File::from(opened.map_err(|errno| FileError::of(errno, path))?))
    }

    /// Returns the path that a link leads to.
    pub(crate) fn behind(&self, link: &RelativePath) -> Result<RelativePath> {
        let target = self.at(link, OFlags::PATH, Links::Followed)?;
        let real = |fd: &OwnedFd| {
            let place = format!("/proc/self/fd/{}", fd.as_raw_fd());
            let found = rustix::fs::readlinkat(CWD, place, Vec::new());
            found.map_err(|errno| FileError::of(errno, link))
        };
        let (root, target) = (real(&self.directory)?, real(&target)?);
        let root = PathBuf::from(OsStr::from_bytes(root.as_bytes()));
        RelativePath::parse(target.as_bytes(), &root)
            .map_err(|_| FileError::Outside(link.to_string()))
    }

    /// Makes a directory.
    ///
    /// # Errors
    /// When it cannot be made, or exists.
    pub fn make(&self, path: &RelativePath) -> Result<Entry> {
        let (parent, name) = self.parent(path)?;
        let made = rustix::fs::mkdirat(&parent, name, Mode::from_raw_mode(0o777));
        made.map_err(|errno| FileError::of(errno, path))?;
        look(&parent, name, path.clone())
    }

    /// Makes a directory and its parents, unless they exist.
    ///
    /// # Errors
    /// When one cannot be made.
    pub fn make_all(&self, path: &RelativePath) -> Result<OwnedFd> {
        match self.directory(path) {
            Err(FileError::NotFound(_)) => {}
            outcome => return outcome,
        }
        for step in path.steps() {
            match self.make(&step) {
                Ok(_) | Err(FileError::Exists(_)) => {}
                Err(error) => return Err(error),
            }
        }
        self.directory(path)
    }

    /// Moves a file or directory.
    ///
    /// # Errors
    /// When it cannot be moved, or the target exists and may not be replaced.
    pub fn rename(
        &self,
        from: &RelativePath,
        to: &RelativePath,
        replace: crate::Replace,
    ) -> Result<Entry> {
        let (from_parent, from_name) = self.parent(from)?;
        let (to_parent, to_name) = self.parent(to)?;
        let flags = match replace {
            crate::Replace::Yes => rustix::fs::RenameFlags::empty(),
            crate::Replace::No => rustix::fs::RenameFlags::NOREPLACE,
        };
        let moved = rustix::fs::renameat_with(&from_parent, from_name, &to_parent, to_name, flags);
        moved.map_err(|errno| match errno {
            Errno::NOENT => FileError::of(errno, from),
            Errno::XDEV => FileError::Io {
                path: to.to_string(),
                source: std::io::Error::other("it is on another disk; copy it instead"),
            },
            Errno::INVAL => FileError::BadPath(to.to_string(), "it is within what is moved"),
            errno => FileError::of(errno, to),
        })?;
        look(&to_parent, to_name, to.clone())
    }
}

/// Returns the metadata of a name in a directory.
pub(crate) fn look(directory: impl AsFd, name: &OsStr, path: RelativePath) -> Result<Entry> {
    let stat = rustix::fs::statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW);
    let stat = stat.map_err(|errno| FileError::of(errno, &path))?;
    let entry = Entry::of(path, &stat);
    if entry.kind != crate::Kind::Symlink {
        return Ok(entry);
    }
    let target = rustix::fs::readlinkat(&directory, name, Vec::new());
    let target = target.map_err(|errno| FileError::of(errno, &entry.path))?;
    let target = std::ffi::OsString::from_vec(target.into_bytes()).into_vec();
    Ok(entry.leading_to(target))
}
