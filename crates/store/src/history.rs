//! history.log: one JSON object a line, oldest first, bounded.

use crate::atomic;
use crate::metadata::timestamp;
use crate::recorded::Remarks;
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use sessile_protocol::{KernelFate, Language, RunNo, SessionId};
use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;

/// Longer commands are cut in the history: a hundred commands of a megabyte
/// would make each look at it slow. What was cut is told.
const COMMAND_LIMIT: usize = 64 << 10;

/// The unit in which Linux makes appended bytes visible to readers.
const PAGE: u64 = 4096;

/// Most lines are not much longer. One that does not fit into what is left of a
/// page costs a rewrite of the file, so that much is not left of one.
const SHORT_LINE: u64 = 256;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "schema", schema(as = HistoryRow, description = "What was run"))]
pub struct Entry {
    pub run: RunNo,
    pub timestamp: String,
    pub command: String,
    pub language: Language,
    pub exit_code: i32,
    pub duration_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_us: Option<u64>,
    pub kernel: String,
    /// The session that it was run in, if that was another one: it was saved,
    /// and this one goes on from there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_session: Option<SessionId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_of_run: Option<RunNo>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub timed_out: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    /// What it is, if it is no run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<String>,
    /// Bytes of the command, where it was cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command_bytes: Option<u64>,
    /// What it had written when it ended.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub stdout_bytes: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub stderr_bytes: u64,
    #[serde(flatten)]
    pub remarks: Remarks,
    /// The remarks are in a file of their own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_value_file: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Entry {
    /// Something that happened to the session, and is no run.
    #[must_use]
    pub fn event(run: RunNo, language: Language, event: &str, command: String) -> Self {
        Self {
            run,
            timestamp: timestamp(),
            command,
            language,
            exit_code: 0,
            duration_ms: 0,
            duration_us: None,
            kernel: KernelFate::Kept.as_str().to_owned(),
            as_of_run: None,
            timed_out: false,
            interrupted: false,
            event: Some(event.to_owned()),
            from_session: None,
            command_bytes: None,
            stdout_bytes: 0,
            stderr_bytes: 0,
            remarks: Remarks::default(),
            has_value_file: false,
        }
    }

    /// Cuts a command that is too long for the history.
    pub fn set_command(&mut self, text: &[u8]) {
        self.command_bytes = (text.len() > COMMAND_LIMIT).then_some(text.len() as u64);
        self.command = String::from_utf8_lossy(&text[..text.len().min(COMMAND_LIMIT)]).into_owned();
    }
}

#[derive(Debug)]
pub struct History {
    path: PathBuf,
    file: Option<Appending>,
    /// How long the next line may be, to judge by the last ones.
    expected: u64,
}

/// The file, as far as we have written it.
#[derive(Debug)]
struct Appending {
    file: File,
    length: u64,
    /// Entries in it.
    count: u64,
}

impl History {
    pub(crate) fn at(path: PathBuf) -> Self {
        Self { path, file: None, expected: SHORT_LINE }
    }

    /// Adds an entry. A reader sees it whole or not at all, even if we are
    /// killed in the middle of it.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn append(&mut self, entry: &Entry) -> io::Result<()> {
        let mut line = serde_json::to_vec(entry)?;
        let alike = line.len() as u64 * 9 / 8;
        let expected = (self.expected * 7 / 8).max(alike).clamp(SHORT_LINE, PAGE);
        self.expected = expected;
        let appending = self.open()?;
        let room = PAGE - appending.length % PAGE;
        if line.len() as u64 >= room {
            line.push(b'\n');
            return self.rewrite(&line, usize::MAX);
        }
        // The next line would hardly fit into this page: it begins the next.
        let rest = room - 1 - line.len() as u64;
        if rest < expected {
            line.resize(line.len() + usize::try_from(rest).unwrap_or(0), b' ');
        }
        line.push(b'\n');
        if let Err(error) = appending.file.write_all(&line) {
            // A part of it may be there, which the next opening takes away.
            self.file = None;
            return Err(error);
        }
        appending.length += line.len() as u64;
        appending.count += 1;
        Ok(())
    }

    fn open(&mut self) -> io::Result<&mut Appending> {
        let appending = match self.file.take() {
            Some(appending) => appending,
            None => {
                let bytes = std::fs::read(&self.path).unwrap_or_default();
                if !bytes.is_empty() && !bytes.ends_with(b"\n") {
                    self.replace(whole_lines(&bytes))?;
                }
                let flags = OFlags::CREATE | OFlags::APPEND | OFlags::WRONLY | OFlags::CLOEXEC;
                let file = File::from(rustix::fs::open(&self.path, flags, atomic::PRIVATE_FILE)?);
                let length = file.metadata()?.len();
                let count = bytes.iter().filter(|b| **b == b'\n').count() as u64;
                Appending { file, length, count }
            }
        };
        Ok(self.file.insert(appending))
    }

    /// The runs beyond the newest `max`, once there are enough of them to be
    /// worth dropping.
    #[must_use]
    pub fn surplus(&mut self, max: u64) -> Vec<RunNo> {
        let count = self.open().map_or(0, |appending| appending.count);
        if count <= max.saturating_add(slack(max)) {
            return Vec::new();
        }
        let mut runs = self.runs();
        runs.truncate(runs.len().saturating_sub(usize::try_from(max).unwrap_or(usize::MAX)));
        runs
    }

    /// Drops all but the newest `max` entries.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn trim(&mut self, max: u64) -> io::Result<()> {
        self.rewrite(b"", usize::try_from(max).unwrap_or(usize::MAX))
    }

    /// Replaces the file by its newest lines, these among them.
    fn rewrite(&mut self, new: &[u8], keep: usize) -> io::Result<()> {
        let bytes = std::fs::read(&self.path).unwrap_or_default();
        let all = [whole_lines(&bytes), new].concat();
        let lines: Vec<&[u8]> = all.split_inclusive(|b| *b == b'\n').collect();
        self.replace(&lines[lines.len().saturating_sub(keep)..].concat())
    }

    fn replace(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file = None;
        atomic::replace(&self.path, bytes)
    }

    /// All runs of which there is an entry, in the order of their ends.
    #[must_use]
    pub fn runs(&self) -> Vec<RunNo> {
        let text = std::fs::read(&self.path).unwrap_or_default();
        whole_lines(&text).split(|b| *b == b'\n').filter_map(run_of).collect()
    }

    /// The entry of a run.
    #[must_use]
    pub fn find(&self, run: RunNo) -> Option<Entry> {
        let text = std::fs::read(&self.path).unwrap_or_default();
        let mut lines = text.rsplit(|b| *b == b'\n').filter(|line| run_of(line) == Some(run));
        lines.find_map(|line| serde_json::from_slice(line).ok())
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
    }
}

