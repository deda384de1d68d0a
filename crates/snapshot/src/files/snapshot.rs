//! Takes a snapshot: one walk, in the order of names, that reads files that are not yet
//! known and stores new contents.
//!
//! An entry that cannot be taken is left out with a reason; only a depot that cannot be
//! written to, or a limit with `Over::Refuse`, ends the walk.

use super::depot::{Depot, Hold, ObjectKind, Stored};
use super::digest::{Digest, TreeId};
use super::error::{Error, ErrorAt};
use super::ignores::{self, Ignores, Texts};
use super::index::{Index, Instant, Trust};
use super::listing::{Content, Entry, Node};
use super::place::{Facts, Kind, Place, is_temporary};
use super::rules::{LeftOut, OverLimit, Reason, Rules, Special, TreeSize};
use super::stream::{self, Cloning};
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Maximum depth: each level holds a directory open, and a process may have a thousand
/// descriptors.
pub(crate) const DEEPEST: usize = 200;

/// Smaller files are read whole, so that nothing is written if their content is known.
pub(crate) const SMALL: u64 = 256 * 1024;

/// Maximum number of attempts for a file that changes while it is read.
const ATTEMPTS: u32 = 3;

/// A snapshot. While this value lives, no sweep takes place: record the tree's id before
/// dropping it.
#[derive(Debug)]
pub struct Snapshot {
    pub tree: TreeId,
    pub report: Report,
    _hold: Hold,
}

/// Statistics of a snapshot.
#[derive(Debug, Clone, Default)]
pub struct Report {
    /// The contents of the snapshot.
    pub kept: TreeSize,
    /// Number of files that were read, because they may have changed.
    pub read: u64,
    /// Number of new file contents, and their bytes.
    pub new_blobs: u64,
    pub new_blob_bytes: u64,
    /// Number of new directory listings, and their bytes.
    pub new_listings: u64,
    pub new_listing_bytes: u64,
    /// Number of files that share their bytes with the workspace (reflinks).
    pub cloned: u64,
    pub left_out: LeftOut,
    /// Files that kept changing while they were read: their stored content did not
    /// necessarily exist at one moment.
    pub unsteady: Vec<PathBuf>,
}

impl Depot {
    /// Takes a snapshot of the workspace at `root`.
    ///
    /// Files that have not changed since the last snapshot of this directory in this depot
    /// are not read.
    ///
    /// # Errors
    ///
    /// If `root` is not a directory, the depot cannot be written to (see
    /// [`Error::is_disk_full`]), or a limit is exceeded and the rules say to refuse that.
    pub fn snapshot(&self, root: &Path, rules: &Rules) -> Result<Snapshot, Error> {
        let hold = self.hold()?;
        let path = super::place::real(root).error_at("open", root)?;
        let place = Place::root(&path).error_at("open", &path)?;
        let device = Facts::of_open(&place).error_at("open", &path)?.device;
        let mut walk = Walk {
            depot: self,
            rules,
            bounds: Bounds::new(self, rules, device),
            ignores: Ignores::new(rules.ignore),
            index: Index::load(self, &path, device),
            cloning: Cloning::default(),
            firsts: HashMap::new(),
            report: Report::default(),
        };
        let listing = match walk.directory(&place, Path::new(""))? {
            Ok(listing) => listing,
            Err(error) => return Err(error).error_at("list", &path),
        };
        let Walk { index, cloning, mut report, .. } = walk;
        index.save(self)?;
        report.cloned = cloning.cloned.get();
        Ok(Snapshot { tree: TreeId(listing), report, _hold: hold })
    }
}

/// Entries that are never part of a workspace, whatever its ignore files say.
#[derive(Debug)]
pub(crate) struct Bounds {
    device: u64,
    skip: Vec<(u64, u64)>,
}

impl Bounds {
    pub(crate) fn new(depot: &Depot, rules: &Rules, device: u64) -> Bounds {
        let paths = rules.skip.iter().map(PathBuf::as_path).chain([depot.path()]);
        Bounds::around(paths, device)
    }

    pub(crate) fn around<'a>(skip: impl Iterator<Item = &'a Path>, device: u64) -> Bounds {
        let skip = skip.filter_map(|path| File::open(path).and_then(Facts::of_open).ok());
        Bounds { device, skip: skip.map(|facts| facts.identity()).collect() }
    }

    pub(crate) fn refusal(&self, name: &OsStr, facts: &Facts, depth: usize) -> Option<Reason> {
        match facts.kind {
            Kind::Directory if name == ".sessions" => Some(Reason::Own),
            Kind::Directory if self.skip.contains(&facts.identity()) => Some(Reason::Own),
            Kind::Directory if facts.device != self.device => Some(Reason::OtherFileSystem),
            Kind::Directory if depth > DEEPEST => Some(Reason::TooDeep),
            Kind::File if is_temporary(name) => Some(Reason::Own),
            Kind::File if facts.device != self.device => Some(Reason::OtherFileSystem),
            Kind::Fifo => Some(Reason::Special(Special::Fifo)),
            Kind::Socket => Some(Reason::Special(Special::Socket)),
            Kind::Device => Some(Reason::Special(Special::Device)),
            Kind::Directory | Kind::File | Kind::Symlink => None,
        }
    }
}

