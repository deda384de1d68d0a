//! States of kernels on their way out of a sandbox.
//!
//! Whoever wrote them is not trusted: neither with what a name stands for, nor
//! with what is in a file or how long it is.

use super::Sandbox;
use crate::plan::DUMPS;
use rustix::fs::{FileType, Mode, OFlags, ResolveFlags};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

impl Sandbox {
    /// Opens a file that was left in the directory for dumps: with its length,
    /// which is not more than what there is room for in there.
    ///
    /// # Errors
    /// When there is no such file: what is no file, or a way to one, is none.
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

    /// Removes a name from there, if that is what it is.
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
