//! Whether a file system takes `.ENV` for `.env`: drives of Windows and macOS that are
//! mounted into a virtual machine do, and directories of ext4 can (`chattr +F`).
//!
//! Rules go by the exact name, and so do mounts that cover something. Where another
//! spelling leads to the same file, neither keeps anybody from it.

use rustix::fs::{Mode, OFlags};
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Whether names that differ only in upper and lower case are names of one file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LetterCase {
    #[default]
    Matters,
    Ignored,
}

/// Why rules are refused there.
pub(super) const NO_RULES: &str = "its file system takes `.ENV` for `.env`, so rules for single paths could be got around; use a \
     directory of another file system, or choose a policy that is the same for all paths: \
     read-only or full-access";
/// Why a directory with sessions in it is refused there.
pub(super) const NOTHING_HIDDEN: &str = "its file system takes `.SESSIONS` for `.sessions`, so the sessions that are kept below it \
     could not be hidden; keep them elsewhere with --sessions-dir, or use a directory of another \
     file system";

/// Entries that are listed: each start looks, also in a directory of many thousands.
const LISTED: usize = 256;
/// Entries that are tried. Each takes one look at a name.
const TRIED: usize = 32;

impl LetterCase {
    /// Looks at the workspace. Nothing is written, so a file system that has no name with
    /// a letter in it yet cannot be told.
    #[must_use]
    pub fn of(workspace: &Path) -> Self {
        let names = fs::read_dir(workspace).into_iter().flatten().filter_map(Result::ok);
        let names: BTreeSet<OsString> = names.take(LISTED).map(|entry| entry.file_name()).collect();
        let file = |path: &Path| fs::symlink_metadata(path).ok().map(|m| (m.dev(), m.ino()));
        let is_ignored = has_flag(workspace)
            || is_ignored_in(&names, |name| file(&workspace.join(name)))
            || is_ignored_above(workspace, file);
        if is_ignored { Self::Ignored } else { Self::Matters }
    }
}

/// Whether one of these names finds its file in another spelling, too.
fn is_ignored_in<F: PartialEq>(
    names: &BTreeSet<OsString>,
    file: impl Fn(&OsStr) -> Option<F>,
) -> bool {
    let spellings = names.iter().filter_map(|name| Some((name, other_spelling(name)?)));
    let spellings = spellings.filter(|(_, other)| !names.contains(other)).take(TRIED);
    spellings.into_iter().any(|(name, other)| {
        let found = file(&other);
        found.is_some() && found == file(name)
    })
}

/// The same for the name of the directory itself, if it is no mount point.
fn is_ignored_above(workspace: &Path, file: impl Fn(&Path) -> Option<(u64, u64)>) -> bool {
    let (Some(above), Some(name)) = (workspace.parent(), workspace.file_name()) else {
        return false;
    };
    let Some(own) = file(workspace) else { return false };
    let is_mount_point = file(above).is_none_or(|above| above.0 != own.0);
    let other = other_spelling(name).map(|other| above.join(other));
    !is_mount_point && other.is_some_and(|other| file(&other) == Some(own))
}

/// Returns a name with its letters in the other case; none if it has no letters.
fn other_spelling(name: &OsStr) -> Option<OsString> {
    let flip = |byte: &u8| match byte {
        b'a'..=b'z' => byte.to_ascii_uppercase(),
        _ => byte.to_ascii_lowercase(),
    };
    let other: Vec<u8> = name.as_bytes().iter().map(flip).collect();
    (other != name.as_bytes()).then(|| OsString::from_vec(other))
}

/// Whether the directory has the attribute that makes ext4, f2fs and tmpfs ignore case.
fn has_flag(directory: &Path) -> bool {
    const GET_FLAGS: libc::Ioctl = 0x8008_6601;
    const CASEFOLD: libc::c_long = 0x4000_0000;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(directory) = rustix::fs::open(directory, flags, Mode::empty()) else { return false };
    let mut found: libc::c_long = 0;
    // SAFETY: the call writes to our number, and no more than its size.
    let result = unsafe { libc::ioctl(directory.as_raw_fd(), GET_FLAGS, &raw mut found) };
    result == 0 && found & CASEFOLD != 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// A file system that compares names in lower case, or as they are.
    fn is_ignored(names: &[&str], fold: impl Fn(&str) -> String) -> bool {
        let files: BTreeMap<String, usize> =
            names.iter().enumerate().map(|(n, name)| (fold(name), n)).collect();
        let names = names.iter().map(OsString::from).collect();
        is_ignored_in(&names, |name| files.get(&fold(name.to_str()?)).copied())
    }

    #[test]
    fn another_spelling_of_a_name_finds_the_same_file_or_none() {
        assert!(is_ignored(&["1", "src"], str::to_lowercase));
        assert!(!is_ignored(&["1", "src"], str::to_owned));
        assert!(!is_ignored(&["1", "2"], str::to_lowercase));
        // Two files.
        assert!(!is_ignored(&["src", "SRC"], str::to_owned));
    }

    #[test]
    fn a_usual_directory_tells_names_apart() {
        let place = tempfile::tempdir().unwrap();
        fs::write(place.path().join("a"), "").unwrap();
        fs::hard_link(place.path().join("a"), place.path().join("A")).unwrap();
        assert_eq!(LetterCase::of(place.path()), LetterCase::Matters);
    }
}
