//! What belongs to a snapshot, and what was left out of it and why.

use std::fmt;
use std::path::{Path, PathBuf};

/// What belongs to a workspace's snapshot. Use the same rules for a snapshot
/// and for restoring it.
///
/// Always left out: directories that are called `.sessions`, the depot, and
/// what is mounted from another file system.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    pub ignore: IgnoreFiles,
    pub limits: Limits,
    /// Further directories to leave out, wherever they are.
    pub skip: Vec<PathBuf>,
    pub set_ids: SetIds,
}

/// What a restore does with setuid and setgid bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SetIds {
    #[default]
    Keep,
    /// For trees from elsewhere.
    Drop,
}

/// Whether `.gitignore` and `.sessileignore` files say what is left out.
///
/// Both have git's syntax, and apply to their directory and those below it.
/// `.sessileignore` has the last word, so `!name` there takes in what git
/// ignores. A directory `.git` is not subject to `.gitignore`, as with git.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IgnoreFiles {
    #[default]
    Apply,
    Disregard,
}

/// How large a snapshot may be, in bytes of file content.
#[derive(Debug, Clone, Copy, Default)]
pub struct Limits {
    pub total: Option<u64>,
    pub file: Option<u64>,
    pub over: Over,
}

/// What becomes of files over a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Over {
    /// They are left out, and a restore leaves them alone.
    #[default]
    LeaveOut,
    /// The snapshot fails.
    Refuse,
}

/// Why something was left out, or left alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// A line of an ignore file says so.
    Ignored { file: PathBuf, pattern: String },
    /// It is ours: session directories, the depot, what the caller named.
    Own,
    /// It has no content to store.
    Special(Special),
    /// Larger than one file may be.
    TooLarge { size: u64 },
    /// The whole would be larger than allowed.
    OverTotal { size: u64 },
    /// It could not be read.
    Unreadable(String),
    /// Deeper than 200 directories.
    TooDeep,
    /// Something is mounted there.
    OtherFileSystem,
    /// It was left out of the snapshot that is restored, for whatever reason.
    NotTaken,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Special {
    Fifo,
    Socket,
    Device,
}

impl Reason {
    /// A word that stays the same.
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

/// Something that was left out, by its path from the root.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Omission {
    pub path: PathBuf,
    pub reason: Reason,
}

/// What was left out: all of it counted, some of it named. A directory counts
/// as one.
#[derive(Debug, Clone, Default)]
pub struct LeftOut {
    counts: Vec<(&'static str, u64)>,
    examples: Vec<Omission>,
}

/// How many of each reason are named.
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

    /// How many were left out.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.counts.iter().map(|(_, count)| count).sum()
    }

    /// How many for each reason, by its code.
    #[must_use]
    pub fn counts(&self) -> &[(&'static str, u64)] {
        &self.counts
    }

    /// The first hundred of each reason.
    #[must_use]
    pub fn examples(&self) -> &[Omission] {
        &self.examples
    }
}

/// How much there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Kept {
    pub files: u64,
    pub directories: u64,
    pub symlinks: u64,
    /// Further names of files that are counted in `files`.
    pub hard_links: u64,
    /// Of the files' contents.
    pub bytes: u64,
}
