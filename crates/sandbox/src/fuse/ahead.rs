//! Names ahead of time. A program that looks at one file after the other, as
//! `git status` does, asks for each name by itself, and each takes a round trip.
//! A listing tells the kernel of hundreds at once, with their attributes. So when
//! names of a directory are asked for one by one, a thread lists it through the
//! mount, as a program of the session would; and then those directories that will be
//! looked into next (`siblings`). It learns nothing, and nothing depends on it.

use std::collections::{HashMap, VecDeque};
use std::ffi::{CStr, CString};
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::entry::Entry;
use super::nodes::NodeId;
use super::siblings::Siblings;

/// How many names of a directory are asked for before it is listed, and how many
/// before more of it is.
const FIRST: u32 = 2;
const NEXT: u32 = 64;
/// Bytes of names that are listed at first: about 500 files. Twice as much each
/// time that the number of names asked for has doubled, because who wants few
/// names of a large directory should not pay for all.
const PIECE: usize = 16 << 10;
/// What is listed at once; a few hundred files.
const BUFFER: usize = 64 << 10;
/// Directories that wait to be listed.
const QUEUE: usize = 64;
/// Directories whose subdirectories are known, and how many of one at most.
const PARENTS: usize = 32;
const SUBDIRECTORIES: usize = 4096;
/// `git status` has 20 threads, each in a directory of its own. Each listing takes
/// two turns among their requests: by one thread it would come too late. By four it took
/// `git status` a fifth longer than by eight, and by twenty no less.
const THREADS: usize = 8;
/// Marks a listing that the kernel need not keep: it may end anywhere (see `listing`). No
/// program opens a directory like this, and one that does loses nothing.
pub(super) const UNKEPT: OFlags = OFlags::DSYNC;
/// They only make system calls.
const STACK: usize = 64 << 10;

/// Where the file system is seen from. It is opened for each listing: whoever
/// holds a file in it open keeps it alive when the sandbox has ended.
#[derive(Debug)]
pub struct Window {
    /// A directory, and the way from there.
    pub base: OwnedFd,
    pub path: CString,
}

#[derive(Debug)]
pub(super) struct Ahead {
    threads: ListingThreads,
    /// Names that were asked for in a directory, and since when.
    asked: HashMap<NodeId, (u32, Instant)>,
    /// For how long the kernel relies on names.
    valid: Duration,
}

/// The threads that list directories. They are started when they are needed: by few sessions.
#[derive(Debug)]
enum ListingThreads {
    Unstarted(Window),
    Started(Arc<Work>),
    Failed,
}

/// What they share.
#[derive(Debug)]
struct Work {
    window: Window,
    jobs: Mutex<Jobs>,
    given: Condvar,
    parents: Mutex<Parents>,
}

#[derive(Debug)]
struct Jobs {
    /// Names of these are being asked for.
    wanted: VecDeque<Job>,
    /// Names of these may be asked for next.
    next: VecDeque<Job>,
}

#[derive(Debug)]
struct Job {
    /// From the top of the file system.
    path: CString,
    bytes: usize,
    reason: Reason,
}

/// Why a directory is listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reason {
    /// A program has begun to look into it.
    LookedInto,
    /// A program needs more of it.
    More,
    /// A program has looked into the ones before it.
    Next,
}

/// The directories that programs look into one after the other, by the one that they are in.
#[derive(Debug)]
struct Parents {
    known: HashMap<Vec<u8>, Parent>,
    /// For how long.
    valid: Duration,
}

#[derive(Debug)]
struct Parent {
    since: Instant,
    /// Known when a second one of them is looked into.
    siblings: Option<Siblings>,
}

impl Ahead {
    pub(super) fn new(window: Window, valid: Duration) -> Self {
        Self { threads: ListingThreads::Unstarted(window), asked: HashMap::new(), valid }
    }

    /// A name was asked for that the kernel did not know. How many bytes of names
    /// are to be listed, if it is time for that.
    pub(super) fn note(&mut self, directory: NodeId) -> Option<usize> {
        if matches!(self.threads, ListingThreads::Failed) {
            return None;
        }
        let (count, since) = self.asked.entry(directory).or_insert_with(|| (0, Instant::now()));
        *count += 1;
        if *count != FIRST && (*count < NEXT || !count.is_power_of_two()) {
            return None;
        }
        // What was told long ago has to be told again.
        if since.elapsed() > self.valid {
            (*count, *since) = (1, Instant::now());
            return None;
        }
        let times = (*count / (NEXT / 2)).max(1);
        Some(PIECE.saturating_mul(times as usize))
    }

    /// Lists a directory soon. Where there is too much to do, what has waited
    /// longest is left: its names have been asked for by then.
    pub(super) fn list(&mut self, names: &[&[u8]], bytes: usize) {
        let path = if names.is_empty() { b".".to_vec() } else { names.join(&b'/') };
        let Ok(path) = CString::new(path) else { return };
        let reason = if bytes == PIECE { Reason::LookedInto } else { Reason::More };
        self.threads = match std::mem::replace(&mut self.threads, ListingThreads::Failed) {
            ListingThreads::Unstarted(window) => start(window, self.valid),
            threads @ (ListingThreads::Started(_) | ListingThreads::Failed) => threads,
        };
        let ListingThreads::Started(work) = &self.threads else { return };
        work.add([Job { path, bytes, reason }]);
    }

    /// The directory's number is free again.
    pub(super) fn forget(&mut self, directory: NodeId) {
        self.asked.remove(&directory);
    }
}

