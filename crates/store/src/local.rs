//! The user's own server: one for all of the user's programs, on a Unix socket in the
//! user's state directory.

use crate::directory::{Lock, StoreError, make_private_dir};
use crate::user_state::UserState;
use std::path::{Path, PathBuf};

/// The files of the user's own server. Only the user can access the directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalPlace {
    folder: PathBuf,
}

impl UserState {
    /// Returns the place of the user's own server, running or not.
    #[must_use]
    pub fn local(&self) -> LocalPlace {
        LocalPlace { folder: self.root().to_owned() }
    }

    /// Returns the place for a server that is to be started: its directory exists and
    /// belongs only to the user.
    ///
    /// # Errors
    /// When the directory cannot be made, or others may change it.
    pub fn make_local(&self) -> Result<LocalPlace, StoreError> {
        make_private_dir(self.root())?;
        self.check_owner()?;
        Ok(self.local())
    }
}

impl LocalPlace {
    /// Returns the directory of all these files.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the path of its socket.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.folder.join("local.sock")
    }

    /// Returns the directory of its sessions.
    #[must_use]
    pub fn sessions(&self) -> PathBuf {
        self.folder.join("local")
    }

    /// Returns the log of the last server that was started in the background.
    #[must_use]
    pub fn log(&self) -> PathBuf {
        self.folder.join("local.log")
    }

    /// Takes the lock of the one server; `None` while another holds it.
    ///
    /// # Errors
    /// When no lock can be made.
    pub fn hold(&self) -> Result<Option<Lock>, StoreError> {
        Lock::attempt(&self.folder.join("local.lock"))
    }

    /// Waits for a turn at starting one.
    ///
    /// # Errors
    /// When no lock can be made.
    pub fn turn_to_start(&self) -> Result<Lock, StoreError> {
        Lock::wait(&self.folder.join("local.start.lock"))
    }
}
