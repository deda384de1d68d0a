//! The process above the keeper. It does one thing: when the keeper is gone, for whatever
//! reason, it ends everything that the keeper had started.
//!
//! ```text
//!  client ──spawns──► launcher ──forks──► guardian ──forks──► keeper ──► kernels
//!                     (exits at once)     (subreaper)         (subreaper)
//!  client ──asks──► fork server ──forks──► guardian …
//! ```
//!
//! Kernels have SIGKILL as their parent-death signal, but the processes that *they*
//! started (`setsid`, `nohup`, double forks) would outlive a keeper that was killed with
//! -9. As the next subreaper up the tree, the guardian inherits them. It shares its pages
//! with the keeper and costs a few dozen kilobytes. It must not allocate, open or log, so
//! that nothing can fail.

use crate::groups::Groups;
use crate::processes;
use rustix::process::Signal;
use std::path::Path;

/// How the process was created in which a keeper starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    /// As a program, which its client waits for.
    Launched,
    /// Forked for this one keeper: it can be the guardian itself.
    Forked,
}

/// Splits the calling process, which must have only one thread: the launcher ends here,
/// the guardian stays until everything is over, and only the keeper returns.
pub(crate) fn detach(origin: Origin, scratch: &Path, groups: &Groups) -> std::io::Result<()> {
    if origin == Origin::Launched
        && let Side::Parent(_) = fork()?
    {
        std::process::exit(0);
    }
    rustix::process::setsid()?;
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    ignore_signals();
    match fork()? {
        Side::Parent(keeper) => guard(keeper, scratch, groups),
        Side::Child => {
            rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
            Ok(())
        }
    }
}

pub(crate) enum Side {
    Parent(rustix::process::Pid),
    Child,
}

pub(crate) fn fork() -> std::io::Result<Side> {
    // SAFETY: the process has a single thread (the caller guarantees it, and nothing in
    // this program starts one before), so the child has a consistent heap.
    match unsafe { libc::fork() } {
        -1 => Err(std::io::Error::last_os_error()),
        pid => Ok(rustix::process::Pid::from_raw(pid).map_or(Side::Child, Side::Parent)),
    }
}

/// Ignores signals: a terminal's hang-up or a stray SIGTERM must not end the session. The
/// keeper handles its own signals.
fn ignore_signals() {
    for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGTERM, libc::SIGPIPE, libc::SIGQUIT] {
        // SAFETY: setting a disposition to "ignore" touches no memory of ours.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

fn guard(keeper: rustix::process::Pid, scratch: &Path, groups: &Groups) -> ! {
    // The reader of the report pipe must not wait for us.
    for fd in 0..3 {
        // SAFETY: nothing in the guardian uses the standard streams.
        unsafe { libc::close(fd) };
    }
    loop {
        match rustix::process::wait(rustix::process::WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == keeper => {
                if status.exit_status().is_none() && status.terminating_signal().is_none() {
                    continue;
                }
                processes::kill_all_descendants();
                let _ = crate::scratch::remove_tree(scratch);
                groups.remove();
                std::process::exit(0);
            }
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => std::process::exit(0),
        }
    }
}

/// Returns a descriptor for signals, so that the keeper reads them in order with other
/// events.
pub(crate) fn signal_descriptor() -> std::io::Result<std::os::fd::OwnedFd> {
    use std::os::fd::FromRawFd;
    // SAFETY: the set is initialised by sigemptyset before it is read, and the
    // new descriptor is owned by nobody else.
    unsafe {
        libc::signal(libc::SIGTERM, libc::SIG_DFL);
        let mut set = std::mem::zeroed::<libc::sigset_t>();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGCHLD);
        libc::sigaddset(&raw mut set, libc::SIGTERM);
        libc::sigaddset(&raw mut set, libc::SIGIO);
        libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
        let fd = libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
        if fd < 0 {
            return Err(std::io::Error::last_os_error());
        }
        Ok(std::os::fd::OwnedFd::from_raw_fd(fd))
    }
}

/// Returns the signals that have come since the last call.
pub(crate) fn take_signals(fd: &std::os::fd::OwnedFd) -> Vec<Signal> {
    let mut found = Vec::new();
    let mut info = [0u8; std::mem::size_of::<libc::signalfd_siginfo>()];
    while let Ok(n) = rustix::io::read(fd, &mut info) {
        if n < 4 {
            break;
        }
        let number = i32::from_ne_bytes([info[0], info[1], info[2], info[3]]);
        found.extend(Signal::from_named_raw(number));
    }
    found
}
