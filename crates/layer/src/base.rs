//! Whether the real directory has changed since the session took a path over.
//!
//! No copy of the real file as it was then is kept. Its change time decides: the session
//! has not seen a change made after its own file was created. A file of the layer is
//! created when it is first written to or replaced. A deletion has no time of its own
//! (overlayfs uses one device for all of them), so the creation of the layer counts, and a
//! file that has changed since the session began is not deleted without being forced.

use crate::beneath::{Tree, join, split};
use crate::found::{Found, Time};
use crate::ledger::{self, ApplyLock, Ledger, key};
use crate::{Layer, Result, UPPER};
use std::collections::HashSet;
use std::path::Path;

/// The attribute with which overlayfs marks a file that was in the real directory.
const ORIGIN: &str = "user.overlay.origin";

pub(crate) const CHANGED: &str = "it was changed there";
pub(crate) const APPEARED: &str = "it was made there";
pub(crate) const REMOVED: &str = "it was deleted there";

impl Layer {
    /// Returns what happened to a path in the real directory meanwhile, if anything.
    pub(crate) fn conflict(
        &self,
        ledger: &Ledger,
        path: &[u8],
        (upper, real): (Option<&Found>, Option<&Found>),
        since: Time,
    ) -> Option<&'static str> {
        if let Some(settled) = ledger.settled(path) {
            return match (real.map(Found::mark), settled.real) {
                (now, then) if now == then => None,
                (None, _) => Some(REMOVED),
                (Some(_), None) => Some(APPEARED),
                (Some(_), Some(_)) => Some(CHANGED),
            };
        }
        let since = ledger.since(path).unwrap_or(since).min(since);
        match real {
            // Its contents are checked separately.
            Some(real) if real.is_directory() => None,
            Some(real) if real.changed <= since => None,
            Some(real) if real.born.is_some_and(|born| born > since) => Some(APPEARED),
            Some(_) => Some(CHANGED),
            None if upper.is_some() && self.was_there(path, since) => Some(REMOVED),
            None => None,
        }
    }

    /// Returns whether a file of the layer was in the real directory under the same name:
    /// it comes from there, and names have changed there since. A file that the session has
    /// renamed comes from there, too (see `renames`).
    fn was_there(&self, path: &[u8], since: Time) -> bool {
        let above = split(path).0;
        let above = if above.is_empty() {
            self.real.itself().ok()
        } else {
            self.real.look(above).ok().flatten()
        };
        let has_changed = above.is_none_or(|above| above.modified > since);
        has_changed && self.upper.has_attribute(path, ORIGIN)
    }
}

/// Returns when a layer was created.
pub(crate) fn began(upper: &Tree, ledger: &Ledger, otherwise: Time) -> Result<Time> {
    let born = upper.itself()?.born.unwrap_or(otherwise);
    Ok(ledger.since(b"").map_or(born, |since| since.min(born)))
}

/// Records when the session took over each path. Call this before a layer is rewritten
/// (copied, or reset to an earlier state), because that makes files look newer than they
/// are.
///
/// # Errors
/// When the layer cannot be read, or the record cannot be written.
pub fn remember_bases(kept: &Path) -> Result<()> {
    let (upper, path) = (Tree::open(&kept.join(UPPER))?, kept.join(ledger::FILE));
    let _lock = ApplyLock::take(&path)?;
    let mut ledger = Ledger::read(&path)?;
    let begun = began(&upper, &ledger, 0)?;
    let mut known = HashSet::from([key(b"")]);
    ledger.note_since(b"", begun);
    let mut directories = vec![Vec::new()];
    while let Some(directory) = directories.pop() {
        for name in upper.names(&directory).unwrap_or_default() {
            let path = join(&directory, &name);
            let Ok(Some(found)) = upper.look(&path) else { continue };
            let since = if found.is_whiteout { begun } else { found.born.unwrap_or(begun) };
            ledger.note_since(&path, since);
            known.insert(key(&path));
            if found.is_directory() {
                directories.push(path);
            }
        }
    }
    ledger.keep_only(|path| known.contains(path));
    ledger.write(&path)
}
