//! history.log: one JSON object per line, oldest first, bounded.
//!
//! A line is appended within a page, so that no reader finds half of one. A longer line is
//! first appended in a short form, with its command cut, and is replaced by the full one in
//! idle time (`complete`): writing a new file costs more than a run.

use crate::atomic;
use crate::metadata::timestamp;
use crate::recorded::Remarks;
use rustix::fs::{FallocateFlags, OFlags, fallocate};
use serde::{Deserialize, Serialize};
use sessile_protocol::{KernelFate, Language, RunNo, SessionId};
use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;

/// Longer commands are cut in the history, because a hundred commands of a megabyte would
/// make each reading slow. The entry says that the command was cut.
const COMMAND_LIMIT: usize = 64 << 10;

/// The unit in which Linux makes appended bytes visible to readers.
const PAGE: u64 = 4096;

/// Most lines are not much longer. A page keeps no smaller remainder: the next line begins
/// a new page.
const SHORT_LINE: u64 = 256;

/// Length of the command in a short form.
const SHORT_COMMAND: usize = 64;

/// Disk space that is reserved for the next lines, so that a run keeps its line while the
/// disk is full: enough for a hundred short lines.
const RESERVE: u64 = 32 << 10;

/// Limit for full lines that wait to be written, in bytes.
const OWED_LIMIT: usize = 1 << 20;

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
    /// The session that it was run in, if that was another one, which was saved and restored
    /// as this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_session: Option<SessionId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub as_of_run: Option<RunNo>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub timed_out: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub interrupted: bool,
    /// The kind of event, if it is not a run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub event: Option<String>,
    /// Bytes of the command, where it was cut.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command_bytes: Option<u64>,
    /// Bytes written by its end.
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
    /// Returns an entry for an event of the session that is not a run.
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

    /// Sets the command, cut if it is too long for the history.
    pub fn set_command(&mut self, text: &[u8]) {
        self.command_bytes = (text.len() > COMMAND_LIMIT).then_some(text.len() as u64);
        self.command = String::from_utf8_lossy(&text[..text.len().min(COMMAND_LIMIT)]).into_owned();
    }
}

#[derive(Debug)]
pub struct History {
    path: PathBuf,
    file: Option<Appending>,
    /// Expected length of the next line, judging by the last ones.
    expected: u64,
    /// Full lines of which the file has the short form.
    owed: Vec<UnwrittenLine>,
}

#[derive(Debug)]
struct UnwrittenLine {
    run: RunNo,
    line: Vec<u8>,
}

/// The open file, and its length as far as we have written it.
#[derive(Debug)]
struct Appending {
    file: File,
    length: u64,
    /// Number of entries in the file.
    count: u64,
    /// Up to here the disk space is reserved, however full the disk gets.
    reserved: u64,
}

impl History {
    pub(crate) fn at(path: PathBuf) -> Self {
        Self { path, file: None, expected: SHORT_LINE, owed: Vec::new() }
    }

    /// Returns the history at a new path, with the pending full lines.
    #[must_use]
    pub fn moved_to(&mut self, there: Self) -> Self {
        Self { owed: std::mem::take(&mut self.owed), ..there }
    }

