//! Protection of a kernel in a sandbox from the programs beside it.
//!
//! Programs in the sandbox run as the kernel's own user. If they could open, read or
//! trace it, a program that an earlier run has left could take a later run's order and
//! answer in the kernel's place. So:
//!
//! - The kernel and its copies are closed to other processes: nothing inside can trace
//!   it, read its memory or open its descriptors (`PR_SET_DUMPABLE`; the system call
//!   filter keeps it from being opened again).
//! - Its orders come through a pipe without a name, made within the kernel. A copy of the
//!   kernel, such as a subshell in the background, has that pipe as well and can pass it
//!   on. So the kernel gets a new one when processes were started since the last one and
//!   other processes exist. The same holds for Python's pipe of secrets.
//!
//! So only the kernel has the secret of a run (`kernels/secret.rs`), and no other process
//! can forge its report. Code within the interpreter's own process is the kernel; nothing
//! here restricts it.

use crate::confined::Confined;
use crate::kernels::Kernel;
use crate::processes::PipeId;
use crate::syscall_injection::{StoppedProcess, Waiting};
use rustix::event::{PollFd, PollFlags};
use rustix::fs::FileType;
use rustix::process::{Pid, PidfdFlags, Resource, Rlimit, prlimit};
use sessile_proc::{Process, ProcessAccess};
use sessile_sandbox::plan::User;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::time::{Duration, Instant};

/// A kernel that does not wait for orders by then is ended, and its run with it: the
/// user's code keeps it from that (`PROMPT_COMMAND`).
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// A kernel usually waits for orders within this time after its report. The keeper waits
/// no longer: a caller that gets `WouldBlock` tries again.
pub(crate) const MOMENT: Duration = Duration::from_millis(1);
/// A kernel that has just made a report without a secret, or has just lost a pipe, waits
/// for orders by then.
pub(crate) const REPAIR: Duration = Duration::from_millis(100);
/// Within this time nobody can start so many processes that pids wrap around to the same
/// number: there are at least 32,768.
const NUMBERS_LAST: Duration = Duration::from_millis(500);

const NAP: Duration = Duration::from_micros(50);

/// Where drivers and shells have their pipes: at low numbers, or at the upper end of what
/// they may open, but not beyond `HIGHEST` (as in `channel.py`).
const LOW: u32 = 64;
const HIGHEST: u64 = 1000;
const HIGH: u32 = 40;

/// The private parts of a kernel.
#[derive(Debug)]
pub(crate) struct Privacy {
    /// The pipes that it was started with. A driver whose descriptor was closed by user
    /// code opens them again by their names.
    named: Vec<OwnedFd>,
    pipes: Pipes,
    /// The newest process of the system when the pipes were last renewed or checked.
    floor: Option<Pid>,
    /// When `floor` was read.
    looked: Instant,
    /// Whether there were no other processes in the sandbox then.
    was_alone: bool,
    /// Keeps the keeper's access to the process.
    _insight: ProcessAccess,
    children: Children,
    /// Where the kernel's reports arrive that it cannot make by name; until it is taken.
    reports: Option<OwnedFd>,
}

/// Whether a kernel has got all of its pipes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pipes {
    All,
    /// Something went wrong on the way.
    NotAll,
}

/// The processes that may have a kernel's descriptors: its children, and orphans, which
/// are the children of the first process. Reading these two lists takes a tenth of the
/// time of reading all processes.
#[derive(Debug)]
struct Children {
    lists: [Option<File>; 2],
    /// The directory of the kernel's threads.
    threads: Option<File>,
}

impl Children {
    fn of(kernel: Pid, init: Pid) -> Self {
        let lists = [kernel, init].map(|pid| {
            let pid = pid.as_raw_nonzero();
            File::open(format!("/proc/{pid}/task/{pid}/children")).ok()
        });
        let threads = File::open(format!("/proc/{}/task", kernel.as_raw_nonzero())).ok();
        Self { lists, threads }
    }

    /// Whether there are no such processes. Each thread has its own list. If the system
    /// does not tell, there may be some.
    fn are_none(&self) -> bool {
        /// Its own name, its parent's, and one for the only thread.
        const LINKS: u64 = 3;
        let is_empty = |list: &Option<File>| {
            list.as_ref().is_some_and(|list| list.read_at(&mut [0; 1], 0).is_ok_and(|n| n == 0))
        };
        let threads = self.threads.as_ref().and_then(|threads| threads.metadata().ok());
        self.lists.iter().all(is_empty) && threads.is_some_and(|found| found.nlink() == LINKS)
    }
}

