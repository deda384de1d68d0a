//! What a snapshot has, what it leaves out, and what it costs.

use super::workspace::{Place, chmod, write};
use sessile_snapshot::bundle::{self, Reader, Writer};
use sessile_snapshot::files::{
    ChangedProperty, Error, IgnoreFiles, Limits, Omission, OverLimit, Reason, Rules, Special, copy,
};
use std::io::{Seek, Write};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

fn out<'a>(left: &'a [Omission], path: &str) -> Option<&'a Reason> {
    left.iter().find(|omission| omission.path.as_os_str() == path).map(|omission| &omission.reason)
}

#[test]
fn five_changed_files_of_ten_thousand_cost_what_five_files_cost() {
    for shape in ["flat", "deep"] {
        let place = Place::in_memory();
        for n in 0..10_000 {
            let name = match shape {
                "flat" => format!("{n:05}"),
                _ => format!("{}/{}/{n:05}", n % 10, n % 100),
            };
            write(&place.root.join(name), format!("file {n}"));
        }
        let first = place.snapshot();
        assert_eq!((first.kept.files, first.new_blobs, first.read), (10_000, 10_000, 10_000));
        place.settle();
        place.snapshot();
        let quiet = place.snapshot();
        assert_eq!((quiet.read, quiet.new_blobs, quiet.new_listings), (0, 0, 0), "{shape}");
        for n in 0..5 {
            let name = match shape {
                "flat" => format!("{:05}", n * 1_700),
                _ => format!("0/{}/{:05}", n * 10, n * 10),
            };
            write(&place.root.join(name), format!("changed {n}"));
        }
        let second = place.snapshot();
        assert_eq!((second.read, second.new_blobs), (5, 5), "{shape}");
        assert!(second.new_listings <= 12, "{shape}: {} listings", second.new_listings);
        let bytes = second.new_listing_bytes;
        assert!(bytes < 100_000, "{shape}: {bytes} bytes of listings");
    }
}

#[test]
fn equal_contents_are_stored_once() {
    let place = Place::new();
    for n in 0..10 {
        write(&place.root.join(n.to_string()), "the same");
        write(&place.root.join(format!("big{n}")), vec![7; 400_000]);
    }
    let told = place.snapshot();
    assert_eq!((told.kept.files, told.new_blobs), (20, 2));
    assert_eq!(told.new_blob_bytes, 400_008);
}

#[test]
fn large_files_share_their_bytes_where_the_file_system_can() {
    let place = Place::new();
    let path = place.root.join("large");
    write(&path, vec![7; 1_000_000]);
    let probe = std::process::Command::new("cp")
        .arg("--reflink=always")
        .args([&path, &place.directory.path().join("probe")])
        .output();
    let expected = u64::from(probe.unwrap().status.success());
    let report = place.snapshot();
    assert_eq!((report.cloned, report.new_blob_bytes), (expected, 1_000_000));
    let tree = place.take();
    let told = copy(&place.root, &place.directory.path().join("copy"), &[]).unwrap();
    assert_eq!(told.cloned, expected);
    write(&path, "changed in place");
    place.restore(tree);
    assert_eq!(std::fs::read(&path).unwrap(), vec![7; 1_000_000]);
}

#[test]
fn a_file_that_changes_within_one_tick_of_the_clock_is_noticed() {
    let place = Place::new();
    let path = place.root.join("f");
    // Same size, same inode, and, now and then, the same time to the nanosecond.
    for n in 0..300 {
        write(&path, format!("{n:03}"));
        let one = place.take();
        write(&path, format!("{:03}", n + 500));
        let two = place.take();
        assert_ne!(one, two, "change {n} was missed");
    }
}

