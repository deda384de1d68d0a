//! Watches the files of a directory for changes (inotify).

use crate::entry::Kind;
use crate::path::RelativePath;
use crate::root::{Links, Root};
use crate::writing::is_aside;
use crate::{FileError, Result};
use rustix::fs::OFlags;
use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::Errno;
use std::collections::{HashMap, VecDeque};
use std::mem::MaybeUninit;
use std::ops::ControlFlow;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::Arc;

/// Maximum number of directories per watcher. Each takes a few kilobytes of kernel memory,
/// and the number per user is limited.
const DIRECTORIES: usize = 4096;

/// Room for some hundred events at once.
const BUFFER: usize = 16 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeKind {
    Created,
    Modified,
    Removed,
    /// Events were lost: list everything again.
    Overflow,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    pub kind: ChangeKind,
    pub path: RelativePath,
    pub is_directory: bool,
}

/// Watches a directory, or a tree.
#[derive(Debug)]
pub struct Watcher {
    root: Arc<Root>,
    inotify: OwnedFd,
    is_recursive: bool,
    watched: HashMap<i32, RelativePath>,
    base: RelativePath,
    /// The move of a file that we have written under a temporary name, and that replaces another.
    replacing: Option<u32>,
}

/// An event from the system.
struct SystemEvent {
    watch: i32,
    events: ReadFlags,
    /// Connects the two events of a move.
    cookie: u32,
    name: Option<Vec<u8>>,
}

