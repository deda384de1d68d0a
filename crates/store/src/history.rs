//! history.log: one JSON object a line, oldest first, bounded.

use crate::atomic;
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use sessile_protocol::{Language, RunNo};
use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;

/// Longer commands are cut in the history: a hundred commands of a megabyte
/// would make each look at it slow. What was cut is told.
const COMMAND_LIMIT: usize = 64 << 10;

/// The unit in which Linux makes appended bytes visible to readers.
const PAGE: u64 = 4096;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    pub run: RunNo,
    pub timestamp: String,
    pub command: String,
    pub language: Language,
    pub exit_code: i32,
    pub duration_ms: u64,
    pub kernel: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_of_run: Option<RunNo>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub timed_out: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    /// Bytes of the command, where it was cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command_bytes: Option<u64>,
}

impl Entry {
    /// Cuts a command that is too long for the history.
    pub fn set_command(&mut self, text: &[u8]) {
        self.command_bytes = (text.len() > COMMAND_LIMIT).then_some(text.len() as u64);
        self.command = String::from_utf8_lossy(&text[..text.len().min(COMMAND_LIMIT)]).into_owned();
    }
}

#[derive(Debug)]
pub struct History {
    path: PathBuf,
    file: Option<(File, u64)>,
    /// Entries in the file, once known.
    count: Option<u64>,
}

impl History {
    pub(crate) fn at(path: PathBuf) -> Self {
        Self { path, file: None, count: None }
    }

    /// Adds entries; the newest `max` are kept, and some older ones until the
    /// next rewrite. Returns the oldest run in the file when older ones were
    /// dropped from it.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn append(&mut self, entries: &[Entry], max: u64) -> io::Result<Option<RunNo>> {
        let mut lines = Vec::new();
        for entry in entries {
            serde_json::to_writer(&mut lines, entry)?;
            lines.push(b'\n');
        }
        if lines.is_empty() {
            return Ok(None);
        }
        if self.file.is_none() {
            let flags = OFlags::CREATE | OFlags::APPEND | OFlags::WRONLY | OFlags::CLOEXEC;
            let file = File::from(rustix::fs::open(&self.path, flags, atomic::PRIVATE_FILE)?);
            let length = file.metadata()?.len();
            self.file = Some((file, length));
        }
        let count = self.count.unwrap_or(u64::MAX).saturating_add(entries.len() as u64);
        if let Some((file, length)) = &mut self.file {
            let end = *length + lines.len() as u64;
            // Within a page a reader sees them whole or not at all, even if we
            // are killed in the middle of it.
            let is_atomic = *length / PAGE == (end - 1) / PAGE;
            if is_atomic && count <= max.saturating_add(slack(max)) {
                file.write_all(&lines)?;
                *length = end;
                self.count = Some(count);
                return Ok(None);
            }
        }
        self.rewrite(&lines, max)
    }

    /// Replaces the file by its newest entries, these lines among them.
    fn rewrite(&mut self, new: &[u8], max: u64) -> io::Result<Option<RunNo>> {
        let mut all = std::fs::read(&self.path).unwrap_or_default();
        // A line that was cut off belongs to nobody.
        all.truncate(all.iter().rposition(|b| *b == b'\n').map_or(0, |end| end + 1));
        all.extend_from_slice(new);
        let lines: Vec<&[u8]> = all.split_inclusive(|b| *b == b'\n').collect();
        let keep = usize::try_from(max).unwrap_or(usize::MAX);
        let first = lines.len().saturating_sub(keep);
        atomic::replace(&self.path, &lines[first..].concat())?;
        self.file = None;
        self.count = Some((lines.len() - first) as u64);
        let oldest = lines.get(first).and_then(|line| serde_json::from_slice::<Entry>(line).ok());
        Ok(oldest.map(|entry| entry.run).filter(|_| first > 0))
    }

    /// The newest `limit` entries, oldest first. Lines that are not ours are
    /// passed over.
    #[must_use]
    pub fn newest(&self, limit: u64) -> Vec<Entry> {
        let text = std::fs::read(&self.path).unwrap_or_default();
        let mut entries: Vec<Entry> = text
            .rsplit(|b| *b == b'\n')
            .filter_map(|line| serde_json::from_slice(line).ok())
            .take(usize::try_from(limit).unwrap_or(usize::MAX))
            .collect();
        entries.reverse();
        entries
    }

    pub fn clear(&mut self) {
        let _ = std::fs::remove_file(&self.path);
        self.file = None;
        self.count = None;
    }
}

/// Entries beyond the limit that may pile up, or each further run would have
/// to rewrite the file.
fn slack(max: u64) -> u64 {
    max / 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn entry(run: u64, command: &str) -> Entry {
        let mut entry = Entry {
            run: RunNo(run),
            timestamp: "2026-01-01T00:00:00.000Z".into(),
            command: String::new(),
            language: Language::Bash,
            exit_code: 0,
            duration_ms: 1,
            kernel: "kept".into(),
            as_of_run: None,
            timed_out: false,
            interrupted: false,
            command_bytes: None,
        };
        entry.set_command(command.as_bytes());
        entry
    }

    #[test]
    fn a_command_of_a_megabyte_is_cut_and_told() {
        let entry = entry(1, &"x".repeat(1 << 20));
        assert_eq!(entry.command.len(), COMMAND_LIMIT);
        assert_eq!(entry.command_bytes, Some(1 << 20));
    }

    #[test]
    fn a_torn_last_line_is_passed_over() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("history.log");
        let mut history = History::at(path.clone());
        history.append(&[entry(1, "a")], 10).unwrap();
        let mut text = std::fs::read(&path).unwrap();
        text.extend_from_slice(b"{\"run\": 2, \"time");
        std::fs::write(&path, text).unwrap();
        assert_eq!(history.newest(10).len(), 1);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(crate::cases(40)))]
        #[test]
        fn the_newest_entries_are_always_there(sizes in prop::collection::vec(0usize..3000, 1..60), max in 1u64..12) {
            let root = tempfile::tempdir().unwrap();
            let mut history = History::at(root.path().join("history.log"));
            for (i, size) in sizes.iter().enumerate() {
                history.append(&[entry(i as u64 + 1, &"y".repeat(*size))], max).unwrap();
                let seen = history.newest(1000);
                prop_assert!(seen.len() as u64 <= max + slack(max));
                let last = seen.last().unwrap();
                prop_assert_eq!(last.run, RunNo(i as u64 + 1));
                prop_assert_eq!(last.command.len(), *size);
                prop_assert!(seen.windows(2).all(|w| w[0].run.next() == w[1].run));
                prop_assert!(seen.len() as u64 >= max.min(i as u64 + 1));
            }
        }
    }
}
