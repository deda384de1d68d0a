//! Trees that somebody else has written.

use super::workspace::{Place, look, write};
use proptest::prelude::*;
use sessile_snapshot::bundle::{Kind, Limits, Reader, Writer};
use sessile_snapshot::files::{Depot, Error, Rules, TreeId};
use sessile_testkit::cases;
use std::collections::BTreeMap;
use std::path::Path;

/// A listing of one page, by hand.
fn page(entries: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = b"sslpage1".to_vec();
    bytes.extend(u32::try_from(entries.len()).unwrap().to_le_bytes());
    bytes.extend(entries.concat());
    bytes
}

fn named(kind: u8, name: &[u8]) -> Vec<u8> {
    let mut entry = vec![kind];
    entry.extend(u16::try_from(name.len()).unwrap().to_le_bytes());
    entry.extend(name);
    entry
}

fn file(name: &[u8], content: &[u8]) -> Vec<u8> {
    let mut entry = named(1, name);
    entry.extend(0o644_u32.to_le_bytes());
    entry.extend([0; 12]);
    entry.extend((content.len() as u64).to_le_bytes());
    entry.extend(blake3::hash(content).as_bytes());
    entry
}

fn directory(name: &[u8], listing: &[u8]) -> Vec<u8> {
    let mut entry = named(2, name);
    entry.extend(0o755_u32.to_le_bytes());
    entry.extend([0; 12]);
    entry.extend(blake3::hash(listing).as_bytes());
    entry
}

fn link(kind: u8, name: &[u8], target: &[u8]) -> Vec<u8> {
    let mut entry = named(kind, name);
    if kind == 3 {
        entry.extend([0; 12]);
    }
    entry.extend(u16::try_from(target.len()).unwrap().to_le_bytes());
    entry.extend(target);
    entry
}

/// Stores objects as if they were a depot's own; the last one is the root.
fn plant(depot: &Depot, listings: &[Vec<u8>], contents: &[&[u8]]) -> TreeId {
    let put = |shelf: &str, bytes: &[u8]| {
        let name = blake3::hash(bytes).to_string();
        write(&depot.path().join(shelf).join(&name[..2]).join(&name[2..]), bytes);
        name
    };
    for content in contents {
        put("blobs", content);
    }
    let names: Vec<_> = listings.iter().map(|listing| put("trees", listing)).collect();
    names.last().unwrap().parse().unwrap()
}

/// The same as a part of a bundle.
fn pack(path: &Path, listings: &[Vec<u8>], contents: &[&[u8]]) {
    let mut part = b"ssltree1".to_vec();
    part.extend(blake3::hash(listings.last().unwrap()).as_bytes());
    let listings = listings.iter().map(|listing| (1, listing.as_slice()));
    let contents = contents.iter().map(|content| (2, *content));
    for (kind, bytes) in listings.chain(contents) {
        part.push(kind);
        part.extend((bytes.len() as u64).to_le_bytes());
        part.extend(bytes);
    }
    part.push(0);
    let mut writer = Writer::create(path).unwrap();
    writer.add("files", Kind::Files, &part).unwrap();
    writer.finish().unwrap();
}

#[test]
fn names_that_lead_out_are_refused() {
    let names: [&[u8]; 8] = [b"..", b".", b"", b"/etc", b"../x", b"a/b", b"a\0", b"a/"];
    for name in names {
        let place = Place::new();
        let listing = page(&[file(name, b"evil")]);
        let tree = plant(&place.depot, std::slice::from_ref(&listing), &[b"evil"]);
        let before = look(place.directory.path());
        let error = place.depot.restore(tree, &place.root, &Rules::default()).unwrap_err();
        assert!(matches!(error, Error::Damaged { .. }), "{error}");
        let lock = |seen: &mut std::collections::BTreeMap<_, _>| {
            seen.retain(|path: &std::path::PathBuf, _| !path.starts_with("depot"));
        };
        let (mut before, mut after) = (before, look(place.directory.path()));
        lock(&mut before);
        lock(&mut after);
        assert_eq!(before, after);

        let bundle = place.directory.path().join("bundle");
        pack(&bundle, &[listing], &[b"evil"]);
        let mut reader = Reader::open(&bundle, Limits::default()).unwrap();
        assert!(place.depot.import(&mut reader, "files").is_err());
    }
}

#[test]
fn links_to_anywhere_are_data() {
    let place = Place::new();
    let outside = place.directory.path().join("outside");
    write(&outside.join("f"), "mine");
    let target = outside.to_str().unwrap().as_bytes();
    // A link, and a directory of the same tree that would be behind it.
    let inner = page(&[file(b"f", b"evil")]);
    let listing = page(&[directory(b"d", &inner), link(3, b"l", target)]);
    let tree = plant(&place.depot, &[inner, listing], &[b"evil"]);
    std::os::unix::fs::symlink(&outside, place.root.join("d")).unwrap();
    place.restore(tree);
    assert_eq!(std::fs::read(outside.join("f")).unwrap(), b"mine");
    assert_eq!(place.root.join("l").read_link().unwrap(), outside);
    assert_eq!(std::fs::read(place.root.join("d/f")).unwrap(), b"evil");
}

#[test]
fn hard_links_reach_files_of_the_tree_only() {
    let place = Place::new();
    write(&place.root.join(".sessions/secret"), "secret");
    for first in [&b".sessions/secret"[..], b"nothing", b"l", b"../depot/format", b"/etc/passwd"] {
        let listing = page(&[link(3, b"l", b"/etc/passwd"), link(4, b"n", first)]);
        let tree = plant(&place.depot, &[listing], &[]);
        let error = place.depot.restore(tree, &place.root, &Rules::default()).unwrap_err();
        assert!(matches!(error, Error::Damaged { .. }), "{error}");
        assert!(!place.root.join("n").exists());
    }
}