#[test]
fn what_git_ignores_is_left_out_and_told() {
    let place = Place::new();
    for name in ["a.o", "a.c", "sub/b.o", "sub/keep.o", "build/x", "sub/build/x", "dist/y", "s.key"]
    {
        write(&place.root.join(name), name);
    }
    write(&place.root.join(".git/objects/p.o"), "a repository is whole");
    write(&place.root.join(".gitignore"), "*.o\n/build/\ndist\n");
    write(&place.root.join("sub/.gitignore"), "!keep.o\n");
    write(&place.root.join(".sessileignore"), "!dist\n*.key\n");
    let told = place.snapshot();
    let left = told.left_out.examples();
    let paths: Vec<_> = left.iter().map(|omission| omission.path.to_str().unwrap()).collect();
    assert_eq!(paths, ["a.o", "build", "s.key", "sub/b.o"]);
    assert_eq!(told.left_out.counts(), [("ignored", 4)]);
    let reason = Reason::Ignored { file: PathBuf::from(".gitignore"), pattern: "*.o".into() };
    assert_eq!(out(left, "sub/b.o"), Some(&reason));
    assert_eq!(reason.to_string(), "ignored by \"*.o\" in .gitignore");

    let all = Rules { ignore: IgnoreFiles::Disregard, ..Rules::default() };
    let told = place.depot.snapshot(&place.root, &all).unwrap().report;
    assert_eq!(told.left_out.total(), 0);
}

#[test]
fn many_ignored_files_are_counted_and_some_named() {
    let place = Place::new();
    write(&place.root.join(".gitignore"), "*.o\n");
    for n in 0..1_000 {
        write(&place.root.join(format!("{n}.o")), "");
    }
    let told = place.snapshot();
    assert_eq!(told.left_out.total(), 1_000);
    assert_eq!(told.left_out.examples().len(), 100);
}

#[test]
fn session_directories_and_the_depot_are_no_part_of_a_workspace() {
    let mut place = Place::new();
    place.depot = sessile_snapshot::files::Depot::open(&place.root.join("depot")).unwrap();
    write(&place.root.join(".sessions/sess_1/metadata.json"), "{}");
    write(&place.root.join("sub/.sessions/x"), "{}");
    write(&place.root.join("elsewhere/x"), "{}");
    write(&place.root.join("f"), "f");
    let skip = vec![place.root.join("elsewhere")];
    let rules = Rules { skip, ..Rules::default() };
    let taken = place.depot.snapshot(&place.root, &rules).unwrap();
    let told = &taken.report;
    assert_eq!((told.kept.files, told.kept.directories), (1, 1));
    for path in [".sessions", "sub/.sessions", "elsewhere", "depot"] {
        assert_eq!(out(told.left_out.examples(), path), Some(&Reason::Own), "{path}");
    }
    write(&place.root.join("g"), "g");
    place.depot.restore(taken.tree, &place.root, &rules).unwrap();
    assert!(place.root.join(".sessions/sess_1/metadata.json").exists());
    assert!(place.root.join("elsewhere/x").exists() && !place.root.join("g").exists());
}

#[test]
fn fifos_and_sockets_are_left_out_and_left_alone() {
    let place = Place::new();
    let fifo = place.root.join("fifo");
    let status = std::process::Command::new("mkfifo").arg(&fifo).status().unwrap();
    assert!(status.success());
    let _socket = UnixListener::bind(place.root.join("socket")).unwrap();
    let taken = place.depot.snapshot(&place.root, &Rules::default()).unwrap();
    let left = taken.report.left_out.examples();
    assert_eq!(out(left, "fifo"), Some(&Reason::Special(Special::Fifo)));
    assert_eq!(out(left, "socket"), Some(&Reason::Special(Special::Socket)));
    let told = place.depot.restore(taken.tree, &place.root, &Rules::default()).unwrap();
    assert_eq!(told.left_alone.counts(), [("not_taken", 2)]);
    assert!(fifo.exists() && place.root.join("socket").exists());
}

#[test]
fn files_over_a_limit_are_left_out_and_left_alone() {
    let place = Place::new();
    write(&place.root.join("a"), vec![1; 1_000]);
    write(&place.root.join("b"), vec![2; 5_000]);
    write(&place.root.join("c"), vec![3; 1_500]);
    write(&place.root.join("d"), vec![3; 10]);
    let limits = Limits { total: Some(2_000), file: Some(4_000), over: OverLimit::LeaveOut };
    let rules = Rules { limits, ..Rules::default() };
    let taken = place.depot.snapshot(&place.root, &rules).unwrap();
    let left = taken.report.left_out.examples();
    assert_eq!(out(left, "b"), Some(&Reason::TooLarge { size: 5_000 }));
    assert_eq!(out(left, "c"), Some(&Reason::OverTotal { size: 1_500 }));
    assert_eq!(taken.report.kept.files, 2);
    write(&place.root.join("b"), "changed");
    place.depot.restore(taken.tree, &place.root, &rules).unwrap();
    assert_eq!(std::fs::read(place.root.join("b")).unwrap(), b"changed");

    let limits = Limits { over: OverLimit::Refuse, ..limits };
    let refused = place.depot.snapshot(&place.root, &Rules { limits, ..Rules::default() });
    let error = refused.unwrap_err();
    assert!(matches!(&error, Error::TooLarge { limit: 2_000, .. }), "{error}");
}

