//! Restores sessions from files.
//!
//! An upload is written to a file without a name, so that nothing is left of it, whatever
//! happens. The new session is in a directory that the caller may use. Its content then
//! runs as the user of the server, like everything that a caller runs.

use super::saving::storage;
use super::{Caller, ErrorCode, Service, ServiceError, admission};
use crate::keepers::{Place, blocking};
use sessile_client::{
    Bounds, ContinueOptions, Obstacle, RestoreError, RestoreOptions, RestoredSession, Trust,
};
use sessile_protocol::SessionId;
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::io::AsyncWriteExt;

/// How a session is to be restored.
#[derive(Debug)]
pub(crate) struct RestoreOrder {
    pub(crate) trust: Trust,
    pub(crate) cwd: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) durable: Option<bool>,
}

/// The source of the saved session.
#[derive(Debug)]
pub(crate) enum Source {
    Upload(Upload),
    /// A file without a name.
    File(File),
    /// A file in a directory that the caller may use.
    Path(String),
}

/// An upload in progress.
#[derive(Debug)]
pub(crate) struct Upload {
    file: tokio::fs::File,
    written: u64,
    limit: u64,
}

impl Upload {
    pub(crate) async fn write(&mut self, bytes: &[u8]) -> Result<(), ServiceError> {
        self.written += bytes.len() as u64;
        if self.written > self.limit {
            return Err(too_large(self.limit));
        }
        self.file.write_all(bytes).await.map_err(|error| storage(&error))
    }

    /// Returns the complete upload.
    pub(crate) async fn into_file(mut self) -> Result<File, ServiceError> {
        self.file.flush().await.map_err(|error| storage(&error))?;
        Ok(self.file.into_std().await)
    }
}

pub(crate) fn too_large(limit: u64) -> ServiceError {
    let message = format!("the file holds more than the {limit} bytes that this server restores");
    let hint = "have whoever runs the server raise max-restored";
    ServiceError::new(ErrorCode::TooLarge, message).with_hint(hint)
}

impl Service {
    /// Fails if the server's configuration forbids restoring.
    pub(crate) fn check_restoring(&self) -> Result<(), ServiceError> {
        if self.limits.restored > 0 {
            return Ok(());
        }
        let message = "this server restores no sessions: its max-restored is 0";
        let hint = "ask whoever runs the server";
        Err(ServiceError::new(ErrorCode::Forbidden, message).with_hint(hint))
    }

    pub(crate) async fn begin_upload(&self) -> Result<Upload, ServiceError> {
        let sessions = self.keepers.sessions().clone();
        let file = blocking(move || {
            sessions.make()?;
            tempfile::tempfile_in(sessions.root()).map_err(|error| storage(&error))
        })
        .await?;
        let file = tokio::fs::File::from_std(file);
        Ok(Upload { file, written: 0, limit: self.limits.restored })
    }

