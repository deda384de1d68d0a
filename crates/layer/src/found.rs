//! What is known of one name in a tree.

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

/// What a path is on one side of a change.
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
    /// When it came into being, where the file system tells.
    pub(crate) born: Option<Time>,
    pub(crate) inode: u64,
    /// Names that it has.
    pub(crate) links: u32,
    pub(crate) is_fifo: bool,
    /// Overlayfs says with such a device that a name is gone.
    pub(crate) is_whiteout: bool,
}

/// By what it is known that a file of the real directory is as it was.
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
