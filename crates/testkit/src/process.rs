//! Processes, observed without being their parent.

use crate::PATIENCE;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::fmt;
use std::os::fd::OwnedFd;

/// Maximum length of a command line that is shown.
const SHOWN: usize = 4096;

/// A process, held by a pidfd, so that its pid cannot come to mean another process.
pub struct Process {
    pid: Pid,
    /// None when it was already gone.
    fd: Option<OwnedFd>,
}

impl Process {
    #[must_use]
    pub fn of(pid: i32) -> Self {
        let pid = Pid::from_raw(pid).expect("a process id");
        Self { pid, fd: pidfd_open(pid, PidfdFlags::empty()).ok() }
    }

    #[must_use]
    pub fn pid(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    #[must_use]
    pub fn is_alive(&self) -> bool {
        !self.ends_within(Timespec { tv_sec: 0, tv_nsec: 0 })
    }

    /// # Panics
    /// When it is not alive.
    #[track_caller]
    pub fn assert_alive(&self) -> &Self {
        assert!(self.is_alive(), "{self} has ended");
        self
    }

    /// Waits for its end. It may be a zombie then: some shells reap a child only when they
    /// run the next command.
    ///
    /// # Panics
    /// When it does not end within [`PATIENCE`].
    #[track_caller]
    pub fn wait_ended(&self) {
        let limit = Timespec { tv_sec: PATIENCE.as_secs().cast_signed(), tv_nsec: 0 };
        assert!(self.ends_within(limit), "{self} does not end");
    }

    /// Waits until it has ended and its parent has reaped it.
    ///
    /// # Panics
    /// When that takes longer than [`PATIENCE`].
    #[track_caller]
    pub fn wait_gone(&self) {
        self.wait_ended();
        if self.fd.is_some() {
            crate::until("a zombie to be reaped", || (!self.is_zombie()).then_some(()));
        }
    }

    /// # Panics
    /// When the signal cannot be sent.
    #[track_caller]
    pub fn signal(&self, signal: Signal) -> &Self {
        let fd = self.fd.as_ref().expect("a process that is not gone");
        pidfd_send_signal(fd, signal).expect("signal");
        self
    }

    /// Kills it, unless it is already gone.
    pub fn kill(&self) -> &Self {
        if let Some(fd) = &self.fd {
            let _ = pidfd_send_signal(fd, Signal::KILL);
        }
        self
    }

    #[must_use]
    pub fn parent(&self) -> Option<Self> {
        let parent = self.entry().stat()?.parent?;
        Some(Self::of(parent.as_raw_nonzero().get()))
    }

    /// Returns its entry in /proc.
    #[must_use]
    pub fn entry(&self) -> sessile_proc::Process {
        sessile_proc::Process::new(self.pid)
    }

    fn is_zombie(&self) -> bool {
        self.entry().stat().is_some_and(|stat| stat.state == 'Z')
    }

    fn ends_within(&self, limit: Timespec) -> bool {
        let Some(fd) = &self.fd else { return true };
        let mut fds = [PollFd::new(fd, PollFlags::IN)];
        matches!(poll(&mut fds, Some(&limit)), Ok(1))
    }
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = self.entry().command_line(SHOWN).unwrap_or_default();
        let state = self.entry().stat().map(|stat| format!("state {}", stat.state));
        let state = state.unwrap_or_else(|| "gone".to_owned());
        write!(f, "process {} ({line}; {state})", self.pid())
    }
}

impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Returns all processes that were started with this environment variable.
#[must_use]
pub fn processes_with(variable: &str) -> Vec<Process> {
    let all = sessile_proc::Process::all();
    let marked = all.filter(|process| process.environment().has(variable));
    marked.map(|process| Process::of(process.pid().as_raw_nonzero().get())).collect()
}
