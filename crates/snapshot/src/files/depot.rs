//! A directory of objects, each named by its hash and written completely or not at all. Any
//! number of processes may use it at once.
//!
//! There is no fsync: this guards against the death of any process, not of the machine.
//! Objects damaged by a machine crash are detected: by their length when a snapshot needs
//! them, and by their hash whenever they are read.

use super::digest::{Digest, TreeId};
use super::error::{Error, ErrorAt};
use super::listing::{self, Content, Entry, Node, Object};
use super::place::unique;
use super::stream::{self, Cloning, CopyError};
use rustix::fs::{AtFlags, CWD, FlockOperation, Mode, OFlags};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

const FORMAT: &str = "sessile depot 1\n";

/// Maximum size of a directory listing, which is read whole: enough for a million files.
const LONGEST_LISTING: u64 = 256 << 20;

/// The kind of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ObjectKind {
    Blobs,
    Trees,
}

impl ObjectKind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            ObjectKind::Blobs => "blobs",
            ObjectKind::Trees => "trees",
        }
    }

    pub(crate) fn path(self, digest: &Digest) -> String {
        let name = digest.to_string();
        let (prefix, rest) = name.split_at(2);
        format!("{}/{prefix}/{rest}", self.name())
    }
}

/// Whether an object existed before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stored {
    New,
    Known,
}

/// Prevents sweeps while it lives.
#[derive(Debug)]
pub struct Hold {
    _lock: Lock,
}

/// The depot's lock, released on drop.
#[derive(Debug)]
pub(crate) struct Lock(OwnedFd);

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing the descriptor is not enough: a process that another thread is just
        // starting has a copy of it for a moment.
        let _ = rustix::fs::flock(&self.0, FlockOperation::Unlock);
    }
}

/// A store of files and trees in a directory.
#[derive(Debug)]
pub struct Depot {
    path: PathBuf,
    directory: OwnedFd,
}

impl Depot {
    /// Opens the depot at `path`, and makes it if there is none.
    ///
    /// # Errors
    ///
    /// If the directory cannot be made or read, is something else, or is a
    /// depot of a newer version.
    pub fn open(path: &Path) -> Result<Depot, Error> {
        match rustix::fs::mkdirat(CWD, path, Mode::RWXU) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => {}
            Err(error) => return Err(error).error_at("make the directory", path),
        }
        // The canonical path, because errors name it and it is compared with roots.
        let path = path.canonicalize().error_at("open", path)?;
        let flags = OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::open(&path, flags, Mode::empty()).error_at("open", &path)?;
        let depot = Depot { path, directory };
        match std::fs::read_to_string(depot.at("format")) {
            Ok(text) if text == FORMAT => Ok(depot),
            Ok(text) if text.starts_with("sessile depot ") => {
                Err(Error::Newer { path: depot.path })
            }
            Ok(_) => Err(Error::Damaged { path: depot.at("format"), what: "its text is unknown" }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => depot.found(),
            Err(error) => Err(error).error_at("read", depot.at("format")),
        }
    }

    /// Makes an empty directory a depot, or continues where another process was killed
    /// while doing so.
    fn found(self) -> Result<Depot, Error> {
        const OURS: [&str; 5] = ["blobs", "trees", "index", "tmp", "lock"];
        for entry in std::fs::read_dir(&self.path).error_at("list", &self.path)? {
            let name = entry.error_at("list", &self.path)?.file_name();
            let name = name.to_string_lossy();
            if !OURS.contains(&name.as_ref()) && name != "format" && name != "generation" {
                return Err(Error::NotADepot { path: self.path });
            }
        }
        rustix::fs::fchmod(&self.directory, Mode::RWXU).error_at("make private", &self.path)?;
        for name in ["blobs", "trees", "index", "tmp"] {
            self.make_directory(name)?;
        }
        self.replace("format", FORMAT.as_bytes())?;
        Ok(self)
    }

    /// Returns the path of the depot.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Prevents sweeps during work of several steps: objects that were stored and are not
    /// yet named by anything are safe while the hold lives. Waits for a sweep in progress.
    ///
    /// # Errors
    ///
    /// If the depot's lock cannot be taken.
    pub fn hold(&self) -> Result<Hold, Error> {
        Ok(Hold { _lock: self.lock(FlockOperation::LockShared)? })
    }

