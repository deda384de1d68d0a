//! Encodes and decodes a directory's listing.
//!
//! The form is canonical: entries are in the order of their names, and the end of a page
//! depends only on the names. So equal directories are equal objects, and a changed file
//! changes one page of a long listing. `docs/snapshot-format.md` describes the bytes. The
//! input may be hostile: unless every name is one plain component, the listing is refused.

use super::digest::{Digest, LENGTH};
use super::place::{MODE_BITS, Time};
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

const PAGE: &[u8; 8] = b"sslpage1";
const INDEX: &[u8; 8] = b"sslindx1";

/// A listing up to this length is one page: most directories, in a few kilobytes.
const SINGLE: usize = 128;
/// A page of a longer listing ends at a name whose hash ends in six zero bits, so that
/// pages have 64 entries on average …
const CUT: u8 = 0x3f;
/// … and after this many entries at the latest.
const LONGEST: usize = 512;

const FILE: u8 = 1;
const DIRECTORY: u8 = 2;
const SYMLINK: u8 = 3;
const LINK: u8 = 4;
const LEFT_OUT: u8 = 5;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) name: OsString,
    pub(crate) node: Node,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Node {
    File(Content),
    Directory {
        mode: u32,
        modified: Time,
        listing: Digest,
    },
    Symlink {
        modified: Time,
        target: OsString,
    },
    /// Another name of the file at `first`, a path from the root.
    Link {
        first: PathBuf,
    },
    /// An existing entry that the snapshot left out: a restore leaves it alone.
    LeftOut,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Content {
    pub(crate) mode: u32,
    pub(crate) modified: Time,
    pub(crate) size: u64,
    pub(crate) blob: Digest,
}

/// An object of the depot's `trees`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Object {
    Page(Vec<Entry>),
    Index(Vec<Digest>),
}

/// Returns the pages of a listing, each as an object, and an index if there is more than one.
pub(crate) fn encode(entries: &[Entry]) -> (Vec<Vec<u8>>, Option<Vec<u8>>) {
    if entries.len() <= SINGLE {
        return (vec![page(entries)], None);
    }
    let mut pages = Vec::new();
    let mut start = 0;
    for (at, entry) in entries.iter().enumerate() {
        let long = at + 1 - start;
        let cut = blake3::hash(entry.name.as_bytes()).as_bytes()[0] & CUT == 0;
        if cut || long == LONGEST || at + 1 == entries.len() {
            pages.push(page(&entries[start..=at]));
            start = at + 1;
        }
    }
    let mut index = INDEX.to_vec();
    index.extend(count(pages.len()));
    for page in &pages {
        index.extend(Digest::of(page).0);
    }
    (pages, Some(index))
}

fn count(number: usize) -> [u8; 4] {
    u32::try_from(number).unwrap_or(u32::MAX).to_le_bytes()
}

fn page(entries: &[Entry]) -> Vec<u8> {
    let mut out = PAGE.to_vec();
    out.reserve(entries.len() * 80);
    out.extend(count(entries.len()));
    for entry in entries {
        match &entry.node {
            Node::File(content) => {
                begin(&mut out, FILE, &entry.name);
                out.extend(content.mode.to_le_bytes());
                time(&mut out, content.modified);
                out.extend(content.size.to_le_bytes());
                out.extend(content.blob.0);
            }
            Node::Directory { mode, modified, listing } => {
                begin(&mut out, DIRECTORY, &entry.name);
                out.extend(mode.to_le_bytes());
                time(&mut out, *modified);
                out.extend(listing.0);
            }
            Node::Symlink { modified, target } => {
                begin(&mut out, SYMLINK, &entry.name);
                time(&mut out, *modified);
                text(&mut out, target.as_bytes());
            }
            Node::Link { first } => {
                begin(&mut out, LINK, &entry.name);
                text(&mut out, first.as_os_str().as_bytes());
            }
            Node::LeftOut => begin(&mut out, LEFT_OUT, &entry.name),
        }
    }
    out
}

fn begin(out: &mut Vec<u8>, kind: u8, name: &OsStr) {
    out.push(kind);
    text(out, name.as_bytes());
}

/// Names have up to 255 bytes and paths up to 4,095 on Linux.
fn text(out: &mut Vec<u8>, bytes: &[u8]) {
    let length = u16::try_from(bytes.len()).unwrap_or(u16::MAX);
    out.extend(length.to_le_bytes());
    out.extend(&bytes[..usize::from(length)]);
}

fn time(out: &mut Vec<u8>, time: Time) {
    out.extend(time.seconds.to_le_bytes());
    out.extend(time.nanoseconds.to_le_bytes());
}

/// Returns none if these bytes are not an object as `encode` writes it.
pub(crate) fn decode(bytes: &[u8]) -> Option<Object> {
    let mut source = Source(bytes);
    let magic: [u8; 8] = source.array()?;
    let count = u32::from_le_bytes(source.array()?);
    let object = if &magic == PAGE {
        let mut entries: Vec<Entry> = Vec::new();
        for _ in 0..count {
            let entry = source.entry()?;
            if entries.last().is_some_and(|last| last.name.as_bytes() >= entry.name.as_bytes()) {
                return None;
            }
            entries.push(entry);
        }
        Object::Page(entries)
    } else if &magic == INDEX {
        let mut pages = Vec::new();
        for _ in 0..count {
            pages.push(source.digest()?);
        }
        Object::Index(pages)
    } else {
        return None;
    };
    source.0.is_empty().then_some(object)
}