/// Reads the ignore files of an open directory.
pub(crate) fn ignore_texts(place: &Place, names: &[OsString]) -> Texts {
    let read = |name: &str| {
        names.binary_search_by(|known| known.as_os_str().cmp(OsStr::new(name))).ok()?;
        let file = place.open(OsStr::new(name)).ok()?;
        let facts = Facts::of_open(&file).ok()?;
        if facts.kind != Kind::File || facts.size > ignores::LONGEST {
            return None;
        }
        let mut text = Vec::new();
        file.take(ignores::LONGEST).read_to_end(&mut text).ok()?;
        Some(text)
    };
    Texts { own: read(ignores::OWN), git: read(ignores::GIT) }
}

#[derive(Debug)]
struct Walk<'a> {
    depot: &'a Depot,
    rules: &'a Rules,
    bounds: Bounds,
    ignores: Ignores,
    index: Index,
    cloning: Cloning,
    /// Files with several names, by their inode: the path that was met first.
    firsts: HashMap<u64, PathBuf>,
    report: Report,
}

/// The outcome of an entry: part of the snapshot, left out, or gone meanwhile.
enum Outcome {
    Taken(Node),
    Out(Reason),
    Gone,
}

impl Walk<'_> {
    /// Stores a directory's listing. The inner error means that the directory cannot be read.
    fn directory(
        &mut self,
        place: &Place,
        path: &Path,
    ) -> Result<Result<Digest, io::Error>, Error> {
        let names = match place.names() {
            Ok(names) => names,
            Err(error) => return Ok(Err(error)),
        };
        let texts = match self.ignores.are_wanted() {
            true => ignore_texts(place, &names),
            false => Texts::default(),
        };
        self.ignores.enter(path, &texts);
        let mut entries = Vec::with_capacity(names.len());
        for name in names {
            let path = path.join(&name);
            match self.entry(place, &name, &path)? {
                Outcome::Taken(node) => entries.push(Entry { name, node }),
                Outcome::Out(reason) => {
                    if is_recorded(&reason) {
                        entries.push(Entry { name, node: Node::LeftOut });
                    }
                    self.report.left_out.add(&path, reason);
                }
                Outcome::Gone => {}
            }
        }
        self.ignores.leave();
        let (digest, objects, bytes) = self.depot.put_listing(&entries)?;
        self.report.new_listings += objects;
        self.report.new_listing_bytes += bytes;
        Ok(Ok(digest))
    }

    fn entry(&mut self, place: &Place, name: &OsStr, path: &Path) -> Result<Outcome, Error> {
        let facts = match place.facts(name) {
            Ok(facts) => facts,
            Err(error) => return Ok(unreadable(&error)),
        };
        let depth = path.components().count();
        if let Some(reason) = self.bounds.refusal(name, &facts, depth) {
            return Ok(Outcome::Out(reason));
        }
        if let Some(reason) = self.ignores.verdict(path, facts.kind == Kind::Directory) {
            return Ok(Outcome::Out(reason));
        }
        match facts.kind {
            Kind::File => self.file(place, name, path, &facts),
            Kind::Directory => {
                let child = match place.child(name) {
                    Ok(child) => child,
                    Err(error) => return Ok(unreadable(&error)),
                };
                let listing = match self.directory(&child, path)? {
                    Ok(listing) => listing,
                    Err(error) => return Ok(unreadable(&error)),
                };
                self.report.kept.directories += 1;
                let Facts { mode, modified, .. } = facts;
                Ok(Outcome::Taken(Node::Directory { mode, modified, listing }))
            }
            Kind::Symlink => match place.target(name) {
                Ok(target) => {
                    self.report.kept.symlinks += 1;
                    Ok(Outcome::Taken(Node::Symlink { modified: facts.modified, target }))
                }
                Err(error) => Ok(unreadable(&error)),
            },
            Kind::Fifo => Ok(Outcome::Out(Reason::Special(Special::Fifo))),
            Kind::Socket => Ok(Outcome::Out(Reason::Special(Special::Socket))),
            Kind::Device => Ok(Outcome::Out(Reason::Special(Special::Device))),
        }
    }

    fn file(
        &mut self,
        place: &Place,
        name: &OsStr,
        path: &Path,
        facts: &Facts,
    ) -> Result<Outcome, Error> {
        if facts.names > 1
            && let Some(first) = self.firsts.get(&facts.inode)
        {
            self.report.kept.hard_links += 1;
            return Ok(Outcome::Taken(Node::Link { first: first.clone() }));
        }
        if let Some(reason) = self.over(path, facts.size)? {
            return Ok(Outcome::Out(reason));
        }
        let (facts, blob) = match self.known(facts) {
            Some(blob) => (*facts, blob),
            None => match self.read(place, name, path)? {
                Ok(read) => read,
                Err(error) => return Ok(unreadable(&error)),
            },
        };
        if facts.names > 1 {
            self.firsts.insert(facts.inode, path.to_owned());
        }
        self.report.kept.files += 1;
        self.report.kept.bytes += facts.size;
        let Facts { mode, modified, size, .. } = facts;
        Ok(Outcome::Taken(Node::File(Content { mode, modified, size, blob })))
    }

    fn over(&self, path: &Path, size: u64) -> Result<Option<Reason>, Error> {
        let limits = &self.rules.limits;
        let total = self.report.kept.bytes.saturating_add(size);
        let (limit, reason) = match (limits.file, limits.total) {
            (Some(limit), _) if size > limit => (limit, Reason::TooLarge { size }),
            (_, Some(limit)) if total > limit => (limit, Reason::OverTotal { size }),
            _ => return Ok(None),
        };
        match limits.over {
            OverLimit::LeaveOut => Ok(Some(reason)),
            OverLimit::Refuse => Err(Error::TooLarge { path: path.to_owned(), limit }),
        }
    }

    fn known(&mut self, facts: &Facts) -> Option<Digest> {
        let (blob, trust) = self.index.find(facts)?;
        let there = match trust {
            Trust::Whole => true,
            Trust::Look => self.depot.has(ObjectKind::Blobs, &blob, facts.size),
        };
        if there {
            self.index.keep(facts, &blob);
        }
        there.then_some(blob)
    }

    /// Reads and stores a file, again if it changed meanwhile. The returned facts match the
    /// stored content.
    fn read(
        &mut self,
        place: &Place,
        name: &OsStr,
        path: &Path,
    ) -> Result<Result<(Facts, Digest), io::Error>, Error> {
        self.report.read += 1;
        let mut attempt = 1;
        loop {
            let now = Instant::now();
            let (mut file, before) = match open(place, name) {
                Ok(opened) => opened,
                Err(error) => return Ok(Err(error)),
            };
            let (blob, size) = match self.store(&mut file, before.size)? {
                Ok(stored) => stored,
                Err(error) => return Ok(Err(error)),
            };
            let steady = Facts::of_open(&file).is_ok_and(|after| after == before);
            if steady && size == before.size {
                self.index.note(&before, &blob, now);
                return Ok(Ok((before, blob)));
            }
            if attempt == ATTEMPTS {
                self.report.unsteady.push(path.to_owned());
                return Ok(Ok((Facts { size, ..before }, blob)));
            }
            attempt += 1;
        }
    }

    fn store(
        &mut self,
        file: &mut File,
        size: u64,
    ) -> Result<Result<(Digest, u64), io::Error>, Error> {
        let (blob, size, stored) = if size <= SMALL {
            let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0) + 1);
            // Limits a file that grows meanwhile.
            if let Err(error) = file.take(2 * SMALL).read_to_end(&mut bytes) {
                return Ok(Err(error));
            }
            let (blob, stored) = self.depot.put(ObjectKind::Blobs, &bytes)?;
            (blob, bytes.len() as u64, stored)
        } else {
            let cloning = &self.cloning;
            match self.depot.put_stream(|to| stream::transfer(file, to, size, cloning))? {
                Ok(stored) => stored,
                Err(error) => return Ok(Err(error)),
            }
        };
        if stored == Stored::New {
            self.report.new_blobs += 1;
            self.report.new_blob_bytes += size;
        }
        Ok(Ok((blob, size)))
    }
}

/// Opens a file that is still a regular file.
fn open(place: &Place, name: &OsStr) -> io::Result<(File, Facts)> {
    let file = place.open(name)?;
    let facts = Facts::of_open(&file)?;
    match facts.kind {
        Kind::File => Ok((file, facts)),
        Kind::Directory | Kind::Symlink | Kind::Fifo | Kind::Socket | Kind::Device => {
            Err(io::Error::other("it has become something else"))
        }
    }
}

fn unreadable(error: &io::Error) -> Outcome {
    if error.kind() == io::ErrorKind::NotFound {
        return Outcome::Gone;
    }
    Outcome::Out(Reason::Unreadable(error.to_string()))
}

/// Returns whether the snapshot has to record the omission, because a restore could not know it.
fn is_recorded(reason: &Reason) -> bool {
    match reason {
        Reason::Ignored { .. } | Reason::Own => false,
        Reason::Special(_)
        | Reason::TooLarge { .. }
        | Reason::OverTotal { .. }
        | Reason::Unreadable(_)
        | Reason::TooDeep
        | Reason::OtherFileSystem
        | Reason::NotTaken => true,
    }
}
