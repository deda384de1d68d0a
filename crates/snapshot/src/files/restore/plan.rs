//! Compares a workspace with a snapshot, and decides what to do.

use super::super::depot::{Depot, ObjectKind};
use super::super::digest::{Digest, TreeId};
use super::super::error::{Error, ErrorAt};
use super::super::ignores::{self, Ignores, Texts};
use super::super::index::Index;
use super::super::listing::{Content, Entry, Node};
use super::super::place::{Facts, Kind, Place, Time, is_temporary};
use super::super::rules::{Reason, Rules, SetIds};
use super::super::snapshot::{Bounds, DEEPEST, ignore_texts};
use super::super::stream;
use super::Failure;
use super::steps::{
    AttributeChange, Attributes, Before, CreatedEntry, Creation, Deletion, Link, Plan, Unlock, Why,
};
use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};

/// Maximum number of entries: a hostile tree may name the same listing over and over.
pub(crate) const MOST_ENTRIES: u64 = 10_000_000;

/// The permissions that an owner needs to change entries of a directory, and also to list it.
const WORK: u32 = 0o300;
const LOOK: u32 = 0o700;

pub(super) struct Planner<'a> {
    pub(super) depot: &'a Depot,
    pub(super) bounds: Bounds,
    /// The current ignore files, and those of the snapshot.
    pub(super) now: Ignores,
    pub(super) then: Ignores,
    index: Index,
    /// Files with several names that stay as they are, with their inode.
    steady: HashMap<PathBuf, u64>,
    claimed: HashSet<u64>,
    set_ids: SetIds,
    entries: u64,
    pub(super) plan: Plan,
}

/// Whether steps are planned directly in a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Touched {
    Yes,
    No,
}

impl Touched {
    pub(super) fn or(self, other: Touched) -> Touched {
        if self == Touched::Yes { self } else { other }
    }
}

pub(super) fn plan(
    depot: &Depot,
    tree: TreeId,
    path: &Path,
    root: &Place,
    rules: &Rules,
) -> Result<Plan, Error> {
    let device = Facts::of_open(root).error_at("open", path)?.device;
    let mut planner = Planner {
        depot,
        bounds: Bounds::new(depot, rules, device),
        now: Ignores::new(rules.ignore),
        then: Ignores::new(rules.ignore),
        index: Index::load(depot, path, device),
        steady: HashMap::new(),
        claimed: HashSet::new(),
        set_ids: rules.set_ids,
        entries: 0,
        plan: Plan::default(),
    };
    let names = root.names().error_at("list", path)?;
    planner.directory(Some((root, names)), Path::new(""), &tree.0)?;
    let mut plan = planner.plan;
    plan.unlocks.reverse();
    check(depot, tree, &plan)?;
    Ok(plan)
}

/// Checks that the depot has all needed contents before anything begins.
fn check(depot: &Depot, tree: TreeId, plan: &Plan) -> Result<(), Error> {
    for making in &plan.makings {
        if let CreatedEntry::File(content) = &making.made
            && !depot.has(ObjectKind::Blobs, &content.blob, content.size)
        {
            let object = depot.object(ObjectKind::Blobs, &content.blob);
            return Err(Error::Incomplete { file: making.path.clone(), object });
        }
    }
    let firsts: HashSet<&Path> = plan.links.iter().map(|link| link.first.as_path()).collect();
    for first in firsts {
        if depot.file(tree, first)?.is_none() {
            return Err(depot.damaged(ObjectKind::Trees, &tree.0, "a link in it leads nowhere"));
        }
    }
    Ok(())
}

fn drop_set_ids(entry: &mut Entry) {
    const SET_IDS: u32 = 0o6000;
    match &mut entry.node {
        Node::File(content) => content.mode &= !SET_IDS,
        Node::Directory { mode, .. } => *mode &= !SET_IDS,
        Node::Symlink { .. } | Node::Link { .. } | Node::LeftOut => {}
    }
}

/// An open directory and its names.
type Here<'a> = Option<(&'a Place, Vec<OsString>)>;

