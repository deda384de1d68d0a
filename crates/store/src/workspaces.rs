//! The default session of each workspace.
//!
//! `.sessions/workspaces/<hash>` names the session of a workspace and key, so that every
//! process finds the same one without a search.

use crate::atomic;
use crate::directory::{Lock, Sessions, StoreError};
use crate::fingerprint::Fingerprint;
use sessile_protocol::SessionId;
use std::path::PathBuf;

/// A workspace's entry in the index, held by one process at a time.
#[derive(Debug)]
pub struct Claim {
    path: PathBuf,
    key: String,
    _lock: Lock,
}

impl Sessions {
    /// Waits for the workspace's entry in the index, and locks it.
    ///
    /// # Errors
    /// When the index cannot be made or locked.
    pub fn claim(&self, key: &str) -> Result<Claim, StoreError> {
        let index = self.subdirectory("workspaces")?;
        let path = index.join(Fingerprint::default().with(key.as_bytes()).text());
        let lock = Lock::wait(&path.with_extension("lock"))?;
        Ok(Claim { path, key: key.to_owned(), _lock: lock })
    }
}

impl Claim {
    /// Returns the workspace's session, as it was last recorded.
    #[must_use]
    pub fn session(&self) -> Option<SessionId> {
        let text = std::fs::read_to_string(&self.path).ok()?;
        let (id, key) = text.split_once('\n')?;
        // Another key may have the same hash: then the later one has the entry.
        (key == self.key).then(|| id.parse().ok())?
    }

    /// # Errors
    /// When it cannot be written.
    pub fn record(&self, session: &SessionId) -> Result<(), StoreError> {
        let text = format!("{session}\n{}", self.key);
        atomic::replace(&self.path, text.as_bytes()).map_err(StoreError::io("write", &self.path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::UserState;

    #[test]
    fn a_workspace_finds_its_session_again() {
        let root = tempfile::tempdir().unwrap();
        let user = UserState::at(root.path().join("state"));
        let sessions = Sessions::at(root.path().join(".sessions"), user);
        let id = SessionId::from_random([7; 12]);
        let claim = sessions.claim("/work\0").unwrap();
        assert_eq!(claim.session(), None);
        claim.record(&id).unwrap();
        drop(claim);
        assert_eq!(sessions.claim("/work\0").unwrap().session(), Some(id));
        assert_eq!(sessions.claim("/other\0").unwrap().session(), None);
    }
}