#[test]
fn sessions_are_not_planted() {
    let place = Place::new();
    let inner = page(&[file(b"metadata.json", b"evil")]);
    let listing = page(&[directory(b".sessions", &inner)]);
    let tree = plant(&place.depot, &[inner, listing], &[b"evil"]);
    let told = place.restore(tree);
    assert_eq!(told.left_alone.counts(), [("own", 1)]);
    assert_eq!(look(&place.root).len(), 0);
}

#[test]
fn a_tree_that_multiplies_itself_is_refused() {
    let place = Place::new();
    let mut listings = vec![page(&[file(b"f", b"x")])];
    for _ in 0..30 {
        let below = listings.last().unwrap().clone();
        let entries: Vec<_> = (b'a'..=b'z').map(|name| directory(&[name], &below)).collect();
        listings.push(page(&entries));
    }
    let bundle = place.directory.path().join("bundle");
    pack(&bundle, &listings, &[b"x"]);
    let mut reader = Reader::open(&bundle, Limits::default()).unwrap();
    let error = place.depot.import(&mut reader, "files").unwrap_err();
    assert!(matches!(error, Error::TooMany { .. }), "{error}");

    let mut listings = vec![page(&[])];
    for _ in 0..5_000 {
        let below = listings.last().unwrap().clone();
        listings.push(page(&[directory(b"d", &below)]));
    }
    pack(&bundle, &listings, &[]);
    let mut reader = Reader::open(&bundle, Limits::default()).unwrap();
    let error = place.depot.import(&mut reader, "files").unwrap_err();
    assert!(error.to_string().contains("too deep"), "{error}");
}

#[test]
fn a_part_that_lacks_something_is_refused() {
    let place = Place::new();
    let bundle = place.directory.path().join("bundle");
    pack(&bundle, &[page(&[file(b"f", b"x")])], &[]);
    let mut reader = Reader::open(&bundle, Limits::default()).unwrap();
    let error = place.depot.import(&mut reader, "files").unwrap_err();
    assert!(error.to_string().contains("missing"), "{error}");
    let mut writer = Writer::create(&bundle).unwrap();
    writer.add("files", Kind::Files, b"ssltree1 and then nothing").unwrap();
    writer.finish().unwrap();
    let mut reader = Reader::open(&bundle, Limits::default()).unwrap();
    assert!(place.depot.import(&mut reader, "files").is_err());
}

#[test]
fn a_tree_travels_in_a_bundle() {
    let place = Place::new();
    for n in 0..300 {
        write(&place.root.join(format!("d{}/{n}", n % 3)), format!("{}", n % 100));
    }
    for n in 0..200 {
        write(&place.root.join(format!("flat/{n}")), "x");
    }
    write(&place.root.join("large"), vec![5; 2_000_000]);
    std::fs::create_dir(place.root.join("empty")).unwrap();
    let tree = place.take();
    let path = place.directory.path().join("work.sessile");
    let mut writer = Writer::create(&path).unwrap();
    writer.add("session.json", Kind::Session, b"{}").unwrap();
    let told = place.depot.export(tree, &mut writer, "files").unwrap();
    writer.finish().unwrap();
    assert!(told.bytes > 2_000_000 && path.metadata().unwrap().len() < 200_000);

    let other = Place::new();
    let mut reader = Reader::open(&path, Limits::default()).unwrap();
    let imported = other.depot.import(&mut reader, "files").unwrap();
    assert_eq!(imported.tree, tree);
    assert!(matches!(other.depot.sweep(), Err(Error::Busy)));
    drop(imported);
    other.restore(tree);
    super::workspace::assert_equal(&place.root, &other.root);
}

proptest! {
    #![proptest_config(cases(100))]

    /// Whatever a tree from elsewhere says: it is refused, or it stays inside.
    #[test]
    fn a_tree_with_any_bytes_changed_stays_inside(
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        names in prop::collection::vec(
            prop::sample::select(vec!["..", ".", "/x", "a", "l", "l/x", "", ".sessions"]), 1..4,
        ),
    ) {
        let place = Place::new();
        let outside = place.directory.path().join("outside");
        write(&outside.join("f"), "mine");
        let inner = page(&[file(b"f", b"evil"), link(4, b"g", b"d/f")]);
        let target = outside.to_str().unwrap().as_bytes();
        // In their order, so that it is not for that that they are refused.
        let mut entries: BTreeMap<&str, Vec<u8>> =
            names.iter().map(|name| (*name, file(name.as_bytes(), b"evil"))).collect();
        entries.insert("d", directory(b"d", &inner));
        entries.insert("l", link(3, b"l", target));
        let mut root = page(&entries.into_values().collect::<Vec<_>>());
        for (at, value) in edits {
            let at = at.index(root.len());
            root[at] = value;
        }
        let bundle = place.directory.path().join("bundle");
        pack(&bundle, &[inner, root], &[b"evil"]);
        let mut reader = Reader::open(&bundle, Limits::default()).unwrap();
        let tree = place.depot.import(&mut reader, "files").map(|imported| imported.tree);
        if let Ok(tree) = tree {
            let _ = place.depot.restore(tree, &place.root, &Rules::default());
        }
        let around: Vec<_> = std::fs::read_dir(place.directory.path()).unwrap().collect();
        prop_assert_eq!(around.len(), 4, "work, depot, outside, bundle");
        prop_assert_eq!(look(&outside).len(), 1);
        prop_assert_eq!(std::fs::read(outside.join("f")).unwrap(), b"mine");
    }
}
