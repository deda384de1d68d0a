//! Saved and restored sessions, in a few lines.

use super::branches::add_left;
use sessile_protocol::{LeftBehind, SavedView};
use sessile_store::{Manifest, Metadata};
use std::fmt::Write;
use std::path::Path;

#[must_use]
pub fn saved(path: &Path, view: &SavedView) -> String {
    let mut text = format!(
        "saved with the state after run {} to {} ({} bytes)",
        view.as_of_run,
        path.display(),
        view.bytes
    );
    if let Some(files) = &view.files {
        let _ = write!(text, ", and {} files", files.files);
    }
    add_left(&mut text, "not in it", &view.left);
    if let Some(files) = view.files.as_ref().filter(|files| files.left_out > 0) {
        add_left(&mut text, &format!("{} files are left out", files.left_out), &files.examples);
    }
    text
}

/// `more`: what could not be restored here, beyond what the file says.
#[must_use]
pub fn restored(
    metadata: &Metadata,
    manifest: &Manifest,
    more: &[LeftBehind],
    has_files: bool,
) -> String {
    let mut text = format!(
        "{} ({}) goes on in {} where {} was when it was saved; run commands in it with session_exec",
        metadata.session_id,
        metadata.command,
        metadata.work_dir.display(),
        manifest.session_id
    );
    match &manifest.files {
        Some(files) if has_files => {
            let _ = write!(text, "\n{} files are there again", files.files);
        }
        Some(files) => {
            let count = files.files;
            let _ = write!(text, "\nits {count} files stay in the file: give cwd to have them");
        }
        None => {}
    }
    add_left(&mut text, "not carried", &[manifest.left.as_slice(), more].concat());
    text
}
