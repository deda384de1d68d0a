//! The steps of a restore, in the order in which they are performed.

use super::super::listing::Content;
use super::super::place::{Kind, Time};
use super::super::rules::LeftOut;
use super::Failure;
use std::ffi::OsString;
use std::path::PathBuf;

#[derive(Debug, Default)]
pub(super) struct Plan {
    /// Directories that need a change although their owner lacks permission; from the top.
    pub(super) unlocks: Vec<Unlock>,
    /// From the bottom.
    pub(super) deletions: Vec<Deletion>,
    /// From the top.
    pub(super) makings: Vec<Creation>,
    /// After all files that they could be names of.
    pub(super) links: Vec<Link>,
    /// After everything else, because work in a directory changes its time; from the
    /// bottom, because a directory's mode may forbid access below.
    pub(super) attributes: Vec<Attributes>,
    pub(super) unchanged: u64,
    pub(super) left_alone: LeftOut,
    pub(super) failed: Vec<Failure>,
}

#[derive(Debug)]
pub(super) struct Unlock {
    pub(super) path: PathBuf,
    pub(super) mode: u32,
}

#[derive(Debug)]
pub(super) struct Deletion {
    pub(super) path: PathBuf,
    pub(super) kind: Kind,
    pub(super) why: Why,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    /// The snapshot does not have it.
    Unknown,
    /// An entry of another kind replaces it, and is reported instead.
    Replaced,
}

#[derive(Debug)]
pub(super) struct Creation {
    pub(super) path: PathBuf,
    pub(super) made: CreatedEntry,
    pub(super) before: Before,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Before {
    Nothing,
    Something,
}

#[derive(Debug)]
pub(super) enum CreatedEntry {
    Directory,
    File(Content),
    Symlink { target: OsString, modified: Time },
}

#[derive(Debug)]
pub(super) struct Link {
    pub(super) path: PathBuf,
    pub(super) first: PathBuf,
    pub(super) before: Before,
}

#[derive(Debug)]
pub(super) struct Attributes {
    pub(super) path: PathBuf,
    /// None for links.
    pub(super) mode: Option<u32>,
    pub(super) modified: Time,
    pub(super) news: AttributeChange,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AttributeChange {
    /// The mode or the time differs.
    Differs,
    /// It only corrects the effect of other steps on a directory.
    Follows,
}