impl Watcher {
    /// # Errors
    /// When there is no such directory, or it has too many subdirectories.
    pub fn of(root: Arc<Root>, path: &RelativePath, is_recursive: bool) -> Result<Self> {
        let inotify = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)
            .map_err(|_| FileError::TooManyWatches(path.to_string()))?;
        let watched = HashMap::new();
        let base = path.clone();
        let mut watcher = Self { root, inotify, is_recursive, watched, base, replacing: None };
        watcher.watch(path)?;
        if is_recursive {
            watcher.watch_below(path, &mut |_, _| {})?;
        }
        Ok(watcher)
    }

    fn watch(&mut self, path: &RelativePath) -> Result<()> {
        if self.watched.len() >= DIRECTORIES {
            return Err(FileError::TooManyWatches(self.base.to_string()));
        }
        let flags = OFlags::PATH | OFlags::DIRECTORY;
        let directory = self.root.at(path, flags, Links::Followed)?;
        let place = format!("/proc/self/fd/{}", directory.as_raw_fd());
        let what = WatchFlags::CREATE
            | WatchFlags::CLOSE_WRITE
            | WatchFlags::ATTRIB
            | WatchFlags::DELETE
            | WatchFlags::MOVE
            | WatchFlags::DELETE_SELF
            | WatchFlags::ONLYDIR
            | WatchFlags::EXCL_UNLINK;
        match inotify::add_watch(&self.inotify, place, what) {
            Ok(number) => {
                self.watched.insert(number, path.clone());
                Ok(())
            }
            Err(Errno::NOSPC | Errno::NOMEM) => {
                Err(FileError::TooManyWatches(self.base.to_string()))
            }
            Err(errno) => Err(FileError::of(errno, path)),
        }
    }

    /// Watches all directories below one, and reports their contents.
    fn watch_below(
        &mut self,
        path: &RelativePath,
        tell: &mut dyn FnMut(RelativePath, Kind),
    ) -> Result<()> {
        let mut to_come = VecDeque::from([path.clone()]);
        let root = self.root.clone();
        while let Some(directory) = to_come.pop_front() {
            let mut outcome = Ok(());
            let listed = root.list(&directory, 1, |entry| {
                if entry.kind == Kind::Directory {
                    match self.watch(&entry.path) {
                        Ok(()) => to_come.push_back(entry.path.clone()),
                        Err(error @ FileError::TooManyWatches(_)) => {
                            outcome = Err(error);
                            return ControlFlow::Break(());
                        }
                        // It has vanished, or we have no permission.
                        Err(_) => {}
                    }
                }
                tell(entry.path, entry.kind);
                ControlFlow::Continue(())
            });
            outcome?;
            // A directory that vanished meanwhile has its own event.
            let _ = listed;
        }
        Ok(())
    }

    /// Returns the changes since the last call, in order; empty if there are none.
    ///
    /// # Errors
    /// When a tree has got too many directories.
    pub fn changes(&mut self) -> Result<Vec<Change>> {
        let mut told = Vec::new();
        let mut buffer = [MaybeUninit::uninit(); BUFFER];
        let mut happened = Vec::new();
        let mut reader = Reader::new(&self.inotify, &mut buffer);
        // Only the events that are available now; the next call returns the rest.
        loop {
            match reader.next() {
                Ok(event) => {
                    let (watch, events, cookie) = (event.wd(), event.events(), event.cookie());
                    let name = event.file_name().map(|name| name.to_bytes().to_vec());
                    happened.push(SystemEvent { watch, events, cookie, name });
                }
                Err(Errno::INTR) => continue,
                Err(_) => break,
            }
            if reader.is_buffer_empty() {
                break;
            }
        }
        for one in &happened {
            self.happened(one, &mut told)?;
        }
        Ok(told)
    }

    fn happened(&mut self, happened: &SystemEvent, told: &mut Vec<Change>) -> Result<()> {
        let (number, events) = (happened.watch, happened.events);
        if events.contains(ReadFlags::QUEUE_OVERFLOW) {
            let (kind, path) = (ChangeKind::Overflow, self.base.clone());
            told.push(Change { kind, path, is_directory: true });
            return Ok(());
        }
        if events.contains(ReadFlags::IGNORED) {
            self.watched.remove(&number);
            return Ok(());
        }
        let Some(directory) = self.watched.get(&number) else { return Ok(()) };
        let Some(name) = &happened.name else {
            if events.contains(ReadFlags::DELETE_SELF) && *directory == self.base {
                let (kind, path) = (ChangeKind::Removed, self.base.clone());
                told.push(Change { kind, path, is_directory: true });
            }
            return Ok(());
        };
        if is_aside(name) {
            if events.contains(ReadFlags::MOVED_FROM) {
                self.replacing = Some(happened.cookie);
            }
            return Ok(());
        }
        let path = directory.join(name);
        if is_unnamed(name) && self.root.at(&path, OFlags::PATH, Links::Followed).is_err() {
            return Ok(());
        }
        let is_directory = events.contains(ReadFlags::ISDIR);
        let is_replaced = events.contains(ReadFlags::MOVED_TO)
            && self.replacing.take_if(|cookie| *cookie == happened.cookie).is_some();
        let kind = if is_replaced {
            ChangeKind::Modified
        } else if events.intersects(ReadFlags::CREATE | ReadFlags::MOVED_TO) {
            ChangeKind::Created
        } else if events.intersects(ReadFlags::DELETE | ReadFlags::MOVED_FROM) {
            ChangeKind::Removed
        } else {
            ChangeKind::Modified
        };
        told.push(Change { kind, path: path.clone(), is_directory });
        if kind == ChangeKind::Created && is_directory && self.is_recursive {
            match self.watch(&path) {
                Ok(()) => {}
                Err(error @ FileError::TooManyWatches(_)) => return Err(error),
                Err(_) => return Ok(()),
            }
            // Entries that were made before it was watched.
            self.watch_below(&path, &mut |path, kind| {
                let is_directory = kind == Kind::Directory;
                told.push(Change { kind: ChangeKind::Created, path, is_directory });
            })?;
        }
        Ok(())
    }
}

/// Returns whether this is the system's name for an unnamed file: `#` and its number.
fn is_unnamed(name: &[u8]) -> bool {
    name.strip_prefix(b"#").is_some_and(|number| number.iter().all(u8::is_ascii_digit))
}

impl AsFd for Watcher {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inotify.as_fd()
    }
}

impl AsRawFd for Watcher {
    fn as_raw_fd(&self) -> RawFd {
        self.inotify.as_raw_fd()
    }
}
