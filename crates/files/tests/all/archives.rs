//! Trees as tars, both ways.

use super::{link, place};
use sessile_files::{FileError, Unpacked};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use tar::{Builder, EntryType, Header};

/// An archive with one entry, whatever it says.
fn one(kind: EntryType, name: &str, target: &str) -> Vec<u8> {
    let mut builder = Builder::new(Vec::new());
    add(&mut builder, kind, name, target);
    builder.into_inner().unwrap()
}

fn add(builder: &mut Builder<Vec<u8>>, kind: EntryType, name: &str, target: &str) {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(0o4755);
    header.set_size(if kind == EntryType::Regular { 1 } else { 0 });
    // By hand: the library would not write such names.
    let old = header.as_old_mut();
    old.name[..name.len()].copy_from_slice(name.as_bytes());
    old.linkname[..target.len()].copy_from_slice(target.as_bytes());
    header.set_cksum();
    let content: &[u8] = if kind == EntryType::Regular { b"x" } else { b"" };
    builder.append(&header, content).unwrap();
}

fn unpack(p: &super::Place, archive: &[u8]) -> Result<Unpacked, FileError> {
    p.root.unpack(&p.path(""), archive)
}

#[test]
fn a_tree_comes_back_as_it_was() {
    let (one, other) = (place(), place());
    one.root.make_all(&one.path("d/empty")).unwrap();
    one.write("d/run", b"#!/bin/sh\n").unwrap();
    fs::set_permissions(one.at("d/run"), fs::Permissions::from_mode(0o755)).unwrap();
    let long = format!("d/{}", "long".repeat(50));
    one.write(&long, &[7; 100_000]).unwrap();
    link("run", &one.at("d/link"));
    fs::set_permissions(one.at("d/empty"), fs::Permissions::from_mode(0o555)).unwrap();
    let mut archive = Vec::new();
    one.root.pack(&one.path("d"), &mut archive).unwrap();
    let told = other.root.unpack(&other.path("copy/of"), archive.as_slice()).unwrap();
    assert_eq!((told.files, told.directories, told.links), (2, 1, 1));
    assert_eq!(told.bytes, 100_010);
    let names = |all: Vec<String>, above: &str| -> Vec<String> {
        let below = all.iter().filter_map(|name| name.strip_prefix(above).map(str::to_owned));
        below.collect()
    };
    assert_eq!(names(one.names(9), "d/"), names(other.names(9), "copy/of/"));
    let (before, after) =
        (fs::metadata(one.at("d/run")).unwrap(), fs::metadata(other.at("copy/of/run")).unwrap());
    assert_eq!((before.mode(), before.mtime()), (after.mode(), after.mtime()));
    assert_eq!(fs::metadata(other.at("copy/of/empty")).unwrap().mode() & 0o777, 0o755);
    assert_eq!(fs::read_link(other.at("copy/of/link")).unwrap().to_str(), Some("run"));
    // One file is an archive, too.
    let mut archive = Vec::new();
    one.root.pack(&one.path("d/run"), &mut archive).unwrap();
    assert_eq!(unpack(&other, &archive).unwrap().files, 1);
    assert_eq!(other.read("run").unwrap(), "#!/bin/sh\n");
}

#[test]
fn names_that_lead_out_are_refused() {
    for name in ["../secret", "a/../../secret", "/etc/passwd"] {
        let p = place();
        for kind in [EntryType::Regular, EntryType::Directory, EntryType::Symlink] {
            let outcome = unpack(&p, &one(kind, name, "x"));
            assert!(matches!(outcome, Err(FileError::BadArchive(_))), "{name}: {outcome:?}");
        }
        p.secret_is_safe();
    }
}

#[test]
fn links_that_lead_out_devices_and_fifos_are_left_out_and_told() {
    let p = place();
    let mut builder = Builder::new(Vec::new());
    for (kind, name, target) in [
        (EntryType::Symlink, "absolute", "/etc"),
        (EntryType::Symlink, "up", ".."),
        (EntryType::Symlink, "d/e/up", "../../../secret"),
        (EntryType::Symlink, "fine", "d/e"),
        // Two of them together would.
        (EntryType::Symlink, "here", "."),
        (EntryType::Symlink, "here/here/here/out", "../../secret"),
        (EntryType::Char, "device", ""),
        (EntryType::Block, "disk", ""),
        (EntryType::Fifo, "fifo", ""),
        (EntryType::Regular, "file", ""),
    ] {
        add(&mut builder, kind, name, target);
    }
    let told = unpack(&p, &builder.into_inner().unwrap()).unwrap();
    let left: Vec<String> =
        told.skipped.iter().map(|one| String::from_utf8_lossy(&one.path).into_owned()).collect();
    assert_eq!(left, ["absolute", "up", "d/e/up", "here/here/here/out", "device", "disk", "fifo"]);
    assert_eq!((told.files, told.links, told.skipped_count), (1, 2, 7));
    assert_eq!(fs::metadata(p.at("file")).unwrap().mode() & 0o7000, 0, "no setuid");
    p.secret_is_safe();
}

#[test]
fn nothing_is_written_through_a_link() {
    let p = place();
    link(p.secret.parent().unwrap(), &p.at("out"));
    link(&p.secret, &p.at("file"));
    let through = unpack(&p, &one(EntryType::Regular, "out/secret", ""));
    assert!(matches!(through, Err(FileError::Outside(_))), "{through:?}");
    unpack(&p, &one(EntryType::Regular, "file", "")).unwrap();
    assert_eq!(p.read("file").unwrap(), "x", "the link was replaced");
    let hard = unpack(&p, &one(EntryType::Link, "stolen", "out/secret"));
    assert!(matches!(hard, Err(FileError::Outside(_))), "{hard:?}");
    let hard = unpack(&p, &one(EntryType::Link, "stolen", "../secret"));
    assert!(matches!(hard, Err(FileError::BadArchive(_))), "{hard:?}");
    p.secret_is_safe();
}

#[test]
fn what_is_no_archive_is_refused() {
    let p = place();
    for bytes in [vec![b'x'; 2000], one(EntryType::Regular, "cut", "")[..512].to_vec()] {
        let outcome = unpack(&p, &bytes);
        assert!(matches!(outcome, Err(FileError::BadArchive(_))), "{outcome:?}");
    }
    assert_eq!(p.names(1), Vec::<String>::new());
}
