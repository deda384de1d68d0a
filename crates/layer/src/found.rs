//! The metadata of one name in a tree.

use rustix::fs::{FileType, Statx, StatxFlags};
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    File,
    Directory,
    Link,
    /// A FIFO, a socket or a device.
    Other,
}

/// One side of a change at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    pub kind: Kind,
    /// Permissions.
    pub mode: u32,
    pub size: u64,
}

/// Nanoseconds since 1970.
pub(crate) type Time = i64;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) node: Node,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) changed: Time,
    pub(crate) modified: Time,
    /// Creation time, if the file system has it.
    pub(crate) born: Option<Time>,
    pub(crate) inode: u64,
    /// Number of hard links.
    pub(crate) links: u32,
    pub(crate) is_fifo: bool,
    /// It is a device with which overlayfs marks a deleted name.
    pub(crate) is_whiteout: bool,
}

/// Identifies a version of a real file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Mark {
    inode: u64,
    size: u64,
    mode: u32,
    modified: Time,
    changed: Time,
}

impl Found {
    pub(crate) fn of(stat: &Statx) -> Self {
        let kind = match FileType::from_raw_mode(stat.stx_mode.into()) {
            FileType::RegularFile => Kind::File,
            FileType::Directory => Kind::Directory,
            FileType::Symlink => Kind::Link,
            FileType::Fifo
            | FileType::Socket
            | FileType::CharacterDevice
            | FileType::BlockDevice
            | FileType::Unknown => Kind::Other,
        };
        let time = |seconds: i64, nanos: u32| {
            seconds.saturating_mul(1_000_000_000).saturating_add(nanos.into())
        };
        let tells_birth = StatxFlags::from_bits_retain(stat.stx_mask).contains(StatxFlags::BTIME);
        let is_device = FileType::from_raw_mode(stat.stx_mode.into()) == FileType::CharacterDevice;
        Self {
            node: Node { kind, mode: u32::from(stat.stx_mode) & 0o7777, size: stat.stx_size },
            uid: stat.stx_uid,
            gid: stat.stx_gid,
            changed: time(stat.stx_ctime.tv_sec, stat.stx_ctime.tv_nsec),
            modified: time(stat.stx_mtime.tv_sec, stat.stx_mtime.tv_nsec),
            born: tells_birth.then(|| time(stat.stx_btime.tv_sec, stat.stx_btime.tv_nsec)),
            inode: stat.stx_ino,
            links: stat.stx_nlink,
            is_fifo: FileType::from_raw_mode(stat.stx_mode.into()) == FileType::Fifo,
            is_whiteout: is_device && stat.stx_rdev_major == 0 && stat.stx_rdev_minor == 0,
        }
    }

    pub(crate) fn mark(&self) -> Mark {
        Mark {
            inode: self.inode,
            size: self.node.size,
            mode: self.node.mode,
            modified: self.modified,
            changed: self.changed,
        }
    }

    pub(crate) fn is_directory(&self) -> bool {
        self.node.kind == Kind::Directory
    }
}
