//! The mover's loop: most calls continue at once, some are worked on.

use super::call::{self, Answer, Call, Place};
use super::record::Records;
use super::work::{Named, Rename};
use crate::confine::Confinement;
use crate::sys;
use rustix::event::{PollFd, PollFlags};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RenameFlags};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, Signal, WaitOptions};
use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::rc::Rc;

/// The capability to read the callers' memory, as a bit in a set.
const SYS_PTRACE: u64 = 1 << 19;

/// A worker's exit code: 0 if it has done the rename, this if the call continues, or the
/// number of the error.
const GOES_ON: i32 = 255;

/// Runs until the sandbox or the keeper is gone.
pub(super) fn run(
    init: BorrowedFd<'_>,
    socket: &OwnedFd,
    keeper: Pid,
    (records, confinement): (Records, &Confinement),
) -> io::Result<()> {
    let processes = open_directory(rustix::fs::CWD, c"/proc")?;
    let kept = [init, socket.as_fd(), processes.as_fd(), records.as_fd()];
    let mut kept = kept.map(|fd| fd.as_raw_fd());
    crate::apply::leave_keeper(&mut kept);
    sys::leave_groups();
    sys::join(init, libc::CLONE_NEWUSER | libc::CLONE_NEWNS)?;
    sys::keep_capabilities(SYS_PTRACE)?;
    // Joining may have cleared it.
    rustix::process::set_parent_process_death_signal(Some(Signal::KILL))?;
    if rustix::process::getppid() != Some(keeper) {
        return Ok(());
    }
    rustix::process::umask(Mode::empty());
    let works = Vec::new();
    let mut mover = Mover { processes, records, confinement, listeners: Vec::new(), works };
    // Somebody waits for it then.
    if mover.records.are_there() {
        mover.recover();
        rustix::io::write(socket, b"r")?;
    }
    mover.serve(init, socket)
}

struct Mover<'a> {
    /// A /proc with our pids.
    processes: OwnedFd,
    records: Records,
    /// What the programs are behind.
    confinement: &'a Confinement,
    listeners: Vec<Rc<OwnedFd>>,
    works: Vec<Work>,
}

/// A call with a worker process.
struct Work {
    call: Call,
    listener: Rc<OwnedFd>,
    pid: Pid,
    ended: OwnedFd,
    record: CString,
}

