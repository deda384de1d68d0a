//! Removes files and trees.

use crate::listing::names;
use crate::path::RelativePath;
use crate::root::{Root, look};
use crate::{FileError, Kind, Result};
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;

/// Maximum depth of directories: each level holds a descriptor.
const DEEPEST: u32 = 200;

impl Root {
    /// Removes a file, a link (not its target) or an empty directory.
    ///
    /// # Errors
    /// When it cannot be removed.
    pub fn remove(&self, path: &RelativePath) -> Result<()> {
        let (parent, name) = self.parent(path)?;
        let flags = match look(&parent, name, path.clone())?.kind {
            Kind::Directory => AtFlags::REMOVEDIR,
            Kind::File | Kind::Symlink | Kind::Other => AtFlags::empty(),
        };
        rustix::fs::unlinkat(&parent, name, flags).map_err(|errno| FileError::of(errno, path))
    }

    /// Removes a path with all its contents.
    ///
    /// # Errors
    /// When a part cannot be removed; the rest may be gone then.
    pub fn remove_all(&self, path: &RelativePath) -> Result<()> {
        let (parent, name) = self.parent(path)?;
        clear(&parent, name, path, DEEPEST)
    }
}

/// Removes a path. Links are removed, never followed. Entries that vanish meanwhile are no error.
fn clear(parent: &OwnedFd, name: &OsStr, path: &RelativePath, depth: u32) -> Result<()> {
    let wrong = |errno| FileError::of(errno, path);
    match rustix::fs::unlinkat(parent, name, AtFlags::empty()) {
        Err(Errno::ISDIR | Errno::PERM) => {}
        outcome => return outcome.map_err(wrong),
    }
    if depth == 0 {
        return Err(FileError::BadPath(path.to_string(), "it is too deep; remove it in parts"));
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = rustix::fs::openat(parent, name, flags, Mode::empty()).map_err(wrong)?;
    for name in names(&directory).map_err(wrong)? {
        let name = OsStr::from_bytes(name.as_bytes());
        match clear(&directory, name, &path.join(name.as_bytes()), depth - 1) {
            Ok(()) | Err(FileError::NotFound(_)) => {}
            Err(error) => return Err(error),
        }
    }
    rustix::fs::unlinkat(parent, name, AtFlags::REMOVEDIR).map_err(wrong)
}
