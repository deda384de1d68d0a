//! Names ahead of time. A program that looks at one file after the other, as
//! `git status` does, asks for each name by itself, and each takes a round trip.
//! A listing tells the kernel of hundreds at once, with their attributes. So when
//! names of a directory are asked for one by one, a thread lists it through the
//! mount, as a program of the session would. It learns nothing, and nothing
//! depends on it.

use std::collections::{HashMap, VecDeque};
use std::ffi::CString;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::nodes::NodeId;

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
/// `git status` has 20 threads, each in a directory of its own. Each listing takes
/// two turns among their requests: by one thread it would come too late.
const THREADS: usize = 4;
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
    jobs: Mutex<VecDeque<Job>>,
    given: Condvar,
}

#[derive(Debug)]
struct Job {
    /// From the top of the file system.
    path: CString,
    bytes: usize,
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
        self.threads = match std::mem::replace(&mut self.threads, ListingThreads::Failed) {
            ListingThreads::Unstarted(window) => start(window),
            threads @ (ListingThreads::Started(_) | ListingThreads::Failed) => threads,
        };
        let ListingThreads::Started(work) = &self.threads else { return };
        let mut jobs = work.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        if jobs.len() == QUEUE {
            jobs.pop_front();
        }
        jobs.push_back(Job { path, bytes });
        drop(jobs);
        work.given.notify_one();
    }

    /// The directory's number is free again.
    pub(super) fn forget(&mut self, directory: NodeId) {
        self.asked.remove(&directory);
    }
}

fn start(window: Window) -> ListingThreads {
    let work = Arc::new(Work {
        window,
        jobs: Mutex::new(VecDeque::with_capacity(QUEUE)),
        given: Condvar::new(),
    });
    let started = (0..THREADS).filter(|_| {
        let work = Arc::clone(&work);
        let thread = std::thread::Builder::new().stack_size(STACK);
        thread.spawn(move || list_for_ever(&work)).is_ok()
    });
    if started.count() > 0 { ListingThreads::Started(work) } else { ListingThreads::Failed }
}

fn list_for_ever(work: &Work) {
    let mut buffer = vec![0_u64; BUFFER / size_of::<u64>()];
    loop {
        let mut jobs = work.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        let job = loop {
            match jobs.pop_front() {
                Some(job) => break job,
                None => jobs = work.given.wait(jobs).unwrap_or_else(PoisonError::into_inner),
            }
        };
        drop(jobs);
        // It may be gone by now, or be seen by its own user only.
        let _ = job.perform(&work.window, &mut buffer);
    }
}

impl Job {
    /// The kernel remembers what it sees on the way; nobody reads the names.
    fn perform(&self, window: &Window, buffer: &mut [u64]) -> Result<(), Errno> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let top = rustix::fs::openat(&window.base, &*window.path, flags, Mode::empty())?;
        let how = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | UNKEPT;
        let directory = rustix::fs::openat2(&top, &*self.path, flags, Mode::empty(), how)?;
        let mut listed = 0;
        while listed < self.bytes {
            let before = listed;
            // SAFETY: the system writes into the buffer, no more than its size.
            let got = unsafe {
                libc::syscall(
                    libc::SYS_getdents64,
                    directory.as_raw_fd(),
                    buffer.as_mut_ptr(),
                    size_of_val(buffer),
                )
            };
            listed += usize::try_from(got).unwrap_or(0);
            // With attributes, names take up to seven times the room, and the kernel
            // asks for no more than that. Where less came, there are no others.
            if listed - before < size_of_val(buffer) / 8 {
                break;
            }
        }
        Ok(())
    }
}
