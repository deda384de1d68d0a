//! Files that belong to a user and not to a workspace.
//!
//! ```text
//! ~/.local/state/sessile/             0700
//!   sessions/sess_…                   a link to the directory of each live session
//!   keepers/sess_…                    a link to its keeper's descriptor of it, which
//!                                     leads to the directory wherever it is moved to
//!   directories/HASH/                 private files of one sessions directory
//!     path                            which one
//!     token, tokens.json, secret      0600
//!     servers/PID.json                its running servers, each with a lock
//!   local.sock, local.lock, local.log the user's own server: see `local`
//!   local/                            the sessions that it makes
//! ```
//!
//! A sessions directory is in a workspace, which people commit, copy and archive. So
//! secrets are kept here instead.

use crate::atomic;
use crate::directory::{Directory, StoreError, make_private_dir};
use crate::fingerprint::Fingerprint;
use crate::metadata::Metadata;
use sessile_protocol::SessionId;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

const SESSIONS: &str = "sessions";
const KEEPERS: &str = "keepers";
/// The usual name of a sessions directory.
const USUAL: &str = ".sessions";

/// The user's state directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UserState {
    root: PathBuf,
}

impl UserState {
    #[must_use]
    pub fn at(root: PathBuf) -> Self {
        Self { root }
    }

    #[must_use]
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the directory for the private files of a sessions directory. The sessions
    /// directory must exist: it is identified by its real path.
    ///
    /// # Errors
    /// When there is no such directory, or its private one cannot be made.
    pub fn private_of(&self, sessions: &Path) -> Result<PathBuf, StoreError> {
        let real = std::fs::canonicalize(sessions).map_err(StoreError::io("open", sessions))?;
        let hash = Fingerprint::default().with(real.as_os_str().as_bytes()).text();
        let private = self.root.join("directories").join(hash);
        make_private_dir(&private)?;
        self.check_owner()?;
        let path = private.join("path");
        if path.symlink_metadata().is_err() {
            let mut text = real.as_os_str().as_bytes().to_vec();
            text.push(b'\n');
            atomic::replace(&path, &text).map_err(StoreError::io("write", &path))?;
        }
        Ok(private)
    }

