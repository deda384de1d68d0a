//! A lock for a directory, so that it has one writer at a time: file systems have no
//! conditional writes.

use crate::VaultError;
use rustix::fs::{FlockOperation, Mode, OFlags};
use std::os::fd::OwnedFd;
use std::path::Path;

/// Held until it is dropped, or its process ends.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: OwnedFd,
}

impl Lock {
    /// Waits for the lock. Others hold it for the time of a rename.
    pub(crate) fn wait(directory: &Path) -> Result<Self, VaultError> {
        let path = directory.join(".lock");
        let flags = OFlags::CREATE | OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let file = rustix::fs::open(&path, flags, Mode::from_raw_mode(0o600))
            .map_err(|error| VaultError::io("open", &path)(error.into()))?;
        loop {
            match rustix::fs::flock(&file, FlockOperation::LockExclusive) {
                Ok(()) => return Ok(Self { _file: file }),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(VaultError::io("lock", &path)(error.into())),
            }
        }
    }
}

/// Makes a session's directory, which only its owner can enter.
pub(crate) fn make_private(directory: &Path) -> Result<(), VaultError> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)
        .map_err(VaultError::io("make", directory))
}
