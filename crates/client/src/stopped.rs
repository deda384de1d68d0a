//! Keepers that were stopped, by SIGSTOP say: they take connections, and never
//! answer. Nobody waits for them without end.

use crate::ClientError;
use rustix::event::PollFd;
use rustix::io::Errno;
use rustix::process::{Pid, Signal};
use rustix::time::Timespec;
use sessile_proc::Process;
use sessile_store::Directory;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

/// Between two looks at a keeper that is silent. A run may well take longer, and
/// a look takes a few microseconds.
pub const LOOK: Duration = Duration::from_secs(1);

/// A keeper that is stopped for this long was not stopped by accident.
const STOPPED_FOR: Duration = Duration::from_secs(5);

/// A keeper that cannot answer before somebody lets it go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the session's keeper, process {pid}, is stopped; let it go on with `kill -CONT {pid}`, or end the session"
)]
pub struct KeeperStopped {
    pub pid: i32,
}

impl KeeperStopped {
    /// Whether a session's keeper is stopped, by its process alone.
    #[must_use]
    pub fn of(directory: &Directory) -> Option<Self> {
        let pid = directory.metadata().ok()?.keeper_pid?;
        let pid = Pid::from_raw(i32::try_from(pid).ok()?)?;
        is_stopped(pid).then(|| Self::at(pid))
    }

    fn at(pid: Pid) -> Self {
        Self { pid: pid.as_raw_nonzero().get() }
    }
}

/// Since when a keeper has been seen to be stopped.
#[derive(Debug, Default)]
pub struct Patience {
    stopped_since: Option<Instant>,
}

impl Patience {
    /// Waits for one of these, as long as the keeper on this socket can answer.
    pub(crate) fn poll(
        &mut self,
        keeper: &OwnedFd,
        fds: &mut [PollFd<'_>],
    ) -> Result<(), ClientError> {
        let look = Timespec { tv_sec: LOOK.as_secs().cast_signed(), tv_nsec: 0 };
        loop {
            match rustix::event::poll(fds, Some(&look)) {
                Ok(0) => self.look(keeper)?,
                Ok(_) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(io::Error::from(error).into()),
            }
        }
    }

    /// Looks at the keeper on this socket, which has said nothing for [`LOOK`].
    ///
    /// # Errors
    /// When it has been stopped for so long that it will not answer.
    pub fn look(&mut self, keeper: impl AsFd) -> Result<(), KeeperStopped> {
        let Some(pid) = process(keeper).filter(|pid| is_stopped(*pid)) else {
            self.stopped_since = None;
            return Ok(());
        };
        let since = *self.stopped_since.get_or_insert_with(Instant::now);
        if since.elapsed() < STOPPED_FOR {
            return Ok(());
        }
        Err(KeeperStopped::at(pid))
    }
}

fn is_stopped(pid: Pid) -> bool {
    Process::new(pid).stat().is_some_and(|stat| stat.is_stopped())
}

/// The process that listens at the other end.
pub(crate) fn process(keeper: impl AsFd) -> Option<Pid> {
    rustix::net::sockopt::socket_peercred(keeper).ok().map(|peer| peer.pid)
}

/// Lets a stopped keeper go on, and its guardian, which clears away after it.
pub(crate) fn wake(keeper: Pid) {
    let guardian = Process::new(keeper).stat().and_then(|stat| stat.parent);
    for pid in [Some(keeper), guardian].into_iter().flatten() {
        let _ = rustix::process::kill_process(pid, Signal::CONT);
    }
}
