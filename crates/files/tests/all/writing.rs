//! Files that are written, moved and removed.

use super::{link, place, usual};
use sessile_files::{FileError, Kind, Replace, Writing};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};

#[test]
fn a_file_is_replaced_as_a_whole_and_keeps_its_permissions() {
    let p = place();
    assert!(p.write("a", b"one").unwrap());
    fs::set_permissions(p.at("a"), fs::Permissions::from_mode(0o750)).unwrap();
    let before = fs::metadata(p.at("a")).unwrap();
    let mut draft = p.root.write(&p.path("a"), usual()).unwrap();
    draft.write(b"two").unwrap();
    assert_eq!(p.read("a").unwrap(), "one", "not yet");
    assert_eq!(p.names(1), ["a"], "nothing beside it");
    assert!(!draft.finish().unwrap().is_new);
    let after = fs::metadata(p.at("a")).unwrap();
    assert_eq!((p.read("a").unwrap().as_str(), after.mode() & 0o777), ("two", 0o750));
    assert_ne!(before.ino(), after.ino());
    // One that is given up leaves nothing.
    let mut given_up = p.root.write(&p.path("b"), usual()).unwrap();
    given_up.write(b"half").unwrap();
    drop(given_up);
    assert_eq!(p.names(1), ["a"]);
}

#[test]
fn setuid_is_never_given() {
    let p = place();
    let writing = Writing { mode: Some(0o4755), ..usual() };
    p.root.write(&p.path("a"), writing).unwrap().finish().unwrap();
    assert_eq!(fs::metadata(p.at("a")).unwrap().mode() & 0o7777, 0o755);
}

#[test]
fn who_wants_a_new_file_gets_one_or_none() {
    let p = place();
    let new = Writing { replace: Replace::No, ..usual() };
    let first = p.root.write(&p.path("a"), new).unwrap();
    let second = p.root.write(&p.path("a"), new).unwrap();
    first.finish().unwrap();
    assert!(matches!(second.finish(), Err(FileError::Exists(_))));
    assert!(matches!(p.root.write(&p.path("a"), new), Err(FileError::Exists(_))));
}

#[test]
fn zeros_take_no_room() {
    let p = place();
    let mut draft = p.root.write(&p.path("a"), usual()).unwrap();
    for _ in 0..64 {
        draft.write(&[0; 1 << 20]).unwrap();
    }
    draft.write(b"end").unwrap();
    let written = draft.finish().unwrap().entry;
    assert_eq!(written.size, (64 << 20) + 3);
    assert!(fs::metadata(p.at("a")).unwrap().blocks() < 1000, "it is sparse");
    assert!(fs::read(p.at("a")).unwrap().ends_with(b"\0\0end"));
}

#[test]
fn directories_are_made_on_the_way_when_that_is_wanted() {
    let p = place();
    assert!(matches!(p.write("a/b/c", b""), Err(FileError::NotFound(_))));
    let writing = Writing { parents: true, ..usual() };
    p.root.write(&p.path("a/b/c"), writing).unwrap().finish().unwrap();
    assert_eq!(p.names(2), ["a", "a/b"]);
    assert_eq!(p.names(9), ["a", "a/b", "a/b/c"]);
    assert!(matches!(p.root.make(&p.path("a/b")), Err(FileError::Exists(_))));
    assert!(matches!(p.write("a/b", b""), Err(FileError::IsADirectory(_))));
    assert!(matches!(p.write("a/b/c/d", b""), Err(FileError::NotADirectory(_))));
}

#[test]
fn a_tree_goes_with_all_that_is_in_it_but_not_what_its_links_lead_to() {
    let p = place();
    p.root.make_all(&p.path("a/b/c")).unwrap();
    p.write("a/b/f", b"x").unwrap();
    p.write("kept", b"x").unwrap();
    link(p.at("kept"), &p.at("a/link"));
    link(p.secret.parent().unwrap(), &p.at("a/out"));
    assert!(matches!(p.root.remove(&p.path("a")), Err(FileError::NotEmpty(_))));
    p.root.remove_all(&p.path("a")).unwrap();
    assert_eq!(p.names(9), ["kept"]);
    assert!(matches!(p.root.remove(&p.path("a")), Err(FileError::NotFound(_))));
    assert!(p.root.remove_all(&p.path("")).is_err(), "not the workspace itself");
    p.secret_is_safe();
}

#[test]
fn what_is_moved_replaces_only_when_that_is_wanted() {
    let p = place();
    p.write("a", b"a").unwrap();
    p.write("b", b"b").unwrap();
    let (a, b) = (p.path("a"), p.path("b"));
    assert!(matches!(p.root.rename(&a, &b, Replace::No), Err(FileError::Exists(_))));
    assert_eq!(p.root.rename(&a, &b, Replace::Yes).unwrap().kind, Kind::File);
    assert_eq!((p.names(1), p.read("b").unwrap()), (vec!["b".to_owned()], "a".to_owned()));
    p.root.make_all(&p.path("d/e")).unwrap();
    let into_itself = p.root.rename(&p.path("d"), &p.path("d/e/f"), Replace::No);
    assert!(matches!(into_itself, Err(FileError::BadPath(..))), "{into_itself:?}");
}

#[test]
fn names_need_not_be_text() {
    let p = place();
    let path = p.root.path(b"caf\xe9/\xff").unwrap();
    let writing = Writing { parents: true, ..usual() };
    p.root.write(&path, writing).unwrap().finish().unwrap();
    let all = p.list(2);
    assert_eq!(all[1].path.bytes(), b"caf\xe9/\xff");
    assert_eq!(p.root.stat(&all[1].path).unwrap().kind, Kind::File);
}
