//! What a kernel in a sandbox has for itself.
//!
//! Programs inside run as the kernel's own user. What they could open, read or
//! trace of it would let one that an earlier run has left take a later run's
//! order, and answer in the kernel's place. So:
//!
//! - The kernel is closed to other processes, its copies included: nobody inside
//!   can trace it, read its memory or open its descriptors (`PR_SET_DUMPABLE`; the
//!   filter of system calls keeps it from being opened again).
//! - Its orders come through a pipe that has no name, made within the kernel. A
//!   copy of the kernel, say a subshell in the background, has that pipe as well,
//!   and can hand it on: so the kernel gets a new one when processes were started
//!   since the last, and anybody is there besides. So does Python's of secrets.
//!
//! With that the secret of a run (`kernels/secret.rs`) is the kernel's alone, and
//! its report cannot be made by anybody else. Code within the interpreter's own
//! process is the kernel, and not kept from anything here.

use crate::confined::Confined;
use crate::implant::{Implant, Waiting};
use crate::kernels::Kernel;
use crate::processes::PipeId;
use rustix::event::{PollFd, PollFlags};
use rustix::fs::FileType;
use rustix::process::{Pid, PidfdFlags};
use sessile_proc::{Process, ProcessAccess};
use sessile_sandbox::plan::User;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::time::{Duration, Instant};

/// A kernel that is not waiting for orders by then is ended, and its run with it:
/// something of the user's keeps it from that (`PROMPT_COMMAND`).
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// A kernel usually waits for orders within this moment of its report. The keeper
/// waits no longer: who gets `WouldBlock` tries again.
pub(crate) const MOMENT: Duration = Duration::from_millis(1);
/// One that has just made a report without a secret, or has just lost a pipe, waits
/// for orders by then.
pub(crate) const REPAIR: Duration = Duration::from_millis(100);
/// Within this time nobody starts so many processes that their numbers begin anew
/// and come back to where they were: there are 32,768 at least.
const NUMBERS_LAST: Duration = Duration::from_millis(500);

const NAP: Duration = Duration::from_micros(50);

/// Where drivers and shells have their pipes: low, or at the upper end of what
/// they may open, and not beyond this (`HIGHEST` in `channel.py`).
const LOW: u32 = 64;
const HIGHEST: u64 = 1000;
const HIGH: u32 = 40;

/// A kernel that has what is for it alone.
#[derive(Debug)]
pub(crate) struct Privacy {
    /// The pipes that it was started with. A driver whose descriptor was closed by
    /// user code opens these again, by their names.
    named: Vec<OwnedFd>,
    pipes: Pipes,
    /// The newest process of the system at that time.
    floor: Option<Pid>,
    /// When that was asked.
    looked: Instant,
    /// The keeper can go on looking into it.
    _insight: ProcessAccess,
    children: Children,
}

/// Whether a kernel has got all of its pipes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Pipes {
    All,
    /// Something went wrong on the way.
    NotAll,
}

/// Who may have what a kernel has: its children, and those who have lost their
/// parents, which are the children of the first process. To look at these two
/// lists takes a tenth of the time of a look at all processes.
#[derive(Debug)]
struct Children([Option<File>; 2]);

impl Children {
    fn of(kernel: Pid, init: Pid) -> Self {
        Self([kernel, init].map(|pid| {
            let pid = pid.as_raw_nonzero();
            File::open(format!("/proc/{pid}/task/{pid}/children")).ok()
        }))
    }

    /// Each thread has a list of its own. Where the system does not tell, there may
    /// be some.
    fn are_none(&self, kernel: Pid) -> bool {
        /// Its own name, its parent's, and one for the only thread.
        const LINKS: u64 = 3;
        let is_empty = |list: &Option<File>| {
            list.as_ref().is_some_and(|list| list.read_at(&mut [0; 1], 0).is_ok_and(|n| n == 0))
        };
        let threads = std::fs::metadata(format!("/proc/{}/task", kernel.as_raw_nonzero()));
        self.0.iter().all(is_empty) && threads.is_ok_and(|found| found.nlink() == LINKS)
    }
}

/// What there is besides a kernel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Neighbours {
    /// The newest process of the system when the last run was over.
    pub(crate) floor: Option<Pid>,
    pub(crate) kernels: Kernels,
}

/// Whether there are other kernels in its sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kernels {
    None,
    Some,
}

/// When a kernel gets new pipes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum When {
    /// If somebody is there who may have the old ones.
    Needed,
    /// In any case: it has lost one. It waits for orders within that time, or does
    /// not get any.
    Lost(Duration),
}

/// Whether a kernel was given new pipes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Renewed {
    Yes,
    No,
}