    pub(crate) async fn restore(
        &self,
        caller: &Caller,
        source: Source,
        order: RestoreOrder,
    ) -> Result<RestoredSession, ServiceError> {
        self.check_restoring()?;
        // Files are restored from outside the sandbox, and the saved policy is its own.
        self.refuse_if_bound(caller, "a saved session is restored without one")?;
        if let Some(name) = &order.name {
            sessile_store::check_name(name)?;
        }
        let cwd = match &order.cwd {
            Some(given) => {
                let given = given.clone();
                let look =
                    move |roots: &[PathBuf], caller: &Caller| new_or_known(&given, roots, caller);
                Some(self.admit(caller, look).await?)
            }
            None => None,
        };
        let (path, upload) = match source {
            Source::Path(given) => {
                let look =
                    move |roots: &[PathBuf], caller: &Caller| readable(&given, roots, caller);
                (self.admit(caller, look).await?, None)
            }
            Source::Upload(upload) => {
                let file = upload.into_file().await?;
                (PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd())), Some(file))
            }
            Source::File(file) => {
                (PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd())), Some(file))
            }
        };
        let restoring = RestoreOptions {
            path,
            cwd,
            bounds: self.admit(caller, bounds).await?,
            trust: order.trust,
            max_size: self.limits.restored,
            name: order.name,
            owner: caller.token.clone(),
            durable: self.defaults.durability(order.durable),
            max_queue: Some(self.limits.queue),
            environment: self.defaults.environment.clone(),
        };
        self.make(caller, restoring, upload).await
    }

    /// Continues a durable session of another machine here, if it is in the store.
    /// Returns whether it does.
    ///
    /// The store does not say who may use it there. So callers that are limited to some
    /// directories do not get it.
    pub(super) async fn take_up(
        &self,
        caller: &Caller,
        id: &SessionId,
    ) -> Result<bool, ServiceError> {
        if caller.workspaces.is_some()
            || caller.moved == admission::IfMoved::Leave
            || self.bound(caller).is_some()
            || !self.keepers.launcher().has_store()
        {
            return Ok(false);
        }
        let _reservation = self.admit_sessions(caller.token.as_deref(), 1).await?;
        let going_on = ContinueOptions {
            bounds: self.admit(caller, bounds).await?,
            environment: self.defaults.environment.clone(),
            owner: caller.token.clone(),
            max_queue: Some(self.limits.queue),
        };
        let (sessions, launcher) =
            (self.keepers.sessions().clone(), self.keepers.launcher().clone());
        let (wanted, limit) = (id.clone(), self.limits.restored);
        let taken = blocking(move || {
            let taken = launcher.take_up(&sessions, &wanted, going_on);
            taken.map_err(|error| refusal(error, limit))
        })
        .await?;
        let Some(taken) = taken else {
            // Another call may just have done it.
            return Ok(self.keepers.knows(id));
        };
        self.live.fetch_add(1, Ordering::Relaxed);
        self.keepers.taken_up(&taken).await?;
        Ok(true)
    }

    async fn make(
        &self,
        caller: &Caller,
        restoring: RestoreOptions,
        upload: Option<File>,
    ) -> Result<RestoredSession, ServiceError> {
        let _reservation = self.admit_sessions(caller.token.as_deref(), 1).await?;
        let (sessions, launcher) =
            (self.keepers.sessions().clone(), self.keepers.launcher().clone());
        let (restored, place) = blocking(move || {
            let restored = launcher.restore(&sessions, &restoring);
            drop(upload);
            let restored = restored.map_err(|error| refusal(error, restoring.max_size))?;
            let place = Place::new(&sessions, restored.directory.clone(), &restored.metadata);
            Ok((restored, place))
        })
        .await?;
        self.live.fetch_add(1, Ordering::Relaxed);
        self.keepers.admit(&Arc::new(place));
        Ok(restored)
    }
}

/// Resolves a directory that exists, or that can be made in an existing one.
fn new_or_known(given: &str, roots: &[PathBuf], caller: &Caller) -> Result<PathBuf, ServiceError> {
    let unknown = match admission::directory(Some(given), roots, caller) {
        Err(error) if error.code == ErrorCode::BadDirectory => error,
        outcome => return outcome,
    };
    let path = admission::new_path(given.trim_end_matches('/'), roots, caller)?;
    match std::fs::symlink_metadata(&path) {
        Ok(_) => Err(unknown),
        Err(_) => Ok(path),
    }
}

fn readable(given: &str, roots: &[PathBuf], caller: &Caller) -> Result<PathBuf, ServiceError> {
    let path = admission::new_path(given, roots, caller)?;
    let missing = || {
        let message = format!("{given} is not a file");
        ServiceError::new(ErrorCode::BadFile, message)
    };
    // A link is not followed: it could lead out.
    let found = std::fs::symlink_metadata(&path).map_err(|_| missing())?;
    if found.is_file() { Ok(path) } else { Err(missing()) }
}

/// Returns the limits for a session that is restored to its old directory.
fn bounds(roots: &[PathBuf], caller: &Caller) -> Result<Bounds, ServiceError> {
    let otherwise = admission::directory(None, roots, caller)?;
    let roots = match &caller.workspaces {
        Some(workspaces) => admission::common(roots, workspaces),
        None => roots.to_vec(),
    };
    Ok(Bounds { roots, otherwise })
}

pub(super) fn refusal(error: RestoreError, limit: u64) -> ServiceError {
    if let RestoreError::Client(error) = error {
        return error.into();
    }
    let code = match error.obstacle() {
        Obstacle::File => ErrorCode::BadFile,
        Obstacle::Size => return too_large(limit),
        Obstacle::Trust => {
            let message = "the file was not saved from this server's sessions directory, and restoring it runs code that is in it; ask with trust if you trust whoever made it";
            return ServiceError::new(ErrorCode::Untrusted, message);
        }
        Obstacle::Directory => ErrorCode::BadDirectory,
        Obstacle::Machine => ErrorCode::Storage,
    };
    ServiceError::new(code, error.to_string())
}
