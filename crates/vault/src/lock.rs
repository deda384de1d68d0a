//! One writer at a time in a directory, whose file system has no conditional
//! writes.

use crate::VaultError;
use rustix::fs::{FlockOperation, Mode, OFlags};
use std::os::fd::OwnedFd;
use std::path::Path;

/// Held until it is dropped, or its process is gone.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: OwnedFd,
}

impl Lock {
    /// Waits for whoever has it: they hold it for a rename.
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

/// Makes a session's directory, which its owner alone can enter.
pub(crate) fn make_private(directory: &Path) -> Result<(), VaultError> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)
        .map_err(VaultError::io("make", directory))
}
