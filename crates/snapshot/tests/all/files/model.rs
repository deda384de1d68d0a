//! Random edits, snapshots and restores, compared with copies made by `cp -a`.

use super::workspace::{assert_equal, chmod, copy};
use proptest::prelude::*;
use sessile_snapshot::files::{Depot, Rules, TreeId};
use sessile_testkit::cases;
use std::fs::{File, FileTimes};
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

#[derive(Debug, Clone)]
enum Step {
    Write(String, usize, u8),
    /// The same size at the same modification time: only the inode can tell.
    Falsify(String, u8),
    Append(String),
    Delete(String),
    Directory(String),
    Rename(String, String),
    Mode(String, u32),
    Symlink(String, String),
    Link(String, String),
    Touch(String, u64),
    Snapshot,
    Restore(usize),
}

fn path() -> impl Strategy<Value = String> {
    let name = prop::sample::select(vec!["a", "b", "c", "d e", "ü"]);
    prop::collection::vec(name, 1..4).prop_map(|names| names.join("/"))
}

fn step() -> impl Strategy<Value = Step> {
    let size =
        prop_oneof![4 => 0..200_usize, 1 => 60_000..80_000_usize, 1 => 262_000..300_000_usize];
    let mode = prop::sample::select(vec![0o644, 0o755, 0o600, 0o4755, 0o2711, 0o1777, 0o444]);
    prop_oneof![
        6 => (path(), size, any::<u8>()).prop_map(|(path, size, byte)| Step::Write(path, size, byte)),
        3 => (path(), any::<u8>()).prop_map(|(path, byte)| Step::Falsify(path, byte)),
        2 => path().prop_map(Step::Append),
        3 => path().prop_map(Step::Delete),
        2 => path().prop_map(Step::Directory),
        3 => (path(), path()).prop_map(|(from, to)| Step::Rename(from, to)),
        2 => (path(), mode).prop_map(|(path, mode)| Step::Mode(path, mode)),
        2 => (path(), path()).prop_map(|(path, target)| Step::Symlink(path, target)),
        2 => (path(), path()).prop_map(|(from, to)| Step::Link(from, to)),
        1 => (path(), 0..4_000_000_000_u64).prop_map(|(path, time)| Step::Touch(path, time)),
        3 => Just(Step::Snapshot),
        3 => any::<usize>().prop_map(Step::Restore),
    ]
}

struct World {
    _directory: tempfile::TempDir,
    root: PathBuf,
    copies: PathBuf,
    depot: Depot,
    taken: Vec<TreeId>,
}

impl World {
    fn new() -> World {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().join("work");
        let copies = directory.path().join("copies");
        std::fs::create_dir(&root).unwrap();
        std::fs::create_dir(&copies).unwrap();
        let depot = Depot::open(&directory.path().join("depot")).unwrap();
        World { _directory: directory, root, copies, depot, taken: Vec::new() }
    }

    /// Steps that cannot be done change nothing; that is as good.
    fn apply(&mut self, step: &Step) {
        let at = |path: &String| self.root.join(path);
        match step {
            Step::Write(path, size, byte) => {
                let path = at(path);
                let _ = std::fs::create_dir_all(path.parent().unwrap());
                let _ = std::fs::write(&path, vec![*byte; *size]);
            }
            Step::Falsify(path, byte) => {
                let path = at(path);
                let Ok(data) = path.symlink_metadata() else { return };
                if data.is_file() && data.len() > 0 {
                    let Ok(mut file) = File::options().write(true).open(&path) else { return };
                    file.write_all(&[*byte]).unwrap();
                    file.set_times(FileTimes::new().set_modified(data.modified().unwrap()))
                        .unwrap();
                }
            }
            Step::Append(path) => {
                if let Ok(mut file) = File::options().append(true).open(at(path)) {
                    let _ = file.write_all(b"more");
                }
            }
            Step::Delete(path) => {
                let path = at(path);
                let _ = std::fs::remove_file(&path).or_else(|_| std::fs::remove_dir_all(&path));
            }
            Step::Directory(path) => drop(std::fs::create_dir_all(at(path))),
            Step::Rename(from, to) => drop(std::fs::rename(at(from), at(to))),
            Step::Mode(path, mode) => {
                let path = at(path);
                if path.symlink_metadata().is_ok_and(|data| !data.is_symlink()) {
                    chmod(&path, *mode);
                }
            }
            Step::Symlink(path, target) => drop(symlink(target, at(path))),
            Step::Link(from, to) => {
                if at(from).symlink_metadata().is_ok_and(|data| data.is_file()) {
                    drop(std::fs::hard_link(at(from), at(to)));
                }
            }
            Step::Touch(path, time) => {
                if let Ok(file) = File::open(at(path)) {
                    let time = UNIX_EPOCH + Duration::new(*time, 123_456_789);
                    let _ = file.set_times(FileTimes::new().set_modified(time));
                }
            }
            Step::Snapshot => self.snapshot(),
            Step::Restore(which) => self.restore(*which),
        }
    }

    fn copy(&self, number: usize) -> PathBuf {
        self.copies.join(number.to_string())
    }

    fn snapshot(&mut self) {
        let taken = self.depot.snapshot(&self.root, &Rules::default()).unwrap();
        assert!(taken.report.unsteady.is_empty());
        copy(&self.root, &self.copy(self.taken.len()));
        self.taken.push(taken.tree);
    }

    fn restore(&mut self, which: usize) {
        let Some(which) = which.checked_rem(self.taken.len()) else { return };
        let tree = self.taken[which];
        restore(&self.depot, tree, &self.root);
        assert_equal(&self.root, &self.copy(which));
        let again = self.depot.snapshot(&self.root, &Rules::default()).unwrap();
        assert_eq!(again.tree, tree, "restored, it is the same tree");
        assert_eq!(again.report.new_blobs, 0);
        drop(again);
        let nothing = restore(&self.depot, tree, &self.root);
        assert_eq!(nothing, 0, "there was nothing left to do");
    }
}

/// Says how much had to be done.
fn restore(depot: &Depot, tree: TreeId, root: &Path) -> usize {
    let told = depot.restore(tree, root, &Rules::default()).unwrap();
    assert!(told.is_complete(), "{:?}", told.failed);
    told.created.len() + told.changed.len() + told.attributes.len() + told.deleted.len()
}

proptest! {
    #![proptest_config(cases(48))]

    #[test]
    fn a_restored_workspace_is_the_one_that_was_copied(
        steps in prop::collection::vec(step(), 1..60),
    ) {
        let mut world = World::new();
        for step in &steps {
            world.apply(step);
        }
        world.snapshot();
        for which in 0..world.taken.len() {
            world.restore(which);
        }
        // A sweep of all but one leaves that one whole, also for what comes.
        let kept = world.taken[0];
        world.depot.sweep().unwrap().keep(&[kept]).unwrap();
        world.restore(0);
        for step in &steps {
            if !matches!(step, Step::Restore(_) | Step::Snapshot) {
                world.apply(step);
            }
        }
        let last = world.depot.snapshot(&world.root, &Rules::default()).unwrap().tree;
        let elsewhere = world.copies.join("elsewhere");
        std::fs::create_dir(&elsewhere).unwrap();
        restore(&world.depot, last, &elsewhere);
        assert_equal(&world.root, &elsewhere);
    }
}
