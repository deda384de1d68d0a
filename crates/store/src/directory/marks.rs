//! Files and permissions that keep a sessions directory out of repositories and archives,
//! and private.
//!
//! An existing directory gets the same, if it is only for sessions: a directory with other
//! contents (`--sessions-dir .`) must not vanish from its repository, nor be closed to
//! others.

use super::{Result, StoreError};
use crate::atomic;
use std::ffi::OsStr;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

const MARKS: [(&str, &str); 2] = [
    (".gitignore", "# Made by sessile: sessions do not belong in a repository.\n*\n"),
    (
        "CACHEDIR.TAG",
        "Signature: 8a477f597d28d172789f06886806bc55\n\
         # Made by sessile: sessions do not belong in an archive or a backup.\n",
    ),
];

/// Adds the marks to a directory that we have made.
pub(super) fn mark(root: &Path) -> Result<()> {
    for (name, text) in MARKS {
        let path = root.join(name);
        atomic::create_whole(&path, text.as_bytes()).map_err(StoreError::io("write", &path))?;
    }
    Ok(())
}

/// Adds missing marks to an existing directory. A user's own files stay as they are. A
/// failure does not prevent the use of the directory.
pub(super) fn complete(root: &Path) {
    let Ok(found) = std::fs::metadata(root) else {
        return;
    };
    let is_open = found.mode() & 0o077 != 0;
    let is_marked = MARKS.iter().all(|(name, _)| root.join(name).symlink_metadata().is_ok());
    let is_ours = found.uid() == rustix::process::geteuid().as_raw();
    if (is_marked && !is_open) || !is_ours || !is_for_sessions(root) {
        return;
    }
    if is_open {
        let private = std::fs::Permissions::from_mode(found.mode() & 0o7700);
        let _ = std::fs::set_permissions(root, private);
    }
    let _ = mark(root);
}

/// Returns whether it is only for sessions: by its name, or by its contents.
fn is_for_sessions(root: &Path) -> bool {
    let is_link = root.symlink_metadata().is_ok_and(|found| found.is_symlink());
    if !is_link && root.file_name() == Some(OsStr::new(".sessions")) {
        return true;
    }
    let Ok(mut entries) = std::fs::read_dir(root) else {
        return false;
    };
    entries.all(|entry| entry.is_ok_and(|entry| is_from_us(&entry.file_name())))
}

fn is_from_us(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    let is_mark = MARKS.iter().any(|(mark, _)| name == *mark);
    is_mark || name == "workspaces" || name.trim_start_matches('.').starts_with("sess_")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        std::fs::metadata(path).unwrap().mode() & 0o777
    }

    fn directory(name: &str) -> (tempfile::TempDir, std::path::PathBuf) {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join(name);
        std::fs::create_dir(&path).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        (root, path)
    }

    #[test]
    fn a_directory_for_sessions_is_completed_and_closed() {
        for (name, file) in [(".sessions", "notes"), ("any", "sess_0123"), ("any", "CACHEDIR.TAG")]
        {
            let (_root, path) = directory(name);
            std::fs::write(path.join(file), "mine").unwrap();
            complete(&path);
            assert_eq!(mode(&path), 0o700, "{name}/{file}");
            assert!(path.join(".gitignore").exists() && path.join("CACHEDIR.TAG").exists());
            assert_eq!(std::fs::read(path.join(file)).unwrap(), b"mine");
        }
    }

    #[test]
    fn a_directory_for_other_things_stays_as_it_is() {
        let (root, path) = directory("project");
        std::fs::write(path.join("main.rs"), "").unwrap();
        let link = root.path().join(".sessions");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        for called in [&path, &link] {
            complete(called);
            assert_eq!(mode(&path), 0o755);
            assert!(!path.join(".gitignore").exists());
        }
    }
}
