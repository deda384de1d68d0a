//! dash, and whatever else calls itself sh.

mod listing;
mod restore;

use super::view::Interpreted;
use listing::State;

/// What a capture says; `None` for a part of one.
pub(super) fn interpret(bytes: &[u8]) -> Option<Interpreted> {
    let state = State::read(bytes)?;
    Some(Interpreted { view: state.view().finish(), restore: restore::script(&state) })
}