#[test]
fn very_deep_directories_are_left_out() {
    let place = Place::new();
    let mut path = place.root.clone();
    for _ in 0..250 {
        path.push("d");
    }
    std::fs::create_dir_all(&path).unwrap();
    let told = place.snapshot();
    assert_eq!(told.kept.directories, 200);
    assert_eq!(told.left_out.counts(), [("too_deep", 1)]);

    // What was taken travels and comes back.
    let tree = place.take();
    let bundle = place.directory.path().join("bundle");
    let mut writer = Writer::create(&bundle).unwrap();
    place.depot.export(tree, &mut writer, "files").unwrap();
    writer.finish().unwrap();
    let other = Place::new();
    let mut reader = Reader::open(&bundle, bundle::Limits::default()).unwrap();
    other.depot.import(&mut reader, "files").unwrap();
    assert_eq!(other.restore(tree).created.len(), 200);
}

#[test]
fn a_difference_names_what_has_happened() {
    let place = Place::new();
    for name in ["same", "changed", "gone", "moved", "mode", "dir/below", "was-file"] {
        write(&place.root.join(name), format!("content of {name}"));
    }
    symlink("same", place.root.join("link")).unwrap();
    let from = place.take();
    assert!(place.depot.diff(from, from).unwrap().is_empty());
    write(&place.root.join("changed"), "new");
    std::fs::remove_file(place.root.join("gone")).unwrap();
    std::fs::rename(place.root.join("moved"), place.root.join("dir/moved")).unwrap();
    chmod(&place.root.join("mode"), 0o755);
    std::fs::remove_file(place.root.join("was-file")).unwrap();
    write(&place.root.join("was-file/new"), "x");
    std::fs::remove_file(place.root.join("link")).unwrap();
    symlink("other", place.root.join("link")).unwrap();
    // Sorts before the file, and so becomes its first name: no change of it.
    std::fs::hard_link(place.root.join("same"), place.root.join("a-name")).unwrap();
    let to = place.take();
    let found = place.depot.diff(from, to).unwrap();
    let changed: Vec<_> =
        found.changed.iter().map(|change| (change.path.to_str().unwrap(), change.what)).collect();
    let expected = [
        ("changed", ChangedProperty::Content),
        ("link", ChangedProperty::Content),
        ("mode", ChangedProperty::Mode),
        ("was-file", ChangedProperty::Kind),
    ];
    assert_eq!(changed, expected);
    assert_eq!(found.created, [PathBuf::from("a-name"), PathBuf::from("was-file/new")]);
    assert_eq!(found.deleted, [PathBuf::from("gone")]);
    let renamed = &found.renamed[0];
    assert_eq!((&renamed.from, &renamed.to), (&"moved".into(), &"dir/moved".into()));
    let back = place.depot.diff(to, from).unwrap();
    assert_eq!(back.deleted, found.created);
}

#[test]
fn files_that_never_stand_still_are_taken_and_told() {
    let place = Place::new();
    let path = place.root.join("busy");
    write(&path, vec![0; 400_000]);
    write(&place.root.join("calm"), "calm");
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut file = std::fs::File::options().write(true).open(&path).unwrap();
            let mut n = 0_u8;
            while !over.load(Ordering::Relaxed) {
                n = n.wrapping_add(1);
                file.rewind().unwrap();
                file.write_all(&[n; 1_000]).unwrap();
                // Grows and shrinks, too.
                file.set_len(300_000 + u64::from(n) * 1_000).unwrap();
            }
        });
        for _ in 0..30 {
            let taken = place.depot.snapshot(&place.root, &Rules::default()).unwrap();
            assert_eq!(taken.report.kept.files, 2);
            // Whatever it was, it is whole.
            let other = tempfile::tempdir().unwrap();
            let told = place.depot.restore(taken.tree, other.path(), &Rules::default()).unwrap();
            assert!(told.is_complete(), "{:?}", told.failed);
        }
        over.store(true, Ordering::Relaxed);
    });
}
