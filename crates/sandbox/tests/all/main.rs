//! The file system, mounted and used by real programs.

mod caches;
mod levels;
mod mounted;
mod moves;
mod sameness;
mod steps;

use std::path::{Path, PathBuf};

use mounted::Mounted;
use sessile_sandbox::fuse::Caching;
use sessile_sandbox::policy::preset;
use sessile_sandbox::{Policy, Rule, Rules};

/// A source, and where it is shown.
struct Place {
    _home: tempfile::TempDir,
    source: PathBuf,
    shown: PathBuf,
}

impl Place {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        let (source, shown) = (home.path().join("source"), home.path().join("shown"));
        std::fs::create_dir(&source).unwrap();
        std::fs::create_dir(&shown).unwrap();
        Self { _home: home, source, shown }
    }

    fn put(&self, path: &str, content: &str) {
        let path = self.source.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    fn show(&self, rules: &[&str]) -> Mounted {
        mounted::part_mounts();
        Mounted::new(&self.source, &self.shown, self::rules(rules), Caching::ALONE)
    }
}

/// Rules as `--allow` has them.
fn rules(texts: &[&str]) -> Rules {
    let mut policy: Policy = preset("full-access").unwrap();
    for text in texts {
        policy.add(Rule::parse(text).unwrap());
    }
    Rules::new(&policy)
}

/// Whether the machine lets a test mount; says so if not.
fn can_mount() -> bool {
    match mounted::obstacle() {
        None => true,
        Some(why) => {
            sessile_testkit::needs::not_permitted(why);
            false
        }
    }
}

/// All paths beneath, with kinds, modes and contents.
fn inventory(root: &Path) -> Vec<String> {
    use std::os::unix::fs::{FileTypeExt, PermissionsExt};
    let mut found = Vec::new();
    let mut unseen = vec![root.to_owned()];
    while let Some(directory) = unseen.pop() {
        for entry in std::fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            let meta = path.symlink_metadata().unwrap();
            let name = path.strip_prefix(root).unwrap().display();
            let mode = meta.permissions().mode() & 0o7777;
            let kind = meta.file_type();
            found.push(if kind.is_dir() {
                unseen.push(path.clone());
                format!("{name} directory {mode:o}")
            } else if kind.is_symlink() {
                format!("{name} -> {}", std::fs::read_link(&path).unwrap().display())
            } else if kind.is_fifo() || kind.is_socket() {
                format!("{name} special {mode:o}")
            } else {
                let content = std::fs::read(&path).unwrap();
                let sum = content.iter().fold(7_u64, |sum, b| sum.wrapping_mul(31) + u64::from(*b));
                format!("{name} file {mode:o} {} {sum}", content.len())
            });
        }
    }
    found.sort();
    found
}
