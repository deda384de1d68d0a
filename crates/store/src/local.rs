//! Where the user's own server is: one for all of the user's programs, on a Unix
//! socket below the user's directory for state.

use crate::directory::{Lock, StoreError, make_private_dir};
use crate::user_state::UserState;
use std::path::{Path, PathBuf};

/// The files of the user's own server. The directory is the user's alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LocalPlace {
    folder: PathBuf,
}

impl UserState {
    /// Where the user's own server is, whether one is running or not.
    #[must_use]
    pub fn local(&self) -> LocalPlace {
        LocalPlace { folder: self.root().to_owned() }
    }

    /// The same for one that is to be started: its directory is there and nobody
    /// else's.
    ///
    /// # Errors
    /// When it cannot be made, or others may change it.
    pub fn make_local(&self) -> Result<LocalPlace, StoreError> {
        make_private_dir(self.root())?;
        self.check_owner()?;
        Ok(self.local())
    }
}

impl LocalPlace {
    /// The directory that all of it lies in.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where it listens.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.folder.join("local.sock")
    }

    /// The sessions that it makes.
    #[must_use]
    pub fn sessions(&self) -> PathBuf {
        self.folder.join("local")
    }

    /// What the last one that was started in the background has logged.
    #[must_use]
    pub fn log(&self) -> PathBuf {
        self.folder.join("local.log")
    }

    /// The place of the one server; `None` while another has it.
    ///
    /// # Errors
    /// When there is no lock to be had at all.
    pub fn hold(&self) -> Result<Option<Lock>, StoreError> {
        Lock::attempt(&self.folder.join("local.lock"))
    }

    /// Waits for a turn at starting one.
    ///
    /// # Errors
    /// When there is no lock to be had at all.
    pub fn turn_to_start(&self) -> Result<Lock, StoreError> {
        Lock::wait(&self.folder.join("local.start.lock"))
    }
}
