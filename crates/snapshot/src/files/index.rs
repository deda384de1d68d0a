//! An index of the last snapshot of a workspace: the content of each file.
//!
//! A file is identified by its inode, size and times. Programs cannot set the change time,
//! so equal facts mean equal content; except for a file that was changed so shortly before
//! it was read that a further change could have the same time. Such files are not entered,
//! and so are read again.
//!
//! An index is only a shortcut: a missing or damaged one costs time.

use super::depot::Depot;
use super::digest::{Digest, LENGTH};
use super::error::Error;
use super::place::{Facts, Time};
use rustix::time::{ClockId, clock_gettime};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

const MAGIC: &[u8; 8] = b"sslseen1";
/// inode, size, modified, changed (8 bytes each), digest.
const RECORD: usize = 32 + LENGTH;
const HEAD: usize = 8 + GENERATION + 8;
pub(crate) const GENERATION: usize = 16;

/// Kernels stamp files with the time of the last tick, at most 10 ms ago; twice that,
/// because the clock may be corrected meanwhile.
const TICK: i128 = 20_000_000;
/// On file systems without fractions of seconds, FAT's two seconds are the worst.
const COARSE_TICK: i128 = 2_100_000_000;

/// Identifies the last sweep of a depot; zeros before the first.
pub(crate) type Generation = [u8; GENERATION];

/// Whether the depot is certain to have the objects that an index names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trust {
    /// Nothing was removed since.
    Whole,
    /// There was a sweep: check first.
    Look,
}

#[derive(Debug)]
pub(crate) struct Index {
    name: String,
    device: u64,
    generation: Generation,
    old: Vec<u8>,
    trust: Trust,
    new: Vec<[u8; RECORD]>,
}

impl Index {
    /// Loads the index of the workspace at `root`.
    pub(crate) fn load(depot: &Depot, root: &Path, device: u64) -> Index {
        let name = format!("index/{}", Digest::of(root.as_os_str().as_bytes()));
        let generation = generation(depot);
        let old = std::fs::read(depot.at(&name)).ok().filter(|bytes| is_whole(bytes, device));
        let old = old.unwrap_or_default();
        let trust = match old.get(8..8 + GENERATION) == Some(&generation[..]) {
            true => Trust::Whole,
            false => Trust::Look,
        };
        Index { name, device, generation, old, trust, new: Vec::new() }
    }

    fn records(&self) -> &[[u8; RECORD]] {
        let end = self.old.len().saturating_sub(LENGTH);
        self.old.get(HEAD..end).unwrap_or_default().as_chunks().0
    }

    /// Returns the content of a file with these facts, if known.
    pub(crate) fn find(&self, facts: &Facts) -> Option<(Digest, Trust)> {
        let records = self.records();
        let inode = facts.inode.to_be_bytes();
        let at = records.binary_search_by(|record| record[..8].cmp(&inode)).ok()?;
        let digest = records[at].last_chunk().copied().map(Digest)?;
        (record(facts, &digest)? == records[at]).then_some((digest, self.trust))
    }

    /// Notes the content of a file that was looked at no earlier than `read`.
    pub(crate) fn note(&mut self, facts: &Facts, digest: &Digest, read: Instant) {
        if read.is_after(facts) {
            self.keep(facts, digest);
        }
    }

    /// Keeps a known entry.
    pub(crate) fn keep(&mut self, facts: &Facts, digest: &Digest) {
        self.new.extend(record(facts, digest));
    }

    /// Saves the noted entries for the next time.
    pub(crate) fn save(mut self, depot: &Depot) -> Result<(), Error> {
        self.new.sort_unstable();
        self.new.dedup_by(|a, b| a[..8] == b[..8]);
        let mut bytes = Vec::with_capacity(HEAD + self.new.len() * RECORD + LENGTH);
        bytes.extend(MAGIC);
        bytes.extend(self.generation);
        bytes.extend(self.device.to_be_bytes());
        bytes.extend(self.new.as_flattened());
        bytes.extend(Digest::of(&bytes).0);
        if bytes == self.old {
            return Ok(());
        }
        depot.replace(&self.name, &bytes)
    }
}

fn is_whole(bytes: &[u8], device: u64) -> bool {
    let Some((content, digest)) = bytes.split_last_chunk::<LENGTH>() else { return false };
    content.starts_with(MAGIC)
        && content.get(HEAD - 8..HEAD) == Some(&device.to_be_bytes()[..])
        && (content.len() - HEAD).is_multiple_of(RECORD)
        && Digest::of(content).0 == *digest
}

