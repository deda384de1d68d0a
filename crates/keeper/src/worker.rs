//! Runs work that takes long or blocks in a fork of the keeper, so that the keeper's loop
//! goes on.
//!
//! A worker has a copy of the keeper's memory, none of its descriptors, and one pipe
//! back. Its answer counts only if it is complete: a worker that was killed counts as
//! having done nothing. Work that no client waits for has the lowest priority.

use crate::reactor::{Interest, Reactor};
use crate::source::Source;
use rustix::io::Errno;
use rustix::pipe::PipeFlags;
use rustix::process::{Pid, Signal};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Priority {
    /// A client waits for the result.
    Normal,
    /// Nobody waits for it.
    Low,
}

/// Lets a process run when nobody else wants the core, though not never.
pub(crate) fn lower_priority(pid: Pid) {
    let _ = rustix::process::setpriority_process(Some(pid), LAST);
}

/// The nice value with about a seventieth of an ordinary process's weight.
const LAST: i32 = 19;

/// Length of the size field before the answer.
const HEAD: usize = 8;

#[derive(Debug)]
pub(crate) struct Worker {
    pid: Pid,
    pipe: OwnedFd,
    received: Vec<u8>,
}

/// Progress of a worker.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    Going,
    Done(Vec<u8>),
    /// It ended without a complete answer.
    Failed,
}

impl Worker {
    /// Forks a worker. Its answer is what `work` returns; its pipe is watched.
    pub(crate) fn spawn(
        reactor: &Reactor<Source>,
        source: Source,
        priority: Priority,
        work: impl FnOnce() -> Vec<u8>,
    ) -> io::Result<Self> {
        let (reading, writing) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        rustix::io::ioctl_fionbio(&reading, true)?;
        reactor.add(&reading, source, Interest::Read)?;
        let keeper = rustix::process::getpid();
        // SAFETY: the keeper has a single thread, so the child has a consistent heap and
        // no lock is held in it.
        match unsafe { libc::fork() } {
            -1 => {
                let error = io::Error::last_os_error();
                reactor.remove(&reading);
                Err(error)
            }
            0 => run_worker(&writing, keeper, work),
            pid => match Pid::from_raw(pid) {
                Some(pid) => {
                    match priority {
                        Priority::Normal => {}
                        Priority::Low => lower_priority(pid),
                    }
                    Ok(Self { pid, pipe: reading, received: Vec::new() })
                }
                None => Err(io::ErrorKind::Other.into()),
            },
        }
    }

    pub(crate) fn pid(&self) -> Pid {
        self.pid
    }

    /// Reads what there is of its answer. After anything but [`Progress::Going`], drop
    /// the worker.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> Progress {
        loop {
            match rustix::io::read(&self.pipe, &mut *buffer) {
                Ok(0) => return self.answer(),
                Ok(n) => self.received.extend_from_slice(&buffer[..n]),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Progress::Going,
                Err(_) => return Progress::Failed,
            }
        }
    }

    fn answer(&mut self) -> Progress {
        let mut received = std::mem::take(&mut self.received);
        let Some((head, _)) = received.split_first_chunk::<HEAD>() else {
            return Progress::Failed;
        };
        if usize::try_from(u64::from_le_bytes(*head)) != Ok(received.len() - HEAD) {
            return Progress::Failed;
        }
        received.drain(..HEAD);
        Progress::Done(received)
    }

    pub(crate) fn kill(&self) {
        crate::processes::signal(&[self.pid], Signal::KILL);
    }
}

/// The worker's whole life.
fn run_worker(writing: &OwnedFd, keeper: Pid, work: impl FnOnce() -> Vec<u8>) -> ! {
    prepare(writing, keeper);
    let answer = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
    let has_answered = answer.is_ok_and(|answer| {
        let head = (answer.len() as u64).to_le_bytes();
        write_all(writing, &head).and_then(|()| write_all(writing, &answer)).is_ok()
    });
    // SAFETY: ends the process without the keeper's exit handlers.
    unsafe { libc::_exit(i32::from(!has_answered)) }
}

/// Closes all that belongs to the keeper, and arranges to die with the keeper.
fn prepare(writing: &OwnedFd, keeper: Pid) {
    let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
    let own = writing.as_raw_fd().cast_unsigned();
    // SAFETY: these descriptors belong to values of the keeper that are never used or
    // dropped in this process; the mask and the dispositions are this process's own.
    unsafe {
        if rustix::process::getppid() != Some(keeper) {
            libc::_exit(1);
        }
        if own > 3 {
            libc::syscall(libc::SYS_close_range, 3, own - 1, 0);
        }
        libc::syscall(libc::SYS_close_range, own + 1, u32::MAX, 0);
        let mut none = std::mem::zeroed::<libc::sigset_t>();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
        for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGTERM, libc::SIGQUIT] {
            libc::signal(signal, libc::SIG_DFL);
        }
        // Exceeding the file size limit is an error of the write, not the end of the process.
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
    }
}

fn write_all(to: &OwnedFd, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match rustix::io::write(to, bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}