    /// Adds an entry, if need be in a short form until `complete` is called. A reader sees
    /// the whole line or none of it, even if we are killed while writing it.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn append(&mut self, entry: &Entry) -> io::Result<()> {
        let line = serde_json::to_vec(entry)?;
        let room = self.open()?.room();
        if (line.len() as u64) < room {
            return self.append_line(line);
        }
        let short = short_forms(entry).find_map(|form| {
            let form = serde_json::to_vec(&form).ok()?;
            ((form.len() as u64) < room).then_some(form)
        });
        let whole = UnwrittenLine { run: entry.run, line: [&line[..], b"\n"].concat() };
        match short {
            Some(short) => {
                // The next line of this length should find room.
                if (line.len() as u64) < PAGE {
                    self.expect(&line);
                }
                self.append_line(short)?;
                self.owed.push(whole);
            }
            None => self.rewrite(&whole.line, usize::MAX)?,
        }
        let owed: usize = self.owed.iter().map(|owed| owed.line.len()).sum();
        if owed > OWED_LIMIT { self.complete() } else { Ok(()) }
    }

    /// Replaces the short forms by the full lines.
    ///
    /// # Errors
    /// When the file cannot be written; then the full lines stay pending.
    pub fn complete(&mut self) -> io::Result<()> {
        if self.owed.is_empty() { Ok(()) } else { self.rewrite(b"", usize::MAX) }
    }

    /// Returns whether no full lines are pending.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.owed.is_empty()
    }

    /// Reserves disk space for the next lines, if the file system supports that.
    pub fn reserve(&mut self) {
        let Ok(appending) = self.open() else { return };
        let length = appending.length;
        if appending.reserved < length + RESERVE / 2
            && fallocate(&appending.file, FallocateFlags::KEEP_SIZE, length, RESERVE).is_ok()
        {
            appending.reserved = length + RESERVE;
        }
    }

    /// Releases the reserved space: it is needed elsewhere, or no line will come any more.
    pub fn release_reserve(&mut self) {
        if let Some(appending) = &mut self.file {
            let _ = appending.file.set_len(appending.length);
            appending.reserved = appending.length;
        }
    }

    fn expect(&mut self, line: &[u8]) -> u64 {
        let alike = line.len() as u64 * 9 / 8;
        self.expected = (self.expected * 7 / 8).max(alike).clamp(SHORT_LINE, PAGE);
        self.expected
    }

    /// Adds a line that fits into the page.
    fn append_line(&mut self, mut line: Vec<u8>) -> io::Result<()> {
        let expected = self.expect(&line);
        let appending = self.open()?;
        let room = appending.room();
        // The next line would hardly fit into this page, so it begins the next one.
        let rest = room - 1 - line.len() as u64;
        if rest < expected {
            line.resize(line.len() + usize::try_from(rest).unwrap_or(0), b' ');
        }
        line.push(b'\n');
        if let Err(error) = appending.file.write_all(&line) {
            // A part of it may be in the file; the next `open` removes that.
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
                Appending { file, length, count, reserved: length }
            }
        };
        Ok(self.file.insert(appending))
    }

    /// Returns the runs beyond the newest `max`, if there are enough of them to be worth dropping.
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

    /// Replaces the file by its newest lines, including `new`, all in their full form.
    fn rewrite(&mut self, new: &[u8], keep: usize) -> io::Result<()> {
        let bytes = std::fs::read(&self.path).unwrap_or_default();
        let all = [whole_lines(&bytes), new].concat();
        let mut lines: Vec<&[u8]> = all.split_inclusive(|b| *b == b'\n').collect();
        lines.drain(..lines.len().saturating_sub(keep));
        let owed = std::mem::take(&mut self.owed);
        for line in &mut lines {
            *line = whole(line, &owed);
        }
        let outcome = self.replace(&lines.concat());
        if outcome.is_err() {
            self.owed = owed;
        }
        outcome
    }

    fn replace(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file = None;
        atomic::replace(&self.path, bytes)
    }

    /// Returns all runs with an entry, in the order of their ends.
    #[must_use]
    pub fn runs(&self) -> Vec<RunNo> {
        let text = std::fs::read(&self.path).unwrap_or_default();
        whole_lines(&text).split(|b| *b == b'\n').filter_map(run_of).collect()
    }

    /// Returns the entry of a run.
    #[must_use]
    pub fn find(&self, run: RunNo) -> Option<Entry> {
        let text = std::fs::read(&self.path).unwrap_or_default();
        let mut lines = text.rsplit(|b| *b == b'\n').filter(|line| run_of(line) == Some(run));
        lines.find_map(|line| serde_json::from_slice(whole(line, &self.owed)).ok())
    }

    /// Returns the newest `limit` entries, oldest first. Lines that are not ours are skipped.
    #[must_use]
    pub fn newest(&self, limit: u64) -> Vec<Entry> {
        let text = std::fs::read(&self.path).unwrap_or_default();
        let mut entries: Vec<Entry> = text
            .rsplit(|b| *b == b'\n')
            .filter_map(|line| serde_json::from_slice(whole(line, &self.owed)).ok())
            .take(usize::try_from(limit).unwrap_or(usize::MAX))
            .collect();
        entries.reverse();
        entries
    }

    pub fn clear(&mut self) {
        let _ = std::fs::remove_file(&self.path);
        self.file = None;
        self.owed.clear();
    }
}

impl Appending {
    /// Returns the remaining bytes of the page.
    fn room(&self) -> u64 {
        PAGE - self.length % PAGE
    }
}