/// Returns none for times outside of 1678 to 2262.
fn record(facts: &Facts, digest: &Digest) -> Option<[u8; RECORD]> {
    let mut record = [0; RECORD];
    record[..8].copy_from_slice(&facts.inode.to_be_bytes());
    record[8..16].copy_from_slice(&facts.size.to_be_bytes());
    let modified = i64::try_from(nanoseconds(facts.modified)).ok()?;
    record[16..24].copy_from_slice(&modified.to_be_bytes());
    let changed = i64::try_from(nanoseconds(facts.changed)).ok()?;
    record[24..32].copy_from_slice(&changed.to_be_bytes());
    record[32..].copy_from_slice(&digest.0);
    Some(record)
}

fn nanoseconds(time: Time) -> i128 {
    i128::from(time.seconds) * 1_000_000_000 + i128::from(time.nanoseconds)
}

/// A moment before a file was read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Instant(i128);

impl Instant {
    pub(crate) fn now() -> Instant {
        let now = clock_gettime(ClockId::Realtime);
        Instant(i128::from(now.tv_sec) * 1_000_000_000 + i128::from(now.tv_nsec))
    }

    /// Returns whether any later change would have a later time.
    fn is_after(self, facts: &Facts) -> bool {
        let tick = if facts.changed.nanoseconds == 0 { COARSE_TICK } else { TICK };
        nanoseconds(facts.changed) + tick < self.0
    }
}

pub(crate) fn generation(depot: &Depot) -> Generation {
    let bytes = std::fs::read(depot.at("generation")).unwrap_or_default();
    bytes.try_into().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::place::Kind;
    use super::*;

    fn facts(changed: Time) -> Facts {
        Facts {
            kind: Kind::File,
            mode: 0o644,
            size: 3,
            modified: Time { seconds: 5, nanoseconds: 6 },
            changed,
            device: 1,
            inode: 99,
            names: 1,
        }
    }

    /// Returns whether a file is known the next time, if it was read this many nanoseconds
    /// after the change.
    fn is_known(changed: Time, after: i128) -> bool {
        let directory = tempfile::tempdir().unwrap();
        let depot = Depot::open(&directory.path().join("depot")).unwrap();
        let facts = facts(changed);
        let digest = Digest::of(b"abc");
        let mut index = Index::load(&depot, Path::new("/w"), 1);
        index.note(&facts, &digest, Instant(nanoseconds(changed) + after));
        index.save(&depot).unwrap();
        let index = Index::load(&depot, Path::new("/w"), 1);
        let found = index.find(&facts);
        assert!(found.is_none() || found == Some((digest, Trust::Whole)));
        found.is_some()
    }

    #[test]
    fn a_file_that_was_read_right_after_a_change_is_read_again() {
        let fine = Time { seconds: 1_000, nanoseconds: 1 };
        for (after, known) in [(-5, false), (0, false), (10_000_000, false), (21_000_000, true)] {
            assert_eq!(is_known(fine, after), known, "{after}");
        }
        let coarse = Time { seconds: 1_000, nanoseconds: 0 };
        for (after, known) in [(21_000_000, false), (2_000_000_000, false), (2_200_000_000, true)] {
            assert_eq!(is_known(coarse, after), known, "{after}");
        }
    }

    #[test]
    fn any_other_fact_makes_a_file_unknown() {
        let directory = tempfile::tempdir().unwrap();
        let depot = Depot::open(&directory.path().join("depot")).unwrap();
        let known = facts(Time { seconds: 1_000, nanoseconds: 1 });
        let mut index = Index::load(&depot, Path::new("/w"), 1);
        index.keep(&known, &Digest::of(b"abc"));
        index.save(&depot).unwrap();
        let index = Index::load(&depot, Path::new("/w"), 1);
        let later = Time { seconds: 1_000, nanoseconds: 2 };
        assert!(index.find(&known).is_some());
        for other in [
            Facts { inode: 98, ..known },
            Facts { size: 4, ..known },
            Facts { modified: later, ..known },
            Facts { changed: later, ..known },
        ] {
            assert_eq!(index.find(&other), None);
        }
        assert_eq!(Index::load(&depot, Path::new("/other"), 1).find(&known), None);
        assert_eq!(Index::load(&depot, Path::new("/w"), 2).find(&known), None);
    }
}