struct Source<'a>(&'a [u8]);

impl<'a> Source<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn digest(&mut self) -> Option<Digest> {
        self.array::<LENGTH>().map(Digest)
    }

    fn text(&mut self) -> Option<OsString> {
        let length = u16::from_le_bytes(self.array()?);
        let bytes = self.take(usize::from(length))?;
        (!bytes.contains(&0)).then(|| OsString::from_vec(bytes.to_vec()))
    }

    fn time(&mut self) -> Option<Time> {
        let seconds = i64::from_le_bytes(self.array()?);
        let nanoseconds = u32::from_le_bytes(self.array()?);
        (nanoseconds < 1_000_000_000).then_some(Time { seconds, nanoseconds })
    }

    fn mode(&mut self) -> Option<u32> {
        let mode = u32::from_le_bytes(self.array()?);
        (mode <= MODE_BITS).then_some(mode)
    }

    fn entry(&mut self) -> Option<Entry> {
        let [kind] = self.array()?;
        let name = self.text()?;
        if !is_plain(&name) {
            return None;
        }
        let node = match kind {
            FILE => Node::File(Content {
                mode: self.mode()?,
                modified: self.time()?,
                size: u64::from_le_bytes(self.array()?),
                blob: self.digest()?,
            }),
            DIRECTORY => Node::Directory {
                mode: self.mode()?,
                modified: self.time()?,
                listing: self.digest()?,
            },
            SYMLINK => Node::Symlink { modified: self.time()?, target: self.target()? },
            LINK => Node::Link { first: self.path()? },
            LEFT_OUT => Node::LeftOut,
            _ => return None,
        };
        Some(Entry { name, node })
    }

    /// The target of a link is only data: nothing here follows it.
    fn target(&mut self) -> Option<OsString> {
        self.text().filter(|target| !target.is_empty())
    }

    fn path(&mut self) -> Option<PathBuf> {
        let path = PathBuf::from(self.text()?);
        let plain = path.components().all(|part| matches!(part, Component::Normal(_)));
        (plain && !path.as_os_str().is_empty()).then_some(path)
    }
}

/// Returns whether a name is one component other than `.` and `..`.
fn is_plain(name: &OsStr) -> bool {
    let mut parts = Path::new(name).components();
    let first = matches!(parts.next(), Some(Component::Normal(part)) if part == name);
    first && parts.next().is_none() && !name.as_bytes().contains(&b'/')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(name: &str) -> Entry {
        let modified = Time { seconds: -3, nanoseconds: 999_999_999 };
        let blob = Digest::of(name.as_bytes());
        Entry {
            name: name.into(),
            node: Node::File(Content { mode: 0o4755, modified, size: 7, blob }),
        }
    }

    #[test]
    fn every_kind_of_entry_reads_back() {
        let modified = Time { seconds: 1, nanoseconds: 2 };
        let listing = Digest::of(b"");
        let entries = vec![
            file("a"),
            Entry { name: "b".into(), node: Node::Directory { mode: 0o1777, modified, listing } },
            Entry {
                name: "c".into(),
                node: Node::Symlink { modified, target: "../../etc/passwd".into() },
            },
            Entry { name: "d".into(), node: Node::Link { first: "x/y".into() } },
            Entry { name: OsString::from_vec(vec![0xff]), node: Node::LeftOut },
        ];
        let (pages, index) = encode(&entries);
        assert!(index.is_none() && pages.len() == 1);
        assert_eq!(decode(&pages[0]), Some(Object::Page(entries)));
    }

    #[test]
    fn hostile_names_are_refused() {
        for name in ["", ".", "..", "a/b", "/", "/etc", "a\0b", "a/"] {
            let (pages, _) = encode(&[file(name)]);
            assert_eq!(decode(&pages[0]), None, "{name:?}");
        }
        for first in ["", "/etc/passwd", "../x", "a/../../x"] {
            let entry = Entry { name: "n".into(), node: Node::Link { first: first.into() } };
            assert_eq!(decode(&encode(&[entry]).0[0]), None, "{first:?}");
        }
        let (pages, _) = encode(&[file("b"), file("a")]);
        assert_eq!(decode(&pages[0]), None, "out of order");
        let (pages, _) = encode(&[file("a"), file("a")]);
        assert_eq!(decode(&pages[0]), None, "twice");
    }

    #[test]
    fn a_new_name_in_a_long_listing_changes_two_objects() {
        let mut entries: Vec<Entry> = (0..10_000).map(|n| file(&format!("{n:05}"))).collect();
        let (before, index) = encode(&entries);
        assert!(index.is_some() && before.len() > 50 && before.len() < 400, "{}", before.len());
        entries.insert(5_001, file("05000a"));
        let (after, _) = encode(&entries);
        let new = after.iter().filter(|page| !before.contains(page)).count();
        assert!(new <= 2, "{new} new pages");
    }

    #[test]
    fn any_cut_or_longer_listing_is_refused() {
        let (pages, _) = encode(&[file("a"), file("b")]);
        for length in 0..pages[0].len() {
            assert_eq!(decode(&pages[0][..length]), None);
        }
        let mut longer = pages[0].clone();
        longer.push(0);
        assert_eq!(decode(&longer), None);
    }
}
