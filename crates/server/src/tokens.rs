//! Who may call: tokens in the sessions directory.
//!
//! `token` is the owner's, made on first start, in plain text and private, for
//! programs on the same machine to pick up. `tokens.json` has the others, of
//! which only digests are kept.

use crate::service::{Caller, ErrorCode, ServiceError};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;
use subtle::ConstantTimeEq;

/// A further token, as it is kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grant {
    pub name: String,
    /// SHA-256 of the token, in hex.
    digest: String,
    /// Directories that it is limited to; none: all that the server allows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspaces: Option<Vec<PathBuf>>,
    pub created_at: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
}

#[derive(Debug)]
pub struct Tokens {
    root: PathBuf,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    owner: Option<[u8; 32]>,
    grants: Vec<Grant>,
    as_of: [Option<SystemTime>; 2],
}

impl Tokens {
    /// The tokens of a sessions directory.
    #[must_use]
    pub fn at(root: &Path) -> Self {
        Self { root: root.to_owned(), known: Mutex::default() }
    }

    /// Where the owner's token is.
    #[must_use]
    pub fn owner_file(&self) -> PathBuf {
        self.root.join("token")
    }

    fn grants_file(&self) -> PathBuf {
        self.root.join("tokens.json")
    }

    /// The owner's token, made if there is none.
    ///
    /// # Errors
    /// When the file cannot be read or made.
    pub fn owner(&self) -> io::Result<String> {
        if let Ok(text) = fs::read_to_string(self.owner_file())
            && !text.trim().is_empty()
        {
            return Ok(text.trim().to_owned());
        }
        let token = new_token()?;
        write_private(&self.owner_file(), token.as_bytes())?;
        Ok(token)
    }

    /// Makes a token; it is shown once, here.
    ///
    /// # Errors
    /// When there is one of that name, or the file cannot be written.
    pub fn create(
        &self,
        name: &str,
        workspaces: Option<Vec<PathBuf>>,
        expires_at: Option<Timestamp>,
    ) -> io::Result<String> {
        let mut grants = self.list();
        if grants.iter().any(|grant| grant.name == name) {
            let message = format!("there is a token {name:?} already; revoke it first");
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, message));
        }
        let token = new_token()?;
        grants.push(Grant {
            name: name.to_owned(),
            digest: hex(&digest(&token)),
            workspaces,
            created_at: sessile_store::timestamp(),
            expires_at,
        });
        self.write(&grants)?;
        Ok(token)
    }

    /// Whether there was one of that name.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn revoke(&self, name: &str) -> io::Result<bool> {
        let mut grants = self.list();
        let before = grants.len();
        grants.retain(|grant| grant.name != name);
        self.write(&grants)?;
        Ok(grants.len() < before)
    }

    #[must_use]
    pub fn list(&self) -> Vec<Grant> {
        let text = fs::read(self.grants_file()).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }

    fn write(&self, grants: &[Grant]) -> io::Result<()> {
        write_private(&self.grants_file(), &serde_json::to_vec_pretty(grants)?)
    }

    /// Who has this token. Every token is compared, in constant time, so that
    /// the answer's time tells nothing about any of them.
    pub(crate) fn caller(&self, token: &str, now: Timestamp) -> Result<Caller, ServiceError> {
        let given = digest(token);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        self.refresh(&mut known);
        let mut found = None;
        for grant in &known.grants {
            let expected = unhex(&grant.digest).unwrap_or_default();
            if bool::from(expected.ct_eq(&given)) {
                found = Some(grant.clone());
            }
        }
        let is_owner = known.owner.is_some_and(|owner| bool::from(owner.ct_eq(&given)));
        if is_owner {
            return Ok(Caller::owner());
        }
        match found {
            Some(grant) if grant.expires_at.is_some_and(|end| end <= now) => {
                let message = format!("the token {:?} has expired", grant.name);
                Err(ServiceError::new(ErrorCode::Unauthorized, message))
            }
            Some(grant) => Ok(Caller { token: Some(grant.name), workspaces: grant.workspaces }),
            None => Err(ServiceError::new(ErrorCode::Unauthorized, "that token is not known here")),
        }
    }

    /// Reads the files again when they have changed.
    fn refresh(&self, known: &mut Known) {
        let changed = |path: PathBuf| fs::metadata(path).and_then(|m| m.modified()).ok();
        let as_of = [changed(self.owner_file()), changed(self.grants_file())];
        if as_of == known.as_of && known.owner.is_some() {
            return;
        }
        let owner = fs::read_to_string(self.owner_file()).ok();
        known.owner = owner.map(|text| digest(text.trim()));
        known.grants = self.list();
        known.as_of = as_of;
    }
}

fn new_token() -> io::Result<String> {
    let mut bytes = [0; 32];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    Ok(format!("sessile_{}", hex(&bytes)))
}

fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    for (i, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * i..2 * i + 2], 16).ok()?;
    }
    Some(bytes)
}

/// Replaces a file by one that only its owner can read.
fn write_private(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let temporary = path.with_extension(format!("new{}", std::process::id()));
    let _ = fs::remove_file(&temporary);
    let mut file =
        fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(temporary, path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn now() -> Timestamp {
        Timestamp::from_second(1_000_000).unwrap()
    }

    #[test]
    fn the_owner_s_token_is_made_once_and_private() {
        let root = tempfile::tempdir().unwrap();
        let tokens = Tokens::at(root.path());
        let token = tokens.owner().unwrap();
        assert_eq!(tokens.owner().unwrap(), token);
        let mode = fs::metadata(tokens.owner_file()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert!(tokens.caller(&token, now()).unwrap().workspaces.is_none());
        assert!(tokens.caller("", now()).is_err());
        assert!(tokens.caller(&token[1..], now()).is_err());
    }

    #[test]
    fn a_further_token_has_limits_an_end_and_can_be_revoked() {
        let root = tempfile::tempdir().unwrap();
        let tokens = Tokens::at(root.path());
        tokens.owner().unwrap();
        let places = Some(vec![PathBuf::from("/srv/a")]);
        let end = Timestamp::from_second(2_000_000).unwrap();
        let token = tokens.create("ci", places.clone(), Some(end)).unwrap();
        assert!(tokens.create("ci", None, None).is_err());
        let stored = fs::read_to_string(tokens.grants_file()).unwrap();
        assert!(!stored.contains(&token), "only a digest is kept");
        let caller = tokens.caller(&token, now()).unwrap();
        assert_eq!((caller.token.as_deref(), caller.workspaces), (Some("ci"), places));
        let late = tokens.caller(&token, end).unwrap_err();
        assert!(late.message.contains("expired"), "{late}");
        assert!(tokens.revoke("ci").unwrap());
        assert!(!tokens.revoke("ci").unwrap());
        assert!(Tokens::at(root.path()).caller(&token, now()).is_err());
    }
}
