//! Renames of directories, where overlayfs refuses them.
//!
//! ```text
//!  program in the sandbox ──rename──► kernel ──notification──► mover ──forks──► worker
//!                          waits                               reads the        renames, or carries
//!                                                              two paths        what is in it over
//! ```
//!
//! A directory that was there before the session cannot be renamed in a layer:
//! overlayfs says EXDEV. `mv` copies then; `git mv`, `os.rename` and installers
//! give up. So each rename is told to this process first, by the filter of system
//! calls. It lets the call go on unless a directory is to be renamed. Those it
//! renames in the caller's place, by moving what is in them (`carrying`).
//!
//! - **It may do no more than the programs.** It is in the sandbox's user and
//!   mount namespaces, as the same user. The one capability it has is to read
//!   where callers have their paths. What it forks to do the work has none, and is
//!   behind the same second wall (Landlock) as the programs.
//! - **Nobody inside can see it**, signal it or stop it: it has no number there.
//! - **It decides nothing that protects anybody.** What it lets go on is checked
//!   by the kernel as ever, and what it does itself the programs could do by
//!   copying. So it is of no use to change a path while it looks at it.
//! - **A move that is killed is taken back** when the layer is shown again, by what
//!   was written down of it (`record`).
//! - A program that has put itself behind another Landlock wall is not held by
//!   that wall when it renames a directory of a layer to another place in it.

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

/// Whether the system can wait for an answer without a signal getting in
/// between, after which a call would be made twice.
pub(crate) fn can_be_had() -> bool {
    kernel_is_at_least(5, 19)
}

/// The process, and the way to it.
#[derive(Debug)]
pub(crate) struct Mover {
    pid: Pid,
    /// Over which each kernel's first process gives it the end of its filter.
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
                // SAFETY: ends this process without running anything of the keeper's.
                unsafe { libc::_exit(1) }
            }
            pid => {
                let pid = Pid::from_raw(pid).ok_or(rustix::io::Errno::SRCH)?;
                drop(theirs);
                if has_pending {
                    // No program sees what was left in the middle.
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

    /// Whoever has started it has to reap it.
    pub(crate) fn end(&self) {
        let _ = rustix::process::kill_process(self.pid, Signal::KILL);
    }
}
