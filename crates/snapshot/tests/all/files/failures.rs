//! No room, no permission: told, and done again once it is better.

use super::kills::{child, job, path};
use super::workspace::{Place, assert_equal, chmod, copy, count, look, write};
use sessile_snapshot::bundle::Writer;
use sessile_snapshot::files::{Depot, Error, Rules};
use sessile_testkit::needs;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

const NOBODY: u32 = 65_534;

/// Runs a test in a mount namespace of its own, with 4 MB of disk at the path.
fn with_small_disk(test: &str) {
    let directory = tempfile::tempdir().unwrap();
    let disk = directory.path().join("disk");
    std::fs::create_dir(&disk).unwrap();
    let run = child("small disk", test, &[directory.path(), &disk]);
    let mount = r#"mount -t tmpfs -o size=4m none "$SNAPSHOT_PATH_1" || exit 77; exec "$@""#;
    for flags in [&["--mount"][..], &["--user", "--map-root-user", "--mount"]] {
        let mut command = Command::new("unshare");
        command.args(flags).args(["sh", "-c", mount, "sh"]).arg(run.get_program());
        command.args(run.get_args());
        for (name, value) in run.get_envs() {
            command.env(name, value.unwrap_or_default());
        }
        let output = command.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        if output.status.success() {
            assert!(text.contains("1 passed"), "no test is called {test}");
            return;
        }
        let why = String::from_utf8_lossy(&output.stderr);
        assert!(!text.contains("FAILED"), "{text}\n{why}");
    }
    needs::not_permitted("this system does not let its users mount file systems");
}

#[test]
fn a_full_disk_under_a_restore_is_told_and_made_good() {
    if job().is_none() {
        return with_small_disk(
            "files::failures::a_full_disk_under_a_restore_is_told_and_made_good",
        );
    }
    let source = path(0).join("source");
    for n in 0..10 {
        write(&source.join(format!("new{n}")), vec![n; 500_000]);
    }
    write(&source.join("small"), "small");
    let depot = Depot::open(&path(0).join("depot")).unwrap();
    let tree = depot.snapshot(&source, &Rules::default()).unwrap().tree;
    let root = path(1);
    write(&root.join("obsolete"), vec![1; 1_000_000]);
    write(&root.join("new3"), "old content");
    write(&root.join(".gitignore"), "cache\n");
    write(&root.join("cache"), vec![1; 3_000_000]);
    let told = depot.restore(tree, &root, &Rules::default()).unwrap();
    assert!(!told.is_complete() && !told.created.is_empty());
    assert!(told.failed.iter().all(|failure| failure.error.is_disk_full()), "{:?}", told.failed);
    for failure in &told.failed {
        let there = std::fs::read(root.join(&failure.path)).ok();
        let old = (failure.path == Path::new("new3")).then(|| b"old content".to_vec());
        assert_eq!(there, old, "{:?} is as it was", failure.path);
    }
    for path in told.created.iter().chain(&told.changed) {
        assert_eq!(
            std::fs::read(root.join(path)).unwrap(),
            std::fs::read(source.join(path)).unwrap()
        );
    }
    assert!(!root.join("obsolete").exists(), "deletions come first");
    // Not enough room for all even so: a smaller snapshot works.
    for n in 2..10 {
        std::fs::remove_file(source.join(format!("new{n}"))).unwrap();
    }
    let smaller = depot.snapshot(&source, &Rules::default()).unwrap().tree;
    std::fs::remove_file(root.join("cache")).unwrap();
    assert!(depot.restore(smaller, &root, &Rules::default()).unwrap().is_complete());
    assert_equal(&root, &source);
}

#[test]
fn a_full_disk_under_a_depot_is_an_error_and_nothing_is_spoilt() {
    if job().is_none() {
        return with_small_disk(
            "files::failures::a_full_disk_under_a_depot_is_an_error_and_nothing_is_spoilt",
        );
    }
    let depot = Depot::open(&path(1).join("depot")).unwrap();
    let root = path(0).join("work");
    write(&root.join("small"), "small");
    let good = depot.snapshot(&root, &Rules::default()).unwrap().tree;
    for size in [100_000, 1_000_000] {
        for n in 0..60 {
            write(&root.join(format!("f{n}")), vec![n; size]);
        }
        let error = depot.snapshot(&root, &Rules::default()).unwrap_err();
        assert!(error.is_disk_full(), "{error}");
        // To the last byte, so that a sweep has none to work with.
        let ballast = path(1).join("ballast");
        std::fs::write(&ballast, vec![0; 8_000_000]).unwrap_err();
        depot.sweep().unwrap().keep(&[good]).unwrap();
        assert!(count(depot.path()) < 10, "all of it was removed");
        std::fs::remove_file(ballast).unwrap();
    }
    depot.restore(good, &root, &Rules::default()).unwrap();
    assert_eq!(look(&root).len(), 1);
    let again = depot.snapshot(&root, &Rules::default()).unwrap().tree;
    assert_eq!(again, good);
}