/// The run that a line is about: each of ours begins with it, and reading the
/// rest of a thousand lines would take a millisecond.
fn run_of(line: &[u8]) -> Option<RunNo> {
    let rest = line.strip_prefix(b"{\"run\":")?;
    let digits = rest.split(|b| *b == b',').next()?;
    std::str::from_utf8(digits).ok()?.parse().ok().map(RunNo)
}

/// Without a line that was cut off, which belongs to nobody.
fn whole_lines(bytes: &[u8]) -> &[u8] {
    &bytes[..bytes.iter().rposition(|b| *b == b'\n').map_or(0, |end| end + 1)]
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
            duration_us: Some(1234),
            kernel: "kept".into(),
            from_session: None,
            as_of_run: None,
            timed_out: false,
            interrupted: false,
            event: None,
            command_bytes: None,
            stdout_bytes: 0,
            stderr_bytes: 0,
            remarks: Remarks::default(),
            has_value_file: false,
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
    fn a_torn_last_line_is_passed_over_and_not_written_on() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("history.log");
        History::at(path.clone()).append(&entry(1, "a")).unwrap();
        let mut text = std::fs::read(&path).unwrap();
        text.extend_from_slice(b"{\"run\": 2, \"time");
        std::fs::write(&path, text).unwrap();
        let mut history = History::at(path);
        assert_eq!(history.newest(10).len(), 1);
        history.append(&entry(3, "c")).unwrap();
        assert_eq!(history.runs(), [RunNo(1), RunNo(3)]);
    }

    #[test]
    fn a_short_line_is_appended_in_place_and_never_crosses_a_page() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("history.log");
        let mut history = History::at(path.clone());
        history.append(&entry(1, "a")).unwrap();
        let inode = || std::os::unix::fs::MetadataExt::ino(&std::fs::metadata(&path).unwrap());
        let first = inode();
        for run in 2..300 {
            history.append(&entry(run, "echo $((x+1))")).unwrap();
        }
        assert_eq!(inode(), first);
        let text = std::fs::read(&path).unwrap();
        for page in text.chunks(4096) {
            assert!(page.starts_with(b"{") && page.ends_with(b"\n"));
        }
        assert_eq!(history.runs().len(), 299);
        assert_eq!(history.find(RunNo(17)).unwrap(), entry(17, "echo $((x+1))"));
        assert_eq!(history.find(RunNo(300)), None);
    }

    #[test]
    fn lines_of_one_length_are_appended_however_long_they_are() {
        for length in [300, 700, 1500, 3000] {
            let root = tempfile::tempdir().unwrap();
            let path = root.path().join("history.log");
            let mut history = History::at(path.clone());
            let mut files = std::collections::BTreeSet::new();
            for run in 1..200 {
                history.append(&entry(run, &"x".repeat(length))).unwrap();
                files.insert(std::os::unix::fs::MetadataExt::ino(
                    &std::fs::metadata(&path).unwrap(),
                ));
            }
            assert_eq!(files.len(), 1, "{length}");
            assert_eq!(history.runs().len(), 199);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(crate::cases(40)))]
        #[test]
        fn the_newest_entries_are_always_there(sizes in prop::collection::vec(0usize..3000, 1..60), max in 1u64..12) {
            let root = tempfile::tempdir().unwrap();
            let mut history = History::at(root.path().join("history.log"));
            for (i, size) in sizes.iter().enumerate() {
                history.append(&entry(i as u64 + 1, &"y".repeat(*size))).unwrap();
                let before = history.runs();
                let surplus = history.surplus(max);
                if !surplus.is_empty() {
                    history.trim(max).unwrap();
                    prop_assert_eq!(&before[..surplus.len()], &surplus[..]);
                    prop_assert_eq!(&before[surplus.len()..], &history.runs()[..]);
                }
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
