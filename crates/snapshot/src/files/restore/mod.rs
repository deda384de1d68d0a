//! Putting a snapshot back: first decide what differs, then change that alone.
//!
//! `plan` looks and decides; nothing is changed before every listing was read
//! and every content that is needed was found in the depot. `perform` does it,
//! in an order in which each file is as it was or as it should be at every
//! moment, deletions first, so that a full disk gains room. A step that fails
//! is told and the others go on; doing it all again does what is missing.

mod perform;
mod plan;
mod steps;
mod unknown;

pub(crate) use plan::MOST_ENTRIES;

use super::depot::Depot;
use super::digest::TreeId;
use super::error::{Error, Told};
use super::place::Place;
use super::rules::{LeftOut, Rules};
use std::path::{Path, PathBuf};

/// What restoring came to. All paths are from the root.
#[derive(Debug, Default)]
pub struct Restored {
    /// What was not there, with directories and links.
    pub created: Vec<PathBuf>,
    /// What had other content, another target or another kind.
    pub changed: Vec<PathBuf>,
    /// What had another mode or time only.
    pub attributes: Vec<PathBuf>,
    /// What the snapshot does not have.
    pub deleted: Vec<PathBuf>,
    /// How many files and links were as they should be.
    pub unchanged: u64,
    /// What was left alone although the snapshot does not have it.
    pub left_alone: LeftOut,
    /// What could not be done. Everything else was; restoring again tries
    /// these once more.
    pub failed: Vec<Failure>,
}

impl Restored {
    /// Whether the workspace is now as the snapshot says.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.failed.is_empty()
    }
}

/// A path that could not be made what it should be.
#[derive(Debug)]
pub struct Failure {
    pub path: PathBuf,
    pub error: Error,
}

impl Depot {
    /// Makes the workspace at `root` equal to a snapshot.
    ///
    /// What the snapshot has is put back, ignored or not. What it does not
    /// have is deleted, unless it is ignored by the ignore files of now or by
    /// those of the snapshot, or was left out when the snapshot was taken.
    /// What is lost by this is not kept anywhere: take a snapshot first.
    ///
    /// # Errors
    ///
    /// If nothing was changed, because `root` is not a directory, or the
    /// depot lacks something that is needed or is damaged. What fails later is
    /// told in [`Restored::failed`].
    pub fn restore(&self, tree: TreeId, root: &Path, rules: &Rules) -> Result<Restored, Error> {
        let _hold = self.hold()?;
        let path = super::place::real(root).told("open", root)?;
        let place = Place::root(&path).told("open", &path)?;
        let plan = plan::plan(self, tree, &path, &place, rules)?;
        Ok(perform::perform(self, &place, plan))
    }
}
