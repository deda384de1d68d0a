//! Tokens of callers, in the sessions directory.
//!
//! `token` is the owner's: made on first start, in plain text and private, for programs
//! on the same machine to read. `tokens.json` has the others, as digests only.

mod changes;

use crate::keepers::{blocking, lock};
use crate::service::{Caller, ErrorCode, IfMoved, RequiredSandbox, ServiceError};
use changes::{Changes, Freshness};
use jiff::Timestamp;
use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};
use sessile_sandbox::Policy;
use sha2::{Digest, Sha256};
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Instant;
use subtle::ConstantTimeEq;

const OWNER_FILE: &str = "token";
const GRANTS_FILE: &str = "tokens.json";

/// A further token, as it is stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Grant {
    pub name: String,
    /// SHA-256 of the token, in hex.
    digest: String,
    /// Directories that it is limited to; when absent, all that the server allows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspaces: Option<Vec<PathBuf>>,
    /// The minimum sandbox of its sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<Policy>,
    pub created_at: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
}

/// The limits of a further token.
#[derive(Clone, Debug, Default)]
pub struct TokenLimits {
    /// These directories and what is below; when absent, all that the server allows.
    pub workspaces: Option<Vec<PathBuf>>,
    /// The minimum sandbox of its sessions.
    pub sandbox: Option<Policy>,
    /// When it expires.
    pub expires_at: Option<Timestamp>,
}

/// The known tokens. A lookup reads no file, unless one has changed.
#[derive(Debug)]
pub struct Tokens {
    root: PathBuf,
    known: Arc<Mutex<KnownTokens>>,
    reading: Arc<TokenReader>,
}

/// The state of reading the files.
#[derive(Debug, Default)]
struct TokenReader {
    /// Watched since they were first read.
    changes: OnceLock<Option<Changes>>,
    /// Locked while they are read, so that older content does not replace newer.
    at_work: Mutex<()>,
}

#[derive(Debug, Default)]
struct KnownTokens {
    owner: Option<[u8; 32]>,
    grants: Vec<Grant>,
    as_of: [Option<Version>; 2],
    freshness: Freshness,
}

/// Identifies a version of a file. Files are replaced, so the inode differs even when the
/// clock has not moved on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Version {
    changed: (i64, i64),
    inode: u64,
    size: u64,
}

impl Version {
    fn of(path: &Path) -> Option<Self> {
        let metadata = fs::metadata(path).ok()?;
        Some(Self {
            changed: (metadata.ctime(), metadata.ctime_nsec()),
            inode: metadata.ino(),
            size: metadata.size(),
        })
    }
}

impl Tokens {
    /// Returns the tokens of a sessions directory.
    #[must_use]
    pub fn at(root: &Path) -> Self {
        Self { root: root.to_owned(), known: Arc::default(), reading: Arc::default() }
    }

    /// Returns the path of the owner's token.
    #[must_use]
    pub fn owner_file(&self) -> PathBuf {
        self.root.join(OWNER_FILE)
    }

    fn grants_file(&self) -> PathBuf {
        self.root.join(GRANTS_FILE)
    }

    /// Returns the owner's token; makes it if there is none.
    ///
    /// # Errors
    /// When the file cannot be read or made, or others could know it.
    pub fn owner(&self) -> io::Result<String> {
        let _lock = self.lock()?;
        let path = self.owner_file();
        match fs::read_to_string(&path) {
            Ok(text) if !text.trim().is_empty() => {
                check_private(&path)?;
                Ok(text.trim().to_owned())
            }
            Ok(_) => self.make_owner(),
            Err(error) if error.kind() == io::ErrorKind::NotFound => self.make_owner(),
            Err(error) => Err(said(&path, &error)),
        }
    }

    fn make_owner(&self) -> io::Result<String> {
        let token = new_token()?;
        let path = self.owner_file();
        write_private(&path, token.as_bytes()).map_err(|error| said(&path, &error))?;
        Ok(token)
    }

    /// Makes a token. It is shown once, here.
    ///
    /// # Errors
    /// When the name is invalid or taken, or the file cannot be written.
    pub fn create(&self, name: &str, terms: TokenLimits) -> io::Result<(String, Grant)> {
        check_name(name)?;
        let _lock = self.lock()?;
        let mut grants = self.list()?;
        if grants.iter().any(|grant| grant.name == name) {
            let message = format!("there is a token {name:?} already; revoke it first");
            return Err(io::Error::new(io::ErrorKind::AlreadyExists, message));
        }
        let token = new_token()?;
        let grant = Grant {
            name: name.to_owned(),
            digest: hex(&digest(&token)),
            workspaces: terms.workspaces,
            sandbox: terms.sandbox,
            created_at: sessile_store::timestamp(),
            expires_at: terms.expires_at,
        };
        grants.push(grant.clone());
        self.write(&grants)?;
        Ok((token, grant))
    }

