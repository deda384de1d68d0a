//! The control groups of a session whose keeper and guardian were both killed.
//!
//! A guardian removes them, or a keeper that continues the session. If neither runs, the
//! process that finds the session lost does. The processes in them have ended with the
//! sandbox, or are about to.

use super::Directory;
use sessile_protocol::SessionId;
use std::path::Path;
use std::time::{Duration, Instant};

/// File in the session's directory, written by its keeper: one path per line.
const FILE: &str = "groups";

/// Killed processes take a moment to disappear.
const PATIENCE: Duration = Duration::from_secs(1);
const NAP: Duration = Duration::from_millis(2);

impl Directory {
    /// Removes the remaining groups, and the list of them if none is left.
    pub(super) fn remove_groups(&self, session: &SessionId) {
        let file = self.path().join(FILE);
        let Ok(text) = std::fs::read_to_string(&file) else { return };
        let tops: Vec<&Path> =
            text.lines().map(Path::new).filter(|top| is_of(top, session)).collect();
        let deadline = Instant::now() + PATIENCE;
        while !tops.iter().all(|top| is_gone(top)) && Instant::now() < deadline {
            std::thread::sleep(NAP);
        }
        if tops.iter().all(|top| !top.exists()) {
            let _ = std::fs::remove_file(file);
        }
    }
}

/// Returns whether a path is a group of the session. Nothing else is removed, whatever the
/// file contains.
fn is_of(top: &Path, session: &SessionId) -> bool {
    let name = top.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let place = name.strip_prefix("sessile-").and_then(|name| name.strip_prefix(session.as_str()));
    top.is_absolute() && place.is_some_and(|place| place.is_empty() || place.starts_with('-'))
}

/// Removes a group, and returns whether it is gone. Only an empty group can be removed.
fn is_gone(top: &Path) -> bool {
    for below in std::fs::read_dir(top).into_iter().flatten().flatten() {
        if below.file_type().is_ok_and(|kind| kind.is_dir()) {
            let _ = std::fs::remove_dir(below.path());
        }
    }
    let _ = std::fs::remove_dir(top);
    !top.exists()
}
