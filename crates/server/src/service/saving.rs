//! Saves sessions to files: one that the caller names, or a download.
//!
//! A download has a name only while the keeper writes it. A caller that goes away
//! meanwhile, or in the middle of reading, leaves nothing behind.

use super::{Caller, ErrorCode, Service, ServiceError, WithContinuity};
use crate::keepers::{ConnectedSession, blocking};
use sessile_protocol::{Answer, Request, SavedView, SessionId};
use sessile_store::Directory;
use std::fs::{File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// How a session is to be saved.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SaveOrder {
    /// Include the files of its directory.
    pub(crate) files: bool,
    /// Wait for unfinished runs, instead of refusing.
    pub(crate) wait: bool,
}

/// A session in a file of the caller's.
#[derive(Debug)]
pub(crate) struct Saved {
    pub(crate) path: PathBuf,
    pub(crate) view: SavedView,
}

/// A session in a file without a name.
#[derive(Debug)]
pub(crate) struct ExportedSession {
    pub(crate) file: File,
    pub(crate) length: u64,
    pub(crate) view: SavedView,
}

impl Service {
    /// Saves to a file in a directory that the caller may use. An existing file is
    /// replaced when the new one is complete.
    pub(crate) async fn save(
        &self,
        caller: &Caller,
        id: &SessionId,
        path: &str,
        order: SaveOrder,
    ) -> Result<WithContinuity<Saved>, ServiceError> {
        self.refuse_if_bound(caller, "a file is written from outside of it")?;
        let mut reached = self.reach(caller, id).await?;
        let path = self.new_path(caller, path.to_owned()).await?;
        let root = self.keepers.sessions().root().to_owned();
        let checked = path.clone();
        blocking(move || check(&checked, &root)).await?;
        let view = save(&mut reached, path.clone(), order).await?;
        Ok(WithContinuity { answer: Saved { path, view }, continuity: reached.continuity.clone() })
    }

    pub(crate) async fn export_session(
        &self,
        caller: &Caller,
        id: &SessionId,
        order: SaveOrder,
    ) -> Result<ExportedSession, ServiceError> {
        let mut reached = self.reach(caller, id).await?;
        let directory = reached.place.directory.clone();
        let place = blocking(move || PrivatePlace::open(&directory)).await?;
        let view = save(&mut reached, place.file(), order).await?;
        blocking(move || {
            let file = File::open(place.file()).map_err(|error| storage(&error))?;
            let length = file.metadata().map_err(|error| storage(&error))?.len();
            place.remove();
            Ok(ExportedSession { file, length, view })
        })
        .await
    }
}

async fn save(
    reached: &mut ConnectedSession,
    path: PathBuf,
    order: SaveOrder,
) -> Result<SavedView, ServiceError> {
    let SaveOrder { files, wait } = order;
    match reached.call(Request::Save { path, files, wait }).await {
        Ok(Answer::Saved(view)) => Ok(*view),
        Ok(_) => Err(ServiceError::unexpected()),
        // The keeper's message is for the command line.
        Err(error) if error.code == ErrorCode::Busy => {
            let message = "a run is going, and its state cannot be saved before it ends";
            Err(ServiceError::new(ErrorCode::Busy, message))
        }
        Err(error) => Err(error),
    }
}

/// Checks that a file may be written there: not over a directory, and not over the files
/// of sessions, including the server's own tokens.
fn check(path: &Path, sessions: &Path) -> Result<(), ServiceError> {
    let sessions = std::fs::canonicalize(sessions);
    if sessions.is_ok_and(|sessions| path.starts_with(sessions)) {
        let message = format!("{} is in the sessions directory", path.display());
        return Err(ServiceError::new(ErrorCode::Forbidden, message));
    }
    if std::fs::symlink_metadata(path).is_ok_and(|found| found.is_dir()) {
        let message = format!("{} is a directory", path.display());
        return Err(ServiceError::new(ErrorCode::BadFile, message).with_hint("name a file in it"));
    }
    Ok(())
}

pub(super) fn storage(error: &io::Error) -> ServiceError {
    let message = format!("the saved session cannot be kept: {error}");
    ServiceError::new(ErrorCode::Storage, message)
}

/// A private directory for one file. Once it is gone, a keeper can no longer put a file there.
#[derive(Debug)]
struct PrivatePlace(Option<PathBuf>);

impl PrivatePlace {
    fn open(directory: &Directory) -> Result<Self, ServiceError> {
        let made = tempfile::Builder::new()
            .prefix("handed-out-")
            .permissions(Permissions::from_mode(0o700))
            .tempdir_in(directory.make_kernels()?);
        Ok(Self(Some(made.map_err(|error| storage(&error))?.keep())))
    }

    fn file(&self) -> PathBuf {
        self.0.as_deref().unwrap_or(Path::new("")).join("session")
    }

    /// Removes it now, on this thread.
    fn remove(mut self) {
        if let Some(path) = self.0.take() {
            remove_all(&path);
        }
    }
}

/// A keeper puts its file there in two steps; each may come between listing and removing.
const ATTEMPTS: usize = 4;

/// A caller has gone away. This runs on a thread that must not block.
impl Drop for PrivatePlace {
    fn drop(&mut self) {
        let Some(path) = self.0.take() else { return };
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn_blocking(move || remove_all(&path))),
            Err(_) => remove_all(&path),
        }
    }
}

fn remove_all(path: &Path) {
    for _ in 0..ATTEMPTS {
        match std::fs::remove_dir_all(path) {
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {}
            Ok(()) | Err(_) => return,
        }
    }
}
