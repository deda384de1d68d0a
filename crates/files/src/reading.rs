//! Reads files.

use crate::entry::{Entry, Kind};
use crate::path::RelativePath;
use crate::root::{Links, Root};
use crate::{FileError, Result};
use rustix::fs::OFlags;
use std::fs::File;

/// A file that is open for reading, and its metadata at that time.
#[derive(Debug)]
pub struct Content {
    pub file: File,
    pub entry: Entry,
}

impl Root {
    /// Opens a regular file for reading. Nothing else is opened: a FIFO would wait for a
    /// writer, and opening a device may have side effects.
    ///
    /// # Errors
    /// When it is not a file, or cannot be read.
    pub fn read(&self, path: &RelativePath) -> Result<Content> {
        let found = self.at(path, OFlags::PATH, Links::Followed)?;
        let stat = rustix::fs::fstat(&found).map_err(|errno| FileError::of(errno, path))?;
        let entry = Entry::of(path.clone(), &stat);
        match entry.kind {
            Kind::File => {}
            Kind::Directory => return Err(FileError::IsADirectory(path.to_string())),
            Kind::Symlink | Kind::Other => return Err(FileError::NotAFile(path.to_string())),
        }
        let file = Self::reopen(&found, OFlags::RDONLY | OFlags::NONBLOCK, path)?;
        Ok(Content { file, entry })
    }
}
