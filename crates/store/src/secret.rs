//! A secret of a sessions directory, by which files that were saved from it are
//! known.

use crate::atomic;
use crate::directory::{Sessions, StoreError};
use std::io;
use std::os::unix::fs::MetadataExt;

const SECRET: &str = "secret";

impl Sessions {
    /// A secret of all sessions in this directory, made when it is first asked
    /// for.
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

    /// That secret, if there is one already.
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
        // One that others can read is nobody's secret.
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
