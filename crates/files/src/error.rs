//! Errors, in the caller's terms.

use crate::path::RelativePath;
use rustix::io::Errno;
use std::io;

#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error("{0} is outside the workspace, or a link that leads out of it")]
    Outside(String),
    #[error("{0:?} is no path in the workspace: {1}")]
    BadPath(String, &'static str),
    #[error("there is no {0}")]
    NotFound(String),
    #[error("{0} already exists")]
    Exists(String),
    #[error("{0} is not a directory")]
    NotADirectory(String),
    #[error("{0} is a directory")]
    IsADirectory(String),
    #[error("{0} is neither a file nor a directory")]
    NotAFile(String),
    #[error("{0} is not empty; use recursive to remove it with its contents")]
    NotEmpty(String),
    #[error("{0}: permission denied")]
    Denied(String),
    #[error("there is no room for {0} on the disk")]
    NoRoom(String),
    #[error("{0} has too many directories to watch, or the system allows no more watches")]
    TooManyWatches(String),
    #[error("the archive cannot be unpacked: {0}")]
    BadArchive(String),
    #[error("{path}: {source}")]
    Io { path: String, source: io::Error },
}

impl FileError {
    /// Converts an error of the system for a path.
    pub(crate) fn of(errno: Errno, path: &RelativePath) -> Self {
        let shown = path.to_string();
        match errno {
            Errno::XDEV => Self::Outside(shown),
            Errno::NOENT => Self::NotFound(shown),
            Errno::EXIST => Self::Exists(shown),
            Errno::NOTDIR => Self::NotADirectory(shown),
            Errno::ISDIR => Self::IsADirectory(shown),
            Errno::NOTEMPTY => Self::NotEmpty(shown),
            Errno::ACCESS | Errno::PERM | Errno::ROFS => Self::Denied(shown),
            Errno::NOSPC | Errno::DQUOT | Errno::FBIG => Self::NoRoom(shown),
            Errno::LOOP => Self::BadPath(shown, "it is a link that leads nowhere"),
            Errno::NAMETOOLONG => Self::BadPath(shown, "it is too long"),
            other => Self::Io { path: shown, source: other.into() },
        }
    }

    /// Converts an error of the standard library.
    pub(crate) fn io(error: io::Error, path: &RelativePath) -> Self {
        match Errno::from_io_error(&error) {
            Some(errno) => Self::of(errno, path),
            None => Self::Io { path: path.to_string(), source: error },
        }
    }
}
