//! Whether root inside has changed the system.

use crate::plan::{Plan, SYSTEM, Step};
use std::fs;
use std::path::Path;

/// Python's own copies of programs that it has read: anybody who runs Python makes them.
const CACHE: &str = "__pycache__";

/// Whether the layers on the system's directories have anything that the sandbox did not put
/// there itself. Directories alone do not count.
#[must_use]
pub fn has_changed_system(plan: &Plan) -> bool {
    let layers = plan.base.join(SYSTEM);
    plan.steps.iter().any(|step| match step {
        Step::Layered { upper, at, .. } if upper.starts_with(&layers) => has_new(plan, upper, at),
        Step::Persistent { directory, at } => has_new(plan, directory, at),
        Step::Layered { .. }
        | Step::Directory { .. }
        | Step::Link { .. }
        | Step::Text { .. }
        | Step::Tree { .. }
        | Step::Device { .. }
        | Step::Memory { .. }
        | Step::Guarded { .. }
        | Step::Processes { .. }
        | Step::Terminals { .. }
        | Step::Hidden { .. } => false,
    })
}

/// Whether a directory of a layer has such a file. `at` is its path inside.
fn has_new(plan: &Plan, directory: &Path, at: &Path) -> bool {
    // One that cannot be read belongs to another user inside, who was added.
    let Ok(entries) = fs::read_dir(directory) else { return directory.exists() };
    entries.flatten().any(|entry| {
        let (path, at) = (entry.path(), at.join(entry.file_name()));
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => entry.file_name() != CACHE && has_new(plan, &path, &at),
            Ok(_) | Err(_) => !is_ours(plan, &path, &at),
        }
    })
}

/// Whether the sandbox has made this file when it was built.
fn is_ours(plan: &Plan, path: &Path, at: &Path) -> bool {
    plan.steps.iter().any(|step| match step {
        Step::Text { at: own, text } => own == at && fs::read(path).is_ok_and(|is| is == *text),
        Step::Link { at: own, to } => own == at && fs::read_link(path).is_ok_and(|is| is == *to),
        // An empty file that something is mounted on.
        Step::Tree { at: own, .. } => own == at,
        Step::Directory { .. }
        | Step::Device { .. }
        | Step::Memory { .. }
        | Step::Persistent { .. }
        | Step::Layered { .. }
        | Step::Guarded { .. }
        | Step::Processes { .. }
        | Step::Terminals { .. }
        | Step::Hidden { .. } => false,
    })
}
