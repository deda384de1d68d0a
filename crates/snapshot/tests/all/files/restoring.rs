//! Putting a snapshot back.

use super::workspace::{Place, assert_equal, assert_same, chmod, copy, look, write};
use sessile_snapshot::files::{Error, Reason, Rules};
use std::ffi::OsStr;
use std::fs::{File, FileTimes};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

#[test]
fn every_kind_of_change_is_taken_back() {
    let place = Place::new();
    let at = |name: &str| place.root.join(name);
    for name in ["same", "changed", "deleted", "renamed", "script", "dir/a", "dir/b", "tree/x/y"] {
        write(&at(name), name);
    }
    let unprintable = place.root.join(OsStr::from_bytes(b"\xff\xfe \n\\"));
    write(&unprintable, "a name is any bytes");
    write(&at("empty"), "");
    write(&at("large"), vec![9; 3_000_000]);
    std::fs::create_dir(at("empty-dir")).unwrap();
    symlink("same", at("link")).unwrap();
    symlink("/nowhere/at/all", at("dangling")).unwrap();
    std::fs::hard_link(at("dir/a"), at("other-name")).unwrap();
    chmod(&at("script"), 0o4755);
    chmod(&at("empty-dir"), 0o2750);
    let long_ago = UNIX_EPOCH + Duration::new(1_000_000_000, 123_456_789);
    File::open(at("same")).unwrap().set_times(FileTimes::new().set_modified(long_ago)).unwrap();
    let original = place.directory.path().join("original");
    copy(&place.root, &original);
    let tree = place.take();

    write(&at("changed"), "something else");
    std::fs::remove_file(at("deleted")).unwrap();
    std::fs::rename(at("renamed"), at("dir/new-name")).unwrap();
    chmod(&at("script"), 0o600);
    std::fs::remove_dir(at("empty-dir")).unwrap();
    std::fs::remove_file(unprintable).unwrap();
    std::fs::remove_file(at("link")).unwrap();
    symlink("changed", at("link")).unwrap();
    std::fs::remove_file(at("dangling")).unwrap();
    write(&at("dangling/is/now"), "a directory");
    std::fs::remove_dir_all(at("tree")).unwrap();
    write(&at("tree"), "is now a file");
    std::fs::remove_file(at("empty")).unwrap();
    symlink("dir", at("empty")).unwrap();
    std::fs::remove_file(at("other-name")).unwrap();
    write(&at("other-name"), "dir/a");
    write(&at("large"), vec![8; 3_000_000]);
    write(&at("new/of/mine"), "new");
    File::open(at("same")).unwrap().set_times(FileTimes::new().set_modified(UNIX_EPOCH)).unwrap();

    let told = place.restore(tree);
    assert_equal(&place.root, &original);
    assert_eq!(told.attributes, [PathBuf::from("same"), PathBuf::from("script")]);
    assert!(told.deleted.contains(&"new".into()) && told.deleted.contains(&"dir/new-name".into()));
    assert!(told.created.contains(&"tree/x/y".into()) && told.changed.contains(&"tree".into()));
    let data = at("dir/a").metadata().unwrap();
    assert_eq!((data.nlink(), data.ino()), (2, at("other-name").metadata().unwrap().ino()));
}

#[test]
fn what_is_as_it_should_be_is_not_touched() {
    let place = Place::new();
    write(&place.root.join("a"), "a");
    write(&place.root.join("b"), "b");
    std::fs::hard_link(place.root.join("b"), place.root.join("c")).unwrap();
    let tree = place.take();
    let facts = |name: &str| {
        let data = place.root.join(name).metadata().unwrap();
        (data.ino(), data.ctime(), data.ctime_nsec())
    };
    let before = (facts("a"), facts("b"));
    write(&place.root.join("d"), "d");
    let told = place.restore(tree);
    assert_eq!((facts("a"), facts("b")), before);
    assert_eq!((told.unchanged, told.deleted), (3, vec![PathBuf::from("d")]));
}

#[test]
fn a_snapshot_becomes_a_workspace_elsewhere() {
    let place = Place::new();
    write(&place.root.join("a/b/c"), "x");
    std::fs::hard_link(place.root.join("a/b/c"), place.root.join("z")).unwrap();
    let tree = place.take();
    let other = place.directory.path().join("other");
    std::fs::create_dir(&other).unwrap();
    let told = place.depot.restore(tree, &other, &Rules::default()).unwrap();
    assert_eq!(told.created.len(), 4);
    assert_equal(&place.root, &other);
}