impl Planner<'_> {
    fn directory(
        &mut self,
        here: Here<'_>,
        path: &Path,
        listing: &Digest,
    ) -> Result<Touched, Error> {
        let mut wanted = self.depot.listing(listing)?;
        match self.set_ids {
            SetIds::Keep => {}
            SetIds::Drop => wanted.iter_mut().for_each(drop_set_ids),
        }
        self.entries += wanted.len() as u64;
        if self.entries > MOST_ENTRIES {
            return Err(Error::TooMany { limit: MOST_ENTRIES });
        }
        if path.components().count() > DEEPEST {
            return Err(self.depot.damaged(ObjectKind::Trees, listing, "it is too deep"));
        }
        let (place, names) = here.map_or((None, Vec::new()), |(place, names)| (Some(place), names));
        let then = self.texts_of(&wanted)?;
        self.then.enter(path, &then);
        let now = place.filter(|_| self.now.are_wanted());
        let now = now.map_or_else(Texts::default, |place| ignore_texts(place, &names));
        self.now.enter(path, &now);

        let mut touched = Touched::No;
        let known: HashSet<&OsStr> = wanted.iter().map(|entry| entry.name.as_os_str()).collect();
        if let Some(place) = place {
            for name in names.iter().filter(|name| !known.contains(name.as_os_str())) {
                touched = touched.or(self.unknown(place, name, &path.join(name)));
            }
        }
        for entry in &wanted {
            touched = touched.or(self.wanted(place, &path.join(&entry.name), entry)?);
        }
        self.now.leave();
        self.then.leave();
        Ok(touched)
    }

    /// Returns the snapshot's own ignore files of a directory.
    fn texts_of(&self, entries: &[Entry]) -> Result<Texts, Error> {
        let mut texts = Texts::default();
        if !self.then.are_wanted() {
            return Ok(texts);
        }
        for entry in entries {
            let Node::File(content) = &entry.node else { continue };
            let text = match entry.name.to_str() {
                Some(ignores::GIT) => &mut texts.git,
                Some(ignores::OWN) => &mut texts.own,
                _ => continue,
            };
            *text = self.depot.get_small(&content.blob, ignores::LONGEST)?;
        }
        Ok(texts)
    }

    fn wanted(
        &mut self,
        place: Option<&Place>,
        path: &Path,
        entry: &Entry,
    ) -> Result<Touched, Error> {
        if is_ours(entry) {
            self.plan.left_alone.add(path, Reason::Own);
            return Ok(Touched::No);
        }
        let found = place.map_or(Ok(None), |place| place.find(&entry.name));
        let found = match found {
            Ok(found) => found.zip(place),
            Err(error) => {
                self.fail(path, "look at", error);
                return Ok(Touched::No);
            }
        };
        let Some((facts, place)) = found else {
            return self.make(path, &entry.node, Before::Nothing);
        };
        match (&entry.node, facts.kind) {
            (Node::LeftOut, _) => {
                self.plan.left_alone.add(path, Reason::NotTaken);
                Ok(Touched::No)
            }
            (Node::File(content), Kind::File) => Ok(self.file(place, path, &facts, content)),
            (Node::Directory { mode, modified, listing }, Kind::Directory) => {
                self.descend(place, path, &facts, (*mode, *modified, listing))
            }
            (Node::Symlink { modified, target }, Kind::Symlink) => {
                Ok(self.symlink(place, path, &facts, target, *modified))
            }
            (Node::Link { first }, Kind::File) => {
                if self.steady.get(first) == Some(&facts.inode) {
                    self.plan.unchanged += 1;
                    return Ok(Touched::No);
                }
                self.make(path, &entry.node, Before::Something)
            }
            // A rename can replace these by one another.
            (
                Node::File(_) | Node::Link { .. } | Node::Symlink { .. },
                Kind::File | Kind::Symlink | Kind::Fifo | Kind::Socket,
            ) => self.make(path, &entry.node, Before::Something),
            (Node::Directory { .. }, _)
            | (Node::File(_) | Node::Link { .. } | Node::Symlink { .. }, _) => {
                let before = self.plan.deletions.len();
                if self.delete(place, path, &facts, Why::Replaced) {
                    return self.make(path, &entry.node, Before::Something);
                }
                self.plan.deletions.truncate(before);
                let error = Error::InTheWay { path: path.to_owned() };
                self.plan.failed.push(Failure { path: path.to_owned(), error });
                Ok(Touched::No)
            }
        }
    }

    /// Plans an entry that is missing, or replaced.
    fn make(&mut self, path: &Path, node: &Node, before: Before) -> Result<Touched, Error> {
        let mut make = |made| {
            self.plan.makings.push(Creation { path: path.to_owned(), made, before });
        };
        match node {
            Node::File(content) => make(CreatedEntry::File(*content)),
            Node::Symlink { modified, target } => {
                make(CreatedEntry::Symlink { target: target.clone(), modified: *modified });
            }
            Node::Link { first } => {
                let first = first.clone();
                self.plan.links.push(Link { path: path.to_owned(), first, before });
            }
            Node::Directory { mode, modified, listing } => {
                make(CreatedEntry::Directory);
                self.directory(None, path, listing)?;
                self.follow(path, *mode, *modified, AttributeChange::Follows);
            }
            Node::LeftOut => return Ok(Touched::No),
        }
        Ok(Touched::Yes)
    }

    fn follow(&mut self, path: &Path, mode: u32, modified: Time, news: AttributeChange) {
        let path = path.to_owned();
        self.plan.attributes.push(Attributes { path, mode: Some(mode), modified, news });
    }

    fn descend(
        &mut self,
        place: &Place,
        path: &Path,
        facts: &Facts,
        (mode, modified, listing): (u32, Time, &Digest),
    ) -> Result<Touched, Error> {
        if let Some(reason) = self.bounds.refusal(name_of(path), facts, 0) {
            self.plan.left_alone.add(path, reason);
            return Ok(Touched::No);
        }
        let (child, names, opened) = match look_into(place, name_of(path), facts) {
            Ok(opened) => opened,
            Err(error) => {
                self.fail(path, "open", error);
                return Ok(Touched::No);
            }
        };
        let touched = self.directory(Some((&child, names)), path, listing)?;
        if touched == Touched::Yes {
            self.unlock(path, facts);
        }
        let touched = touched.or(opened);
        if facts.mode != mode || (facts.modified != modified && touched == Touched::No) {
            self.follow(path, mode, modified, AttributeChange::Differs);
        } else if touched == Touched::Yes {
            self.follow(path, mode, modified, AttributeChange::Follows);
        }
        Ok(Touched::No)
    }

    pub(super) fn unlock(&mut self, path: &Path, facts: &Facts) {
        if facts.mode & WORK != WORK {
            self.plan.unlocks.push(Unlock { path: path.to_owned(), mode: facts.mode | LOOK });
        }
    }

    fn file(&mut self, place: &Place, path: &Path, facts: &Facts, content: &Content) -> Touched {
        let shared = facts.names > 1;
        let dressed = facts.mode == content.mode && facts.modified == content.modified;
        let same = self.has_content(place, name_of(path), facts, content);
        // A file with other names may be in use elsewhere, and is never changed in place;
        // and two files of the snapshot must not become one.
        let own = !shared || (dressed && self.claimed.insert(facts.inode));
        if !same || !own {
            let made = CreatedEntry::File(*content);
            self.plan.makings.push(Creation {
                path: path.to_owned(),
                made,
                before: Before::Something,
            });
            return Touched::Yes;
        }
        if shared {
            self.steady.insert(path.to_owned(), facts.inode);
        }
        if dressed {
            self.plan.unchanged += 1;
        } else {
            self.follow(path, content.mode, content.modified, AttributeChange::Differs);
        }
        Touched::No
    }

    fn has_content(&self, place: &Place, name: &OsStr, facts: &Facts, content: &Content) -> bool {
        if facts.size != content.size {
            return false;
        }
        if let Some((known, _)) = self.index.find(facts) {
            return known == content.blob;
        }
        // An unreadable file is replaced.
        let read = place.open(name).and_then(|mut file| stream::hash(&mut file, facts.size));
        read.is_ok_and(|(digest, _)| digest == content.blob)
    }

    fn symlink(
        &mut self,
        place: &Place,
        path: &Path,
        facts: &Facts,
        target: &OsStr,
        modified: Time,
    ) -> Touched {
        if place.target(name_of(path)).is_ok_and(|found| found == target) {
            if facts.modified == modified {
                self.plan.unchanged += 1;
            } else {
                let path = path.to_owned();
                let news = AttributeChange::Differs;
                self.plan.attributes.push(Attributes { path, mode: None, modified, news });
            }
            return Touched::No;
        }
        let made = CreatedEntry::Symlink { target: target.to_owned(), modified };
        let path = path.to_owned();
        self.plan.makings.push(Creation { path, made, before: Before::Something });
        Touched::Yes
    }

    pub(super) fn fail(&mut self, path: &Path, action: &'static str, source: io::Error) {
        let error = Error::Io { action, path: path.to_owned(), source };
        self.plan.failed.push(Failure { path: path.to_owned(), error });
    }

    pub(super) fn schedule(&mut self, path: &Path, kind: Kind, why: Why) {
        self.plan.deletions.push(Deletion { path: path.to_owned(), kind, why });
    }
}

