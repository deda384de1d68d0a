//! The depot itself.

use super::workspace::{Place, assert_equal, chmod, count, look, write};
use sessile_snapshot::files::{Depot, Error, Rules};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

/// The only object on a shelf whose length is this.
fn object(place: &Place, shelf: &str, length: u64) -> PathBuf {
    let found = look(&place.depot.path().join(shelf))
        .into_iter()
        .filter(|(_, seen)| seen.content.len() as u64 == length)
        .map(|(path, _)| place.depot.path().join(shelf).join(path))
        .collect::<Vec<_>>();
    assert_eq!(found.len(), 1);
    found[0].clone()
}

#[test]
fn a_depot_is_private() {
    let place = Place::new();
    write(&place.root.join("d/f"), "x");
    place.snapshot();
    for (path, seen) in look(place.depot.path()) {
        let expected = if seen.mode & 0o170_000 == 0o040_000 { 0o700 } else { 0o600 };
        assert_eq!(seen.mode & 0o777, expected, "{path:?}");
    }
    assert_eq!(place.depot.path().metadata().unwrap().mode() & 0o777, 0o700);
    let open_to_all = place.directory.path().join("open");
    std::fs::create_dir(&open_to_all).unwrap();
    chmod(&open_to_all, 0o755);
    Depot::open(&open_to_all).unwrap();
    assert_eq!(open_to_all.metadata().unwrap().mode() & 0o777, 0o700);
}

#[test]
fn a_sweep_removes_what_no_tree_needs() {
    let place = Place::new();
    write(&place.root.join("a"), "a");
    write(&place.root.join("d/b"), "b");
    let first = place.take();
    write(&place.root.join("a"), "changed");
    let second = place.take();
    write(&place.depot.path().join("tmp/left"), "by a killed process");
    let swept = place.depot.sweep().unwrap().keep(&[first, second]).unwrap();
    assert_eq!((swept.removed, swept.kept), (1, 6));
    let swept = place.depot.sweep().unwrap().keep(&[second]).unwrap();
    assert_eq!((swept.removed, swept.kept), (2, 4));
    assert!(place.depot.restore(first, &place.root, &Rules::default()).is_err());
    place.restore(second);
    // What the index knows of is not taken for stored.
    place.depot.sweep().unwrap().keep(&[]).unwrap();
    assert_eq!(count(&place.depot.path().join("blobs")), 0);
    place.settle();
    let third = place.take();
    std::fs::remove_file(place.root.join("a")).unwrap();
    place.restore(third);
    assert_eq!(std::fs::read(place.root.join("a")).unwrap(), b"changed");
}

#[test]
fn a_sweep_waits_for_nobody_and_disturbs_nobody() {
    let place = Place::new();
    write(&place.root.join("a"), "a");
    let taken = place.depot.snapshot(&place.root, &Rules::default()).unwrap();
    assert!(matches!(place.depot.sweep(), Err(Error::Busy)));
    let hold = place.depot.hold().unwrap();
    drop(taken);
    assert!(matches!(place.depot.sweep(), Err(Error::Busy)));
    drop(hold);
    assert!(place.depot.sweep().is_ok());
}

#[test]
fn a_sweep_with_a_tree_that_is_not_there_removes_nothing() {
    let place = Place::new();
    write(&place.root.join("a"), "a");
    place.take();
    let before = look(place.depot.path());
    let unknown = "00".repeat(32).parse().unwrap();
    let error = place.depot.sweep().unwrap().keep(&[unknown]).unwrap_err();
    assert!(matches!(error, Error::Missing { .. }), "{error}");
    assert_eq!(look(place.depot.path()), before);
}

#[test]
fn a_damaged_content_is_named_and_the_rest_restored() {
    let place = Place::new();
    write(&place.root.join("a"), "aaaaa");
    write(&place.root.join("b"), "bbb");
    let tree = place.take();
    let blob = object(&place, "blobs", 5);
    std::fs::write(&blob, "aaaab").unwrap();
    write(&place.root.join("a"), "now");
    write(&place.root.join("b"), "now");
    let told = place.depot.restore(tree, &place.root, &Rules::default()).unwrap();
    assert_eq!(told.failed.len(), 1);
    assert_eq!(told.failed[0].path, PathBuf::from("a"));
    let text = told.failed[0].error.to_string();
    assert!(text.contains(blob.to_str().unwrap()) && text.contains("damaged"), "{text}");
    assert_eq!(std::fs::read(place.root.join("a")).unwrap(), b"now", "not half of it");
    assert_eq!(std::fs::read(place.root.join("b")).unwrap(), b"bbb");
}