#[test]
fn ignored_files_are_left_alone_whoever_says_that_they_are() {
    let place = Place::new();
    let at = |name: &str| place.root.join(name);
    write(&at(".gitignore"), "old-rule/\n");
    write(&at("old-rule/precious"), "1");
    write(&at("tracked"), "1");
    let tree = place.take();
    // A run changes the rules, and what was tracked is now ignored.
    write(&at(".gitignore"), "new-rule/\ntracked\n");
    write(&at("new-rule/precious"), "2");
    write(&at("old-rule/precious"), "2");
    write(&at("tracked"), "2");
    write(&at("unknown/inner/new-rule/x"), "3");
    write(&at("unknown/goes"), "3");
    let told = place.restore(tree);
    assert_eq!(std::fs::read(at("new-rule/precious")).unwrap(), b"2");
    assert_eq!(std::fs::read(at("old-rule/precious")).unwrap(), b"2");
    assert_eq!(std::fs::read(at("tracked")).unwrap(), b"1", "the snapshot has it");
    assert_eq!(std::fs::read(at(".gitignore")).unwrap(), b"old-rule/\n");
    assert!(at("unknown/inner/new-rule/x").exists() && !at("unknown/goes").exists());
    assert_eq!(told.left_alone.counts(), [("ignored", 3)]);
}

#[test]
fn a_directory_of_ignored_files_is_not_sacrificed_for_a_file() {
    let place = Place::new();
    write(&place.root.join("x"), "a file");
    write(&place.root.join("y"), "1");
    let tree = place.take();
    std::fs::remove_file(place.root.join("x")).unwrap();
    write(&place.root.join("x/.gitignore"), "precious\n");
    write(&place.root.join("x/precious"), "!");
    write(&place.root.join("x/other"), "!");
    write(&place.root.join("y"), "2");
    let told = place.depot.restore(tree, &place.root, &Rules::default()).unwrap();
    assert!(!told.is_complete());
    assert!(matches!(&told.failed[0].error, Error::InTheWay { .. }), "{:?}", told.failed);
    assert!(place.root.join("x/precious").exists() && place.root.join("x/other").exists());
    assert_eq!(std::fs::read(place.root.join("y")).unwrap(), b"1", "the rest was done");
    std::fs::remove_file(place.root.join("x/precious")).unwrap();
    place.restore(tree);
    assert_eq!(std::fs::read(place.root.join("x")).unwrap(), b"a file");
}

#[test]
fn links_that_lead_out_are_never_followed() {
    let place = Place::new();
    let outside = place.directory.path().join("outside");
    write(&outside.join("f"), "mine");
    write(&place.root.join("dir/f"), "1");
    let tree = place.take();
    std::fs::remove_dir_all(place.root.join("dir")).unwrap();
    symlink(&outside, place.root.join("dir")).unwrap();
    symlink(outside.join("f"), place.root.join("new")).unwrap();
    let before = look(&outside);
    let told = place.restore(tree);
    assert_same(&look(&outside), &before);
    assert!(place.root.join("dir").symlink_metadata().unwrap().is_dir());
    assert_eq!(told.deleted, [PathBuf::from("new")]);
}

#[test]
fn a_file_with_names_outside_is_replaced_and_not_altered() {
    let place = Place::new();
    write(&place.root.join("f"), "1");
    let tree = place.take();
    let outside = place.directory.path().join("outside");
    std::fs::hard_link(place.root.join("f"), &outside).unwrap();
    chmod(&outside, 0o777);
    place.restore(tree);
    assert_eq!(outside.metadata().unwrap().mode() & 0o7777, 0o777);
    assert_eq!(place.root.join("f").metadata().unwrap().nlink(), 1);
}

#[test]
fn remains_of_a_killed_restore_go_with_the_next() {
    let place = Place::new();
    write(&place.root.join("f"), "1");
    let tree = place.take();
    write(&place.root.join(".sessile-restoring-0123"), "half");
    let taken = place.depot.snapshot(&place.root, &Rules::default()).unwrap();
    assert_eq!(taken.tree, tree);
    assert_eq!(taken.report.left_out.examples()[0].reason, Reason::Own);
    place.restore(tree);
    assert_eq!(look(&place.root).keys().collect::<Vec<_>>(), [Path::new("f")]);
}