/// Returns shorter and shorter forms of an entry. Each says what it omits: the length of
/// the command, and that there are more remarks.
fn short_forms(entry: &Entry) -> impl Iterator<Item = Entry> {
    let bytes = entry.command_bytes.unwrap_or(entry.command.len() as u64);
    let cut = move |command: usize, remarks: Remarks| Entry {
        command: entry.command.chars().take(command).collect(),
        command_bytes: Some(bytes),
        has_value_file: entry.has_value_file || remarks != entry.remarks,
        remarks,
        timestamp: entry.timestamp.clone(),
        kernel: entry.kernel.clone(),
        from_session: entry.from_session.clone(),
        event: entry.event.clone(),
        ..*entry
    };
    let forms = [
        (SHORT_COMMAND, entry.remarks.clone()),
        (SHORT_COMMAND, Remarks::default()),
        (0, Remarks::default()),
    ];
    forms.into_iter().map(move |(command, remarks)| cut(command, remarks))
}

/// Returns the full form of a line, if the line is a short form.
fn whole<'a>(line: &'a [u8], owed: &'a [UnwrittenLine]) -> &'a [u8] {
    if owed.is_empty() {
        return line;
    }
    let found = owed.iter().find(|owed| run_of(line) == Some(owed.run));
    found.map_or(line, |owed| &owed.line)
}

/// Returns the run of a line. Each of our lines begins with it, and parsing the rest of a
/// thousand lines would take a millisecond.
fn run_of(line: &[u8]) -> Option<RunNo> {
    let rest = line.strip_prefix(b"{\"run\":")?;
    let digits = rest.split(|b| *b == b',').next()?;
    std::str::from_utf8(digits).ok()?.parse().ok().map(RunNo)
}

/// Returns the bytes without an incomplete last line.
fn whole_lines(bytes: &[u8]) -> &[u8] {
    &bytes[..bytes.iter().rposition(|b| *b == b'\n').map_or(0, |end| end + 1)]
}

/// Entries beyond the limit that may accumulate; otherwise each further run would rewrite
/// the file.
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
    fn a_long_line_is_there_in_short_until_there_is_time_for_the_whole() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("history.log");
        let mut history = History::at(path.clone());
        let inode = || std::os::unix::fs::MetadataExt::ino(&std::fs::metadata(&path).unwrap());
        history.append(&entry(1, "a")).unwrap();
        let first = inode();
        let long = "echo \"\u{1}\" ".repeat(1000);
        let said = Remarks { notes: vec!["n".repeat(2000)], ..Remarks::default() };
        history.append(&Entry { remarks: said.clone(), ..entry(2, &long) }).unwrap();
        history.append(&entry(3, "c")).unwrap();
        assert_eq!(inode(), first, "no file is made for it");
        // A reader of the file alone sees that there is more.
        let seen = History::at(path.clone()).newest(10);
        assert_eq!(seen.iter().map(|entry| entry.run.0).collect::<Vec<_>>(), [1, 2, 3]);
        assert!(long.starts_with(&seen[1].command) && !seen[1].command.is_empty());
        assert_eq!(seen[1].command_bytes, Some(long.len() as u64));
        assert!(seen[1].has_value_file || seen[1].remarks == said);
        // The writer knows the full entry.
        let whole = Entry { remarks: said, ..entry(2, &long) };
        assert_eq!(history.find(RunNo(2)).as_ref(), Some(&whole));
        assert!(!history.is_complete());
        history.complete().unwrap();
        assert!(history.is_complete());
        assert_eq!(History::at(path.clone()).newest(2), [whole, entry(3, "c")]);
        history.append(&entry(4, "d")).unwrap();
        assert_eq!(history.runs(), [1, 2, 3, 4].map(RunNo));
    }

    #[test]
    fn long_lines_do_not_wait_without_end() {
        let root = tempfile::tempdir().unwrap();
        let mut history = History::at(root.path().join("history.log"));
        let long = "x".repeat(COMMAND_LIMIT);
        for run in 1..=40 {
            history.append(&entry(run, &long)).unwrap();
            let owed: usize = history.owed.iter().map(|owed| owed.line.len()).sum();
            assert!(owed <= OWED_LIMIT);
        }
        history.trim(20).unwrap();
        assert!(history.is_complete());
        let kept = history.newest(100);
        assert_eq!(kept.len(), 20);
        assert!(kept.iter().all(|entry| entry.command == long));
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
        #![proptest_config(sessile_testkit::cases(40))]
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
