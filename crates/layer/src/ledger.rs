//! What was applied and discarded: kept beside the layer, because the layer has a
//! copy of it still. As long as the session leaves that copy alone, it is no
//! change, whatever becomes of the real file.

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
    /// By path, as [`key`] has it.
    entries: BTreeMap<String, Entry>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Entry {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    settled: Option<Settled>,
    /// When the session took the path over, where the layer cannot tell any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    since: Option<Time>,
}

/// Both sides were the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Settled {
    pub(crate) version: Version,
    /// The real file then, if there was one.
    pub(crate) real: Option<Mark>,
}

/// What a path of the layer is: all that is told of it, as one text.
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

/// A file's content as a number.
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
    /// One that cannot be read is as good as none: what it would have settled is
    /// told as a change.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        match std::fs::read(path) {
            Ok(bytes) => Ok(serde_json::from_slice(&bytes).unwrap_or_default()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(told(error)),
        }
    }

    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        let bytes = serde_json::to_vec(self).map_err(|error| told(error.into()))?;
        let aside = path.with_extension("json.tmp");
        let flags = OFlags::CREATE | OFlags::TRUNC | OFlags::WRONLY | OFlags::NOFOLLOW;
        let flags = flags | OFlags::CLOEXEC;
        let written = rustix::fs::open(&aside, flags, Mode::RUSR | Mode::WUSR)
            .map_err(io::Error::from)
            .and_then(|file| File::from(file).write_all(&bytes))
            .and_then(|()| std::fs::rename(&aside, path));
        written.map_err(told)
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

    /// From when on a path is the session's, unless something earlier is known.
    pub(crate) fn note_since(&mut self, path: &[u8], since: Time) {
        let entry = self.entries.entry(key(path)).or_default();
        if entry.settled.is_none() {
            entry.since = Some(entry.since.unwrap_or(since).min(since));
        }
    }

    /// Forgets paths that the layer does not have any more.
    pub(crate) fn keep_only(&mut self, has: impl Fn(&str) -> bool) {
        self.entries.retain(|path, _| has(path));
    }
}

fn told(error: io::Error) -> LayerError {
    LayerError::io(error, b"the record of what was applied")
}

/// One at a time applies and discards.
#[derive(Debug)]
pub(crate) struct Turn(#[expect(dead_code, reason = "held until it is dropped")] OwnedFd);

impl Turn {
    pub(crate) fn take(ledger: &Path) -> Result<Self> {
        let flags = OFlags::CREATE | OFlags::RDWR | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::open(ledger.with_extension("lock"), flags, Mode::RUSR | Mode::WUSR);
        let file = file.map_err(|errno| told(errno.into()))?;
        rustix::fs::flock(&file, FlockOperation::LockExclusive).map_err(|e| told(e.into()))?;
        Ok(Self(file))
    }
}

/// A path as JSON can have it, whatever its bytes: no path begins with a slash.
pub(crate) fn key(path: &[u8]) -> String {
    match std::str::from_utf8(path) {
        Ok(text) => text.to_owned(),
        Err(_) => path.iter().fold("/".to_owned(), |text, byte| text + &format!("{byte:02x}")),
    }
}