    /// Revokes a token; returns whether there was one of that name.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn revoke(&self, name: &str) -> io::Result<bool> {
        let _lock = self.lock()?;
        let mut grants = self.list()?;
        let before = grants.len();
        grants.retain(|grant| grant.name != name);
        if grants.len() == before {
            return Ok(false);
        }
        self.write(&grants)?;
        Ok(true)
    }

    /// # Errors
    /// When the file cannot be read, or is not what we wrote: then it must not be
    /// replaced.
    pub fn list(&self) -> io::Result<Vec<Grant>> {
        read_grants(&self.grants_file())
    }

    fn write(&self, grants: &[Grant]) -> io::Result<()> {
        let path = self.grants_file();
        let text = serde_json::to_vec_pretty(grants)?;
        write_private(&path, &text).map_err(|error| said(&path, &error))
    }

    /// Locks the files while one is read and replaced: servers and commands do so
    /// concurrently.
    fn lock(&self) -> io::Result<fs::File> {
        let path = self.root.join("tokens.lock");
        let open = || -> io::Result<fs::File> {
            let mut options = fs::OpenOptions::new();
            let file = options.create(true).append(true).mode(0o600).open(&path)?;
            rustix::fs::flock(&file, FlockOperation::LockExclusive)?;
            Ok(file)
        };
        open().map_err(|error| said(&path, &error))
    }

    /// Returns the caller with this token, by the current files.
    pub(crate) async fn caller(&self, token: &str, now: Timestamp) -> Result<Caller, ServiceError> {
        if !self.is_fresh() {
            let (root, known) = (self.root.clone(), self.known.clone());
            let reading = self.reading.clone();
            blocking(move || {
                reading.refresh(&root, &known);
                Ok(())
            })
            .await?;
        }
        self.known_caller(token, now)
    }

    /// Whether the known tokens are those of the files. Reads only the inotify queue,
    /// which never blocks.
    fn is_fresh(&self) -> bool {
        let Some(Some(changes)) = self.reading.changes.get() else { return false };
        let seen = changes.seen();
        lock(&self.known).freshness.is_of(seen, Instant::now())
    }

    /// Finds the caller with this token. Compares every token, in constant time, so that
    /// the time reveals nothing about any of them.
    fn known_caller(&self, token: &str, now: Timestamp) -> Result<Caller, ServiceError> {
        let given = digest(token);
        let known = lock(&self.known);
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
            Some(grant) => Ok(Caller {
                token: Some(grant.name),
                workspaces: grant.workspaces,
                bounds: grant
                    .sandbox
                    .map_or(RequiredSandbox::Servers, |own| RequiredSandbox::And(Arc::new(own))),
                moved: IfMoved::TakeUp,
            }),
            None => Err(ServiceError::new(ErrorCode::Unauthorized, "that token is not known here")),
        }
    }
}

impl TokenReader {
    /// Reads the files again if they have changed.
    fn refresh(&self, root: &Path, known: &Mutex<KnownTokens>) {
        let _at_work = lock(&self.at_work);
        // Watched before they are read, so that no later change is missed.
        let changes = self.changes.get_or_init(|| Changes::of(root, [OWNER_FILE, GRANTS_FILE]));
        let (seen, now) = (changes.as_ref().map_or(0, Changes::seen), Instant::now());
        let (owner, grants) = (root.join(OWNER_FILE), root.join(GRANTS_FILE));
        let as_of = [Version::of(&owner), Version::of(&grants)];
        let freshness = Freshness::new(seen, now);
        let is_same = |known: &KnownTokens| as_of == known.as_of && known.owner.is_some();
        if is_same(&lock(known)) {
            lock(known).freshness = freshness;
            return;
        }
        let owner = fs::read_to_string(owner).ok().map(|text| digest(text.trim()));
        let grants = read_grants(&grants).unwrap_or_else(|error| {
            tracing::error!(%error, "only the owner's token is known");
            Vec::new()
        });
        *lock(known) = KnownTokens { owner, grants, as_of, freshness };
    }
}

fn read_grants(path: &Path) -> io::Result<Vec<Grant>> {
    match fs::read(path) {
        Ok(text) => serde_json::from_slice(&text).map_err(|error| said(path, &error.into())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(said(path, &error)),
    }
}

/// Adds the file to an error.
fn said(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("cannot use {}: {error}", path.display()))
}

/// Checks that a name is safe to show anywhere, and is not the owner's.
fn check_name(name: &str) -> io::Result<()> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if (1..=64).contains(&name.len()) && name.chars().all(is_plain) && name != "owner" {
        return Ok(());
    }
    let message = format!(
        "{name:?} cannot be a token's name; use 1 to 64 letters, digits and -_. (owner is taken)"
    );
    Err(io::Error::new(io::ErrorKind::InvalidInput, message))
}

