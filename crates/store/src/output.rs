//! Output of a run: a stream that is kept in memory while it is small, on disk up to a cap,
//! and as a moving tail beyond that.

use crate::atomic;
use rustix::fs::OFlags;
use sessile_protocol::{RunNo, StreamView};
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Output up to this size stays in memory: most runs write less, and are answered without
/// touching the disk.
const IN_MEMORY: usize = 32 << 10;

/// Size of the tail that is kept beyond the cap: as much as an answer shows by default.
const TAIL: usize = 512 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamName {
    Stdout,
    Stderr,
}

impl StreamName {
    fn as_str(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        }
    }
}

/// One stream of one run. Bytes `0..stored` are kept; then there is a gap, if more than the
/// cap was written; then the tail up to `total`.
#[derive(Debug)]
pub struct Spool {
    path: PathBuf,
    cap: u64,
    memory: Vec<u8>,
    file: Option<File>,
    stored: u64,
    total: u64,
    tail: VecDeque<u8>,
    /// A write to disk failed: further output is only counted, and kept in the tail.
    is_full: bool,
}

impl Spool {
    #[must_use]
    pub fn new(runs: &Path, run: RunNo, stream: StreamName, cap: u64) -> Self {
        Self {
            path: path_of(runs, run, stream),
            cap,
            memory: Vec::new(),
            file: None,
            stored: 0,
            total: 0,
            tail: VecDeque::new(),
            is_full: false,
        }
    }

    /// Sets the new directory of the runs.
    pub fn moved_to(&mut self, runs: &Path) {
        if let Some(name) = self.path.file_name() {
            self.path = runs.join(name);
        }
    }

    /// Opens a stream of a finished run from its files.
    #[must_use]
    pub fn reopen(runs: &Path, run: RunNo, stream: StreamName) -> Self {
        let mut spool = Self { is_full: true, ..Self::new(runs, run, stream, 0) };
        if let Ok(file) = File::open(&spool.path) {
            spool.stored = file.metadata().map_or(0, |m| m.len());
            spool.total = spool.stored;
            spool.file = Some(file);
        }
        if let Some((total, tail)) = read_tail(&spool.tail_path()) {
            spool.total = total.max(spool.stored);
            spool.tail = tail.into();
        }
        spool
    }

    #[must_use]
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Returns the number of bytes that are only in memory.
    #[must_use]
    pub fn in_memory(&self) -> usize {
        self.memory.len()
    }

    /// Returns the number of bytes beyond the cap. Only their end is kept.
    #[must_use]
    pub fn excess(&self) -> u64 {
        self.total - self.stored
    }

    /// Adds output. Never fails: a run must not suffer from a full disk; `stored` and
    /// `total` show what is lost.
    pub fn push(&mut self, bytes: &[u8]) {
        let room = if self.is_full { 0 } else { self.cap - self.stored };
        let (keep, beyond) =
            bytes.split_at(bytes.len().min(usize::try_from(room).unwrap_or(usize::MAX)));
        if let Err(rest) = self.store(keep) {
            self.is_full = true;
            self.push_tail(rest);
        }
        self.push_tail(beyond);
        self.total += bytes.len() as u64;
    }

