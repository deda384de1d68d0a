//! The contents of a snapshot, and what was left out and why.

use std::fmt;
use std::path::{Path, PathBuf};

/// The contents of a workspace's snapshot. Use the same rules for a snapshot and for restoring it.
///
/// Always left out: directories named `.sessions`, the depot, and mounts of other file systems.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    pub ignore: IgnoreFiles,
    pub limits: Limits,
    /// Additional directories to leave out, wherever they are.
    pub skip: Vec<PathBuf>,
    pub set_ids: SetIds,
}

/// How a restore treats setuid and setgid bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SetIds {
    #[default]
    Keep,
    /// For trees from elsewhere.
    Drop,
}

/// Whether `.gitignore` and `.sessileignore` files apply.
///
/// Both have git's syntax, and apply to their directory and those below it.
/// `.sessileignore` has precedence, so `!name` there includes what git ignores. As with
/// git, a directory `.git` is not subject to `.gitignore`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IgnoreFiles {
    #[default]
    Apply,
    Disregard,
}

/// Size limits of a snapshot, in bytes of file content.
#[derive(Debug, Clone, Copy, Default)]
pub struct Limits {
    pub total: Option<u64>,
    pub file: Option<u64>,
    pub over: OverLimit,
}

/// How files over a limit are treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OverLimit {
    /// They are left out, and a restore leaves them alone.
    #[default]
    LeaveOut,
    /// The snapshot fails.
    Refuse,
}

/// Why an entry was left out, or left alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// A line of an ignore file matches.
    Ignored { file: PathBuf, pattern: String },
    /// It is ours: session directories, the depot, and directories that the caller named.
    Own,
    /// It has no content to store.
    Special(Special),
    /// The file exceeds the limit for a file.
    TooLarge { size: u64 },
    /// The snapshot would exceed its total limit.
    OverTotal { size: u64 },
    /// It could not be read.
    Unreadable(String),
    /// Deeper than 200 directories.
    TooDeep,
    /// It is a mount point.
    OtherFileSystem,
    /// It was left out of the restored snapshot, for any reason.
    NotTaken,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Special {
    Fifo,
    Socket,
    Device,
}

impl Reason {
    /// Returns a stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Reason::Ignored { .. } => "ignored",
            Reason::Own => "own",
            Reason::Special(_) => "special",
            Reason::TooLarge { .. } => "too_large",
            Reason::OverTotal { .. } => "over_total",
            Reason::Unreadable(_) => "unreadable",
            Reason::TooDeep => "too_deep",
            Reason::OtherFileSystem => "other_file_system",
            Reason::NotTaken => "not_taken",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reason::Ignored { file, pattern } => {
                write!(f, "ignored by \"{pattern}\" in {}", file.display())
            }
            Reason::Own => f.write_str("belongs to sessile itself"),
            Reason::Special(Special::Fifo) => f.write_str("a FIFO has no content"),
            Reason::Special(Special::Socket) => f.write_str("a socket has no content"),
            Reason::Special(Special::Device) => f.write_str("a device has no content"),
            Reason::TooLarge { size } => write!(f, "too large: {size} bytes"),
            Reason::OverTotal { size } => {
                write!(f, "{size} bytes, and with it the whole is too large")
            }
            Reason::Unreadable(why) => write!(f, "cannot be read: {why}"),
            Reason::TooDeep => f.write_str("too many directories deep"),
            Reason::OtherFileSystem => f.write_str("mounted from another file system"),
            Reason::NotTaken => f.write_str("the snapshot does not have it"),
        }
    }
}

/// An entry that was left out, by its path from the root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Omission {
    pub path: PathBuf,
    pub reason: Reason,
}

/// The entries that were left out: all are counted, some are named. A directory counts as one.
#[derive(Debug, Clone, Default)]
pub struct LeftOut {
    counts: Vec<(&'static str, u64)>,
    examples: Vec<Omission>,
}

/// Maximum number of named entries per reason.
const EXAMPLES: u64 = 100;

impl LeftOut {
    pub(crate) fn add(&mut self, path: &Path, reason: Reason) {
        let code = reason.code();
        let at = self.counts.iter().position(|(known, _)| *known == code);
        let at = at.unwrap_or_else(|| {
            self.counts.push((code, 0));
            self.counts.len() - 1
        });
        self.counts[at].1 += 1;
        if self.counts[at].1 <= EXAMPLES {
            self.examples.push(Omission { path: path.to_owned(), reason });
        }
    }

    /// Returns the number of entries that were left out.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.counts.iter().map(|(_, count)| count).sum()
    }

    /// Returns the number for each reason, by its code.
    #[must_use]
    pub fn counts(&self) -> &[(&'static str, u64)] {
        &self.counts
    }

    /// Returns the first hundred of each reason.
    #[must_use]
    pub fn examples(&self) -> &[Omission] {
        &self.examples
    }
}

/// The size of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TreeSize {
    pub files: u64,
    pub directories: u64,
    pub symlinks: u64,
    /// Additional names of files that are counted in `files`.
    pub hard_links: u64,
    /// Size of the files' contents.
    pub bytes: u64,
}