    /// Makes a live session known to all programs of the user. If this fails, only its own
    /// directory lists the session. `way` is a path that still leads to the directory after
    /// a move.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn register(
        &self,
        id: &SessionId,
        directory: &Path,
        way: Option<&Path>,
    ) -> Result<(), StoreError> {
        self.link(SESSIONS, id, directory)?;
        way.map_or(Ok(()), |way| self.link(KEEPERS, id, way))
    }

    fn link(&self, folder: &str, id: &SessionId, to: &Path) -> Result<(), StoreError> {
        let folder = self.root.join(folder);
        make_private_dir(&folder)?;
        let link = folder.join(id.as_str());
        let _ = std::fs::remove_file(&link);
        std::os::unix::fs::symlink(to, &link).map_err(StoreError::io("write", &link))
    }

    pub fn unregister(&self, id: &SessionId) {
        for folder in [SESSIONS, KEEPERS] {
            let _ = std::fs::remove_file(self.root.join(folder).join(id.as_str()));
        }
    }

    /// Returns the known sessions and their directories. Links to directories without a
    /// session are removed; a session that is being started does not count yet.
    #[must_use]
    pub fn registered(&self) -> Vec<(Directory, Metadata)> {
        let links = std::fs::read_dir(self.root.join(SESSIONS)).into_iter().flatten().flatten();
        let ids = links.filter_map(|link| link.file_name().to_str()?.parse::<SessionId>().ok());
        ids.filter_map(|id| self.registered_as(&id)).collect()
    }

    /// Returns where the files of live sessions are: for sessions directories of the usual name,
    /// these; otherwise the directory of each session.
    #[must_use]
    pub fn places(&self) -> Vec<PathBuf> {
        let links = std::fs::read_dir(self.root.join(SESSIONS)).into_iter().flatten().flatten();
        let directories = links.filter_map(|link| {
            let moved = || {
                let way =
                    std::fs::read_link(self.root.join(KEEPERS).join(link.file_name())).ok()?;
                std::fs::read_link(way).ok()
            };
            let known = std::fs::read_link(link.path()).ok()?;
            if known.is_dir() { Some(known) } else { moved() }
        });
        let mut places: Vec<PathBuf> = directories
            .map(|directory| match directory.parent() {
                Some(parent) if parent.ends_with(USUAL) => parent.to_owned(),
                Some(_) | None => directory,
            })
            .collect();
        places.sort();
        places.dedup();
        places
    }

    /// Returns the user's session with this id, wherever it was started.
    #[must_use]
    pub fn registered_as(&self, id: &SessionId) -> Option<(Directory, Metadata)> {
        let link = |folder: &str| std::fs::read_link(self.root.join(folder).join(id.as_str()));
        let at = |path: PathBuf| {
            let directory = Directory::at(path);
            let metadata = directory.metadata().ok()?;
            (metadata.session_id == *id).then_some((directory, metadata))
        };
        let known = link(SESSIONS).ok()?;
        let is_starting = known.is_dir() && !Directory::at(known.clone()).has_metadata();
        if let Some(found) = at(known) {
            return Some(found);
        }
        if is_starting {
            return None;
        }
        // Moved, or gone. If another process has the pid by now, its descriptor does not
        // lead to this session.
        let moved = link(KEEPERS).and_then(std::fs::read_link).ok().and_then(at);
        match &moved {
            Some((directory, _)) => {
                let _ = self.link(SESSIONS, id, directory.path());
            }
            None => self.unregister(id),
        }
        moved
    }

    /// Checks that the directory is ours and that others cannot change it; otherwise it
    /// keeps no secret.
    pub(crate) fn check_owner(&self) -> Result<(), StoreError> {
        let found =
            std::fs::symlink_metadata(&self.root).map_err(StoreError::io("open", &self.root))?;
        let is_ours = found.uid() == rustix::process::geteuid().as_raw();
        if is_ours && found.mode() & 0o022 == 0 {
            return Ok(());
        }
        let message = "others may change it; `chmod 700` it, or name another in XDG_STATE_HOME";
        let wrong = io::Error::new(io::ErrorKind::PermissionDenied, message);
        Err(StoreError::io("use", &self.root)(wrong))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_session_is_known_where_it_was_moved_to() {
        let root = tempfile::tempdir().unwrap();
        let root = std::fs::canonicalize(root.path()).unwrap();
        let user = UserState::at(root.join("state"));
        let id = SessionId::from_random([7; 12]);
        let (before, after) = (root.join("a").join(id.as_str()), root.join("b").join(id.as_str()));
        std::fs::create_dir_all(&before).unwrap();
        let metadata = serde_json::json!({
            "session_id": id, "command": "bash", "created_at": "2026-01-01T00:00:00Z",
            "last_executed_at": null, "status": "active", "work_dir": "/", "execution_count": 0,
            "language": "bash", "idle_timeout_ms": 0, "command_timeout_ms": 0, "max_history": 1,
            "output_cap": 1,
        });
        user.register(&id, &before, None).unwrap();
        assert!(user.registered_as(&id).is_none(), "it is being started");
        std::fs::write(before.join("metadata.json"), metadata.to_string()).unwrap();
        assert!(user.registered_as(&id).is_some(), "it is not forgotten meanwhile");
        let held = std::fs::File::open(&before).unwrap();
        let way = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&held));
        user.register(&id, &before, Some(Path::new(&way))).unwrap();
        std::fs::rename(root.join("a"), root.join("b")).unwrap();
        // Twice: the first call has corrected the link.
        for _ in 0..2 {
            assert_eq!(user.registered_as(&id).unwrap().0.path(), after);
        }
        std::fs::remove_dir_all(&after).unwrap();
        assert!(user.registered_as(&id).is_none());
        let link = user.root().join("sessions").join(id.as_str());
        assert!(link.symlink_metadata().is_err(), "it is forgotten");
    }

    #[test]
    fn each_sessions_directory_has_a_private_place_elsewhere() {
        let root = tempfile::tempdir().unwrap();
        let user = UserState::at(root.path().join("state/sessile"));
        let (one, other) = (root.path().join("a"), root.path().join("b"));
        assert!(user.private_of(&one).is_err(), "it does not exist yet");
        std::fs::create_dir(&one).unwrap();
        std::fs::create_dir(&other).unwrap();
        std::os::unix::fs::symlink(&one, root.path().join("link")).unwrap();
        let private = user.private_of(&one).unwrap();
        assert_eq!(user.private_of(&root.path().join("link")).unwrap(), private);
        assert_ne!(user.private_of(&other).unwrap(), private);
        assert!(private.starts_with(user.root()));
        let mode = std::fs::metadata(&private).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        let path = std::fs::read_to_string(private.join("path")).unwrap();
        assert_eq!(Path::new(path.trim_end()), std::fs::canonicalize(&one).unwrap());
    }
}
