//! Copies contents between files: cloned if the file system can, otherwise copied in
//! pieces, and hashed in either case.

use super::digest::Digest;
use rustix::io::Errno;
use std::cell::Cell;
use std::fs::File;
use std::io::{self, Read, Seek, Write};

/// Large enough to make system calls negligible, small enough for any cache.
pub(crate) const PIECE: usize = 128 * 1024;

/// Cloning a smaller file costs more than copying it.
const WORTH_CLONING: u64 = 64 * 1024;

/// Whether files can be cloned between two places: determined once.
#[derive(Debug, Default)]
pub(crate) struct Cloning {
    refused: Cell<bool>,
    pub(crate) cloned: Cell<u64>,
}

impl Cloning {
    /// Makes the empty `to` share the bytes of `from`, if that is possible.
    pub(crate) fn attempt(&self, from: &File, to: &File, size: u64) -> io::Result<bool> {
        if self.refused.get() || size < WORTH_CLONING {
            return Ok(false);
        }
        match rustix::fs::ioctl_ficlone(to, from) {
            Ok(()) => {
                self.cloned.set(self.cloned.get() + 1);
                Ok(true)
            }
            Err(error @ (Errno::NOSPC | Errno::DQUOT | Errno::IO)) => Err(error.into()),
            // Another file system, one without clones, or one that has them but not for
            // these files: copying works for all of them.
            Err(_) => {
                self.refused.set(true);
                Ok(false)
            }
        }
    }
}

/// The side of a copy that failed.
#[derive(Debug)]
pub(crate) enum CopyError {
    Source(io::Error),
    Target(io::Error),
}

/// Copies to the end of `from`, and returns the digest and length. `size` is the expected length.
pub(crate) fn copy(
    from: &mut impl Read,
    to: &mut impl Write,
    size: u64,
) -> Result<(Digest, u64), CopyError> {
    let mut hasher = blake3::Hasher::new();
    // Most files are small, and memory has to be cleared.
    let mut buffer = vec![0; usize::try_from(size).unwrap_or(PIECE).clamp(512, PIECE)];
    let mut length = 0;
    loop {
        let read = match from.read(&mut buffer) {
            Ok(0) => return Ok((hasher.finalize().into(), length)),
            Ok(read) => read,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(CopyError::Source(error)),
        };
        hasher.update(&buffer[..read]);
        to.write_all(&buffer[..read]).map_err(CopyError::Target)?;
        length += read as u64;
    }
}

/// Clones `from` into the new file `to`, or copies at most `size` bytes, so that a growing
/// file ends. Returns the digest and length of `to`.
pub(crate) fn transfer(
    from: &mut File,
    to: &mut File,
    size: u64,
    cloning: &Cloning,
) -> Result<(Digest, u64), CopyError> {
    if cloning.attempt(from, to, size).map_err(CopyError::Target)? {
        // Hash the clone, not the original, which may continue to change.
        to.rewind().map_err(CopyError::Target)?;
        return copy(to, &mut io::sink(), size).map_err(|broken| match broken {
            CopyError::Source(error) | CopyError::Target(error) => CopyError::Target(error),
        });
    }
    copy(&mut from.take(size), to, size)
}

pub(crate) fn hash(from: &mut impl Read, size: u64) -> io::Result<(Digest, u64)> {
    copy(from, &mut io::sink(), size).map_err(|broken| match broken {
        CopyError::Source(error) | CopyError::Target(error) => error,
    })
}
