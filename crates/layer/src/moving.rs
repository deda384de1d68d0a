//! Directories of which a part is elsewhere: they are being moved, or the process that
//! moved them was killed. They are complete again when the session continues.

use sessile_sandbox::mover::{Pending, pending};
use sessile_sandbox::plan::WORKSPACE;
use std::path::Path;

/// Why such a directory is not shown.
pub(crate) const REASON: &str =
    "it is being moved, or was when the session ended; it is whole again when the session goes on";

/// The role of a path in a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// The directory that is moved.
    Old,
    /// The one that takes its contents, under a name of ours.
    Staging,
}

#[derive(Debug, Default)]
pub(crate) struct Moves(Vec<Pending>);

/// Returns the moves in the layer that has this file beside it.
pub(crate) fn in_layer(beside: &Path) -> Moves {
    Moves(beside.parent().map(pending).unwrap_or_default())
}

impl Moves {
    pub(crate) fn part(&self, path: &[u8]) -> Option<Part> {
        let is = |inside: &[u8]| {
            let below = inside.strip_prefix(WORKSPACE.as_bytes());
            below.and_then(|below| below.strip_prefix(b"/")) == Some(path)
        };
        self.0.iter().find_map(|one| {
            if is(&one.staging) { Some(Part::Staging) } else { is(&one.from).then_some(Part::Old) }
        })
    }
}