/// Checks that a file is private. A token that came with a directory from elsewhere is
/// not a secret.
fn check_private(path: &Path) -> io::Result<()> {
    let metadata = fs::symlink_metadata(path)?;
    let is_ours = metadata.uid() == rustix::process::geteuid().as_raw();
    if metadata.is_file() && is_ours && metadata.mode() & 0o077 == 0 {
        return Ok(());
    }
    let message = format!(
        "others can know the token in {}; remove it, and a new one is made",
        path.display()
    );
    Err(io::Error::new(io::ErrorKind::PermissionDenied, message))
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

    fn caller(tokens: &Tokens, token: &str, now: Timestamp) -> Result<Caller, ServiceError> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(tokens.caller(token, now))
    }

    #[test]
    fn who_is_asked_for_again_is_known_without_a_look_at_the_files() {
        let root = tempfile::tempdir().unwrap();
        let tokens = Tokens::at(root.path());
        let token = tokens.owner().unwrap();
        assert!(!tokens.is_fresh());
        assert!(caller(&tokens, &token, now()).is_ok());
        // As if read just now.
        lock(&tokens.known).freshness = Freshness::new(0, Instant::now());
        assert!(tokens.is_fresh());
        let (other, _) = Tokens::at(root.path()).create("ci", TokenLimits::default()).unwrap();
        assert!(!tokens.is_fresh());
        // Stays so until the files are read, for all callers, not only the first.
        assert!(!tokens.is_fresh());
        assert!(caller(&tokens, &other, now()).is_ok());
    }

    #[test]
    fn the_owner_s_token_is_made_once_and_private() {
        let root = tempfile::tempdir().unwrap();
        let tokens = Tokens::at(root.path());
        let token = tokens.owner().unwrap();
        assert_eq!(tokens.owner().unwrap(), token);
        let mode = fs::metadata(tokens.owner_file()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert!(caller(&tokens, &token, now()).unwrap().workspaces.is_none());
        assert!(caller(&tokens, "", now()).is_err());
        assert!(caller(&tokens, &token[1..], now()).is_err());
    }

    #[test]
    fn a_further_token_has_limits_an_end_and_can_be_revoked() {
        let root = tempfile::tempdir().unwrap();
        let tokens = Tokens::at(root.path());
        tokens.owner().unwrap();
        let places = Some(vec![PathBuf::from("/srv/a")]);
        let end = Timestamp::from_second(2_000_000).unwrap();
        let (token, grant) = tokens
            .create(
                "ci",
                TokenLimits { workspaces: places.clone(), expires_at: Some(end), sandbox: None },
            )
            .unwrap();
        assert_eq!(tokens.list().unwrap(), [grant]);
        assert!(tokens.create("ci", TokenLimits::default()).is_err());
        let stored = fs::read_to_string(tokens.grants_file()).unwrap();
        assert!(!stored.contains(&token), "only a digest is kept");
        let found = caller(&tokens, &token, now()).unwrap();
        assert_eq!((found.token.as_deref(), found.workspaces), (Some("ci"), places));
        let late = caller(&tokens, &token, end).unwrap_err();
        assert!(late.message.contains("expired"), "{late}");
        assert!(tokens.revoke("ci").unwrap());
        assert!(!tokens.revoke("ci").unwrap());
        assert!(caller(&Tokens::at(root.path()), &token, now()).is_err());
    }

    #[test]
    fn a_token_that_others_can_read_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let tokens = Tokens::at(root.path());
        fs::write(tokens.owner_file(), "sessile_known").unwrap();
        fs::set_permissions(tokens.owner_file(), fs::Permissions::from_mode(0o644)).unwrap();
        assert!(tokens.owner().unwrap_err().to_string().contains("others can know"));
    }

    #[test]
    fn a_damaged_file_is_not_overwritten() {
        let root = tempfile::tempdir().unwrap();
        let tokens = Tokens::at(root.path());
        fs::write(tokens.grants_file(), "[{").unwrap();
        assert!(tokens.create("ci", TokenLimits::default()).is_err());
        assert!(tokens.revoke("ci").is_err());
        assert_eq!(fs::read_to_string(tokens.grants_file()).unwrap(), "[{");
    }

    #[test]
    fn revoked_at_once_means_unknown_at_once() {
        let root = tempfile::tempdir().unwrap();
        let (server, other) = (Tokens::at(root.path()), Tokens::at(root.path()));
        server.owner().unwrap();
        for name in ["a", "b", "c"] {
            let (token, _) = other.create(name, TokenLimits::default()).unwrap();
            assert!(caller(&server, &token, now()).is_ok());
            assert!(other.revoke(name).unwrap());
            assert!(caller(&server, &token, now()).is_err());
        }
    }

    #[test]
    fn names_are_plain() {
        let root = tempfile::tempdir().unwrap();
        for name in ["", "owner", "a b", "a\n", "ü", &"x".repeat(65)] {
            assert!(
                Tokens::at(root.path()).create(name, TokenLimits::default()).is_err(),
                "{name:?}"
            );
        }
    }
}
