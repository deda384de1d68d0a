//! Takes states of kernels out of a sandbox.
//!
//! Their writer is not trusted: neither with what a name refers to, nor with the content
//! or length of a file.

use super::Sandbox;
use crate::plan::DUMPS;
use rustix::fs::{FileType, Mode, OFlags, ResolveFlags};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

impl Sandbox {
    /// Opens a file in the directory for dumps, and returns it with its length, which is
    /// at most the space that there is inside.
    ///
    /// # Errors
    /// When it does not exist, or is not a regular file in that directory.
    pub fn open_dump(&self, name: &str) -> io::Result<(File, u64)> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
        let file = rustix::fs::openat2(self.dumps()?, name, flags, Mode::empty(), resolve)?;
        let found = rustix::fs::fstat(&file)?;
        if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
            return Err(io::Error::other("it is no file"));
        }
        let length = u64::try_from(found.st_size).unwrap_or(u64::MAX);
        let room = rustix::fs::fstatfs(&file)?;
        let room = room.f_blocks.saturating_mul(u64::try_from(room.f_bsize).unwrap_or(0));
        if length > room {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        Ok((File::from(file), length))
    }

    /// Removes a file from there; does nothing if `name` is not a plain file name.
    pub fn remove_dump(&self, name: &str) {
        if let Ok(dumps) = self.dumps()
            && Path::new(name).file_name() == Some(name.as_ref())
        {
            let _ = rustix::fs::unlinkat(dumps, name, rustix::fs::AtFlags::empty());
        }
    }

    fn dumps(&self) -> io::Result<OwnedFd> {
        self.open(Path::new(DUMPS), libc::O_PATH | libc::O_DIRECTORY)
    }
}
