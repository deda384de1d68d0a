//! keys.log: idempotency keys and their runs, one JSON object per line.
//!
//! A key is written before the run begins, so that a request is never carried out twice,
//! whichever process dies in between. Requests without a key cost nothing.

use crate::atomic;
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use sessile_protocol::RunNo;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;

/// Number of keys to keep. A client repeats a request within minutes, not after ten
/// thousand others.
const KEPT: usize = 10_000;

/// Keys beyond that may accumulate; otherwise each further one would rewrite the file.
const SLACK: usize = KEPT / 4;

/// The run that a key was used for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyedRun {
    pub run: RunNo,
    /// Digest of everything that defines the request.
    pub digest: String,
}

#[derive(Serialize, Deserialize)]
struct Line {
    key: String,
    run: RunNo,
    digest: String,
}

#[derive(Debug)]
pub struct Keys {
    path: PathBuf,
    file: Option<File>,
    known: BTreeMap<String, KeyedRun>,
    /// The file's last line is incomplete.
    is_torn: bool,
}

impl Keys {
    /// Reads the file. Lines that are not ours are skipped.
    pub(crate) fn load(path: PathBuf) -> Self {
        let text = std::fs::read(&path).unwrap_or_default();
        let lines = text.split(|b| *b == b'\n').filter_map(|l| serde_json::from_slice(l).ok());
        let known = lines
            .map(|line: Line| (line.key, KeyedRun { run: line.run, digest: line.digest }))
            .collect();
        let is_torn = text.last().is_some_and(|b| *b != b'\n');
        Self { path, file: None, known, is_torn }
    }

    #[must_use]
    pub fn get(&self, key: &str) -> Option<&KeyedRun> {
        self.known.get(key)
    }

    /// Returns the highest run with a key.
    #[must_use]
    pub fn last_run(&self) -> RunNo {
        self.known.values().map(|keyed| keyed.run).max().unwrap_or_default()
    }

    /// Records a key. When this returns, it is in the file.
    ///
    /// # Errors
    /// When a write fails; then the key is not recorded.
    pub fn record(&mut self, key: String, keyed: KeyedRun) -> io::Result<()> {
        let line = line(&key, &keyed)?;
        self.open()?.write_all(&line)?;
        self.known.insert(key, keyed);
        if self.known.len() > KEPT + SLACK {
            self.drop_oldest()?;
        }
        Ok(())
    }

    fn open(&mut self) -> io::Result<&mut File> {
        let file = match self.file.take() {
            Some(file) => file,
            None => {
                let flags = OFlags::CREATE | OFlags::APPEND | OFlags::WRONLY | OFlags::CLOEXEC;
                let flags = flags | OFlags::NOFOLLOW;
                let mut file =
                    File::from(rustix::fs::open(&self.path, flags, atomic::PRIVATE_FILE)?);
                if std::mem::take(&mut self.is_torn) {
                    file.write_all(b"\n")?;
                }
                file
            }
        };
        Ok(self.file.insert(file))
    }

    fn drop_oldest(&mut self) -> io::Result<()> {
        let mut runs: Vec<RunNo> = self.known.values().map(|keyed| keyed.run).collect();
        runs.sort_unstable();
        let oldest = runs[runs.len() - KEPT];
        self.known.retain(|_, keyed| keyed.run >= oldest);
        let mut text = Vec::new();
        for (key, keyed) in &self.known {
            text.extend(line(key, keyed)?);
        }
        self.file = None;
        atomic::replace(&self.path, &text)
    }

    pub fn clear(&mut self) {
        let _ = std::fs::remove_file(&self.path);
        self.file = None;
        self.known.clear();
    }
}

fn line(key: &str, keyed: &KeyedRun) -> io::Result<Vec<u8>> {
    let (key, digest) = (key.to_owned(), keyed.digest.clone());
    let mut line = serde_json::to_vec(&Line { key, run: keyed.run, digest })?;
    line.push(b'\n');
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keyed(run: u64) -> KeyedRun {
        KeyedRun { run: RunNo(run), digest: format!("{run:016x}") }
    }

    #[test]
    fn keys_are_known_to_the_next_keeper_whatever_cut_the_file() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("keys.log");
        let mut keys = Keys::load(path.clone());
        keys.record("a".into(), keyed(1)).unwrap();
        keys.record("b \"".into(), keyed(2)).unwrap();
        let whole = std::fs::read(&path).unwrap();
        let first = whole.iter().position(|b| *b == b'\n').unwrap();
        for cut in 0..=whole.len() {
            std::fs::write(&path, &whole[..cut]).unwrap();
            let mut keys = Keys::load(path.clone());
            keys.record("c".into(), keyed(3)).unwrap();
            let keys = Keys::load(path.clone());
            assert_eq!(keys.get("c"), Some(&keyed(3)), "{cut}");
            assert!(keys.get("a").is_none_or(|found| *found == keyed(1)));
            assert_eq!(keys.get("a").is_some(), cut >= first, "{cut}");
        }
    }

    #[test]
    fn only_so_many_keys_are_kept_and_they_are_the_newest() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("keys.log");
        let mut keys = Keys::load(path.clone());
        let last = (KEPT + SLACK + 5) as u64;
        for run in 1..=last {
            keys.record(format!("key {run}"), keyed(run)).unwrap();
        }
        for keys in [&keys, &Keys::load(path)] {
            assert!(keys.known.len() <= KEPT + SLACK);
            assert_eq!(keys.get("key 1"), None);
            assert_eq!(keys.last_run(), RunNo(last));
            let oldest_kept = last - KEPT as u64 + 1;
            assert_eq!(keys.get(&format!("key {oldest_kept}")), Some(&keyed(oldest_kept)));
        }
    }
}
