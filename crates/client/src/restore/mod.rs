//! Restores a session from a saved file.
//!
//! The file may come from anywhere. It is checked as a whole, and all its contents are read
//! and checked, before anything is made from it (`document`). Only then are a new directory
//! and files made (`making`). After a failure, they are removed again.
//!
//! Restoring a session runs code from its file. So a file is accepted if it was sealed with
//! the secret of this sessions directory; any other only if the caller says that it is
//! trusted.

mod document;
mod making;
mod moving;

pub(crate) use moving::{DirectoryMapping, Move};

use crate::{ClientError, Launcher, SavedTo};
use document::Document;
pub use document::about_save;
pub(crate) use making::Identity;
use sessile_protocol::LeftBehind;
use sessile_snapshot::{bundle, files};
use sessile_store::{Directory, Manifest, Metadata, Sessions};
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;

/// How to restore a session from a file.
#[derive(Clone, Debug)]
pub struct RestoreOptions {
    pub path: PathBuf,
    /// The directory for the session and its files: empty, or not existing yet. Without it,
    /// the session uses its earlier directory, and its files stay in the save.
    pub cwd: Option<PathBuf>,
    /// Where it may continue when `cwd` is absent.
    pub bounds: Bounds,
    pub trust: Trust,
    /// Maximum size of the file's contents, decompressed, unless the file is our own.
    pub max_size: u64,
    pub name: Option<String>,
    pub owner: Option<String>,
    /// Where the new session is saved in idle time, if it is durable.
    pub durable: Option<SavedTo>,
    /// Maximum number of queued runs, if lower than a keeper's own limit.
    pub max_queue: Option<u64>,
    /// The environment that the new session's kernels start with. It applies to variables
    /// that the session had not changed.
    pub environment: BTreeMap<String, String>,
}

/// The directories that a session may continue in, if it was there.
#[derive(Clone, Debug)]
pub struct Bounds {
    /// Canonical; subdirectories are included.
    pub roots: Vec<PathBuf>,
    /// Where it continues if it was elsewhere, or its directory is gone.
    pub otherwise: PathBuf,
}

/// Which files are accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Files that were saved from this sessions directory.
    Own,
    /// This file, wherever it is from.
    Given,
}

/// A restored session.
#[derive(Debug)]
pub struct RestoredSession {
    pub directory: Directory,
    pub metadata: Metadata,
    pub manifest: Manifest,
    /// What was not carried, in addition to what the file lists.
    pub left: Vec<LeftBehind>,
    /// Whether the files were put into the working directory.
    pub has_files: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    #[error("cannot open {}: {source}", path.display())]
    Open { path: PathBuf, source: io::Error },
    #[error("{} is not a file", path.display())]
    NotAFile { path: PathBuf },
    #[error(transparent)]
    Bundle(#[from] bundle::Error),
    #[error(
        "the file was saved by a newer sessile (its sessions have format {format}): update this one"
    )]
    Newer { format: u32 },
    #[error("the file is damaged: {0}")]
    Damaged(String),
    #[error(
        "the file was not saved from this sessions directory, and restoring it runs code that is in it; add --trust if you trust whoever made it"
    )]
    Untrusted,
    #[error("the files cannot be put into {}: {why}", path.display())]
    Directory { path: PathBuf, why: String },
    #[error("the session's files cannot be written: {0}")]
    Write(#[from] io::Error),
    #[error(transparent)]
    Files(#[from] files::Error),
    #[error("the session cannot be taken up from its store: {0}")]
    Store(String),
    #[error(transparent)]
    Client(#[from] ClientError),
}

/// The kind of obstacle to restoring a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// The file is damaged, or not a saved session.
    File,
    /// The file is too large.
    Size,
    Trust,
    /// The directory that was given for the session.
    Directory,
    /// Another problem of this machine.
    Machine,
}

impl RestoreError {
    #[must_use]
    pub fn obstacle(&self) -> Obstacle {
        match self {
            Self::Open { .. } | Self::NotAFile { .. } | Self::Newer { .. } | Self::Damaged(_) => {
                Obstacle::File
            }
            Self::Bundle(error) | Self::Files(files::Error::Bundle(error)) => of_bundle(error),
            Self::Untrusted => Obstacle::Trust,
            Self::Directory { .. } => Obstacle::Directory,
            Self::Files(files::Error::TooLarge { .. } | files::Error::TooMany { .. }) => {
                Obstacle::Size
            }
            Self::Files(
                files::Error::Damaged { .. }
                | files::Error::Missing { .. }
                | files::Error::Incomplete { .. },
            ) => Obstacle::File,
            Self::Files(
                files::Error::Io { .. }
                | files::Error::NotADepot { .. }
                | files::Error::Newer { .. }
                | files::Error::InTheWay { .. }
                | files::Error::Exists { .. }
                | files::Error::Busy,
            )
            | Self::Write(_)
            | Self::Store(_)
            | Self::Client(_) => Obstacle::Machine,
        }
    }
}

fn of_bundle(error: &bundle::Error) -> Obstacle {
    match error {
        bundle::Error::NotABundle
        | bundle::Error::Newer { .. }
        | bundle::Error::Truncated
        | bundle::Error::Damaged(_)
        | bundle::Error::NoSuchPart(_)
        | bundle::Error::BadName(_)
        | bundle::Error::WrongLength { .. } => Obstacle::File,
        bundle::Error::TooLarge { .. } => Obstacle::Size,
        bundle::Error::Io { .. }
        | bundle::Error::Read(_)
        | bundle::Error::Write(_)
        | bundle::Error::Source { .. } => Obstacle::Machine,
    }
}

impl From<sessile_store::StoreError> for RestoreError {
    fn from(error: sessile_store::StoreError) -> Self {
        Self::Client(error.into())
    }
}

impl Launcher {
    /// Restores a session from a save. If that fails, nothing of it is left.
    ///
    /// # Errors
    /// When the file is damaged or not trusted, or the session cannot be made or started.
    pub fn restore(
        &self,
        sessions: &Sessions,
        restoring: &RestoreOptions,
    ) -> Result<RestoredSession, RestoreError> {
        let document = Document::open(sessions, restoring)?;
        making::make(self, sessions, restoring, document, Identity::New)
    }

    /// Makes a new session in a sandbox, with the kernels of a saved one.
    pub(crate) fn restore_into(
        &self,
        sessions: &Sessions,
        restoring: &RestoreOptions,
        metadata: Metadata,
    ) -> Result<(Directory, Metadata), RestoreError> {
        let document = Document::open(sessions, restoring)?;
        making::make_new(self, sessions, document, metadata)
    }

    /// Restores a session under the given identity.
    pub(crate) fn restore_as(
        &self,
        sessions: &Sessions,
        restoring: &RestoreOptions,
        identity: Identity,
    ) -> Result<RestoredSession, RestoreError> {
        let document = Document::open(sessions, restoring)?;
        if let Identity::Same { id, .. } = &identity
            && document.manifest.session_id != *id
        {
            let message = format!("it is a save of {}", document.manifest.session_id);
            return Err(RestoreError::Damaged(message));
        }
        making::make(self, sessions, restoring, document, identity)
    }
}
