//! The limit on open files: a server needs one for each connection and each keeper, while
//! sessions keep the limit that the server was started with.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Prefix of the number in a keeper's argument.
const WORD: &str = "open-files=";

/// Raises the limit to its maximum. If that changed it, returns the argument that makes
/// our keepers restore it.
pub(crate) fn raise() -> Option<String> {
    let before = getrlimit(Resource::Nofile);
    let soft = before.current.filter(|_| before.current != before.maximum)?;
    setrlimit(Resource::Nofile, Rlimit { current: before.maximum, ..before }).ok()?;
    Some(format!("{WORD}{soft}"))
}

/// Returns the wanted number of connections, but no more than half of the descriptors:
/// the others are for keepers and files.
pub(crate) fn connections(wanted: usize) -> usize {
    let most = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    wanted.min(usize::try_from(most / 2).unwrap_or(usize::MAX)).max(1)
}

/// Sets the limit that a keeper's argument names, if any.
pub(crate) fn restore(argument: Option<&str>) {
    let Some(soft) = argument.and_then(|word| word.strip_prefix(WORD)?.parse().ok()) else {
        return;
    };
    let now = getrlimit(Resource::Nofile);
    // Lowering it within the allowed range does not fail.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(soft), ..now });
}
