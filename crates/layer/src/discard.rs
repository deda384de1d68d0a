//! Discards changes from a layer that is in use.
//!
//! Everything is done through the session's own view, with the calls that one of its
//! programs would make. A replaced file is removed and created again, not overwritten: a
//! program that has the old file open, or mapped as a library, keeps it.

use crate::apply::{Skipped, check_selection};
use crate::beneath::Tree;
use crate::changes::Change;
use crate::copying::{self, Placement};
use crate::found::Kind;
use crate::ledger::{ApplyLock, Ledger};
use crate::scope::Selection;
use crate::{Layer, LayerError, Result};

/// The result of discarding changes.
#[derive(Debug, Default)]
pub struct Discarded {
    pub paths: Vec<Vec<u8>>,
    pub skipped: Vec<Skipped>,
}

impl Layer {
    /// Discards changes, all of them or those of some paths: the session sees the real
    /// files again.
    ///
    /// # Errors
    /// With the path that could not be restored.
    pub fn discard(&self, view: &Tree, paths: &[Vec<u8>]) -> Result<Discarded> {
        let selection = Selection::parse(paths)?;
        let _lock = ApplyLock::take(&self.ledger)?;
        let mut ledger = self.ledger()?;
        let changes = self.changes(&ledger, &selection)?;
        check_selection(&selection, &changes.list)?;
        let mut discarded = Discarded { paths: Vec::new(), skipped: changes.skipped };
        let outcome = self.put_back_all(view, &changes.list, &mut discarded);
        for path in &discarded.paths {
            self.forget_or_settle(&mut ledger, path)?;
        }
        ledger.write(&self.ledger)?;
        discarded.paths.sort();
        outcome.map(|()| discarded)
    }

    fn put_back_all(
        &self,
        view: &Tree,
        changes: &[Change],
        discarded: &mut Discarded,
    ) -> Result<()> {
        let halted = |done: usize| move |why| LayerError::Halted { why: Box::new(why), done };
        let stays = |change: &&Change| is_directory(change) && !change.replaces_another_kind();
        // First, so that their contents can be changed.
        for change in changes.iter().filter(stays) {
            let (Some(before), Some(_)) = (change.before, change.after) else { continue };
            let set = copying::set_mode(view, &change.path, before.mode);
            set.map_err(halted(discarded.paths.len()))?;
            discarded.paths.push(change.path.clone());
        }
        for change in changes.iter().rev() {
            let Some(after) = change.after else { continue };
            if change.before.is_some() && stays(&change) {
                continue;
            }
            match copying::remove(view, &change.path, after.kind, None) {
                Err(LayerError::Io { source, .. })
                    if source.kind() == std::io::ErrorKind::DirectoryNotEmpty =>
                {
                    let reason = "there is something in it".to_owned();
                    discarded.skipped.push(Skipped { path: change.path.clone(), reason });
                }
                outcome => {
                    outcome.map_err(halted(discarded.paths.len()))?;
                    if change.before.is_none() {
                        discarded.paths.push(change.path.clone());
                    }
                }
            }
        }
        for change in changes {
            let Some(before) = change.before else { continue };
            if change.after.is_some() && stays(&change) {
                continue;
            }
            let put = copying::make_above(&self.real, view, &change.path, Placement::Create)
                .and_then(|()| copying::copy(&self.real, view, &change.path, Placement::Create));
            put.map_err(halted(discarded.paths.len()))?;
            if before.kind == Kind::Directory {
                let set = copying::set_mode(view, &change.path, before.mode | 0o700);
                set.map_err(halted(discarded.paths.len()))?;
            }
            discarded.paths.push(change.path.clone());
        }
        for change in changes.iter().rev().filter(|change| change.after.is_none()) {
            if let Some(before) = change.before.filter(|before| before.kind == Kind::Directory) {
                let set = copying::set_mode(view, &change.path, before.mode);
                set.map_err(halted(discarded.paths.len()))?;
            }
        }
        Ok(())
    }

    /// Forgets a path that the layer no longer has; otherwise the layer keeps a copy of the
    /// real file.
    fn forget_or_settle(&self, ledger: &mut Ledger, path: &[u8]) -> Result<()> {
        if self.upper.look(path)?.is_none() {
            ledger.forget(path);
            return Ok(());
        }
        self.settle(ledger, path)
    }
}

fn is_directory(change: &Change) -> bool {
    change.before.or(change.after).is_some_and(|node| node.kind == Kind::Directory)
}
