//! Directories of which a part is elsewhere: they are just being moved, or whoever
//! did that was killed. They are whole again when the session goes on.

use sessile_sandbox::mover::{Pending, pending};
use sessile_sandbox::plan::WORKSPACE;
use std::path::Path;

/// Why there is nothing to be told of one.
pub(crate) const REASON: &str =
    "it is being moved, or was when the session ended; it is whole again when the session goes on";

/// What a path has to do with a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// The directory that is moved.
    Old,
    /// The one that takes what is in it, under a name of ours.
    Staging,
}

#[derive(Debug, Default)]
pub(crate) struct Moves(Vec<Pending>);

/// The moves in the layer that a file is kept with.
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
