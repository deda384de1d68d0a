//! Applies changes to the real directory.
//!
//! First, changes that were made there meanwhile are checked, and if there are any,
//! everything is refused. Then deleted paths are removed, the deepest first, and new ones
//! are put there, the highest first. If a step fails, the steps before it stay done and are
//! reported; the rest can be applied again.

use crate::changes::Change;
use crate::copying::{self, Placement};
use crate::found::{Found, Kind};
use crate::ledger::{ApplyLock, Ledger, Settled, Version};
use crate::scope::Selection;
use crate::{Layer, LayerError, Result, quoted};

/// Whether changes made in the real directory meanwhile are overwritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Force {
    Yes,
    No,
}

/// The result of applying changes.
#[derive(Debug, Default)]
pub struct Applied {
    pub paths: Vec<Vec<u8>>,
    pub skipped: Vec<Skipped>,
}

/// A path that was left alone, entirely or in part, and why.
#[derive(Clone, Debug)]
pub struct Skipped {
    pub path: Vec<u8>,
    pub reason: String,
}

const SPECIAL: &str = "FIFOs, sockets and devices are not applied";
const HOLDS_HIDDEN: &str = "there are files in it that the session may not see";
const NOT_EMPTY: &str = "there is something in it";
const SET_IDS: &str = "only its set-user-ID and set-group-ID bits, which are never applied";

impl Layer {
    /// Applies changes to the real directory: all of them, or those of some paths.
    ///
    /// # Errors
    /// With the paths that have changed there meanwhile, unless forced; then nothing was
    /// applied. Or with the path that could not be written.
    pub fn apply(&self, paths: &[Vec<u8>], force: Force) -> Result<Applied> {
        let selection = Selection::parse(paths)?;
        let _lock = ApplyLock::take(&self.ledger)?;
        let mut ledger = self.ledger()?;
        let changes = self.changes(&ledger, &selection)?;
        check_selection(&selection, &changes.list)?;
        if force == Force::No {
            refuse_conflicts(&changes.list)?;
        }
        let mut applied = Applied { paths: Vec::new(), skipped: changes.skipped };
        let outcome = self.apply_all(&changes.list, force, &mut applied);
        for path in &applied.paths {
            self.settle(&mut ledger, path)?;
        }
        ledger.write(&self.ledger)?;
        applied.paths.sort();
        outcome.map(|()| applied)
    }

    fn apply_all(&self, changes: &[Change], force: Force, applied: &mut Applied) -> Result<()> {
        let halted = |done: usize| move |why| LayerError::Halted { why: Box::new(why), done };
        for change in changes.iter().rev().filter(|change| goes_first(change)) {
            let removed = self.take_away(change, force);
            match removed.map_err(halted(applied.paths.len()))? {
                None if change.after.is_none() => applied.paths.push(change.path.clone()),
                None => {}
                Some(reason) => applied.skip(change, reason),
            }
        }
        for change in changes.iter().filter(|change| change.after.is_some()) {
            if applied.skipped.iter().any(|skipped| skipped.path == change.path) {
                continue;
            }
            let brought = self.bring(change, force);
            match brought.map_err(halted(applied.paths.len()))? {
                None => {
                    applied.paths.push(change.path.clone());
                    if change.after.as_ref().is_some_and(copying::has_set_ids) {
                        applied.skip(change, SET_IDS);
                    }
                }
                Some(reason) => applied.skip(change, reason),
            }
        }
        // Last, because a directory without write permission could not be filled.
        for change in changes.iter().rev() {
            if let Some(after) = change.after.filter(|after| after.kind == Kind::Directory) {
                let set = copying::apply_mode(&self.real, &change.path, after.mode);
                set.map_err(halted(applied.paths.len()))?;
            }
        }
        Ok(())
    }

    /// Removes what is deleted, or in the way of something new. Returns the reason if it stays.
    fn take_away(&self, change: &Change, force: Force) -> Result<Option<&'static str>> {
        let Some(before) = change.before else { return Ok(None) };
        if change.holds_hidden {
            return Ok(Some(HOLDS_HIDDEN));
        }
        let expected = self.expected(change, force)?;
        match copying::remove(&self.real, &change.path, before.kind, expected) {
            Err(LayerError::Io { source, .. })
                if source.kind() == std::io::ErrorKind::DirectoryNotEmpty =>
            {
                Ok(Some(NOT_EMPTY))
            }
            outcome => outcome.map(|()| None),
        }
    }

    fn bring(&self, change: &Change, force: Force) -> Result<Option<&'static str>> {
        if change.after.is_some_and(|after| after.kind == Kind::Other) {
            return Ok(Some(SPECIAL));
        }
        let (upper, real) = (&self.upper, &self.real);
        copying::make_above(upper, real, &change.path, Placement::Replace(None))?;
        let expected = self.expected(change, force)?;
        copying::copy(upper, real, &change.path, Placement::Replace(expected))?;
        Ok(None)
    }

    /// Returns what has to be in the real directory for it to be replaced: what the check
    /// saw, or if forced, whatever is there now.
    fn expected(&self, change: &Change, force: Force) -> Result<Option<crate::found::Mark>> {
        let now = self.real.look(&change.path)?.as_ref().map(Found::mark);
        let looked_at = match change.replaces_another_kind() {
            // We have removed it.
            true => None,
            false => change.seen,
        };
        Ok(match force {
            Force::Yes => now,
            Force::No if change.after.is_none() => change.seen,
            Force::No => looked_at,
        })
    }

    /// Records that both sides are the same now, whichever changes later.
    pub(crate) fn settle(&self, ledger: &mut Ledger, path: &[u8]) -> Result<()> {
        let real = self.real.look(path)?;
        let version = match &real {
            Some(found) => Version::of(&self.real, path, found)?,
            None => Version::Gone,
        };
        let real = real.as_ref().map(Found::mark);
        ledger.settle(path, Settled { version, real });
        Ok(())
    }
}

impl Applied {
    fn skip(&mut self, change: &Change, reason: &str) {
        self.skipped.push(Skipped { path: change.path.clone(), reason: reason.to_owned() });
    }
}

/// Returns whether something has to be removed first: the path is deleted, or of another kind.
fn goes_first(change: &Change) -> bool {
    change.after.is_none() || change.replaces_another_kind()
}

pub(crate) fn check_selection(selection: &Selection, changes: &[Change]) -> Result<()> {
    let paths: Vec<&[u8]> = changes.iter().map(|change| change.path.as_slice()).collect();
    match selection.missing(&paths) {
        Some(path) => Err(LayerError::Unchanged(quoted(path))),
        None => Ok(()),
    }
}

fn refuse_conflicts(changes: &[Change]) -> Result<()> {
    let told =
        |change: &Change| change.conflict.map(|what| format!("{} ({what})", quoted(&change.path)));
    let conflicts: Vec<String> = changes.iter().filter_map(told).collect();
    if conflicts.is_empty() { Ok(()) } else { Err(LayerError::Conflict { conflicts }) }
}