#[test]
fn nothing_is_begun_that_the_depot_has_not_got() {
    let place = Place::new();
    write(&place.root.join("a"), "aaaaa");
    write(&place.root.join("b"), "bbb");
    let tree = place.take();
    let blob = object(&place, "blobs", 5);
    std::fs::remove_file(&blob).unwrap();
    write(&place.root.join("a"), "now");
    write(&place.root.join("b"), "now");
    let error = place.depot.restore(tree, &place.root, &Rules::default()).unwrap_err();
    assert!(matches!(&error, Error::Incomplete { file, .. } if file.as_os_str() == "a"), "{error}");
    assert_eq!(std::fs::read(place.root.join("b")).unwrap(), b"now");
    // A cut one, as a machine's crash leaves it, is as good as none; and heals.
    std::fs::write(&blob, "aa").unwrap();
    assert!(place.depot.restore(tree, &place.root, &Rules::default()).is_err());
    write(&place.root.join("a"), "aaaaa");
    place.take();
    assert_eq!(std::fs::read(&blob).unwrap(), b"aaaaa");
}

#[test]
fn a_damaged_listing_is_named_before_anything_is_done() {
    let place = Place::new();
    write(&place.root.join("d/a"), "a");
    let tree = place.take();
    let mut path = place.depot.path().join("trees").join(&tree.to_string()[..2]);
    path.push(&tree.to_string()[2..]);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[20] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let error = place.depot.restore(tree, &place.root, &Rules::default()).unwrap_err();
    assert!(matches!(&error, Error::Damaged { path: named, .. } if *named == path), "{error}");
}

#[test]
fn a_damaged_index_costs_nothing_but_time() {
    let place = Place::new();
    write(&place.root.join("a"), "a");
    place.settle();
    let tree = place.take();
    assert_eq!(place.snapshot().read, 0);
    let directory = place.depot.path().join("index");
    let name = std::fs::read_dir(&directory).unwrap().next().unwrap().unwrap().path();
    let whole = std::fs::read(&name).unwrap();
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x10;
        std::fs::write(&name, &bytes).unwrap();
        assert_eq!(place.take(), tree);
        std::fs::write(&name, &whole[..at]).unwrap();
        assert_eq!(place.take(), tree);
    }
}

#[test]
fn a_directory_with_other_things_is_not_made_a_depot() {
    let directory = tempfile::tempdir().unwrap();
    write(&directory.path().join("mine"), "x");
    let error = Depot::open(directory.path()).unwrap_err();
    assert!(matches!(error, Error::NotADepot { .. }));
    assert_eq!(look(directory.path()).len(), 1);
    let newer = directory.path().join("newer");
    write(&newer.join("format"), "sessile depot 2\n");
    assert!(matches!(Depot::open(&newer), Err(Error::Newer { .. })));
}

#[test]
fn two_at_once_do_not_disturb_each_other() {
    let place = Place::new();
    for n in 0..300 {
        write(&place.root.join(format!("{}/{n}", n % 7)), n.to_string());
    }
    let path = place.depot.path().to_owned();
    let trees: Vec<_> = std::thread::scope(|scope| {
        let take = || Depot::open(&path).unwrap().snapshot(&place.root, &Rules::default());
        let tasks: Vec<_> = (0..4).map(|_| scope.spawn(take)).collect();
        tasks.into_iter().map(|task| task.join().unwrap().unwrap().tree).collect()
    });
    assert!(trees.iter().all(|tree| *tree == trees[0]));
    let other = place.directory.path().join("other");
    std::fs::create_dir(&other).unwrap();
    place.depot.restore(trees[0], &other, &Rules::default()).unwrap();
    assert_equal(&place.root, &other);
}

#[test]
fn sweeps_while_snapshots_are_taken_spare_what_is_written_down() {
    let place = Place::new();
    for n in 0..20 {
        write(&place.root.join(n.to_string()), n.to_string());
    }
    let written = Mutex::new(Vec::new());
    let over = AtomicBool::new(false);
    let mut swept = 0;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in 0..200 {
                write(&place.root.join((n % 20).to_string()), format!("{n} {n}"));
                let taken = place.depot.snapshot(&place.root, &Rules::default()).unwrap();
                let mut written = written.lock().unwrap();
                written.push(taken.tree);
                if written.len() > 3 {
                    written.remove(0);
                }
            }
            over.store(true, Ordering::Relaxed);
        });
        while !over.load(Ordering::Relaxed) {
            match place.depot.sweep() {
                Ok(sweep) => {
                    let keep = written.lock().unwrap().clone();
                    swept += sweep.keep(&keep).unwrap().removed;
                }
                Err(Error::Busy) => std::thread::yield_now(),
                Err(error) => panic!("{error}"),
            }
        }
    });
    for tree in written.into_inner().unwrap() {
        place.restore(tree);
    }
    let left = place.depot.sweep().unwrap().keep(&[]).unwrap();
    assert!(swept + left.removed > 200);
}