    pub(crate) fn lock(&self, operation: FlockOperation) -> Result<Lock, Error> {
        let flags = OFlags::CREATE | OFlags::RDWR | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.directory, "lock", flags, Mode::RUSR | Mode::WUSR)
            .error_at("open", self.at("lock"))?;
        loop {
            match rustix::fs::flock(&file, operation) {
                Ok(()) => return Ok(Lock(file)),
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::WOULDBLOCK) => return Err(Error::Busy),
                Err(error) => return Err(error).error_at("lock", self.at("lock")),
            }
        }
    }

    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    pub(crate) fn object(&self, kind: ObjectKind, digest: &Digest) -> PathBuf {
        self.at(&kind.path(digest))
    }

    fn make_directory(&self, name: &str) -> Result<(), Error> {
        match rustix::fs::mkdirat(&self.directory, name, Mode::RWXU) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => Ok(()),
            Err(error) => Err(error).error_at("make the directory", self.at(name)),
        }
    }

    /// Replaces a file of the depot atomically.
    pub(crate) fn replace(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        let mut temporary = self.temporary()?;
        temporary.file.write_all(bytes).error_at("write", self.at(&temporary.name))?;
        temporary.rename(name)
    }

    pub(crate) fn temporary(&self) -> Result<Temporary<'_>, Error> {
        let name =
            unique("tmp/").error_at("name a file in", &self.path)?.to_string_lossy().into_owned();
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::CLOEXEC;
        let mode = Mode::RUSR | Mode::WUSR;
        let file = rustix::fs::openat(&self.directory, name.as_str(), flags, mode)
            .error_at("write", self.at(&name))?;
        Ok(Temporary { depot: self, name, file: File::from(file), kept: false })
    }

    /// Returns whether there is such an object with this length. An object with another
    /// length is left from a machine crash, and is written again.
    pub(crate) fn has(&self, kind: ObjectKind, digest: &Digest, length: u64) -> bool {
        let path = kind.path(digest);
        rustix::fs::statat(&self.directory, path.as_str(), AtFlags::SYMLINK_NOFOLLOW)
            .is_ok_and(|stat| u64::try_from(stat.st_size) == Ok(length))
    }

    pub(crate) fn put(&self, kind: ObjectKind, bytes: &[u8]) -> Result<(Digest, Stored), Error> {
        let digest = Digest::of(bytes);
        if self.has(kind, &digest, bytes.len() as u64) {
            return Ok((digest, Stored::Known));
        }
        let mut temporary = self.temporary()?;
        temporary.file.write_all(bytes).error_at("write", self.at(&temporary.name))?;
        self.file_away(temporary, kind, &digest)?;
        Ok((digest, Stored::New))
    }

    /// Stores what `source` writes, without holding it in memory. The inner error is that
    /// of the source.
    pub(crate) fn put_stream(
        &self,
        source: impl FnOnce(&mut File) -> Result<(Digest, u64), CopyError>,
    ) -> Result<Result<(Digest, u64, Stored), io::Error>, Error> {
        let mut temporary = self.temporary()?;
        let (digest, length) = match source(&mut temporary.file) {
            Ok(stored) => stored,
            Err(CopyError::Source(error)) => return Ok(Err(error)),
            Err(CopyError::Target(error)) => {
                return Err(error).error_at("write", self.at(&temporary.name));
            }
        };
        if self.has(ObjectKind::Blobs, &digest, length) {
            return Ok(Ok((digest, length, Stored::Known)));
        }
        self.file_away(temporary, ObjectKind::Blobs, &digest)?;
        Ok(Ok((digest, length, Stored::New)))
    }

    fn file_away(
        &self,
        mut temporary: Temporary<'_>,
        kind: ObjectKind,
        digest: &Digest,
    ) -> Result<(), Error> {
        let path = kind.path(digest);
        match temporary.try_rename(&path) {
            Err(rustix::io::Errno::NOENT) => {
                self.make_directory(&path[..kind.name().len() + 3])?;
                temporary.rename(&path)
            }
            outcome => outcome.error_at("write", self.at(&path)),
        }
    }

    pub(crate) fn open_blob(&self, digest: &Digest) -> Result<File, Error> {
        self.open_object(ObjectKind::Blobs, digest)
    }

    fn open_object(&self, kind: ObjectKind, digest: &Digest) -> Result<File, Error> {
        let path = kind.path(digest);
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        match rustix::fs::openat(&self.directory, path.as_str(), flags, Mode::empty()) {
            Ok(file) => Ok(File::from(file)),
            Err(rustix::io::Errno::NOENT) => Err(Error::Missing { path: self.at(&path) }),
            Err(error) => Err(error).error_at("open", self.at(&path)),
        }
    }

    pub(crate) fn damaged(&self, kind: ObjectKind, digest: &Digest, what: &'static str) -> Error {
        Error::Damaged { path: self.object(kind, digest), what }
    }

    /// Writes a blob to a new file, and checks it on the way. The inner error is that of
    /// the new file.
    pub(crate) fn get(
        &self,
        digest: &Digest,
        size: u64,
        to: &mut File,
        cloning: &Cloning,
    ) -> Result<Result<(), io::Error>, Error> {
        let mut blob = self.open_blob(digest)?;
        match stream::transfer(&mut blob, to, size, cloning) {
            Ok((found, length)) if found == *digest && length == size => Ok(Ok(())),
            Ok(_) => {
                Err(self.damaged(ObjectKind::Blobs, digest, "its content is not what was stored"))
            }
            Err(CopyError::Source(error)) => {
                Err(error).error_at("read", self.object(ObjectKind::Blobs, digest))
            }
            Err(CopyError::Target(error)) => Ok(Err(error)),
        }
    }

    /// Returns a small blob as a whole; none if it is larger than `limit`.
    pub(crate) fn get_small(&self, digest: &Digest, limit: u64) -> Result<Option<Vec<u8>>, Error> {
        let bytes = self.bytes(ObjectKind::Blobs, digest, limit)?;
        if bytes.len() as u64 > limit {
            return Ok(None);
        }
        match Digest::of(&bytes) == *digest {
            true => Ok(Some(bytes)),
            false => {
                Err(self.damaged(ObjectKind::Blobs, digest, "its content is not what was stored"))
            }
        }
    }

    /// Reads at most one byte more than `limit`.
    fn bytes(&self, kind: ObjectKind, digest: &Digest, limit: u64) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::new();
        let file = self.open_object(kind, digest)?;
        file.take(limit + 1).read_to_end(&mut bytes).error_at("read", self.object(kind, digest))?;
        Ok(bytes)
    }

    /// Returns an object of `trees` as it is stored, after a check of its hash.
    pub(crate) fn tree_bytes(&self, digest: &Digest) -> Result<Vec<u8>, Error> {
        let bytes = self.bytes(ObjectKind::Trees, digest, LONGEST_LISTING)?;
        match Digest::of(&bytes) == *digest {
            true => Ok(bytes),
            false => {
                Err(self.damaged(ObjectKind::Trees, digest, "its content is not what was stored"))
            }
        }
    }

    pub(crate) fn tree_object(&self, digest: &Digest) -> Result<Object, Error> {
        let bytes = self.tree_bytes(digest)?;
        listing::decode(&bytes)
            .ok_or_else(|| self.damaged(ObjectKind::Trees, digest, "it is not a listing"))
    }

    /// Returns a directory's listing, with any number of pages.
    pub(crate) fn listing(&self, digest: &Digest) -> Result<Vec<Entry>, Error> {
        let pages = match self.tree_object(digest)? {
            Object::Page(entries) => return Ok(entries),
            Object::Index(pages) => pages,
        };
        let mut all: Vec<Entry> = Vec::new();
        for page in pages {
            let Object::Page(entries) = self.tree_object(&page)? else {
                return Err(self.damaged(
                    ObjectKind::Trees,
                    &page,
                    "it is not a page of a listing",
                ));
            };
            if let (Some(last), Some(first)) = (all.last(), entries.first())
                && last.name >= first.name
            {
                return Err(self.damaged(ObjectKind::Trees, digest, "its pages are out of order"));
            }
            all.extend(entries);
        }
        Ok(all)
    }

    /// Stores a listing. Also returns how many objects and bytes were new.
    pub(crate) fn put_listing(&self, entries: &[Entry]) -> Result<(Digest, u64, u64), Error> {
        let (pages, index) = listing::encode(entries);
        let (mut objects, mut bytes) = (0, 0);
        let mut last = None;
        for object in pages.iter().chain(&index) {
            let (digest, stored) = self.put(ObjectKind::Trees, object)?;
            last = Some(digest);
            if stored == Stored::New {
                objects += 1;
                bytes += object.len() as u64;
            }
        }
        Ok((last.unwrap_or_else(|| Digest::of(&[])), objects, bytes))
    }

    /// Returns the file of a tree at this path.
    pub(crate) fn file(&self, tree: TreeId, path: &Path) -> Result<Option<Content>, Error> {
        let mut listing = tree.0;
        let mut parts = path.iter().peekable();
        while let Some(name) = parts.next() {
            let entries = self.listing(&listing)?;
            let found = entries.into_iter().find(|entry| entry.name == name);
            match found.map(|entry| entry.node) {
                Some(Node::Directory { listing: below, .. }) => listing = below,
                Some(Node::File(content)) => {
                    return Ok(parts.peek().is_none().then_some(content));
                }
                Some(Node::Symlink { .. } | Node::Link { .. } | Node::LeftOut) | None => {
                    return Ok(None);
                }
            }
        }
        Ok(None)
    }
}

/// A file that is removed unless it gets its final name.
#[derive(Debug)]
pub(crate) struct Temporary<'a> {
    depot: &'a Depot,
    name: String,
    pub(crate) file: File,
    kept: bool,
}

impl Temporary<'_> {
    fn try_rename(&mut self, to: &str) -> Result<(), rustix::io::Errno> {
        let directory = &self.depot.directory;
        rustix::fs::renameat(directory, self.name.as_str(), directory, to)?;
        self.kept = true;
        Ok(())
    }

    fn rename(mut self, to: &str) -> Result<(), Error> {
        self.try_rename(to).error_at("write", self.depot.at(to))
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        if !self.kept {
            let name = self.name.as_str();
            let _ = rustix::fs::unlinkat(&self.depot.directory, name, AtFlags::empty());
        }
    }
}
