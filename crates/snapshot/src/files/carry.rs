//! A tree as a part of a bundle, and back.
//!
//! The part is a stream of objects, each once: first all listings, then all
//! contents. Names are not carried: who reads the stream computes them. So a
//! hostile part can add objects, but none under another's name.

use super::depot::{Depot, Hold, Shelf};
use super::digest::{Digest, LENGTH, TreeId};
use super::error::{Error, Told};
use super::listing::{self, Node, Object};
use super::restore::MOST_ENTRIES;
use super::snapshot::DEEPEST;
use super::stream;
use crate::bundle::{self, Kind, Reader, Writer};
use std::collections::{HashMap, HashSet};
use std::io::{self, Read, Seek};

const MAGIC: &[u8; 8] = b"ssltree1";
const LISTING: u8 = 1;
const CONTENT: u8 = 2;
const END: u8 = 0;

/// A listing in a bundle is read whole, and may have this many bytes: it is a
/// page of 512 entries at most, or an index of 32 bytes a page.
const LONGEST_LISTING: u64 = 8 << 20;

/// How much of a tree was written.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Exported {
    pub objects: u64,
    pub bytes: u64,
}

/// A tree that was read into a depot. While this lives, no sweep takes place:
/// write down its id first.
#[derive(Debug)]
pub struct Imported {
    pub tree: TreeId,
    _hold: Hold,
}

impl Depot {
    /// Writes a tree as a part of a bundle.
    ///
    /// # Errors
    ///
    /// If the depot lacks something or is damaged, or the bundle cannot be written.
    pub fn export(&self, tree: TreeId, to: &mut Writer, name: &str) -> Result<Exported, Error> {
        let _hold = self.hold()?;
        let objects = self.objects_of(tree)?;
        let bytes = objects.iter().map(|object| object.length).sum::<u64>();
        let heads = (objects.len() as u64) * 9 + 1;
        let length = (MAGIC.len() + LENGTH) as u64 + heads + bytes;
        let mut head = MAGIC.to_vec();
        head.extend(tree.0.0);
        let count = objects.len() as u64;
        let stream =
            Objects { depot: self, waiting: objects.into_iter(), head, at: 0, body: Body::None };
        let mut failure = None;
        let outcome = to.add_reader(name, Kind::Files, length, Noting { stream, failure: &mut failure });
        match (outcome, failure) {
            (_, Some(error)) => Err(error),
            (Err(error), None) => Err(error.into()),
            (Ok(()), None) => Ok(Exported { objects: count, bytes }),
        }
    }
}
