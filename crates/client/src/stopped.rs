//! Keepers that were stopped, by SIGSTOP say: they take connections, and never
//! answer. Nobody waits for them without end.

use crate::ClientError;
use rustix::event::PollFd;
use rustix::io::Errno;
use rustix::process::{Pid, Signal};
use rustix::time::Timespec;
use sessile_proc::Process;
use std::cell::Cell;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

/// Between two looks at a keeper that is silent. A run may well take longer, and
/// a look takes a few microseconds.
const LOOK: Timespec = Timespec { tv_sec: 1, tv_nsec: 0 };

/// A keeper that is stopped for this long was not stopped by accident.
const STOPPED_FOR: Duration = Duration::from_secs(5);

/// Since when a keeper has been seen to be stopped.
#[derive(Debug, Default)]
pub(crate) struct Patience {
    stopped_since: Cell<Option<Instant>>,
}

impl Patience {
    /// Waits for one of these, as long as the keeper on this socket can answer.
    pub(crate) fn poll(&self, keeper: &OwnedFd, fds: &mut [PollFd<'_>]) -> Result<(), ClientError> {
        loop {
            match rustix::event::poll(fds, Some(&LOOK)) {
                Ok(0) => self.look(keeper)?,
                Ok(_) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(io::Error::from(error).into()),
            }
        }
    }

    fn look(&self, keeper: &OwnedFd) -> Result<(), ClientError> {
        let Some(pid) = stopped(keeper) else {
            self.stopped_since.set(None);
            return Ok(());
        };
        let since = self.stopped_since.get().unwrap_or_else(Instant::now);
        self.stopped_since.set(Some(since));
        if since.elapsed() < STOPPED_FOR {
            return Ok(());
        }
        Err(ClientError::Stopped(pid.as_raw_nonzero().get()))
    }
}

/// The process at the other end, if it is stopped.
fn stopped(keeper: impl AsFd) -> Option<Pid> {
    let pid = process(keeper)?;
    Process::new(pid).stat().is_some_and(|stat| stat.is_stopped()).then_some(pid)
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
