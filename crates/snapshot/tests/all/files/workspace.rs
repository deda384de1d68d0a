//! Workspaces in temporary directories, and everything that can be seen of one.

use sessile_snapshot::files::{Depot, Report, Restored, Rules, TreeId};
use std::collections::BTreeMap;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// What is at a path: all that a snapshot has to bring back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) mode: u32,
    pub(crate) modified: (i64, i64),
    pub(crate) content: Vec<u8>,
    /// Further names of the same file.
    pub(crate) names: Vec<PathBuf>,
}

/// Everything below `root`, by its path.
pub(crate) fn look(root: &Path) -> BTreeMap<PathBuf, Seen> {
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
pub(crate) fn assert_equal(a: &Path, b: &Path) {
    assert_same(&look(a), &look(b));
}

pub(crate) fn assert_same(a: &BTreeMap<PathBuf, Seen>, b: &BTreeMap<PathBuf, Seen>) {
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
pub(crate) fn copy(from: &Path, to: &Path) {
    let status = Command::new("cp").arg("-a").arg(from).arg(to).status().unwrap();
    assert!(status.success());
}

pub(crate) fn write(path: &Path, content: impl AsRef<[u8]>) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, content).unwrap();
}

pub(crate) fn chmod(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

/// How many files there are below a directory.
pub(crate) fn count(path: &Path) -> usize {
    look(path).values().filter(|seen| seen.mode & 0o170_000 == 0o100_000).count()
}

/// A temporary directory in memory, where there is such a thing.
pub(crate) fn in_memory() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

/// A workspace with a depot beside it.
pub(crate) struct Place {
    pub(crate) directory: tempfile::TempDir,
    pub(crate) root: PathBuf,
    pub(crate) depot: Depot,
}

impl Place {
    pub(crate) fn new() -> Place {
        Place::within(tempfile::tempdir().unwrap())
    }

    /// For many thousand files, which disks of test machines take minutes for.
    pub(crate) fn in_memory() -> Place {
        Place::within(in_memory())
    }

    pub(crate) fn within(directory: tempfile::TempDir) -> Place {
        let root = directory.path().join("work");
        std::fs::create_dir(&root).unwrap();
        let depot = Depot::open(&directory.path().join("depot")).unwrap();
        Place { directory, root, depot }
    }

    pub(crate) fn snapshot(&self) -> Report {
        self.depot.snapshot(&self.root, &Rules::default()).unwrap().report
    }

    pub(crate) fn take(&self) -> TreeId {
        self.depot.snapshot(&self.root, &Rules::default()).unwrap().tree
    }

    /// Restores all of it.
    pub(crate) fn restore(&self, tree: TreeId) -> Restored {
        let told = self.depot.restore(tree, &self.root, &Rules::default()).unwrap();
        assert!(told.is_complete(), "{:?}", told.failed);
        told
    }

    /// Waits until the clock of the file system is well past all changes: then
    /// nothing has to be read again for having been changed just now.
    pub(crate) fn settle(&self) {
        let probe = self.directory.path().join("probe");
        let now = || {
            std::fs::write(&probe, "x").unwrap();
            probe.metadata().unwrap().modified().unwrap()
        };
        let start = now();
        while now().duration_since(start).unwrap_or_default() < Duration::from_millis(50) {
            std::thread::yield_now();
        }
    }
}
