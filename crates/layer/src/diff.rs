//! Changes as text: a unified diff in git's format, which `git apply` and `patch` accept,
//! and a table of the number of changed lines.

use crate::apply::check_selection;
use crate::changes::{Change, Old, Sort};
use crate::copying::has_set_ids;
use crate::found::{Kind, Node};
use crate::quoting::prefixed;
use crate::scope::Selection;
use crate::{Layer, LayerError, Result, Skipped, Tree, quoted};
use similar::{ChangeTag, TextDiff};
use std::fmt::Write;
use std::time::Duration;

/// Larger files are mentioned, but not shown.
const LARGEST: u64 = 4 << 20;
/// Time limit of a comparison: two files that have nothing in common could take forever.
const PATIENCE: Duration = Duration::from_secs(1);
/// Columns of the marks after a file in the table.
const MARKS: u64 = 40;

/// The changes of a layer.
#[derive(Debug)]
pub struct Diff {
    pub changes: Vec<ShownChange>,
    /// Paths that could not be looked at.
    pub skipped: Vec<Skipped>,
    /// Text was omitted, because there was more than requested.
    pub is_truncated: bool,
}

/// One change, with its text.
#[derive(Debug)]
pub struct ShownChange {
    pub change: Change,
    pub lines: Lines,
    /// Its part of the diff.
    pub text: String,
}

/// How much of a file has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lines {
    Text { insertions: u64, deletions: u64 },
    Binary,
    TooLarge,
}

impl Lines {
    const NONE: Self = Self::Text { insertions: 0, deletions: 0 };

    #[must_use]
    pub fn counts(self) -> (u64, u64) {
        match self {
            Self::Text { insertions, deletions } => (insertions, deletions),
            Self::Binary | Self::TooLarge => (0, 0),
        }
    }
}

/// A change's text, if the session's file can be read.
type Shown = Result<(Lines, String), Unreadable>;

/// Why it cannot.
struct Unreadable(String);

impl Layer {
    /// Returns the session's changes: of all paths, or of some. The text has at most `most` bytes.
    ///
    /// # Errors
    /// When a path is invalid or has no changes, or the layer cannot be read.
    pub fn diff(&self, paths: &[Vec<u8>], most: usize) -> Result<Diff> {
        let selection = Selection::parse(paths)?;
        let changes = self.changes(&self.ledger()?, &selection)?;
        check_selection(&selection, &changes.list)?;
        let has_more_below = Implied::of(&changes.list);
        let mut diff = Diff { changes: Vec::new(), skipped: changes.skipped, is_truncated: false };
        let mut length = 0;
        for change in changes.list {
            let (lines, mut text) = match self.show(&change, has_more_below.has(&change)) {
                Ok(shown) => shown,
                Err(Unreadable(reason)) => {
                    diff.skipped.push(Skipped { path: change.path, reason });
                    continue;
                }
            };
            length += text.len();
            if length > most {
                diff.is_truncated = true;
                text.clear();
            }
            diff.changes.push(ShownChange { change, lines, text });
        }
        Ok(diff)
    }

    fn show(&self, change: &Change, is_implied: bool) -> Shown {
        let text = match (change.before, change.after) {
            // Shown at the file's new path.
            (Some(_), None) if change.renamed_to.is_some() => String::new(),
            (before, after) if is_directory(before) || is_directory(after) => {
                let replaced = [before, after].into_iter().flatten();
                let replaced = replaced.filter(|node| node.kind != Kind::Directory).count() > 0;
                return match (is_implied, replaced) {
                    (_, true) => self.replaced(change),
                    (true, false) => Ok((Lines::NONE, String::new())),
                    (false, false) => Ok((Lines::NONE, directory(change))),
                };
            }
            (None, Some(after)) if change.old.is_some() => return Ok(self.renamed(change, after)),
            _ if is_other(change.before) || is_other(change.after) => other(change),
            (Some(before), Some(after)) if before.kind != after.kind => {
                return self.replaced(change);
            }
            _ => return self.compared(&change.path, change.before, change.after),
        };
        Ok((Lines::NONE, text))
    }

