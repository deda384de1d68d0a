//! Exports a tree as a part of a bundle, and imports it.
//!
//! The part is a stream of objects, each once: first all listings, then all contents. It
//! has no names: the reader computes them. So a hostile part can add objects, but none
//! under another's name.

use super::depot::{Depot, Hold, ObjectKind};
use super::digest::{Digest, LENGTH, TreeId};
use super::error::{Error, ErrorAt};
use super::listing::{self, Content, Node, Object};
use super::restore::MOST_ENTRIES;
use super::snapshot::{DEEPEST, SMALL};
use super::stream::{self, CopyError};
use crate::bundle::{self, Kind, Reader, Writer};
use std::collections::{HashMap, HashSet};
use std::io::{self, Read, Seek, Write};

const MAGIC: &[u8; 8] = b"ssltree1";
const LISTING: u8 = 1;
const CONTENT: u8 = 2;
const END: u8 = 0;

/// Maximum size of a listing in a bundle, which is read whole: it is a page of at most 512
/// entries, or an index of 32 bytes per page.
const LONGEST_LISTING: u64 = 8 << 20;

/// The size of an exported tree.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Exported {
    pub objects: u64,
    pub bytes: u64,
}

/// A tree that was imported into a depot. While this value lives, no sweep takes place:
/// record its id before dropping it.
#[derive(Debug)]
pub struct Imported {
    pub tree: TreeId,
    _hold: Hold,
}

/// An object of a tree.
struct Item {
    kind: ObjectKind,
    digest: Digest,
    length: u64,
}

impl Depot {
    /// Writes a tree as a part of a bundle.
    ///
    /// # Errors
    ///
    /// If the depot lacks an object or is damaged, or the bundle cannot be written. Then
    /// begin the bundle again.
    pub fn export(&self, tree: TreeId, to: &mut Writer, name: &str) -> Result<Exported, Error> {
        let _hold = self.hold()?;
        let items = self.items(tree)?;
        let objects = items.len() as u64;
        let bytes = items.iter().map(|item| item.length).sum::<u64>();
        let length = (MAGIC.len() + LENGTH) as u64 + objects * 9 + bytes + 1;
        to.add_with(name, Kind::Files, length, |part| self.export_items(tree, &items, part))?;
        Ok(Exported { objects, bytes })
    }

    /// Returns all objects of a tree, each once.
    fn items(&self, tree: TreeId) -> Result<Vec<Item>, Error> {
        let (mut listings, mut contents) = (Vec::new(), Vec::new());
        let (mut seen, mut known) = (HashSet::from([tree.0]), HashSet::new());
        let mut waiting = vec![tree.0];
        while let Some(digest) = waiting.pop() {
            let bytes = self.tree_bytes(&digest)?;
            listings.push(Item { kind: ObjectKind::Trees, digest, length: bytes.len() as u64 });
            let object = listing::decode(&bytes);
            match object
                .ok_or_else(|| self.damaged(ObjectKind::Trees, &digest, "it is not a listing"))?
            {
                Object::Index(pages) => {
                    waiting.extend(pages.into_iter().filter(|page| seen.insert(*page)));
                }
                Object::Page(entries) => {
                    for entry in entries {
                        match entry.node {
                            Node::File(Content { blob: digest, size: length, .. }) => {
                                if known.insert(digest) {
                                    contents.push(Item { kind: ObjectKind::Blobs, digest, length });
                                }
                            }
                            Node::Directory { listing, .. } => {
                                waiting.extend(Some(listing).filter(|below| seen.insert(*below)));
                            }
                            Node::Symlink { .. } | Node::Link { .. } | Node::LeftOut => {}
                        }
                    }
                }
            }
        }
        listings.append(&mut contents);
        Ok(listings)
    }

    fn export_items(
        &self,
        tree: TreeId,
        items: &[Item],
        part: &mut dyn Write,
    ) -> Result<(), Error> {
        let write = |part: &mut dyn Write, bytes: &[u8]| {
            part.write_all(bytes).map_err(bundle::Error::Write)
        };
        write(part, MAGIC)?;
        write(part, &tree.0.0)?;
        for item in items {
            let mut head = vec![match item.kind {
                ObjectKind::Trees => LISTING,
                ObjectKind::Blobs => CONTENT,
            }];
            head.extend(item.length.to_le_bytes());
            write(part, &head)?;
            match item.kind {
                ObjectKind::Trees => write(part, &self.tree_bytes(&item.digest)?)?,
                ObjectKind::Blobs => self.export_blob(item, part)?,
            }
        }
        write(part, &[END])?;
        Ok(())
    }

    fn export_blob(&self, item: &Item, mut part: &mut dyn Write) -> Result<(), Error> {
        let mut blob = self.open_blob(&item.digest)?;
        match stream::copy(&mut blob, &mut part, item.length) {
            Ok(copied) if copied == (item.digest, item.length) => Ok(()),
            Ok(_) => {
                let what = "its content is not what was stored";
                Err(self.damaged(ObjectKind::Blobs, &item.digest, what))
            }
            Err(CopyError::Source(error)) => {
                Err(error).error_at("read", self.object(ObjectKind::Blobs, &item.digest))
            }
            Err(CopyError::Target(error)) => Err(bundle::Error::Write(error).into()),
        }
    }

