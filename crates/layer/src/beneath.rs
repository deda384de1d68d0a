//! A tree of files. The system resolves paths below it: beneath the tree, on its own file
//! system, and without following any link.

use crate::found::Found;
use crate::{LayerError, Result};
use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags, ResolveFlags, StatxFlags};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// How often to retry when the system asks for it, because of concurrent renames.
const ATTEMPTS: u32 = 64;

/// A directory with everything below it.
#[derive(Debug)]
pub struct Tree {
    fd: OwnedFd,
}

/// A directory and a name in it.
pub(crate) type Place<'p> = (OwnedFd, &'p OsStr);

impl Tree {
    /// Opens the directory at this path.
    ///
    /// # Errors
    /// When there is none.
    pub fn open(path: &Path) -> Result<Self> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = rustix::fs::openat(CWD, path, flags, Mode::empty());
        let fd = opened.map_err(|errno| LayerError::of(errno, path.as_os_str().as_bytes()))?;
        Ok(Self { fd })
    }

    fn resolve(&self, path: &[u8], flags: OFlags) -> rustix::io::Result<OwnedFd> {
        let path = if path.is_empty() { OsStr::new(".") } else { OsStr::from_bytes(path) };
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH
            | ResolveFlags::NO_SYMLINKS
            | ResolveFlags::NO_MAGICLINKS
            | ResolveFlags::NO_XDEV;
        for _ in 0..ATTEMPTS {
            match rustix::fs::openat2(&self.fd, path, flags, Mode::empty(), resolve) {
                Err(Errno::AGAIN | Errno::INTR) => {}
                outcome => return outcome,
            }
        }
        Err(Errno::AGAIN)
    }

    /// Opens the parent directory of a path, and returns it with the name.
    pub(crate) fn place<'p>(&self, path: &'p [u8]) -> rustix::io::Result<Place<'p>> {
        let (above, name) = split(path);
        Ok((self.resolve(above, OFlags::PATH | OFlags::DIRECTORY)?, OsStr::from_bytes(name)))
    }

    /// Looks at a path; at a link itself, not its target. Returns none also if a parent is
    /// not a directory, or is a link.
    pub(crate) fn look(&self, path: &[u8]) -> Result<Option<Found>> {
        let found = self.place(path).and_then(|(above, name)| look_at(&above, name));
        match found {
            Ok(found) => Ok(Some(found)),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
            Err(errno) => Err(LayerError::of(errno, path)),
        }
    }

    /// Looks at the root of the tree.
    pub(crate) fn itself(&self) -> Result<Found> {
        look_at(&self.fd, OsStr::new("")).map_err(|errno| LayerError::of(errno, b"."))
    }

    /// Returns the names in a directory, in order.
    pub(crate) fn names(&self, path: &[u8]) -> Result<Vec<Vec<u8>>> {
        let wrong = |errno| LayerError::of(errno, path);
        let directory = self.resolve(path, OFlags::RDONLY | OFlags::DIRECTORY).map_err(wrong)?;
        let mut names = Vec::new();
        for entry in Dir::new(directory).map_err(wrong)? {
            let name = entry.map_err(wrong)?.file_name().to_bytes().to_vec();
            if name != b"." && name != b".." {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }

    /// Opens a regular file for reading. Does not wait for a FIFO in its place.
    pub(crate) fn read(&self, path: &[u8]) -> Result<File> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file = self.resolve(path, flags).map_err(|errno| LayerError::of(errno, path))?;
        let file = File::from(file);
        let is_file = file.metadata().is_ok_and(|metadata| metadata.is_file());
        if is_file { Ok(file) } else { Err(LayerError::of(Errno::NXIO, path)) }
    }

    /// Returns the content of a file; none if it has more than `most` bytes.
    pub(crate) fn content(&self, path: &[u8], most: u64) -> Result<Option<Vec<u8>>> {
        let mut bytes = Vec::new();
        let read = self.read(path)?.take(most + 1).read_to_end(&mut bytes);
        read.map_err(|error| LayerError::io(error, path))?;
        Ok((bytes.len() as u64 <= most).then_some(bytes))
    }

    /// Returns the target of a link.
    pub(crate) fn target(&self, path: &[u8]) -> Result<Vec<u8>> {
        let target = self
            .place(path)
            .and_then(|(above, name)| rustix::fs::readlinkat(above, name, Vec::new()));
        Ok(target.map_err(|errno| LayerError::of(errno, path))?.into_bytes())
    }

    /// Returns whether a directory or file has an attribute.
    pub(crate) fn has_attribute(&self, path: &[u8], name: &str) -> bool {
        let Ok((above, last)) = self.place(path) else { return false };
        let place = Path::new("/proc/self/fd").join(above.as_raw_fd().to_string()).join(last);
        // With an empty buffer, the call returns the length of the value.
        rustix::fs::lgetxattr(place, name, &mut [0_u8; 0]).is_ok()
    }

    /// Opens a directory, to change its own attributes.
    pub(crate) fn directory(&self, path: &[u8]) -> rustix::io::Result<OwnedFd> {
        self.resolve(path, OFlags::RDONLY | OFlags::DIRECTORY)
    }
}

/// Looks at a name in a directory; an empty name is the directory itself.
pub(crate) fn look_at(directory: impl AsFd, name: &OsStr) -> rustix::io::Result<Found> {
    let flags = AtFlags::SYMLINK_NOFOLLOW | AtFlags::EMPTY_PATH;
    let wanted = StatxFlags::BASIC_STATS | StatxFlags::BTIME;
    Ok(Found::of(&rustix::fs::statx(directory, name, flags, wanted)?))
}

/// Splits a path into its directory and its name.
pub(crate) fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(at) => (&path[..at], &path[at + 1..]),
        None => (b"", path),
    }
}

/// Joins a directory and a name.
pub(crate) fn join(directory: &[u8], name: &[u8]) -> Vec<u8> {
    if directory.is_empty() { name.to_vec() } else { [directory, b"/", name].concat() }
}
