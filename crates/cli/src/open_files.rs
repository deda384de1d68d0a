//! The limit on open files: a server needs one for each connection and each
//! keeper, and sessions are to have the limit that the server was started with.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Before the number in a keeper's argument.
const WORD: &str = "open-files=";

/// Raises the limit as far as it goes. The argument that has keepers of ours
/// go back to what it was, if it was changed.
pub(crate) fn raise() -> Option<String> {
    let before = getrlimit(Resource::Nofile);
    let soft = before.current.filter(|_| before.current != before.maximum)?;
    setrlimit(Resource::Nofile, Rlimit { current: before.maximum, ..before }).ok()?;
    Some(format!("{WORD}{soft}"))
}

/// As many connections as are wanted, and no more than half of the descriptors:
/// the others are for keepers and files.
pub(crate) fn connections(wanted: usize) -> usize {
    let most = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    wanted.min(usize::try_from(most / 2).unwrap_or(usize::MAX)).max(1)
}

/// Sets the limit that a keeper's argument names, if it names one.
pub(crate) fn restore(argument: Option<&str>) {
    let Some(soft) = argument.and_then(|word| word.strip_prefix(WORD)?.parse().ok()) else {
        return;
    };
    let now = getrlimit(Resource::Nofile);
    // Lowering it within what is allowed does not fail.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(soft), ..now });
}
