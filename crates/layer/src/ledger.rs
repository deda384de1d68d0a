//! The record of applied and discarded changes. It is beside the layer, because the layer
//! still has a copy of each such file. As long as the session does not touch that copy, it
//! is not a change, whatever happens to the real file.

use crate::beneath::Tree;
use crate::found::{Found, Kind, Mark, Time};
use crate::{LayerError, Result};
use rustix::fs::{FlockOperation, Mode, OFlags};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::path::Path;

pub(crate) const FILE: &str = "settled.json";

#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Ledger {
    /// By path, in the form of [`key`].
    entries: BTreeMap<String, Entry>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Entry {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    settled: Option<Settled>,
    /// When the session took over the path, if the layer no longer shows that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    since: Option<Time>,
}

/// A path at which both sides were the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Settled {
    pub(crate) version: Version,
    /// The real file at that time, if there was one.
    pub(crate) real: Option<Mark>,
}

/// A version of a path in the layer: all its properties in one text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Version {
    Gone,
    Is(String),
}

impl Version {
    pub(crate) fn of(tree: &Tree, path: &[u8], found: &Found) -> Result<Self> {
        if found.is_whiteout {
            return Ok(Self::Gone);
        }
        let mode = found.node.mode;
        Ok(Self::Is(match found.node.kind {
            Kind::File => format!("file {mode:o} {}", digest(tree, path)?),
            Kind::Link => format!("link {}", blake3::hash(&tree.target(path)?).to_hex()),
            Kind::Directory => format!("directory {mode:o}"),
            Kind::Other => "other".to_owned(),
        }))
    }
}

/// Returns the hash of a file's content.
pub(crate) fn digest(tree: &Tree, path: &[u8]) -> Result<blake3::Hash> {
    let mut file = tree.read(path)?;
    let mut hasher = blake3::Hasher::new();
    let mut piece = vec![0; 64 << 10];
    loop {
        match file.read(&mut piece) {
            Ok(0) => return Ok(hasher.finalize()),
            Ok(length) => hasher.update(&piece[..length]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(LayerError::io(error, path)),
        };
    }
}

impl Ledger {
    /// Reads the ledger. An invalid one counts as empty: its entries are then shown as changes.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        match std::fs::read(path) {
            Ok(bytes) => Ok(serde_json::from_slice(&bytes).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(ledger_error(error)),
        }
    }

    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        let bytes = serde_json::to_vec(self).map_err(|error| ledger_error(error.into()))?;
        let aside = path.with_extension("json.tmp");
        let flags = OFlags::CREATE | OFlags::TRUNC | OFlags::WRONLY | OFlags::NOFOLLOW;
        let flags = flags | OFlags::CLOEXEC;
        let written = rustix::fs::open(&aside, flags, Mode::RUSR | Mode::WUSR)
            .map_err(io::Error::from)
            .and_then(|file| File::from(file).write_all(&bytes))
            .and_then(|()| std::fs::rename(&aside, path));
        written.map_err(ledger_error)
    }

    pub(crate) fn settled(&self, path: &[u8]) -> Option<&Settled> {
        self.entries.get(&key(path))?.settled.as_ref()
    }

    pub(crate) fn since(&self, path: &[u8]) -> Option<Time> {
        self.entries.get(&key(path))?.since
    }

    pub(crate) fn settle(&mut self, path: &[u8], settled: Settled) {
        self.entries.insert(key(path), Entry { settled: Some(settled), since: None });
    }

    pub(crate) fn forget(&mut self, path: &[u8]) {
        self.entries.remove(&key(path));
    }

    /// Notes since when a path is the session's, unless an earlier time is known.
    pub(crate) fn note_since(&mut self, path: &[u8], since: Time) {
        let entry = self.entries.entry(key(path)).or_default();
        if entry.settled.is_none() {
            entry.since = Some(entry.since.unwrap_or(since).min(since));
        }
    }

    /// Forgets paths that the layer no longer has.
    pub(crate) fn keep_only(&mut self, has: impl Fn(&str) -> bool) {
        self.entries.retain(|path, _| has(path));
    }
}

fn ledger_error(error: io::Error) -> LayerError {
    LayerError::io(error, b"the record of what was applied")
}

/// A lock: only one process at a time applies or discards.
#[derive(Debug)]
pub(crate) struct ApplyLock(#[expect(dead_code, reason = "held until it is dropped")] OwnedFd);

impl ApplyLock {
    pub(crate) fn take(ledger: &Path) -> Result<Self> {
        let flags = OFlags::CREATE | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::open(ledger.with_extension("lock"), flags, Mode::RUSR | Mode::WUSR);
        let file = file.map_err(|errno| ledger_error(errno.into()))?;
        rustix::fs::flock(&file, FlockOperation::LockExclusive)
            .map_err(|e| ledger_error(e.into()))?;
        Ok(Self(file))
    }
}

/// Returns a path as a JSON key, whatever its bytes are: no path begins with a slash.
pub(crate) fn key(path: &[u8]) -> String {
    match std::str::from_utf8(path) {
        Ok(text) => text.to_owned(),
        Err(_) => path.iter().fold("/".to_owned(), |text, byte| text + &format!("{byte:02x}")),
    }
}
