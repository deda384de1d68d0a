//! A secret of a sessions directory, which authenticates the files saved from it.

use crate::atomic;
use crate::directory::{Sessions, StoreError};
use std::io;
use std::os::unix::fs::MetadataExt;

const SECRET: &str = "secret";

impl Sessions {
    /// Returns the secret of this directory's sessions, made on first use.
    ///
    /// # Errors
    /// When it cannot be read or made.
    pub fn secret(&self) -> Result<[u8; 32], StoreError> {
        let path = self.private()?.join(SECRET);
        loop {
            if let Some(secret) = self.known_secret()? {
                return Ok(secret);
            }
            let mut secret = [0; 32];
            rustix::rand::getrandom(&mut secret, rustix::rand::GetRandomFlags::empty())
                .map_err(|e| StoreError::io("make", &path)(e.into()))?;
            atomic::create_whole(&path, &secret).map_err(StoreError::io("write", &path))?;
        }
    }

    /// Returns the secret, if it exists.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn known_secret(&self) -> Result<Option<[u8; 32]>, StoreError> {
        if !self.root().is_dir() {
            return Ok(None);
        }
        let path = self.private()?.join(SECRET);
        let found = match std::fs::symlink_metadata(&path) {
            Ok(found) => found,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(StoreError::io("read", &path)(error)),
        };
        // A file that others can read is not a secret.
        if found.mode() & 0o077 != 0 || found.uid() != rustix::process::geteuid().as_raw() {
            let wrong = io::Error::new(io::ErrorKind::InvalidData, "it is not private; remove it");
            return Err(StoreError::io("use", &path)(wrong));
        }
        let bytes = std::fs::read(&path).map_err(StoreError::io("read", &path))?;
        let secret = bytes.try_into().map_err(|_| {
            let wrong = io::Error::new(io::ErrorKind::InvalidData, "it has not 32 bytes");
            StoreError::io("use", &path)(wrong)
        })?;
        Ok(Some(secret))
    }
}