impl Mover<'_> {
    fn serve(&mut self, init: BorrowedFd<'_>, socket: &OwnedFd) -> io::Result<()> {
        loop {
            let watched = [init, socket.as_fd()].into_iter();
            let works = self.works.iter().map(|work| work.ended.as_fd());
            let watched = watched.chain(works).chain(self.listeners.iter().map(|one| one.as_fd()));
            let mut polled: Vec<_> =
                watched.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN)).collect();
            match rustix::event::poll(&mut polled, None) {
                Err(Errno::INTR) => continue,
                polled => polled?,
            };
            let news: Vec<PollFlags> = polled.iter().map(PollFd::revents).collect();
            let (news, of_listeners) = news.split_at(2 + self.works.len());
            if !news[0].is_empty() {
                return Ok(());
            }
            self.hear(of_listeners);
            self.finish();
            if !news[1].is_empty() {
                let Some([listener]) = sys::receive_descriptors(socket.as_fd())? else {
                    return Ok(());
                };
                call::wake_in_turn(listener.as_fd());
                self.listeners.push(Rc::new(listener));
            }
        }
    }

    fn hear(&mut self, news: &[PollFlags]) {
        let listeners = self.listeners.clone();
        for (listener, news) in listeners.iter().zip(news) {
            if news.contains(PollFlags::IN)
                && let Ok(Some(call)) = call::receive(listener.as_fd())
            {
                self.take(call, listener);
            } else if news.intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL) {
                // No process with this filter is left.
                self.listeners.retain(|one| !Rc::ptr_eq(one, listener));
            }
        }
    }

    fn take(&mut self, call: Call, listener: &Rc<OwnedFd>) {
        let rename = self.understand(&call, listener.as_fd());
        match rename.and_then(|rename| self.start(&rename).ok()) {
            None => call.answer(listener.as_fd(), Answer::GoOn),
            Some((pid, ended, record)) => {
                self.works.push(Work { call, listener: Rc::clone(listener), pid, ended, record });
            }
        }
    }

    /// Returns the rename, if it is one of a directory.
    fn understand(&self, call: &Call, listener: BorrowedFd<'_>) -> Option<Rename> {
        let arguments = call.arguments()?;
        let from = self.named(call, arguments.from)?;
        let stat = rustix::fs::statat(&from.directory, &from.path, AtFlags::SYMLINK_NOFOLLOW);
        if FileType::from_raw_mode(stat.ok()?.st_mode) != FileType::Directory {
            return None;
        }
        // Root inside may become other users, with fewer rights.
        if self.status_number(call, "Uid:")? != rustix::process::geteuid().as_raw() {
            return None;
        }
        let to = self.named(call, arguments.to)?;
        let flags = RenameFlags::from_bits_retain(arguments.flags);
        call.is_valid(listener).then_some(Rename { from, to, flags })
    }

    /// Returns a number from a caller's status: its process id, or its file system user
    /// id, which is the last of four.
    fn status_number(&self, call: &Call, what: &str) -> Option<u32> {
        let path = format!("{}/status", call.thread);
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.processes, path, flags, Mode::empty()).ok()?;
        let status = io::read_to_string(std::fs::File::from(file)).ok()?;
        let numbers = status.lines().find_map(|line| line.strip_prefix(what))?;
        numbers.split_whitespace().last()?.parse().ok()
    }

    fn named(&self, call: &Call, place: Place) -> Option<Named> {
        let path = call.path(place)?;
        let directory = if path.as_bytes().starts_with(b"/") {
            open_directory(rustix::fs::CWD, c"/").ok()?
        } else {
            match place.directory {
                libc::AT_FDCWD => {
                    let current = CString::new(format!("{}/cwd", call.thread)).ok()?;
                    open_directory(self.processes.as_fd(), &current).ok()?
                }
                // /proc does not show the descriptors of a process that is not dumpable.
                number => {
                    let process =
                        self.status_number(call, "Tgid:").and_then(|id| i32::try_from(id).ok())?;
                    let process = sys::pidfd_of(process).ok()?;
                    let flags = PidfdGetfdFlags::empty();
                    rustix::process::pidfd_getfd(process, number, flags).ok()?
                }
            }
        };
        Some(Named { directory, path })
    }

    fn finish(&mut self) {
        let (mut works, mut was_killed) = (std::mem::take(&mut self.works), false);
        works.retain(|work| {
            let status = match rustix::process::waitpid(Some(work.pid), WaitOptions::NOHANG) {
                Ok(None) | Err(Errno::INTR) => return true,
                Ok(Some((_, status))) => status.exit_status(),
                Err(_) => None,
            };
            let answer = match status {
                Some(0) => Answer::Done,
                Some(GOES_ON) => Answer::GoOn,
                Some(number) => Answer::Refused(Errno::from_raw_os_error(number)),
                None => Answer::Refused(Errno::IO),
            };
            match status {
                Some(_) => self.records.end(&work.record),
                None => was_killed = true,
            }
            work.call.answer(work.listener.as_fd(), answer);
            false
        });
        // Not while other workers are busy: their records are there as well.
        if was_killed && works.is_empty() {
            self.recover();
        }
        self.works = works;
    }

    /// Undoes interrupted moves, with no more rights than a worker.
    fn recover(&self) {
        // SAFETY: this process has a single thread, so the child has a consistent heap.
        match unsafe { libc::fork() } {
            0 => {
                let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
                if sys::keep_capabilities(0).is_ok()
                    && let Ok(root) = open_directory(rustix::fs::CWD, c"/")
                {
                    self.records.recover(root.as_fd(), b"");
                }
                // SAFETY: ends this process without running any of the keeper's code.
                unsafe { libc::_exit(0) }
            }
            pid => {
                if let Some(pid) = Pid::from_raw(pid) {
                    let _ = rustix::process::waitpid(Some(pid), WaitOptions::empty());
                }
            }
        }
    }

    /// Forks a worker.
    fn start(&mut self, rename: &Rename) -> io::Result<(Pid, OwnedFd, CString)> {
        let mut record = self.records.begin()?;
        // SAFETY: this process has a single thread, so the child has a consistent heap.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
                let answer = match sys::keep_capabilities(0)
                    .and_then(|()| self.confinement.confine_paths())
                {
                    Ok(()) => rename.perform(&mut record, self.processes.as_fd()),
                    Err(_) => Answer::GoOn,
                };
                let code = match answer {
                    Answer::Done => 0,
                    Answer::GoOn => GOES_ON,
                    Answer::Refused(errno) => errno.raw_os_error(),
                };
                // SAFETY: ends this process without running any of the keeper's code.
                unsafe { libc::_exit(code) }
            }
            pid => {
                let pid = Pid::from_raw(pid).ok_or(Errno::SRCH)?;
                let ended = rustix::process::pidfd_open(pid, PidfdFlags::empty())?;
                Ok((pid, ended, record.name))
            }
        }
    }
}

fn open_directory(at: BorrowedFd<'_>, path: &std::ffi::CStr) -> io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    Ok(rustix::fs::openat(at, path, flags, Mode::empty())?)
}