    /// Shows a path whose kind changes: the deletion of the old one and the addition of the new.
    fn replaced(&self, change: &Change) -> Shown {
        let plain = |node: &Node| matches!(node.kind, Kind::File | Kind::Link);
        let (mut text, mut counts) = (String::new(), (0, 0));
        for (before, after) in [(change.before, None), (None, change.after)] {
            if before.or(after).as_ref().is_some_and(plain) {
                let (lines, part) = self.compared(&change.path, before, after)?;
                let (insertions, deletions) = lines.counts();
                counts = (counts.0 + insertions, counts.1 + deletions);
                text.push_str(&part);
            } else {
                let change = Change { before, after, ..change.clone() };
                text.push_str(&if is_other(before.or(after)) {
                    other(&change)
                } else {
                    directory(&change)
                });
            }
        }
        Ok((Lines::Text { insertions: counts.0, deletions: counts.1 }, text))
    }

    /// Shows a renamed file, and the changes in it.
    fn renamed(&self, change: &Change, after: Node) -> (Lines, String) {
        let from = change.renamed_from.as_deref().unwrap_or_default();
        let Some(Old { node: before, alike }) = change.old else {
            return (Lines::NONE, String::new());
        };
        let names = (prefixed("a/", from), prefixed("b/", &change.path));
        let mut text = format!("diff --git {} {}\n{}", names.0, names.1, modes(before, after));
        let (old, new) = (quoted(from), quoted(&change.path));
        let _ = writeln!(text, "similarity index {alike}%\nrename from {old}\nrename to {new}");
        let old = content(&self.real, from, Some(before));
        let new = content(&self.upper, &change.path, Some(after));
        match (old, new) {
            (Ok(old), Ok(new)) if alike < 100 => {
                let (lines, hunks) = unified((&old, &names.0), (&new, &names.1));
                (lines, text + &hunks)
            }
            _ => (Lines::NONE, text),
        }
    }

    /// Shows two files or links, or one that is new or deleted.
    fn compared(&self, path: &[u8], before: Option<Node>, after: Option<Node>) -> Shown {
        let (old_name, new_name) = (prefixed("a/", path), prefixed("b/", path));
        let head = format!("diff --git {old_name} {new_name}\n");
        let told = match (before, after) {
            (None, Some(new)) => format!("new file mode {}\n", git_mode(new)),
            (Some(old), None) => format!("deleted file mode {}\n", git_mode(old)),
            (Some(old), Some(new)) => modes(old, new),
            (None, None) => String::new(),
        };
        let old_name = before.map_or("/dev/null", |_| &old_name);
        let new_name = after.map_or("/dev/null", |_| &new_name);
        let old = content(&self.real, path, before);
        let new = content(&self.upper, path, after);
        Ok(match (old, new) {
            (_, Err(NoText::Unreadable(reason))) => return Err(Unreadable(reason)),
            (Ok(old), Ok(new)) if old == new => (Lines::NONE, head + &told),
            (Ok(old), Ok(new)) => {
                let (lines, hunks) = unified((&old, old_name), (&new, new_name));
                (lines, head + &told + &hunks)
            }
            (Err(why), _) | (_, Err(why)) => {
                let (lines, kind, hint) = match why {
                    NoText::TooLarge => (Lines::TooLarge, "Files", ", too large to show"),
                    NoText::Binary | NoText::Unreadable(_) => (Lines::Binary, "Binary files", ""),
                };
                let size = |node: Option<Node>| node.map_or(0, |node| node.size);
                let (old_size, new_size) = (size(before), size(after));
                // `git apply` refuses the whole diff because of missing content if this
                // line is below a header, or if it ends in `differ` after a header that has
                // nothing else. A line like this one is skipped.
                let bits = match (before, after) {
                    (None, Some(new)) if has_set_ids(&new) => format!(", mode {:04o}", new.mode),
                    _ => String::new(),
                };
                let mut text = format!(
                    "{kind} {old_name} and {new_name} differ: {old_size} and {new_size} bytes{bits}{hint}\n"
                );
                if before.is_some() && after.is_some() && !told.is_empty() {
                    text = text + &head + &told;
                }
                (lines, text)
            }
        })
    }
}

