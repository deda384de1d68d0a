//! Renames directories where overlayfs refuses it.
//!
//! ```text
//!  program in the sandbox ──rename──► kernel ──notification──► mover ──forks──► worker
//!                          waits                               reads the        renames, or moves
//!                                                              two paths        the entries
//! ```
//!
//! A directory that existed before the session cannot be renamed in a layer: overlayfs
//! returns EXDEV. `mv` then copies; `git mv`, `os.rename` and installers give up. So the
//! filter of system calls reports each rename to this process first. It lets the call
//! continue unless it renames a directory. Directories it renames on the caller's behalf,
//! by moving their entries (`carrying`).
//!
//! - **It has no more rights than the programs.** It is in the sandbox's user and mount
//!   namespaces, as the same user. Its only capability is to read the callers' paths in
//!   their memory. The workers that it forks have none, and are behind the same second wall
//!   (Landlock) as the programs.
//! - **No process inside can see it**, signal it or stop it: it has no pid there.
//! - **It makes no security decision.** Calls that continue are checked by the Linux kernel
//!   as always, and programs could do by copying what it does itself. So changing a path
//!   while it reads it gains nothing.
//! - **A move that is killed is undone** when the layer is shown again, from its record
//!   (`record`).
//! - A program that has restricted itself further with Landlock is not held by that when it
//!   renames a directory of a layer to another place in it.

mod call;
pub(crate) mod carrying;
mod process;
pub(crate) mod record;
mod work;

pub use record::{Pending, pending};

use crate::confine::Confinement;
use crate::limits::kernel_is_at_least;
use record::Records;
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use rustix::process::{Pid, Signal};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;

/// Whether a system call can wait for its answer without being interrupted by a signal,
/// after which it would be made twice.
pub(crate) fn can_be_had() -> bool {
    kernel_is_at_least(5, 19)
}

/// The mover process, and the connection to it.
#[derive(Debug)]
pub(crate) struct Mover {
    pid: Pid,
    /// The socket over which each kernel's first process sends the listener of its filter.
    socket: OwnedFd,
}

impl Mover {
    /// Starts it. The caller has a single thread.
    /// Records are kept in the directory of the layer.
    pub(crate) fn start(
        init: BorrowedFd<'_>,
        layer: &Path,
        confinement: &Confinement,
    ) -> io::Result<Self> {
        let records = Records::of(layer)?;
        let has_pending = records.are_there();
        let (kind, flags) = (SocketType::SEQPACKET, SocketFlags::CLOEXEC);
        let (socket, theirs) = rustix::net::socketpair(AddressFamily::UNIX, kind, flags, None)?;
        let keeper = rustix::process::getpid();
        // SAFETY: the caller has a single thread, so the child has a consistent heap.
        match unsafe { libc::fork() } {
            -1 => Err(io::Error::last_os_error()),
            0 => {
                let work = || process::run(init, &theirs, keeper, (records, confinement));
                let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
                // SAFETY: ends this process without running any of the keeper's code.
                unsafe { libc::_exit(1) }
            }
            pid => {
                let pid = Pid::from_raw(pid).ok_or(rustix::io::Errno::SRCH)?;
                drop(theirs);
                if has_pending {
                    // Waits for the recovery: no program may see an interrupted move.
                    rustix::io::read(&socket, &mut [0; 1])?;
                }
                Ok(Self { pid, socket })
            }
        }
    }

    pub(crate) fn pid(&self) -> Pid {
        self.pid
    }

    pub(crate) fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Kills it. The process that started it has to reap it.
    pub(crate) fn end(&self) {
        let _ = rustix::process::kill_process(self.pid, Signal::KILL);
    }
}
