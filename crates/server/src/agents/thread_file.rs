//! `thread.jsonl` and `agent.json` in a session's directory.

use super::digest::{Digest, MAX_THREAD, piece};
use super::profile::Profile;
use super::storing::ThreadLocation;
use crate::service::{ErrorCode, ServiceError};
use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use sessile_agent::thread::{Entry, Preceding};
use sessile_store::Directory;
use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;

const THREAD: &str = "thread.jsonl";
pub(super) const AGENT: &str = "agent.json";

/// A digest is written at the latest after this many entries.
const UNDIGESTED: u64 = 256;

/// An open thread file. Closing it releases the lock.
#[derive(Debug)]
pub(super) struct ThreadFile {
    directory: Directory,
    file: File,
    digest: Digest,
    /// Number of entries when the digest was last written.
    digested: u64,
}

#[derive(Debug)]
pub(super) struct Opened {
    pub(super) profile: Profile,
    pub(super) entries: Vec<Entry>,
    pub(super) file: ThreadFile,
    pub(super) home: ThreadLocation,
}

fn path(directory: &Directory) -> PathBuf {
    directory.path().join(THREAD)
}

pub(super) fn storage(what: &str, error: &dyn std::fmt::Display) -> ServiceError {
    ServiceError::new(ErrorCode::Storage, format!("the agent's {what}: {error}"))
}

fn no_agent() -> ServiceError {
    ServiceError::new(ErrorCode::AgentNotFound, "this session has no agent")
}

fn new_file(directory: &Directory) -> Result<File, ServiceError> {
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    match rustix::fs::open(path(directory), flags, Mode::RUSR | Mode::WUSR) {
        Ok(file) => Ok(File::from(file)),
        Err(rustix::io::Errno::EXIST) => {
            let message = "this session has an agent already; use it by the session's id";
            Err(ServiceError::new(ErrorCode::Busy, message))
        }
        Err(error) => Err(storage("thread", &error)),
    }
}

/// Creates the thread of a session, with these entries.
pub(super) fn create(
    directory: &Directory,
    profile: &Profile,
    entries: &[Entry],
) -> Result<Digest, ServiceError> {
    let file = new_file(directory)?;
    // The profile comes first: a thread without it could not be continued.
    directory.write_json(AGENT, profile).map_err(|e| storage("record", &e))?;
    let (digest, digested) = (Digest::default(), 0);
    let mut thread = ThreadFile { directory: directory.clone(), file, digest, digested };
    for entry in entries {
        thread.write(entry)?;
    }
    thread.sync()?;
    thread.digest.keep(directory)?;
    Ok(thread.digest)
}

/// Whether an agent was completely made here.
pub(super) fn is_whole(directory: &Directory) -> bool {
    profile(directory).is_ok() && entries(directory).is_ok()
}

/// Removes the thread of an unfinished agent.
pub(super) fn remove(directory: &Directory) -> Result<(), ServiceError> {
    match std::fs::remove_file(path(directory)) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(storage("thread", &error))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Whether a session has an agent.
pub(super) fn exists(directory: &Directory) -> bool {
    directory.path().join(AGENT).exists()
}

/// Whether its thread exists as well: the thread alone may have been deleted.
pub(super) fn is_there(directory: &Directory) -> bool {
    exists(directory) && path(directory).exists()
}

pub(super) fn profile(directory: &Directory) -> Result<Profile, ServiceError> {
    if !exists(directory) {
        return Err(no_agent());
    }
    directory.read_json(AGENT).map_err(|e| storage("record", &e))
}

/// Opens and locks the thread for a driver.
pub(super) fn open(directory: &Directory) -> Result<Opened, ServiceError> {
    let profile = profile(directory)?;
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let file = rustix::fs::open(path(directory), flags, Mode::empty());
    let file = File::from(file.map_err(|e| storage("thread", &e))?);
    if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        let message = "another server works on this agent; ask that one";
        return Err(ServiceError::new(ErrorCode::Busy, message));
    }
    let entries = all(&file)?;
    let digest = Digest::read(directory, &file)?;
    let durable = directory.metadata()?.durable;
    let home = match durable.and_then(|durable| durable.store) {
        Some(_) => ThreadLocation::Store,
        None => ThreadLocation::Here,
    };
    let directory = directory.clone();
    let file = ThreadFile { directory, file, digested: digest.entries, digest };
    Ok(Opened { profile, entries, file, home })
}