/// Returns both permissions, if they differ.
fn modes(before: Node, after: Node) -> String {
    match (git_mode(before), git_mode(after)) {
        (old, new) if old == new => String::new(),
        (old, new) => format!("old mode {old}\nnew mode {new}\n"),
    }
}

/// Returns the differences of two named texts.
fn unified((old, old_name): (&str, &str), (new, new_name): (&str, &str)) -> (Lines, String) {
    let diff = TextDiff::configure().timeout(PATIENCE).diff_lines(old, new);
    let (mut insertions, mut deletions) = (0, 0);
    for change in diff.iter_all_changes() {
        match change.tag() {
            ChangeTag::Insert => insertions += 1,
            ChangeTag::Delete => deletions += 1,
            ChangeTag::Equal => {}
        }
    }
    // As in git: `patch` takes a name with a space for two words, unless a tab ends it.
    let ended = |name: &str| format!("{name}{}", if name.contains(' ') { "\t" } else { "" });
    let text = diff.unified_diff().header(&ended(old_name), &ended(new_name)).to_string();
    (Lines::Text { insertions, deletions }, text)
}

impl Diff {
    /// Returns the whole diff.
    #[must_use]
    pub fn text(&self) -> String {
        self.changes.iter().map(|shown| shown.text.as_str()).collect()
    }

    /// Returns the numbers of inserted and deleted lines.
    #[must_use]
    pub fn counts(&self) -> (u64, u64) {
        self.changes.iter().fold((0, 0), |sum, shown| {
            let (insertions, deletions) = shown.lines.counts();
            (sum.0 + insertions, sum.1 + deletions)
        })
    }

    /// Returns a line for each file, and a total.
    #[must_use]
    pub fn stat(&self) -> String {
        let rows: Vec<(String, &ShownChange)> = self
            .changes
            .iter()
            .filter(|shown| shown.change.renamed_to.is_none() && !shown.text.is_empty())
            .map(|shown| (label(&shown.change), shown))
            .collect();
        let width = rows.iter().map(|(label, _)| label.chars().count()).max().unwrap_or(0);
        let most = rows.iter().map(|(_, shown)| sum(shown.lines)).max().unwrap_or(0).max(1);
        let mut text = String::new();
        for (label, shown) in &rows {
            let _ = writeln!(text, " {label:<width$} | {}", marks(shown, most));
        }
        let (insertions, deletions) = self.counts();
        let files = rows.len();
        let noun = if files == 1 { "path" } else { "paths" };
        let _ = writeln!(
            text,
            " {files} {noun} changed, {insertions} insertions(+), {deletions} deletions(-)"
        );
        text
    }
}

fn sum(lines: Lines) -> u64 {
    let (insertions, deletions) = lines.counts();
    insertions + deletions
}

fn label(change: &Change) -> String {
    match &change.renamed_from {
        Some(from) => format!("{} => {}", quoted(from), quoted(&change.path)),
        None => quoted(&change.path),
    }
}

