//! Errors of a depot or a workspace.

use crate::bundle;
use std::io;
use std::path::{Path, PathBuf};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot {action} {}: {source}", path.display())]
    Io { action: &'static str, path: PathBuf, source: io::Error },

    #[error("{} is not a depot and not empty: choose another directory", path.display())]
    NotADepot { path: PathBuf },

    #[error("{} was made by a newer version of sessile: use that", path.display())]
    Newer { path: PathBuf },

    #[error("{} is damaged: {what}", path.display())]
    Damaged { path: PathBuf, what: &'static str },

    #[error("{} is missing from the depot", path.display())]
    Missing { path: PathBuf },

    #[error("the content of {} is missing from the depot, or cut: {}", file.display(), object.display())]
    Incomplete { file: PathBuf, object: PathBuf },

    #[error("{}: with it the snapshot is larger than the limit of {limit} bytes", path.display())]
    TooLarge { path: PathBuf, limit: u64 },

    #[error("the tree has more than {limit} entries")]
    TooMany { limit: u64 },

    #[error("{}: what is here has to go first, but holds files that are to be left alone", path.display())]
    InTheWay { path: PathBuf },

    #[error("{} exists", path.display())]
    Exists { path: PathBuf },

    #[error("the depot is in use: try again")]
    Busy,

    #[error(transparent)]
    Bundle(#[from] bundle::Error),
}

impl Error {
    /// Returns whether there was no room to write: the rest may work after cleaning up.
    #[must_use]
    pub fn is_disk_full(&self) -> bool {
        match self {
            Error::Io { source, .. } => bundle::has_no_room(source),
            Error::Bundle(error) => error.is_disk_full(),
            Error::NotADepot { .. }
            | Error::Newer { .. }
            | Error::Damaged { .. }
            | Error::Missing { .. }
            | Error::Incomplete { .. }
            | Error::TooLarge { .. }
            | Error::TooMany { .. }
            | Error::InTheWay { .. }
            | Error::Exists { .. }
            | Error::Busy => false,
        }
    }
}

/// Adds to an I/O error what was tried with which file.
pub(crate) trait ErrorAt<T> {
    fn error_at(self, action: &'static str, path: impl AsRef<Path>) -> Result<T, Error>;
}

impl<T, E: Into<io::Error>> ErrorAt<T> for Result<T, E> {
    fn error_at(self, action: &'static str, path: impl AsRef<Path>) -> Result<T, Error> {
        self.map_err(|error| Error::Io {
            action,
            path: path.as_ref().to_owned(),
            source: error.into(),
        })
    }
}