impl Privacy {
    /// Before an order to an idle kernel: nobody else reads it.
    pub(crate) fn ensure(
        privacy: &mut Option<Self>,
        (kernel, pid): (&mut (dyn Kernel + 'static), Pid),
        confined: &Confined,
        Neighbours { floor, kernels }: Neighbours,
        when: When,
    ) -> io::Result<Renewed> {
        if let (Some(known), When::Needed) = (&mut *privacy, when)
            && known.pipes == Pipes::All
        {
            // Whoever could have been handed something was handed it by a process
            // that was started since.
            let is_recent = known.looked.elapsed() < NUMBERS_LAST;
            if floor.is_some() && floor == known.floor && is_recent {
                return Ok(Renewed::No);
            }
            let has_none = kernels == Kernels::None && known.children.are_none(pid);
            if has_none || !confined.has_others_than(pid)? {
                (known.floor, known.looked) = (floor, Instant::now());
                return Ok(Renewed::No);
            }
        }
        let patience = match when {
            When::Needed => MOMENT,
            When::Lost(patience) => patience,
        };
        Self::renew(privacy, (kernel, pid), confined, (floor, patience))?;
        Ok(Renewed::Yes)
    }

    fn renew(
        privacy: &mut Option<Self>,
        (kernel, pid): (&mut (dyn Kernel + 'static), Pid),
        confined: &Confined,
        (floor, patience): (Option<Pid>, Duration),
    ) -> io::Result<()> {
        let mut known = match privacy.take() {
            Some(known) => known,
            None => Self::nothing_yet(kernel, pid, confined)?,
        };
        known.pipes = Pipes::NotAll;
        let known = privacy.insert(known);
        let mut inside = at_rest(pid, kernel, &known.named, patience)?;
        inside.wants_spare = kernel.reopens_orders();
        inside.deny_inspection(confined.user())?;
        for (pipe, named) in kernel.pipes().into_iter().zip(&known.named) {
            let fresh = inside.replace([pipe, named])?;
            *pipe = fresh;
        }
        if let Some(path) = inside.spare {
            kernel.orders_are_at(&path);
        }
        (known.pipes, known.floor) = (Pipes::All, floor);
        known.looked = Instant::now();
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
            _insight: ProcessAccess::into(pid),
            children: Children::of(pid, confined.sandbox().init()),
        })
    }
}

/// Whether a kernel has lost one of its pipes: nobody is left who could read.
pub(crate) fn has_lost_pipe(kernel: &mut dyn Kernel) -> bool {
    kernel.pipes().into_iter().any(|pipe| is_ready(pipe, PollFlags::ERR))
}

fn is_ready(fd: &OwnedFd, news: PollFlags) -> bool {
    let mut poll = [PollFd::new(fd, news)];
    let now = rustix::time::Timespec { tv_sec: 0, tv_nsec: 0 };
    let _ = rustix::event::poll(&mut poll, Some(&now));
    poll[0].revents().contains(news)
}

/// A kernel that stands still, and waits for orders.
struct Inside {
    implant: Implant,
    process: OwnedFd,
    /// What it waits with, if not in a read.
    epoll: Option<u64>,
    candidates: Vec<u32>,
    /// Where it has the pipe of its orders a second time, for when it has lost the
    /// first: by a path that means this process's own for everybody.
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
        if has_read_all {
            match Implant::stop(pid) {
                Ok(implant) => {
                    let pipes = kernel.pipes();
                    let orders = [&*pipes[0], &named[0]];
                    if let Some(inside) = waits_for(implant, &process, orders, pid)? {
                        return Ok(inside);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {}
                Err(error) => return Err(error),
            }
        }
        // With orders that it will not read any more, perhaps.
        if is_ready(&process, PollFlags::IN) {
            return Err(rustix::io::Errno::SRCH.into());
        }
        if begun.elapsed() > patience {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        std::thread::sleep(NAP);
    }
}

/// Whether it waits for orders.
fn waits_for(
    implant: Implant,
    process: &OwnedFd,
    orders: [&OwnedFd; 2],
    pid: Pid,
) -> io::Result<Option<Inside>> {
    let Some(Waiting { number, first }) = implant.waiting() else { return Ok(None) };
    let process = process.try_clone()?;
    let inside = |epoll, candidates| Inside {
        implant,
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

fn candidates_of(pid: Pid) -> Vec<u32> {
    let limit = Process::new(pid).limit("Max open files");
    let limit = limit.and_then(|limit| limit.soft).unwrap_or(HIGHEST);
    let top = u32::try_from(limit.saturating_sub(1).min(HIGHEST)).unwrap_or(LOW);
    (0..LOW).chain(top.saturating_sub(HIGH).max(LOW)..=top).collect()
}

fn ids(pipes: [&OwnedFd; 2]) -> io::Result<[PipeId; 2]> {
    let id = |pipe: &OwnedFd| -> io::Result<PipeId> {
        let stat = rustix::fs::fstat(pipe)?;
        Ok(PipeId { device: stat.st_dev, inode: stat.st_ino })
    };
    Ok([id(pipes[0])?, id(pipes[1])?])
}

impl Inside {
    /// A descriptor of it, as one of ours.
    fn take(&self, number: u32) -> io::Result<OwnedFd> {
        // SAFETY: only numbers are passed; what comes back is a descriptor of ours.
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
        self.implant.call(libc::SYS_prctl, &[DUMPABLE, 0, 0, 0, 0])?;
        match user {
            User::Root => Ok(()),
            User::Agent => {
                self.implant.call(libc::SYS_prctl, &[AMBIENT, CLEAR_ALL, 0, 0, 0])?;
                self.drop_capabilities()
            }
        }
    }

    fn drop_capabilities(&mut self) -> io::Result<()> {
        const VERSION: u64 = 0x2008_0522;
        let header = self.implant.room();
        let sets = header + 8;
        // Of this very process; then two times three empty sets.
        for (at, word) in [(header, VERSION), (sets, 0), (sets + 8, 0), (sets + 16, 0)] {
            self.implant.write(at, word)?;
        }
        self.implant.call(libc::SYS_capset, &[header, sets]).map(drop)
    }

    /// Puts a new pipe in the place of one of these two: the end that is written
    /// to.
    fn replace(&mut self, [current, named]: [&OwnedFd; 2]) -> io::Result<OwnedFd> {
        let ids = ids([current, named])?;
        let number = self.candidates.iter().copied().find(|fd| self.is_one_of(*fd, &ids));
        let number = number.ok_or(io::ErrorKind::BrokenPipe)?;
        let room = self.implant.room();
        self.implant.call(libc::SYS_pipe2, &[room, libc::O_CLOEXEC as u64])?;
        let ends = self.implant.read(room)?;
        let (reading, writing) = (ends & 0xffff_ffff, ends >> 32);
        let taken = self.take(u32::try_from(writing).unwrap_or(u32::MAX));
        let placed = self.place(reading, u64::from(number), room);
        for end in [reading, writing] {
            self.implant.call(libc::SYS_close, &[end])?;
        }
        placed?;
        let taken = taken?;
        // A thread of the user's may have been at that memory.
        if FileType::from_raw_mode(rustix::fs::fstat(&taken)?.st_mode) != FileType::Fifo {
            return Err(io::ErrorKind::InvalidData.into());
        }
        rustix::io::ioctl_fionbio(&taken, true)?;
        Ok(taken)
    }

    fn place(&mut self, fresh: u64, number: u64, room: u64) -> io::Result<()> {
        // What drivers know theirs by, and whether a read of it waits.
        for (ask, set) in [(GET_SIGNAL, SET_SIGNAL), (libc::F_GETFL, libc::F_SETFL)] {
            let known = self.implant.call(libc::SYS_fcntl, &[number, ask as u64, 0])?;
            self.implant.call(libc::SYS_fcntl, &[fresh, set as u64, known])?;
        }
        if let Some(epoll) = self.epoll {
            let remove = libc::EPOLL_CTL_DEL as u64;
            // The pipe of secrets is not watched.
            match self.implant.call(libc::SYS_epoll_ctl, &[epoll, remove, number, room]) {
                Ok(_) => {}
                Err(error) if error.raw_os_error() == Some(libc::ENOENT) => self.epoll = None,
                Err(error) => return Err(error),
            }
        }
        // The usual streams are for a shell's children; others are not.
        let flags = if number > 2 { libc::O_CLOEXEC as u64 } else { 0 };
        self.implant.call(libc::SYS_dup3, &[fresh, number, flags])?;
        match self.epoll {
            Some(epoll) => self.watch(epoll, number, room)?,
            None if self.wants_spare => self.keep_spare(fresh)?,
            None => {}
        }
        Ok(())
    }

    fn keep_spare(&mut self, fresh: u64) -> io::Result<()> {
        // Out of the way of what scripts and shells use.
        let number = self.candidates.last().copied().unwrap_or(LOW);
        self.implant.call(libc::SYS_dup3, &[fresh, u64::from(number), libc::O_CLOEXEC as u64])?;
        self.spare = Some(format!("/proc/self/fd/{number}"));
        Ok(())
    }

    /// As libuv does: by the descriptor's number.
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
        self.implant.write(room, words[0])?;
        self.implant.write(room + 8, words[1])?;
        let add = libc::EPOLL_CTL_ADD as u64;
        self.implant.call(libc::SYS_epoll_ctl, &[epoll, add, number, room]).map(drop)
    }
}

const SET_SIGNAL: i32 = 10;
const GET_SIGNAL: i32 = 11;
