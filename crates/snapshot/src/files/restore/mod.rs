//! Restores a snapshot: first decides what differs, then changes only that.
//!
//! `plan` looks and decides; nothing is changed before every listing was read and every
//! needed content was found in the depot. `perform` makes the changes, in an order in which
//! each file always has either its old or its new content; deletions come first, so that a
//! full disk gains room. A failed step is reported and the others continue; a second
//! restore does the missing steps.

mod perform;
mod plan;
mod steps;
mod unknown;

pub(crate) use plan::MOST_ENTRIES;

use super::depot::Depot;
use super::digest::TreeId;
use super::error::{Error, ErrorAt};
use super::place::Place;
use super::rules::{LeftOut, Rules};
use std::path::{Path, PathBuf};

/// The result of a restore. All paths are relative to the root.
#[derive(Debug, Default)]
pub struct Restored {
    /// Missing entries, including directories and links.
    pub created: Vec<PathBuf>,
    /// Entries with another content, target or kind.
    pub changed: Vec<PathBuf>,
    /// Entries with only another mode or time.
    pub attributes: Vec<PathBuf>,
    /// Entries that the snapshot does not have.
    pub deleted: Vec<PathBuf>,
    /// Number of files and links that were already correct.
    pub unchanged: u64,
    /// Entries that were left alone although the snapshot does not have them.
    pub left_alone: LeftOut,
    /// Steps that failed. All others succeeded; restoring again retries these.
    pub failed: Vec<Failure>,
}

impl Restored {
    /// Returns whether the workspace now equals the snapshot.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.failed.is_empty()
    }
}

/// A path that could not be restored.
#[derive(Debug)]
pub struct Failure {
    pub path: PathBuf,
    pub error: Error,
}

impl Depot {
    /// Makes the workspace at `root` equal to a snapshot.
    ///
    /// Entries of the snapshot are restored, ignored or not. Other entries are deleted,
    /// unless they are ignored by the current ignore files or by those of the snapshot, or
    /// were left out when the snapshot was taken. Replaced and deleted contents are not
    /// kept anywhere: take a snapshot first.
    ///
    /// # Errors
    ///
    /// If `root` is not a directory, or the depot is damaged or lacks a needed object: then
    /// nothing was changed. Later failures are in [`Restored::failed`].
    pub fn restore(&self, tree: TreeId, root: &Path, rules: &Rules) -> Result<Restored, Error> {
        let _hold = self.hold()?;
        let path = super::place::real(root).error_at("open", root)?;
        let place = Place::root(&path).error_at("open", &path)?;
        let plan = plan::plan(self, tree, &path, &place, rules)?;
        Ok(perform::perform(self, &place, plan))
    }
}
