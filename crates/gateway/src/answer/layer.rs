//! The changes of a session in a sandbox, and the results of applying or discarding them.

use super::file::FileType;
use serde::Serialize;
use sessile_layer::{
    Applied, Diff, Discarded, Kind, Lines, Node, ShownChange, Skipped, Sort, quoted,
};
use utoipa::ToSchema;

/// The changes in a session's layer
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct LayerDiff {
    /// A unified diff as git writes it; with `stat`, a table of the paths
    pub diff: String,
    /// The changed paths, sorted
    pub changes: Vec<LayerChange>,
    /// Lines
    pub insertions: u64,
    /// Lines
    pub deletions: u64,
    /// The text was cut; ask for fewer paths
    pub truncated: bool,
    /// What could not be read
    pub skipped: Vec<SkippedChange>,
}

/// A path that differs from the real directory
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct LayerChange {
    /// Relative to the workspace; quoted as by git if it is not plain text
    pub path: String,
    pub change: ChangeSort,
    /// The type in the session; for a deleted path, the old type
    #[serde(rename = "type")]
    pub kind: FileType,
    /// With `renamed`: the old path
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub from: Option<String>,
    /// Permissions in the real directory, such as `0644`
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub old_mode: Option<String>,
    /// Permissions in the layer
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub mode: Option<String>,
    /// Bytes in the real directory
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub old_size: Option<u64>,
    /// Bytes in the layer
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub size: Option<u64>,
    /// Not text, or too large to show
    pub binary: bool,
    pub insertions: u64,
    pub deletions: u64,
    /// How the real directory has changed here since the session's own change; `apply`
    /// refuses it
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = Option<String>)]
    pub conflict: Option<&'static str>,
}

/// How a path differs
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ChangeSort {
    Added,
    /// Its content, its permissions, or its type
    Modified,
    Deleted,
    /// It has the content of a file that was deleted
    Renamed,
}

/// Changes that were applied to the real directory
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct LayerApplied {
    pub applied: Vec<String>,
    /// What was skipped, and why
    pub skipped: Vec<SkippedChange>,
}

/// Discarded changes
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct LayerDiscarded {
    pub discarded: Vec<String>,
    /// What was skipped, and why
    pub skipped: Vec<SkippedChange>,
}

/// A skipped path
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct SkippedChange {
    pub path: String,
    pub reason: String,
}

/// The form of a diff's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiffForm {
    Unified,
    Stat,
}

impl LayerDiff {
    #[must_use]
    pub fn of(diff: &Diff, form: DiffForm) -> Self {
        let (insertions, deletions) = diff.counts();
        let told = diff.changes.iter().filter(|shown| shown.change.renamed_to.is_none());
        Self {
            diff: match form {
                DiffForm::Unified => diff.text(),
                DiffForm::Stat => diff.stat(),
            },
            changes: told.map(LayerChange::from).collect(),
            insertions,
            deletions,
            truncated: diff.is_truncated && form == DiffForm::Unified,
            skipped: skipped(&diff.skipped),
        }
    }
}

impl From<&ShownChange> for LayerChange {
    fn from(shown: &ShownChange) -> Self {
        let change = &shown.change;
        let (insertions, deletions) = shown.lines.counts();
        let mode = |node: Option<Node>| {
            let node = node.filter(|node| node.kind != Kind::Link);
            node.map(|node| format!("{:04o}", node.mode))
        };
        let size =
            |node: Option<Node>| node.filter(|node| node.kind == Kind::File).map(|node| node.size);
        let kind = change.after.or(change.before).map_or(Kind::Other, |node| node.kind);
        Self {
            path: quoted(&change.path),
            change: match change.sort() {
                Sort::Added => ChangeSort::Added,
                Sort::Modified => ChangeSort::Modified,
                Sort::Deleted => ChangeSort::Deleted,
                Sort::Renamed => ChangeSort::Renamed,
            },
            kind: match kind {
                Kind::File => FileType::File,
                Kind::Directory => FileType::Directory,
                Kind::Link => FileType::Symlink,
                Kind::Other => FileType::Other,
            },
            from: change.renamed_from.as_deref().map(quoted),
            old_mode: mode(change.before),
            mode: mode(change.after),
            old_size: size(change.before),
            size: size(change.after),
            binary: match shown.lines {
                Lines::Text { .. } => false,
                Lines::Binary | Lines::TooLarge => true,
            },
            insertions,
            deletions,
            conflict: change.conflict,
        }
    }
}

fn skipped(skipped: &[Skipped]) -> Vec<SkippedChange> {
    let told = |skipped: &Skipped| SkippedChange {
        path: quoted(&skipped.path),
        reason: skipped.reason.clone(),
    };
    skipped.iter().map(told).collect()
}

fn paths(paths: &[Vec<u8>]) -> Vec<String> {
    paths.iter().map(|path| quoted(path)).collect()
}

impl From<&Applied> for LayerApplied {
    fn from(applied: &Applied) -> Self {
        Self { applied: paths(&applied.paths), skipped: skipped(&applied.skipped) }
    }
}

impl From<&Discarded> for LayerDiscarded {
    fn from(discarded: &Discarded) -> Self {
        Self { discarded: paths(&discarded.paths), skipped: skipped(&discarded.skipped) }
    }
}
