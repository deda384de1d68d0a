//! The metadata of one name in a directory.

use crate::path::RelativePath;
use rustix::fs::{FileType, Stat};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    File,
    Directory,
    Symlink,
    /// A FIFO, a socket or a device.
    Other,
}

#[derive(Clone, Debug)]
pub struct Entry {
    pub path: RelativePath,
    pub kind: Kind,
    pub size: u64,
    /// Permissions, including setuid and similar bits.
    pub mode: u32,
    /// Seconds since 1970, and nanoseconds.
    pub modified: (i64, u32),
    /// The target of a link.
    pub target: Option<Vec<u8>>,
    inode: u64,
}

impl Entry {
    pub(crate) fn of(path: RelativePath, stat: &Stat) -> Self {
        let kind = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Kind::File,
            FileType::Directory => Kind::Directory,
            FileType::Symlink => Kind::Symlink,
            FileType::Fifo
            | FileType::Socket
            | FileType::CharacterDevice
            | FileType::BlockDevice
            | FileType::Unknown => Kind::Other,
        };
        Self {
            path,
            kind,
            size: u64::try_from(stat.st_size).unwrap_or_default(),
            mode: stat.st_mode & 0o7777,
            modified: (stat.st_mtime, u32::try_from(stat.st_mtime_nsec).unwrap_or_default()),
            target: None,
            inode: stat.st_ino,
        }
    }

    pub(crate) fn leading_to(self, target: Vec<u8>) -> Self {
        Self { target: Some(target), ..self }
    }

    /// Returns a tag that differs if the file is another one or was changed.
    #[must_use]
    pub fn tag(&self) -> String {
        let (seconds, nanos) = self.modified;
        format!("{:x}-{seconds:x}.{nanos:x}-{:x}", self.inode, self.size)
    }
}
