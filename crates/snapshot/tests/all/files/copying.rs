//! Own copies of workspaces.

use super::workspace::{Place, assert_equal, chmod, look, write};
use sessile_snapshot::files::{Error, copy};
use std::os::unix::fs::symlink;
use std::path::PathBuf;

#[test]
fn a_copy_is_equal_and_independent() {
    let place = Place::new();
    write(&place.root.join(".gitignore"), "ignored\n");
    write(&place.root.join("ignored"), "copied all the same");
    write(&place.root.join("dir/f"), vec![1; 300_000]);
    std::fs::hard_link(place.root.join("dir/f"), place.root.join("g")).unwrap();
    symlink("dir", place.root.join("link")).unwrap();
    chmod(&place.root.join("dir/f"), 0o4711);
    chmod(&place.root.join("dir"), 0o1755);
    let to = place.directory.path().join("copy");
    let told = copy(&place.root, &to, &[]).unwrap();
    assert_equal(&place.root, &to);
    assert_eq!((told.kept.files, told.kept.hard_links, told.kept.symlinks), (3, 1, 1));
    let before = look(&place.root);
    write(&to.join("dir/f"), "other");
    write(&to.join("new"), "other");
    assert_eq!(look(&place.root), before);
}

#[test]
fn sessions_and_the_copy_itself_are_not_copied() {
    let place = Place::new();
    write(&place.root.join("f"), "f");
    write(&place.root.join(".sessions/s/x"), "x");
    let to = place.root.join("below");
    let told = copy(&place.root, &to, &[]).unwrap();
    assert_eq!(look(&to).len(), 1);
    let paths: Vec<_> = told.left_out.examples().iter().map(|omission| &omission.path).collect();
    assert!(paths.contains(&&PathBuf::from(".sessions")), "{paths:?}");
}

#[test]
fn what_exists_is_not_overwritten() {
    let place = Place::new();
    write(&place.root.join("f"), "f");
    let to = place.directory.path().join("there");
    write(&to, "mine");
    let error = copy(&place.root, &to, &[]).unwrap_err();
    assert!(matches!(error, Error::Exists { .. }));
    assert_eq!(std::fs::read(&to).unwrap(), b"mine");
}