/// What exists beside a kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Neighbours {
    /// The newest process of the system.
    pub(crate) newest: Option<Pid>,
    pub(crate) kernels: OtherKernels,
}

/// Whether there are other kernels in its sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OtherKernels {
    None,
    Some,
}

/// When a kernel gets new pipes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Renewal {
    /// If another process may have the old ones.
    IfNeeded,
    /// In any case: it has lost one. It must wait for orders within this time, or it gets
    /// none.
    AfterLoss(Duration),
}

/// Whether a kernel was given new pipes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Renewed {
    Yes,
    No,
}

impl Privacy {
    /// Makes sure, before an order to an idle kernel, that no other process reads it.
    pub(crate) fn ensure(
        privacy: &mut Option<Self>,
        (kernel, pid): (&mut (dyn Kernel + 'static), Pid),
        confined: &Confined,
        Neighbours { newest, kernels }: Neighbours,
        renewal: Renewal,
    ) -> io::Result<Renewed> {
        if let (Some(known), Renewal::IfNeeded) = (&mut *privacy, renewal)
            && known.pipes == Pipes::All
        {
            // Only a process that was started since could have passed descriptors on.
            if known.is_as_before(newest) {
                return Ok(Renewed::No);
            }
            let has_none = kernels == OtherKernels::None && known.children.are_none();
            if has_none || !confined.has_others_than(pid)? {
                (known.floor, known.looked, known.was_alone) = (newest, Instant::now(), true);
                return Ok(Renewed::No);
            }
        }
        let patience = match renewal {
            Renewal::IfNeeded => MOMENT,
            Renewal::AfterLoss(patience) => patience,
        };
        Self::renew(privacy, (kernel, pid), confined, (newest, patience))?;
        Ok(Renewed::Yes)
    }

    /// Whether the kernel has children, or threads. `newest` is the newest process of the
    /// system.
    pub(crate) fn has_children(&self, newest: Option<Pid>) -> bool {
        let is_alone = self.was_alone && self.is_as_before(newest);
        !is_alone && !self.children.are_none()
    }

    /// Whether no process of the system was started since the last check.
    fn is_as_before(&self, newest: Option<Pid>) -> bool {
        let is_recent = self.looked.elapsed() < NUMBERS_LAST;
        newest.is_some() && newest == self.floor && is_recent
    }

    fn renew(
        privacy: &mut Option<Self>,
        (kernel, pid): (&mut (dyn Kernel + 'static), Pid),
        confined: &Confined,
        (newest, patience): (Option<Pid>, Duration),
    ) -> io::Result<()> {
        let mut known = match privacy.take() {
            Some(known) => known,
            None => Self::nothing_yet(kernel, pid, confined)?,
        };
        known.pipes = Pipes::NotAll;
        let known = privacy.insert(known);
        let mut inside = at_rest(pid, kernel, &known.named, patience)?;
        let _more = MoreFiles::of(pid);
        inside.wants_spare = kernel.reopens_orders();
        inside.deny_inspection(confined.user())?;
        for (pipe, named) in kernel.pipes().into_iter().zip(&known.named) {
            let fresh = inside.replace([pipe, named])?;
            *pipe = fresh;
        }
        if let Some(path) = inside.spare.take() {
            kernel.orders_are_at(&path);
        }
        if kernel.lacks_way_to_report() {
            let (reports, path) = inside.open_reports()?;
            kernel.reports_also_at(path);
            known.reports = Some(reports);
        }
        (known.pipes, known.floor) = (Pipes::All, newest);
        (known.looked, known.was_alone) = (Instant::now(), false);
        Ok(())
    }

    /// The names in the kernel's directory lead to other pipes than before.
    pub(crate) fn rename(
        privacy: &mut Option<Self>,
        (kernel, pid): (&mut (dyn Kernel + 'static), Pid),
        confined: &Confined,
        named: Vec<OwnedFd>,
    ) -> io::Result<()> {
        let known = match privacy.take() {
            Some(known) => known,
            None => Self::nothing_yet(kernel, pid, confined)?,
        };
        *privacy = Some(Self { named, ..known });
        Ok(())
    }

    fn nothing_yet(kernel: &mut dyn Kernel, pid: Pid, confined: &Confined) -> io::Result<Self> {
        let named: io::Result<Vec<OwnedFd>> =
            kernel.pipes().iter().map(|pipe| pipe.try_clone()).collect();
        Ok(Self {
            named: named?,
            pipes: Pipes::NotAll,
            floor: None,
            looked: Instant::now(),
            was_alone: false,
            _insight: ProcessAccess::into(pid),
            children: Children::of(pid, confined.sandbox().init()),
            reports: None,
        })
    }

    /// Takes the pipe for reports that was last made.
    pub(crate) fn take_reports(&mut self) -> Option<OwnedFd> {
        self.reports.take()
    }
}

/// Whether a kernel has lost one of its pipes: nothing is left that could read it.
pub(crate) fn has_lost_pipe(kernel: &mut dyn Kernel) -> bool {
    kernel.pipes().into_iter().any(|pipe| is_ready(pipe, PollFlags::ERR))
}

fn is_ready(fd: &OwnedFd, news: PollFlags) -> bool {
    let mut poll = [PollFd::new(fd, news)];
    let now = rustix::time::Timespec { tv_sec: 0, tv_nsec: 0 };
    let _ = rustix::event::poll(&mut poll, Some(&now));
    poll[0].revents().contains(news)
}

/// A stopped kernel that waits for orders.
struct Inside {
    stopped: StoppedProcess,
    process: OwnedFd,
    /// The epoll descriptor it waits with, if it is not in a read.
    epoll: Option<u64>,
    candidates: Vec<u32>,
    /// Path of a second descriptor of the order pipe, in case the first is lost. The path
    /// refers to the opening process's own descriptors.
    spare: Option<String>,
    wants_spare: bool,
}

/// Stops a kernel that has read all its orders and waits for more.
fn at_rest(
    pid: Pid,
    kernel: &mut dyn Kernel,
    named: &[OwnedFd],
    patience: Duration,
) -> io::Result<Inside> {
    let process = rustix::process::pidfd_open(pid, PidfdFlags::empty())?;
    let begun = Instant::now();
    loop {
        let has_read_all = {
            let pipes = kernel.pipes();
            let orders = pipes.first().ok_or(io::ErrorKind::Unsupported)?;
            rustix::io::ioctl_fionread(&**orders) == Ok(0)
        };
        // Only a process that gets the processor can stop, and one that waits gets it soon.
        let sleeps = || Process::new(pid).stat().is_some_and(|stat| stat.state == 'S');
        if has_read_all && sleeps() {
            match StoppedProcess::stop(pid) {
                Ok(stopped) => {
                    let pipes = kernel.pipes();
                    let orders = [&*pipes[0], &named[0]];
                    if let Some(inside) = waits_for(stopped, &process, orders, pid)? {
                        return Ok(inside);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {}
                Err(error) => return Err(error),
            }
        }
        // It may have died with orders that it will not read.
        if is_ready(&process, PollFlags::IN) {
            return Err(rustix::io::Errno::SRCH.into());
        }
        if begun.elapsed() > patience {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        std::thread::sleep(NAP);
    }
}

/// Returns the stopped kernel if it waits for orders.
fn waits_for(
    stopped: StoppedProcess,
    process: &OwnedFd,
    orders: [&OwnedFd; 2],
    pid: Pid,
) -> io::Result<Option<Inside>> {
    let Some(Waiting { number, first }) = stopped.waiting() else { return Ok(None) };
    let process = process.try_clone()?;
    let inside = |epoll, candidates| Inside {
        stopped,
        process,
        epoll,
        candidates,
        spare: None,
        wants_spare: false,
    };
    if number == libc::SYS_read {
        let Ok(fd) = u32::try_from(first) else { return Ok(None) };
        let mut candidates = vec![fd];
        candidates.extend(candidates_of(pid));
        let inside = inside(None, candidates);
        let reads_orders = inside.is_one_of(fd, &ids(orders)?);
        return Ok(reads_orders.then_some(inside));
    }
    if is_epoll(number) {
        return Ok(Some(inside(Some(first), candidates_of(pid))));
    }
    Ok(None)
}

#[cfg(target_arch = "x86_64")]
fn is_epoll(number: i64) -> bool {
    matches!(number, libc::SYS_epoll_wait | libc::SYS_epoll_pwait)
}
#[cfg(not(target_arch = "x86_64"))]
fn is_epoll(number: i64) -> bool {
    number == libc::SYS_epoll_pwait
}

/// More open files for a stopped kernel than its user's code has set: its pipes may have
/// numbers beyond that, at which the system would put no others. Afterwards the limit is what
/// it was.
struct MoreFiles {
    pid: Pid,
    before: Rlimit,
}

impl MoreFiles {
    fn of(pid: Pid) -> Option<Self> {
        const ENOUGH: u64 = HIGHEST + 24;
        let limit = Process::new(pid).limit("Max open files")?;
        let soft = limit.soft.filter(|soft| *soft < ENOUGH)?;
        let before = Rlimit { current: Some(soft), maximum: limit.hard };
        // Never beyond the maximum: another thread could start a process meanwhile, which would
        // then have more than the sandbox allows.
        let most = limit.hard.map_or(ENOUGH, |hard| hard.min(ENOUGH));
        let raised = Rlimit { current: Some(most), maximum: limit.hard };
        prlimit(Some(pid), Resource::Nofile, raised).ok()?;
        Some(Self { pid, before })
    }
}

impl Drop for MoreFiles {
    fn drop(&mut self) {
        let _ = prlimit(Some(self.pid), Resource::Nofile, self.before);
    }
}

fn candidates_of(pid: Pid) -> Vec<u32> {
    let limit = Process::new(pid).limit("Max open files");
    let limit = limit.and_then(|limit| limit.soft).unwrap_or(HIGHEST);
    let top = u32::try_from(limit.saturating_sub(1).min(HIGHEST)).unwrap_or(LOW);
    (0..LOW.min(top + 1)).chain(top.saturating_sub(HIGH).max(LOW)..=top).collect()
}

fn ids(pipes: [&OwnedFd; 2]) -> io::Result<[PipeId; 2]> {
    let id = |pipe: &OwnedFd| -> io::Result<PipeId> {
        let stat = rustix::fs::fstat(pipe)?;
        Ok(PipeId { device: stat.st_dev, inode: stat.st_ino })
    };
    Ok([id(pipes[0])?, id(pipes[1])?])
}

impl Inside {
    /// Duplicates a descriptor of the kernel into this process.
    fn take(&self, number: u32) -> io::Result<OwnedFd> {
        // SAFETY: only numbers are passed; the result is a new descriptor of ours.
        unsafe {
            let fd = libc::syscall(libc::SYS_pidfd_getfd, self.process.as_raw_fd(), number, 0);
            let fd = i32::try_from(fd).ok().filter(|fd| *fd >= 0);
            fd.map(|fd| OwnedFd::from_raw_fd(fd)).ok_or_else(io::Error::last_os_error)
        }
    }

    fn is_one_of(&self, number: u32, ids: &[PipeId]) -> bool {
        let Ok(fd) = self.take(number) else { return false };
        let Ok(stat) = rustix::fs::fstat(&fd) else { return false };
        ids.contains(&PipeId { device: stat.st_dev, inode: stat.st_ino })
    }

    /// No other process inside may look at it, nor at copies of it. That was so
    /// already, by a capability that only kernels have while they come up (see
    /// `confine` of the sandbox), and which it is not to keep.
    fn deny_inspection(&mut self, user: User) -> io::Result<()> {
        const DUMPABLE: u64 = libc::PR_SET_DUMPABLE as u64;
        const AMBIENT: u64 = libc::PR_CAP_AMBIENT as u64;
        const CLEAR_ALL: u64 = libc::PR_CAP_AMBIENT_CLEAR_ALL as u64;
        self.stopped.call(libc::SYS_prctl, &[DUMPABLE, 0, 0, 0, 0])?;
        match user {
            User::Root => Ok(()),
            User::Agent => {
                self.stopped.call(libc::SYS_prctl, &[AMBIENT, CLEAR_ALL, 0, 0, 0])?;
                self.drop_capabilities()
            }
        }
    }

    fn drop_capabilities(&mut self) -> io::Result<()> {
        const VERSION: u64 = 0x2008_0522;
        let header = self.stopped.room();
        let sets = header + 8;
        // For the process itself; then two times three empty sets.
        for (at, word) in [(header, VERSION), (sets, 0), (sets + 8, 0), (sets + 16, 0)] {
            self.stopped.write(at, word)?;
        }
        self.stopped.call(libc::SYS_capset, &[header, sets]).map(drop)
    }

    /// Replaces one of these two pipes with a new one. Returns its write end.
    fn replace(&mut self, [current, named]: [&OwnedFd; 2]) -> io::Result<OwnedFd> {
        let ids = ids([current, named])?;
        // The limit may have been another when the pipe got its number.
        let anywhere = 0..=u32::try_from(HIGHEST).unwrap_or(LOW);
        let mut numbers = self.candidates.iter().copied().chain(anywhere);
        let number = numbers.find(|fd| self.is_one_of(*fd, &ids));
        let number = number.ok_or(io::ErrorKind::BrokenPipe)?;
        let room = self.stopped.room();
        let [reading, writing] = self.make_pipe(room)?;
        let taken = self.take_end(writing);
        let placed = self.place(reading, u64::from(number), room);
        for end in [reading, writing] {
            self.stopped.call(libc::SYS_close, &[end])?;
        }
        placed?;
        taken
    }

    /// Makes a pipe within the kernel. Returns the numbers of its ends.
    fn make_pipe(&mut self, room: u64) -> io::Result<[u64; 2]> {
        self.stopped.call(libc::SYS_pipe2, &[room, libc::O_CLOEXEC as u64])?;
        let ends = self.stopped.read(room)?;
        Ok([ends & 0xffff_ffff, ends >> 32])
    }

    fn take_end(&self, end: u64) -> io::Result<OwnedFd> {
        let taken = self.take(u32::try_from(end).unwrap_or(u32::MAX))?;
        // A thread of the user's may have changed that memory.
        if FileType::from_raw_mode(rustix::fs::fstat(&taken)?.st_mode) != FileType::Fifo {
            return Err(io::ErrorKind::InvalidData.into());
        }
        rustix::io::ioctl_fionbio(&taken, true)?;
        Ok(taken)
    }

    fn place(&mut self, fresh: u64, number: u64, room: u64) -> io::Result<()> {
        // Copies the signal by which drivers recognize their pipe, and the flags that say
        // whether a read of it blocks.
        for (ask, set) in [(GET_SIGNAL, SET_SIGNAL), (libc::F_GETFL, libc::F_SETFL)] {
            let known = self.stopped.call(libc::SYS_fcntl, &[number, ask as u64, 0])?;
            self.stopped.call(libc::SYS_fcntl, &[fresh, set as u64, known])?;
        }
        if let Some(epoll) = self.epoll {
            let remove = libc::EPOLL_CTL_DEL as u64;
            // The pipe of secrets is not watched.
            match self.stopped.call(libc::SYS_epoll_ctl, &[epoll, remove, number, room]) {
                Ok(_) => {}
                Err(error) if error.raw_os_error() == Some(libc::ENOENT) => self.epoll = None,
                Err(error) => return Err(error),
            }
        }
        // A shell's children inherit the standard streams, but no others.
        let flags = if number > 2 { libc::O_CLOEXEC as u64 } else { 0 };
        self.stopped.call(libc::SYS_dup3, &[fresh, number, flags])?;
        match self.epoll {
            Some(epoll) => self.watch(epoll, number, room)?,
            None if self.wants_spare => self.keep_spare(fresh)?,
            None => {}
        }
        Ok(())
    }

    fn keep_spare(&mut self, fresh: u64) -> io::Result<()> {
        // At a number that scripts and shells do not use.
        let number = self.candidates.last().copied().unwrap_or(LOW);
        self.stopped.call(libc::SYS_dup3, &[fresh, u64::from(number), libc::O_CLOEXEC as u64])?;
        self.spare = Some(format!("/proc/self/fd/{number}"));
        Ok(())
    }

    /// Makes a pipe by which the kernel can report when the name of the usual one is gone.
    /// Returns its read end, and the path of the other for the kernel.
    fn open_reports(&mut self) -> io::Result<(OwnedFd, String)> {
        let number = self.candidates.iter().rev().nth(1).copied().unwrap_or(LOW - 1);
        let [reading, writing] = self.make_pipe(self.stopped.room())?;
        let taken = self.take_end(reading);
        let flags = libc::O_CLOEXEC as u64;
        let placed = self.stopped.call(libc::SYS_dup3, &[writing, u64::from(number), flags]);
        for end in [reading, writing] {
            self.stopped.call(libc::SYS_close, &[end])?;
        }
        placed?;
        let taken = taken?;
        // Its few lines need no more, and a user may only have so much in pipes.
        let _ = rustix::pipe::fcntl_setpipe_size(&taken, 1);
        Ok((taken, format!("/proc/self/fd/{number}")))
    }

    /// Watches a descriptor by its number, as libuv does.
    fn watch(&mut self, epoll: u64, number: u64, room: u64) -> io::Result<()> {
        let event = libc::epoll_event { events: libc::EPOLLIN as u32, u64: number };
        let mut words = [0_u64; 2];
        // SAFETY: the event is no longer than two words, and both are plain numbers.
        unsafe {
            std::ptr::copy_nonoverlapping(
                (&raw const event).cast::<u8>(),
                words.as_mut_ptr().cast::<u8>(),
                size_of::<libc::epoll_event>(),
            );
        }
        self.stopped.write(room, words[0])?;
        self.stopped.write(room + 8, words[1])?;
        let add = libc::EPOLL_CTL_ADD as u64;
        self.stopped.call(libc::SYS_epoll_ctl, &[epoll, add, number, room]).map(drop)
    }
}

const SET_SIGNAL: i32 = 10;
const GET_SIGNAL: i32 = 11;
