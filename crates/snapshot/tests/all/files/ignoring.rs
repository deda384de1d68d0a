//! Ignore files mean what git says that they mean.

use super::workspace::{Place, look, write};
use proptest::prelude::*;
use sessile_snapshot::files::Rules;
use sessile_testkit::cases;
use sessile_testkit::needs;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

fn git(root: &Path, arguments: &[&str]) -> Vec<u8> {
    let mut command = Command::new("git");
    command.args(arguments).current_dir(root).env("HOME", "/nowhere").env("LC_ALL", "C");
    command.env("GIT_CONFIG_NOSYSTEM", "1").env("XDG_CONFIG_HOME", "/nowhere");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    output.stdout
}

/// All files that git does not ignore.
fn kept_by_git(root: &Path) -> BTreeSet<PathBuf> {
    let listed = git(root, &["ls-files", "-z", "--others", "--exclude-standard"]);
    let names = String::from_utf8(listed).unwrap();
    names.split_terminator('\0').map(PathBuf::from).collect()
}

/// All files that a snapshot has, without the repository.
fn kept_by_us(place: &Place) -> BTreeSet<PathBuf> {
    let other = tempfile::tempdir().unwrap();
    place.depot.restore(place.take(), other.path(), &Rules::default()).unwrap();
    let seen = look(other.path()).into_iter();
    let files = seen.filter(|(_, seen)| seen.mode & 0o170_000 == 0o100_000);
    files.map(|(path, _)| path).filter(|path| !path.starts_with(".git")).collect()
}

fn rules() -> impl Strategy<Value = String> {
    let line = prop::sample::select(vec![
        "*.o",
        "!*.o",
        "!keep.o",
        "build/",
        "/build",
        "build",
        "!build/",
        "a/b",
        "/a/**",
        "**/b",
        "a/*/c",
        "*",
        "!*/",
        "!a",
        "# comment",
        "",
        "\\#x",
        "[ab].o",
        "a?",
        "**/build/*.o",
        "a/**/c",
        "x ",
        "x\\ ",
        "!/a/keep.o",
        "*.[!o]",
        "foo/",
        "!a/",
        "b*",
    ]);
    prop::collection::vec(line, 0..6).prop_map(|lines| lines.join("\n"))
}

const FILES: [&str; 18] = [
    "a/b/c",
    "a/b/keep.o",
    "a/b/x.o",
    "a/keep.o",
    "a/x",
    "a/foo/c",
    "b/build/x.o",
    "b/build/y",
    "b/a/c",
    "build/x",
    "foo",
    "keep.o",
    "x.o",
    "a.o",
    "ab",
    "x",
    "#x",
    "c/build",
];

/// A repository that all cases share: to make one takes longer than a case.
fn repository() -> Place {
    let place = Place::new();
    git(&place.root, &["init", "-q"]);
    for name in FILES {
        write(&place.root.join(name), name);
    }
    place
}

#[test]
fn a_snapshot_has_what_git_does_not_ignore() {
    if !needs::has_program("git") {
        return;
    }
    let place = repository();
    proptest!(cases(40), |(top in rules(), below in rules(), deep in rules())| {
        write(&place.root.join(".gitignore"), top);
        write(&place.root.join("a/.gitignore"), below);
        write(&place.root.join("a/b/.gitignore"), deep);
        prop_assert_eq!(kept_by_us(&place), kept_by_git(&place.root));
    });
}
