//! What belongs to a user and not to a workspace.
//!
//! ```text
//! ~/.local/state/sessile/             0700
//!   sessions/sess_…                   a link to the directory of each live session
//!   directories/HASH/                 what one sessions directory keeps to itself
//!     path                            which one
//!     token, tokens.json, secret      0600
//!     servers/PID.json                its running servers, each with a lock
//! ```
//!
//! A sessions directory lies in a workspace, which people commit, copy and
//! archive. Secrets are kept here instead, where none of that reaches them.

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

/// The user's directory for state.
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

    /// Where what a sessions directory keeps to itself is. The sessions
    /// directory must exist: it is known by its real path.
    ///
    /// # Errors
    /// When there is no such directory, or none can be made for it.
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

    /// Makes a live session known to all of the user's programs. Whoever cannot
    /// has a session that only its own directory tells of.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn register(&self, id: &SessionId, directory: &Path) -> Result<(), StoreError> {
        let folder = self.root.join(SESSIONS);
        make_private_dir(&folder)?;
        let link = folder.join(id.as_str());
        let _ = std::fs::remove_file(&link);
        std::os::unix::fs::symlink(directory, &link).map_err(StoreError::io("write", &link))
    }

    pub fn unregister(&self, id: &SessionId) {
        let _ = std::fs::remove_file(self.root.join(SESSIONS).join(id.as_str()));
    }

    /// The sessions that are known, and their directories. What is no session any
    /// more is forgotten.
    #[must_use]
    pub fn registered(&self) -> Vec<(Directory, Metadata)> {
        let links = std::fs::read_dir(self.root.join(SESSIONS)).into_iter().flatten().flatten();
        let ids = links.filter_map(|link| link.file_name().to_str()?.parse::<SessionId>().ok());
        ids.filter_map(|id| self.registered_as(&id)).collect()
    }

    /// The user's session of this id, wherever it was started.
    #[must_use]
    pub fn registered_as(&self, id: &SessionId) -> Option<(Directory, Metadata)> {
        let path = std::fs::read_link(self.root.join(SESSIONS).join(id.as_str())).ok()?;
        let directory = Directory::at(path);
        let metadata = directory.metadata().ok().filter(|metadata| metadata.session_id == *id);
        if metadata.is_none() {
            self.unregister(id);
        }
        Some((directory, metadata?))
    }

    /// Somebody else's directory, or one that others may change, keeps no secret.
    fn check_owner(&self) -> Result<(), StoreError> {
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