fn start(window: Window, valid: Duration) -> ListingThreads {
    let jobs = Jobs { wanted: VecDeque::with_capacity(QUEUE), next: VecDeque::new() };
    let work = Arc::new(Work {
        window,
        jobs: Mutex::new(jobs),
        given: Condvar::new(),
        parents: Mutex::new(Parents { known: HashMap::new(), valid }),
    });
    let started = (0..THREADS).filter(|_| {
        let work = Arc::clone(&work);
        let thread = std::thread::Builder::new().stack_size(STACK);
        thread.spawn(move || work.list_for_ever()).is_ok()
    });
    if started.count() > 0 { ListingThreads::Started(work) } else { ListingThreads::Failed }
}

impl Work {
    fn add(&self, new: impl IntoIterator<Item = Job>) {
        let mut jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        for job in new {
            let queue = match job.reason {
                Reason::LookedInto | Reason::More => &mut jobs.wanted,
                Reason::Next => &mut jobs.next,
            };
            if queue.len() == QUEUE {
                queue.pop_front();
            }
            queue.push_back(job);
            self.given.notify_one();
        }
    }

    fn list_for_ever(&self) {
        let mut buffer = vec![0_u64; BUFFER / size_of::<u64>()];
        loop {
            let mut jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
            let job = loop {
                match jobs.wanted.pop_front().or_else(|| jobs.next.pop_front()) {
                    Some(job) => break job,
                    None => jobs = self.given.wait(jobs).unwrap_or_else(PoisonError::into_inner),
                }
            };
            drop(jobs);
            // It may be gone by now, or be seen by its own user only.
            let listed = self.list(&job.path, job.bytes, &mut buffer, |_| {});
            if listed.is_ok() && job.reason == Reason::LookedInto {
                self.add(self.next_to(&job.path, &mut buffer));
            }
        }
    }

    /// Lists a directory. The kernel remembers what it sees on the way.
    fn list(
        &self,
        path: &CStr,
        bytes: usize,
        buffer: &mut [u64],
        mut see: impl FnMut(&[u8]),
    ) -> Result<(), Errno> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let top = rustix::fs::openat(&self.window.base, &*self.window.path, flags, Mode::empty())?;
        let how = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | UNKEPT;
        let directory = rustix::fs::openat2(&top, path, flags, Mode::empty(), how)?;
        let mut listed = 0;
        while listed < bytes {
            // SAFETY: the system writes into the buffer, no more than its size.
            let got = unsafe {
                libc::syscall(
                    libc::SYS_getdents64,
                    directory.as_raw_fd(),
                    buffer.as_mut_ptr(),
                    size_of_val(buffer),
                )
            };
            let got = usize::try_from(got).unwrap_or(0);
            // SAFETY: the system has filled that much, and a byte may have any value.
            see(unsafe { std::slice::from_raw_parts(buffer.as_ptr().cast::<u8>(), got) });
            listed += got;
            // With attributes, names take up to seven times the room, and the kernel
            // asks for no more than that. Where less came, there are no others.
            if got < size_of_val(buffer) / 8 {
                break;
            }
        }
        Ok(())
    }

    /// Which directories are looked into next, if this one is.
    fn next_to(&self, path: &CStr, buffer: &mut [u64]) -> Vec<Job> {
        let path = path.to_bytes();
        let (parent, name) = match path.iter().rposition(|byte| *byte == b'/') {
            Some(at) => (&path[..at], &path[at + 1..]),
            None => (&b"."[..], path),
        };
        let mut parents = self.parents.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(known) = parents.visited_again(parent) else { return Vec::new() };
        let siblings =
            known.siblings.get_or_insert_with(|| Siblings::new(self.below(parent, buffer)));
        let in_parent = |name: &Vec<u8>| match parent {
            b"." => name.clone(),
            _ => [parent, name].join(&b'/'),
        };
        let next = siblings.looked_into(name).iter();
        let paths = next.filter_map(|name| CString::new(in_parent(name)).ok());
        paths.map(|path| Job { path, bytes: PIECE, reason: Reason::Next }).collect()
    }

    /// The names of the directories in a directory.
    fn below(&self, path: &[u8], buffer: &mut [u64]) -> Vec<Vec<u8>> {
        let mut found = Vec::new();
        let Ok(path) = CString::new(path) else { return found };
        // One that cannot be listed has none that are known.
        let _ = self.list(&path, SUBDIRECTORIES * 32, buffer, |mut entries| {
            while let Some(entry) = Entry::parse(entries) {
                if entry.kind == libc::DT_DIR && !entry.is_dots() && found.len() < SUBDIRECTORIES {
                    found.push(entry.name.to_bytes().to_vec());
                }
                entries = &entries[entry.length..];
            }
        });
        found
    }
}

impl Parents {
    /// Notes that one of its directories is looked into. Returns it if that was so before,
    /// a short time ago.
    fn visited_again(&mut self, path: &[u8]) -> Option<&mut Parent> {
        let valid = self.valid;
        self.known.retain(|_, parent| parent.since.elapsed() < valid);
        let is_new = !self.known.contains_key(path);
        if is_new {
            if self.known.len() >= PARENTS {
                let oldest = self.known.iter().min_by_key(|(_, parent)| parent.since);
                let oldest = oldest.map(|(path, _)| path.clone());
                oldest.and_then(|path| self.known.remove(&path));
            }
            let parent = Parent { since: Instant::now(), siblings: None };
            self.known.insert(path.to_vec(), parent);
        }
        self.known.get_mut(path).filter(|_| !is_new)
    }
}