/// Opens the thread for reading, without the lock.
pub(super) fn look(directory: &Directory) -> Result<File, ServiceError> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    match rustix::fs::open(path(directory), flags, Mode::empty()) {
        Ok(file) => Ok(File::from(file)),
        Err(rustix::io::Errno::NOENT) => Err(no_agent()),
        Err(error) => Err(storage("thread", &error)),
    }
}

fn all(file: &File) -> Result<Vec<Entry>, ServiceError> {
    let length = file.metadata().map_err(|e| storage("thread", &e))?.len();
    if length > MAX_THREAD {
        return Err(storage("thread", &"it is larger than 1 GiB"));
    }
    let (entries, _, _) = piece(file, 0, length, Preceding::default())?;
    match entries.is_empty() {
        true => Err(storage("thread", &"it is empty")),
        false => Ok(entries),
    }
}

/// Reads all entries, without the lock.
pub(super) fn entries(directory: &Directory) -> Result<Vec<Entry>, ServiceError> {
    all(&look(directory)?)
}

/// Returns the thread's bytes, up to the last complete entry.
pub(super) fn bytes(directory: &Directory) -> Result<Vec<u8>, ServiceError> {
    let file = look(directory)?;
    let digest = Digest::read(directory, &file)?;
    let mut bytes = vec![0; usize::try_from(digest.bytes).unwrap_or(0)];
    file.read_exact_at(&mut bytes, 0).map_err(|e| storage("thread", &e))?;
    Ok(bytes)
}

pub(super) fn digest(directory: &Directory) -> Result<Digest, ServiceError> {
    Digest::read(directory, &look(directory)?)
}

/// Whether a task or a rewind is unfinished.
pub(super) fn is_open(directory: &Directory) -> Result<bool, ServiceError> {
    Ok(digest(directory)?.is_open())
}

/// Identifies a thread file: a session that begins anew has another one in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    device: u64,
    inode: u64,
}

impl Identity {
    fn of(found: &std::fs::Metadata) -> Self {
        Self { device: found.dev(), inode: found.ino() }
    }

    /// Returns the identity of the thread that is in a directory now.
    pub(super) fn in_directory(directory: &Directory) -> Option<Self> {
        Some(Self::of(&std::fs::symlink_metadata(path(directory)).ok()?))
    }
}

impl ThreadFile {
    pub(super) fn identity(&self) -> Option<Identity> {
        Some(Identity::of(&self.file.metadata().ok()?))
    }

    /// Appends an entry. It is on disk when this returns: only then are decisions carried out.
    pub(super) fn append(&mut self, entry: &Entry) -> Result<(), ServiceError> {
        self.write(entry)?;
        self.sync()?;
        if self.digest.entries - self.digested >= UNDIGESTED || !self.digest.is_open() {
            // Can be lost: with an old digest, more of the thread is read.
            let _ = self.digest.keep(&self.directory);
            self.digested = self.digest.entries;
        }
        Ok(())
    }

    pub(super) fn digest(&self) -> &Digest {
        &self.digest
    }

    fn write(&mut self, entry: &Entry) -> Result<(), ServiceError> {
        let mut line = serde_json::to_vec(entry).map_err(|e| storage("thread", &e))?;
        line.push(b'\n');
        let at = self.digest.bytes;
        let written = (|| {
            // Cuts off a partial line that a crash left.
            self.file.set_len(at)?;
            self.file.write_all_at(&line, at)
        })();
        written.map_err(|e: std::io::Error| storage("thread", &e))?;
        self.digest.take(entry, at, line.len() as u64);
        Ok(())
    }

    fn sync(&self) -> Result<(), ServiceError> {
        self.file.sync_data().map_err(|e| storage("thread", &e))
    }
}