    /// Keeps bytes, and returns those that could not be kept.
    fn store<'a>(&mut self, bytes: &'a [u8]) -> Result<(), &'a [u8]> {
        if self.file.is_none() && self.memory.len() + bytes.len() <= IN_MEMORY {
            self.memory.extend_from_slice(bytes);
            self.stored += bytes.len() as u64;
            return Ok(());
        }
        self.spill().map_err(|_| bytes)?;
        let Some(file) = &self.file else {
            return Err(bytes);
        };
        let mut rest = bytes;
        while !rest.is_empty() {
            match file.write_at(rest, self.stored) {
                Ok(n) if n > 0 => {
                    self.stored += n as u64;
                    rest = &rest[n..];
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(_) | Err(_) => return Err(rest),
            }
        }
        Ok(())
    }

    fn push_tail(&mut self, bytes: &[u8]) {
        let last = &bytes[bytes.len().saturating_sub(TAIL)..];
        let excess = (self.tail.len() + last.len()).saturating_sub(TAIL);
        self.tail.drain(..excess);
        self.tail.extend(last);
    }

    /// Moves the bytes in memory to disk. They stay in memory if that fails.
    fn spill(&mut self) -> io::Result<()> {
        if self.file.is_none() {
            let file = atomic::create(&self.path)?;
            file.write_all_at(&self.memory, 0)?;
            self.file = Some(file);
            self.memory = Vec::new();
        }
        Ok(())
    }

    /// Writes everything that is kept to disk, and frees the memory. The stream is over for now.
    ///
    /// # Errors
    /// When a write fails.
    pub fn settle(&mut self) -> io::Result<()> {
        if self.total > 0 {
            self.spill()?;
        }
        if self.total > self.stored {
            let mut bytes = self.total.to_le_bytes().to_vec();
            bytes.extend(self.tail.iter());
            atomic::replace(&self.tail_path(), &bytes)?;
        }
        Ok(())
    }

    fn tail_path(&self) -> PathBuf {
        let mut path = self.path.clone().into_os_string();
        path.push(".tail");
        path.into()
    }

    /// Returns up to `max` bytes from `from` on, and the cursor after them. A cursor within
    /// the gap moves to the tail.
    #[must_use]
    pub fn read(&self, from: u64, max: u64) -> (Vec<u8>, u64) {
        if from < self.stored {
            let bytes = self.read_stored(from, max);
            let next = from + bytes.len() as u64;
            return (bytes, next);
        }
        let tail_start = self.total - self.tail.len() as u64;
        let start = from.clamp(tail_start, self.total);
        let skip = usize::try_from(start - tail_start).unwrap_or(usize::MAX);
        let bytes: Vec<u8> = self
            .tail
            .iter()
            .skip(skip)
            .take(usize::try_from(max).unwrap_or(usize::MAX))
            .copied()
            .collect();
        let next = start + bytes.len() as u64;
        (bytes, next)
    }

    fn read_stored(&self, from: u64, max: u64) -> Vec<u8> {
        let length = usize::try_from(max.min(self.stored - from)).unwrap_or(usize::MAX);
        let Some(file) = &self.file else {
            let start = usize::try_from(from).unwrap_or(usize::MAX);
            return self.memory[start..start + length].to_vec();
        };
        let mut bytes = vec![0; length];
        let mut filled = 0;
        while filled < length {
            match file.read_at(&mut bytes[filled..], from + filled as u64) {
                Ok(0) => break,
                Ok(n) => filled += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
        bytes.truncate(filled);
        bytes
    }

    /// Returns head and tail with at most `max` bytes together, and as many as are kept.
    /// Bytes on both sides of a gap are never joined.
    #[must_use]
    pub fn view(&self, max: u64) -> StreamView {
        let tail_start = self.total - self.tail.len() as u64;
        let has_gap = tail_start > self.stored;
        let (head, tail) = if has_gap {
            let head = self.stored.min(max / 2);
            let tail = (self.total - tail_start).min(max - head);
            (self.stored.min(max - tail), tail)
        } else if self.total <= max {
            (self.total, 0)
        } else {
            (max / 2, max - max / 2)
        };
        StreamView {
            head: self.span(0, head),
            tail: self.span(self.total - tail, tail),
            total: self.total,
            stored: self.stored,
        }
    }

    /// Returns `count` bytes from `from` on, where the stored bytes continue in the tail.
    fn span(&self, from: u64, count: u64) -> Vec<u8> {
        let (mut bytes, next) = self.read(from, count);
        let rest = count - bytes.len() as u64;
        if rest > 0 {
            bytes.extend(self.read(next, rest).0);
        }
        bytes
    }
}

fn path_of(runs: &Path, run: RunNo, stream: StreamName) -> PathBuf {
    runs.join(format!("{run}.{}", stream.as_str()))
}

/// Reads the tail file: eight bytes of the stream's length, then its last bytes.
fn read_tail(path: &Path) -> Option<(u64, Vec<u8>)> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let file = File::from(rustix::fs::open(path, flags, rustix::fs::Mode::empty()).ok()?);
    let mut bytes = Vec::new();
    io::Read::read_to_end(&mut io::Read::take(file, TAIL as u64 + 8), &mut bytes).ok()?;
    let (total, tail) = bytes.split_first_chunk::<8>()?;
    Some((u64::from_le_bytes(*total), tail.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(sessile_testkit::cases(60))]
        #[test]
        fn every_kept_byte_is_read_back(chunks in prop::collection::vec((any::<u8>(), 0usize..40_000), 0..12),
                                        cap in 0u64..200_000, step in 1u64..50_000) {
            let root = tempfile::tempdir().unwrap();
            let mut spool = Spool::new(root.path(), RunNo(1), StreamName::Stdout, cap);
            let mut all = Vec::new();
            for (byte, length) in chunks {
                let chunk: Vec<u8> = (0..length).map(|i| byte.wrapping_add(i as u8)).collect();
                spool.push(&chunk);
                all.extend(chunk);
            }
            spool.settle().unwrap();
            let kept = (all.len() as u64).min(cap);
            for spool in [&spool, &Spool::reopen(root.path(), RunNo(1), StreamName::Stdout)] {
                prop_assert_eq!(spool.total(), all.len() as u64);
                prop_assert_eq!(spool.view(0).stored, kept);
                let mut at = 0;
                while at < spool.total() {
                    let (bytes, next) = spool.read(at, step);
                    let start = next as usize - bytes.len();
                    prop_assert!(at == start as u64 || at == kept);
                    prop_assert_eq!(&bytes[..], &all[start..next as usize]);
                    prop_assert!(next > at);
                    at = next;
                }
                let view = spool.view(1000);
                prop_assert!(all.starts_with(&view.head));
                prop_assert!(all.ends_with(&view.tail));
                prop_assert_eq!(view.dropped() as usize, all.len().saturating_sub(1000));
            }
        }
    }

    #[test]
    fn a_view_has_the_bytes_of_the_end_when_few_are_stored() {
        let root = tempfile::tempdir().unwrap();
        let mut spool = Spool::new(root.path(), RunNo(1), StreamName::Stdout, 1);
        let all: Vec<u8> = (0..=1000).map(|i: u32| i as u8).collect();
        spool.push(&all);
        let view = spool.view(1000);
        assert_eq!((&view.head[..], &view.tail[..]), (&all[..500], &all[501..]));
        assert_eq!(view.dropped(), 1);
    }

    #[test]
    fn a_view_does_not_join_what_is_on_both_sides_of_a_gap() {
        let root = tempfile::tempdir().unwrap();
        let mut spool = Spool::new(root.path(), RunNo(1), StreamName::Stdout, 2);
        spool.push(b"ab");
        spool.push(&vec![b'x'; TAIL + 5]);
        let view = spool.view(10 * TAIL as u64);
        assert_eq!((&view.head[..], view.tail.len()), (&b"ab"[..], TAIL));
        assert_eq!(view.dropped(), 5);
        assert_eq!(spool.view(4).head, b"ab");
        assert_eq!(spool.view(4).tail, b"xx");
    }

    #[test]
    fn a_full_disk_loses_only_what_it_refuses_and_says_so() {
        let root = tempfile::tempdir().unwrap();
        let mut spool = Spool::new(root.path(), RunNo(1), StreamName::Stdout, 1 << 20);
        // A directory in the file's place: creating it fails as a full disk would.
        std::fs::create_dir(root.path().join("1.stdout")).unwrap();
        spool.push(&vec![b'x'; IN_MEMORY + 1]);
        spool.push(b"end");
        let view = spool.view(8);
        assert_eq!(view.total, IN_MEMORY as u64 + 4);
        assert!(view.tail.ends_with(b"end"));
    }
}