fn marks(shown: &ShownChange, most: u64) -> String {
    let size = |node: Option<Node>| node.map_or(0, |node| node.size);
    match (shown.change.sort(), shown.lines) {
        (Sort::Renamed, lines) if sum(lines) == 0 => "renamed".to_owned(),
        (_, Lines::Binary | Lines::TooLarge) => {
            format!("Bin {} -> {} bytes", size(shown.change.before), size(shown.change.after))
        }
        (sort, Lines::Text { insertions: 0, deletions: 0 }) => match sort {
            Sort::Added => "added".to_owned(),
            Sort::Deleted => "deleted".to_owned(),
            Sort::Modified | Sort::Renamed => "mode".to_owned(),
        },
        (_, Lines::Text { insertions, deletions }) => {
            let scaled = |count: u64| {
                let marks = if most <= MARKS { count } else { (count * MARKS).div_ceil(most) };
                usize::try_from(marks).unwrap_or_default()
            };
            let (plus, minus) = ("+".repeat(scaled(insertions)), "-".repeat(scaled(deletions)));
            format!("{} {plus}{minus}", insertions + deletions)
        }
    }
}

fn is_directory(node: Option<Node>) -> bool {
    node.is_some_and(|node| node.kind == Kind::Directory)
}

fn is_other(node: Option<Node>) -> bool {
    node.is_some_and(|node| node.kind == Kind::Other)
}

fn git_mode(node: Node) -> String {
    match node.kind {
        Kind::File => format!("10{:04o}", node.mode),
        Kind::Link => "120000".to_owned(),
        Kind::Directory | Kind::Other => format!("{:06o}", node.mode),
    }
}

/// Returns the line for a directory. Git's diffs have none; `patch` skips this line.
fn directory(change: &Change) -> String {
    let path = quoted(&change.path);
    match (change.before, change.after) {
        (None, Some(after)) => format!("directory {path}: added, mode {:04o}\n", after.mode),
        (Some(_), None) => format!("directory {path}: deleted\n"),
        (Some(before), Some(after)) => {
            format!("directory {path}: old mode {:04o}, new mode {:04o}\n", before.mode, after.mode)
        }
        (None, None) => String::new(),
    }
}

fn other(change: &Change) -> String {
    let what = match change.sort() {
        Sort::Added | Sort::Renamed => "added",
        Sort::Modified => "changed",
        Sort::Deleted => "deleted",
    };
    format!("special file {}: {what} (a FIFO, a socket or a device)\n", quoted(&change.path))
}

/// Why a file's content is not shown.
enum NoText {
    Binary,
    TooLarge,
    /// As one of another user inside.
    Unreadable(String),
}

impl From<LayerError> for NoText {
    fn from(error: LayerError) -> Self {
        Self::Unreadable(match error {
            LayerError::Io { ref source, .. } => source.to_string(),
            LayerError::BadPath(..)
            | LayerError::Unchanged(_)
            | LayerError::Conflict { .. }
            | LayerError::Halted { .. }
            | LayerError::Raced { .. } => error.to_string(),
        })
    }
}

/// Returns the content of a file, if it is text; the target of a link.
fn content(tree: &Tree, path: &[u8], node: Option<Node>) -> Result<String, NoText> {
    let Some(node) = node else { return Ok(String::new()) };
    let bytes = match node.kind {
        Kind::Link => tree.target(path)?,
        Kind::File | Kind::Directory | Kind::Other => {
            tree.content(path, LARGEST)?.ok_or(NoText::TooLarge)?
        }
    };
    if bytes.contains(&0) {
        return Err(NoText::Binary);
    }
    String::from_utf8(bytes).map_err(|_| NoText::Binary)
}

/// Directories that are implied by the changes in them.
struct Implied(std::collections::HashSet<Vec<u8>>);

impl Implied {
    fn of(changes: &[Change]) -> Self {
        let above = changes.iter().map(|change| crate::beneath::split(&change.path).0.to_vec());
        Self(above.collect())
    }

    /// Returns whether a directory is new with contents, or deleted with all of them.
    fn has(&self, change: &Change) -> bool {
        match change.sort() {
            Sort::Added | Sort::Deleted => self.0.contains(&change.path),
            Sort::Modified | Sort::Renamed => false,
        }
    }
}