pub(super) fn name_of(path: &Path) -> &OsStr {
    path.file_name().unwrap_or_default()
}

/// Returns whether an entry is ours. No snapshot has these: a tree with them is forged, to
/// reach sessions.
fn is_ours(entry: &Entry) -> bool {
    match entry.node {
        Node::Directory { .. } => entry.name == ".sessions",
        Node::File(_) | Node::Link { .. } | Node::Symlink { .. } | Node::LeftOut => {
            is_temporary(&entry.name)
        }
    }
}

/// Opens a directory of ours. If its mode forbids that, the mode is changed, and has to be
/// restored later.
pub(super) fn look_into(
    place: &Place,
    name: &OsStr,
    facts: &Facts,
) -> io::Result<(Place, Vec<OsString>, Touched)> {
    let open = |touched| {
        let child = place.child(name)?;
        let names = child.names()?;
        // Listing names needs read permission only; looking at one needs search permission.
        if let Some(first) = names.first() {
            child.find(first)?;
        }
        Ok((child, names, touched))
    };
    match open(Touched::No) {
        Err(error) if io::Error::kind(&error) == io::ErrorKind::PermissionDenied => {
            place.set_mode(name, facts.mode | LOOK)?;
            open(Touched::Yes)
        }
        outcome => outcome,
    }
}