#[test]
fn a_full_disk_under_a_bundle_leaves_the_old_one() {
    if job().is_none() {
        return with_small_disk("files::failures::a_full_disk_under_a_bundle_leaves_the_old_one");
    }
    let bundle = path(1).join("work.sessile");
    write(&bundle, "old");
    let root = path(0).join("work");
    let mut random = vec![0; 8_000_000];
    File::open("/dev/urandom").unwrap().read_exact(&mut random).unwrap();
    write(&root.join("incompressible"), random);
    let depot = Depot::open(&path(0).join("depot")).unwrap();
    let tree = depot.snapshot(&root, &Rules::default()).unwrap().tree;
    let mut writer = Writer::create(&bundle).unwrap();
    let error = depot.export(tree, &mut writer, "files").unwrap_err();
    assert!(error.is_disk_full(), "{error}");
    drop(writer);
    assert_eq!(look(&path(1)).len(), 1);
    assert_eq!(std::fs::read(&bundle).unwrap(), b"old");
}

/// Runs a test as somebody for whom modes are more than a remark.
fn without_privileges(test: &str) {
    let directory = tempfile::tempdir().unwrap();
    let mut command = child("unprivileged", test, &[directory.path()]);
    if rustix::process::geteuid().is_root() {
        // Where the program is may be closed to others.
        let program = directory.path().join("program");
        // By another process: children of other tests would have our copy open for writing,
        // and it could not be run.
        let copy = [std::env::current_exe().unwrap(), program.clone()];
        assert!(Command::new("cp").args(copy).status().unwrap().success());
        chown(directory.path(), Some(NOBODY), Some(NOBODY)).unwrap();
        let mut other = Command::new(program);
        other.args(command.get_args()).uid(NOBODY).gid(NOBODY).current_dir("/");
        for (name, value) in command.get_envs() {
            other.env(name, value.unwrap_or_default());
        }
        other.env("TMPDIR", directory.path());
        command = other;
    }
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("1 passed"), "no test is called {test}");
}

#[test]
fn modes_that_lock_the_owner_out_are_no_obstacle() {
    if job().is_none() {
        return without_privileges(
            "files::failures::modes_that_lock_the_owner_out_are_no_obstacle",
        );
    }
    let place = Place::new();
    let at = |name: &str| place.root.join(name);
    for name in ["read-only/f", "read-only/g", "closed/f", "closed/sub/g", "plain/f", "plain/g"] {
        write(&at(name), name);
    }
    chmod(&at("read-only/f"), 0o444);
    chmod(&at("read-only"), 0o555);
    let original = place.directory.path().join("original");
    copy(&place.root, &original);
    let tree = place.take();

    chmod(&at("read-only"), 0o755);
    std::fs::remove_file(at("read-only/f")).unwrap();
    write(&at("read-only/new"), "new");
    chmod(&at("read-only"), 0o500);
    write(&at("closed/f"), "changed");
    chmod(&at("closed/sub"), 0o000);
    chmod(&at("closed"), 0o000);
    chmod(&at("plain/f"), 0o000);
    write(&at("new/locked/x"), "x");
    chmod(&at("new/locked"), 0o111);
    chmod(&at("new"), 0o000);
    place.restore(tree);
    assert_equal(&place.root, &original);
}

#[test]
fn what_cannot_be_read_is_left_out_and_left_alone() {
    if job().is_none() {
        return without_privileges(
            "files::failures::what_cannot_be_read_is_left_out_and_left_alone",
        );
    }
    let place = Place::new();
    write(&place.root.join("closed/f"), "1");
    write(&place.root.join("secret"), "1");
    chmod(&place.root.join("closed"), 0o000);
    chmod(&place.root.join("secret"), 0o000);
    let taken = place.depot.snapshot(&place.root, &Rules::default()).unwrap();
    assert_eq!(taken.report.left_out.counts(), [("unreadable", 2)]);
    place.restore(taken.tree);
    chmod(&place.root.join("closed"), 0o700);
    chmod(&place.root.join("secret"), 0o600);
    assert_eq!(look(&place.root).len(), 3);
}

#[test]
fn a_depot_that_cannot_be_written_is_an_error() {
    if job().is_none() {
        return without_privileges("files::failures::a_depot_that_cannot_be_written_is_an_error");
    }
    let place = Place::new();
    write(&place.root.join("f"), "1");
    chmod(&place.depot.path().join("tmp"), 0o500);
    let error = place.depot.snapshot(&place.root, &Rules::default()).unwrap_err();
    assert!(matches!(error, Error::Io { .. }), "{error}");
    chmod(&place.depot.path().join("tmp"), 0o700);
}
