//! A session from a saved file.
//!
//! The file may come from anywhere. It is checked as a whole, and all that it
//! says is read and checked, before anything is made of it (`document`); only
//! then there is a new directory, and files (`making`). Whatever fails takes
//! away again what was made.
//!
//! To go on with a session is to run what is in its file. So a file is taken
//! that was sealed with the secret of this sessions directory, and any other
//! only if the caller says that it is to be trusted.

mod document;
mod making;
mod moving;

pub(crate) use moving::{Move, Place};

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

/// How a session is to be made of a file.
#[derive(Clone, Debug)]
pub struct Restoring {
    pub path: PathBuf,
    /// Where it is to be, with its files: empty, or not there yet. Without it,
    /// the session is where it was, and its files stay in the file.
    pub cwd: Option<PathBuf>,
    /// Where it may go on when `cwd` is absent.
    pub bounds: Bounds,
    pub trust: Trust,
    /// Bytes that the file may hold, decompressed, unless it is one's own.
    pub max_size: u64,
    pub name: Option<String>,
    pub owner: Option<String>,
    /// Whether the new session is saved in idle time.
    pub durable: Option<SavedTo>,
    /// Runs that may wait in it, if fewer than a keeper allows by itself.
    pub max_queue: Option<u64>,
    /// The environment that the new session's kernels begin with. What was not
    /// changed in the session is as it is here.
    pub environment: BTreeMap<String, String>,
}

/// The directories that a session may go on in if it was there.
#[derive(Clone, Debug)]
pub struct Bounds {
    /// Canonical; also what is below them.
    pub roots: Vec<PathBuf>,
    /// Where it goes on if it was elsewhere, or that is gone.
    pub otherwise: PathBuf,
}

/// Whose files are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// Those that were saved from this sessions directory.
    Own,
    /// This one, wherever it is from.
    Given,
}

/// A session that goes on.
#[derive(Debug)]
pub struct RestoredSession {
    pub directory: Directory,
    pub metadata: Metadata,
    pub manifest: Manifest,
    /// What was not carried here, beyond what the file says it has not.
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

/// What it is that stands in the way of restoring a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// The file is damaged, or no saved session.
    File,
    /// It holds too much.
    Size,
    Trust,
    /// The directory that was named for it.
    Directory,
    /// Something else, of this machine.
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
    /// Makes a session of a saved one; when that fails, nothing of it is left.
    ///
    /// # Errors
    /// When the file is damaged or not trusted, or the session cannot be made
    /// or started.
    pub fn restore(
        &self,
        sessions: &Sessions,
        restoring: &Restoring,
    ) -> Result<RestoredSession, RestoreError> {
        let document = Document::open(sessions, restoring)?;
        making::make(self, sessions, restoring, document, Identity::New)
    }

    /// A new session in a sandbox, with the kernels of a saved one.
    pub(crate) fn restore_into(
        &self,
        sessions: &Sessions,
        restoring: &Restoring,
        metadata: Metadata,
    ) -> Result<(Directory, Metadata), RestoreError> {
        let document = Document::open(sessions, restoring)?;
        making::make_new(self, sessions, document, metadata)
    }

    /// The same under the id that it had.
    pub(crate) fn restore_as(
        &self,
        sessions: &Sessions,
        restoring: &Restoring,
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
