//! Workspaces in temporary directories, and everything that can be seen of one.

use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;

/// What is at a path: all that a snapshot has to bring back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    pub mode: u32,
    pub modified: (i64, i64),
    pub content: Vec<u8>,
    /// Further names of the same file.
    pub names: Vec<PathBuf>,
}

/// Everything below `root`, by its path.
pub fn look(root: &Path) -> BTreeMap<PathBuf, Seen> {
    let mut seen = BTreeMap::new();
    let mut inodes: BTreeMap<u64, Vec<PathBuf>> = BTreeMap::new();
    walk(root, Path::new(""), &mut seen, &mut inodes);
    for paths in inodes.values().filter(|paths| paths.len() > 1) {
        for path in paths {
            seen.get_mut(path).unwrap().names = paths.clone();
        }
    }
    seen
}

fn walk(
    root: &Path,
    path: &Path,
    seen: &mut BTreeMap<PathBuf, Seen>,
    inodes: &mut BTreeMap<u64, Vec<PathBuf>>,
) {
    let mut entries: Vec<_> =
        std::fs::read_dir(root.join(path)).unwrap().map(|entry| entry.unwrap()).collect();
    entries.sort_by_key(std::fs::DirEntry::file_name);
    for entry in entries {
        let full = entry.path();
        let path = path.join(entry.file_name());
        let data = full.symlink_metadata().unwrap();
        let content = if data.is_symlink() {
            full.read_link().unwrap().as_os_str().as_bytes().to_vec()
        } else if data.is_file() {
            inodes.entry(data.ino()).or_default().push(path.clone());
            std::fs::read(&full).unwrap()
        } else {
            Vec::new()
        };
        let mode = if data.is_symlink() { 0o120_000 } else { data.mode() };
        let modified = (data.mtime(), data.mtime_nsec());
        seen.insert(path.clone(), Seen { mode, modified, content, names: Vec::new() });
        if data.is_dir() {
            walk(root, &path, seen, inodes);
        }
    }
}

/// Compares two directories and says what is different.
pub fn assert_equal(a: &Path, b: &Path) {
    assert_same(&look(a), &look(b));
}

pub fn assert_same(a: &BTreeMap<PathBuf, Seen>, b: &BTreeMap<PathBuf, Seen>) {
    let brief = |seen: Option<&Seen>| {
        seen.map(|seen| {
            let content = &seen.content[..seen.content.len().min(40)];
            format!(
                "{:o} {:?} {} bytes {content:?} {:?}",
                seen.mode,
                seen.modified,
                seen.content.len(),
                seen.names
            )
        })
    };
    for path in a.keys().chain(b.keys()) {
        let (one, other) = (a.get(path), b.get(path));
        assert!(one == other, "{path:?}: {:?} is not {:?}", brief(one), brief(other));
    }
}

/// A copy by a program that is known to be right.
pub fn copy(from: &Path, to: &Path) {
    let status = Command::new("cp").arg("-a").arg(from).arg(to).status().unwrap();
    assert!(status.success());
}

pub fn write(path: &Path, content: impl AsRef<[u8]>) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, content).unwrap();
}

pub fn chmod(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// How many files there are below a directory.
pub fn count(path: &Path) -> usize {
    look(path).values().filter(|seen| seen.mode & 0o170_000 == 0o100_000).count()
}