    /// Reads a tree from a part of a bundle into the depot.
    ///
    /// # Errors
    ///
    /// If the bundle has no such part, or the part is not a whole tree. The next sweep
    /// removes the objects that were stored by then.
    pub fn import<S: Read + Seek>(
        &self,
        from: &mut Reader<S>,
        name: &str,
    ) -> Result<Imported, Error> {
        let hold = self.hold()?;
        let mut part = from.stream(name)?;
        if array(&mut part)? != *MAGIC {
            return Err(bundle::Error::Damaged("the part is not a tree of files").into());
        }
        let tree = TreeId(Digest(array(&mut part)?));
        loop {
            let [kind] = array(&mut part)?;
            match kind {
                LISTING => self.import_listing(&mut part)?,
                CONTENT => self.import_blob(&mut part)?,
                END => break,
                _ => return Err(bundle::Error::Damaged("there is an unknown object").into()),
            }
        }
        if part.read(&mut [0]).map_err(bundle::reading_part)? != 0 {
            return Err(bundle::Error::Damaged("something follows a tree's end").into());
        }
        Survey { depot: self, sizes: HashMap::new() }.listing(&tree.0, 0)?;
        Ok(Imported { tree, _hold: hold })
    }

    fn import_listing(&self, part: &mut impl Read) -> Result<(), Error> {
        let length = u64::from_le_bytes(array(part)?);
        if length > LONGEST_LISTING {
            return Err(bundle::Error::Damaged("a listing is too long").into());
        }
        let mut bytes = Vec::new();
        part.take(length).read_to_end(&mut bytes).map_err(bundle::reading_part)?;
        if bytes.len() as u64 != length || listing::decode(&bytes).is_none() {
            return Err(bundle::Error::Damaged("a listing has a wrong form").into());
        }
        self.put(ObjectKind::Trees, &bytes)?;
        Ok(())
    }

    fn import_blob(&self, part: &mut impl Read) -> Result<(), Error> {
        let length = u64::from_le_bytes(array(part)?);
        let mut source = part.take(length);
        let stored = if length <= SMALL {
            let mut bytes = Vec::new();
            source.read_to_end(&mut bytes).map_err(bundle::reading_part)?;
            self.put(ObjectKind::Blobs, &bytes)?;
            bytes.len() as u64
        } else {
            let stored = self.put_stream(|to| stream::copy(&mut source, to, length))?;
            stored.map_err(bundle::reading_part)?.1
        };
        match stored == length {
            true => Ok(()),
            false => Err(bundle::Error::Damaged("a content is cut").into()),
        }
    }
}

fn array<const N: usize>(part: &mut impl Read) -> Result<[u8; N], Error> {
    let mut bytes = [0; N];
    match part.read_exact(&mut bytes) {
        Ok(()) => Ok(bytes),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            Err(bundle::Error::Damaged("a tree ends too early").into())
        }
        Err(error) => Err(bundle::reading_part(error).into()),
    }
}

/// Checks that an imported tree is complete and of a reasonable size: a few listings that
/// name each other often enough are a tree of any size.
struct Survey<'a> {
    depot: &'a Depot,
    sizes: HashMap<Digest, Size>,
}

#[derive(Debug, Clone, Copy)]
struct Size {
    entries: u64,
    height: usize,
}

impl Survey<'_> {
    fn listing(&mut self, digest: &Digest, depth: usize) -> Result<Size, Error> {
        let size = match self.sizes.get(digest) {
            Some(size) => *size,
            None if depth > DEEPEST => Size { entries: 0, height: 1 },
            None => {
                let size = self.measure(digest, depth)?;
                self.sizes.insert(*digest, size);
                size
            }
        };
        if size.entries > MOST_ENTRIES {
            return Err(Error::TooMany { limit: MOST_ENTRIES });
        }
        if depth + size.height > DEEPEST {
            return Err(bundle::Error::Damaged("its directories are too deep").into());
        }
        Ok(size)
    }

    fn measure(&mut self, digest: &Digest, depth: usize) -> Result<Size, Error> {
        let entries = self.depot.listing(digest)?;
        let mut size = Size { entries: entries.len() as u64, height: 0 };
        for entry in entries {
            match entry.node {
                Node::File(content) => {
                    if !self.depot.has(ObjectKind::Blobs, &content.blob, content.size) {
                        return Err(
                            bundle::Error::Damaged("the content of a file is missing").into()
                        );
                    }
                }
                Node::Directory { listing, .. } => {
                    let below = self.listing(&listing, depth + 1)?;
                    size.entries = size.entries.saturating_add(below.entries);
                    size.height = size.height.max(below.height + 1);
                }
                Node::Symlink { .. } | Node::Link { .. } | Node::LeftOut => {}
            }
        }
        Ok(size)
    }
}
