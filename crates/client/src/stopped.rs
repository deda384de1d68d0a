//! Keepers that do not answer: they are stopped, by SIGSTOP say, or hang. They still accept
//! connections. No client waits for them forever.

use crate::ClientError;
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::net::SendFlags;
use rustix::process::{Pid, Signal};
use rustix::time::Timespec;
use sessile_proc::Process;
use sessile_protocol::{Call, Request, encode};
use sessile_store::Directory;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

/// Interval between two looks at a silent keeper. A run may well take longer, and a look
/// takes a few microseconds.
pub const LOOK: Duration = Duration::from_secs(1);

/// A keeper that is stopped for this long was not stopped by accident.
const STOPPED_FOR: Duration = Duration::from_secs(5);

/// A keeper that cannot answer until it is continued.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the session's keeper, process {pid}, is stopped; let it go on with `kill -CONT {pid}`, or end the session"
)]
pub struct KeeperStopped {
    pub pid: i32,
}

impl KeeperStopped {
    /// Returns whether a session's keeper is stopped, judging only by its process.
    #[must_use]
    pub fn of(directory: &Directory) -> Option<Self> {
        let pid = directory.metadata().ok()?.keeper_pid?;
        let pid = Pid::from_raw(i32::try_from(pid).ok()?)?;
        is_stopped(pid).then(|| Self::at(pid))
    }

    /// Returns the process at the other end of a socket, if it is stopped. Reads a file.
    #[must_use]
    pub fn is_true_of(keeper: Pid) -> Option<Self> {
        is_stopped(keeper).then(|| Self::at(keeper))
    }

    fn at(pid: Pid) -> Self {
        Self { pid: pid.as_raw_nonzero().get() }
    }
}

/// A keeper that is silent for this long is sent a probe: a run may well take longer.
const QUIET: Duration = Duration::from_secs(5);

/// How long the answer to a probe may take. A keeper answers at once, but takes seconds on
/// a machine that is short of CPU time or memory.
const ANSWERED_WITHIN: Duration = Duration::from_secs(15);

/// The number of the probe's call. No other call gets it, however many there are.
pub const PROBE: u64 = u64::MAX;

/// Returns the probe.
#[must_use]
pub fn probe() -> Vec<u8> {
    encode(&Call::new(PROBE, Request::Status))
}

/// How to handle a keeper that has been silent for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SilenceAction {
    Wait,
    /// Send a [`probe`].
    Ask,
}

/// Why to stop waiting for a keeper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoAnswer {
    Stopped(KeeperStopped),
    /// It runs, and does not answer a probe.
    Silent,
}

/// How long a keeper has been silent, and what was observed meanwhile.
#[derive(Debug, Default)]
pub struct SilenceTimer {
    stopped_since: Option<Instant>,
    silent_since: Option<Instant>,
    asked: Option<Instant>,
}

impl SilenceTimer {
    /// Waits for one of these, as long as the keeper on this socket can answer.
    pub(crate) fn poll(
        &mut self,
        keeper: &OwnedFd,
        fds: &mut [PollFd<'_>],
    ) -> Result<(), ClientError> {
        let look = Timespec { tv_sec: LOOK.as_secs().cast_signed(), tv_nsec: 0 };
        loop {
            match rustix::event::poll(fds, Some(&look)) {
                Ok(0) => {
                    if self.look(keeper)? == SilenceAction::Ask {
                        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
                        // If there is no room for the probe, there is no answer either.
                        let _ = rustix::net::send(keeper, &probe(), flags);
                    }
                }
                Ok(_) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(io::Error::from(error).into()),
            }
        }
    }

    /// Looks at the keeper on this socket, which has been silent for [`LOOK`].
    ///
    /// # Errors
    /// When it will not answer any more.
    pub fn look(&mut self, keeper: impl AsFd) -> Result<SilenceAction, NoAnswer> {
        let stopped = process(keeper).and_then(KeeperStopped::is_true_of);
        self.assess(stopped)
    }

    /// Judges a look that the caller has taken, for callers that must not block.
    ///
    /// # Errors
    /// When it will not answer any more.
    pub fn assess(&mut self, stopped: Option<KeeperStopped>) -> Result<SilenceAction, NoAnswer> {
        self.consider(stopped, Instant::now())
    }

    fn consider(
        &mut self,
        stopped: Option<KeeperStopped>,
        now: Instant,
    ) -> Result<SilenceAction, NoAnswer> {
        let for_at_least = |since: Instant, time| now.duration_since(since) >= time;
        if let Some(stopped) = stopped {
            let since = *self.stopped_since.get_or_insert(now);
            // A keeper that is continued gets its full time.
            (self.silent_since, self.asked) = (None, None);
            let is_over = for_at_least(since, STOPPED_FOR);
            return if is_over { Err(NoAnswer::Stopped(stopped)) } else { Ok(SilenceAction::Wait) };
        }
        self.stopped_since = None;
        let since = *self.silent_since.get_or_insert(now);
        match self.asked {
            Some(asked) if for_at_least(asked, ANSWERED_WITHIN) => Err(NoAnswer::Silent),
            None if for_at_least(since, QUIET) => {
                self.asked = Some(now);
                Ok(SilenceAction::Ask)
            }
            Some(_) | None => Ok(SilenceAction::Wait),
        }
    }

    /// Notes that the keeper has sent something.
    pub fn heard(&mut self) {
        *self = Self::default();
    }

    /// Returns whether a probe was sent since the keeper last sent something.
    #[must_use]
    pub fn has_asked(&self) -> bool {
        self.asked.is_some()
    }

    /// Waits for room to write. A part of a request may already be sent, so no probe can be sent.
    pub(crate) fn poll_room(&mut self, keeper: &OwnedFd) -> Result<(), ClientError> {
        let look = Timespec { tv_sec: LOOK.as_secs().cast_signed(), tv_nsec: 0 };
        let begun = Instant::now();
        loop {
            match rustix::event::poll(&mut [PollFd::new(keeper, PollFlags::OUT)], Some(&look)) {
                Ok(0) if begun.elapsed() >= ANSWERED_WITHIN => return Err(ClientError::Silent),
                Ok(0) => drop(self.look(keeper)?),
                Ok(_) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(io::Error::from(error).into()),
            }
        }
    }
}

impl From<NoAnswer> for ClientError {
    fn from(why: NoAnswer) -> Self {
        match why {
            NoAnswer::Stopped(stopped) => stopped.into(),
            NoAnswer::Silent => Self::Silent,
        }
    }
}

fn is_stopped(pid: Pid) -> bool {
    Process::new(pid).stat().is_some_and(|stat| stat.is_stopped())
}

/// Returns the process that listens at the other end.
#[must_use]
pub fn process(keeper: impl AsFd) -> Option<Pid> {
    rustix::net::sockopt::socket_peercred(keeper).ok().map(|peer| peer.pid)
}

/// Continues a stopped keeper, and its guardian, which cleans up after it.
pub(crate) fn wake(keeper: Pid) {
    let guardian = Process::new(keeper).stat().and_then(|stat| stat.parent);
    for pid in [Some(keeper), guardian].into_iter().flatten() {
        let _ = rustix::process::kill_process(pid, Signal::CONT);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Looks once a second. Returns after how many seconds there is something other than
    /// waiting to do, and what.
    fn next(
        patience: &mut SilenceTimer,
        now: &mut Instant,
    ) -> (u64, Result<SilenceAction, NoAnswer>) {
        for seconds in 0..100 {
            let told = patience.consider(None, *now);
            if told != Ok(SilenceAction::Wait) {
                return (seconds, told);
            }
            *now += SECOND;
        }
        panic!("it waits for ever");
    }

    #[test]
    fn a_silent_keeper_is_asked_and_then_given_up() {
        let (mut patience, mut now) = (SilenceTimer::default(), Instant::now());
        assert_eq!(next(&mut patience, &mut now), (5, Ok(SilenceAction::Ask)));
        assert!(patience.has_asked());
        assert_eq!(next(&mut patience, &mut now), (15, Err(NoAnswer::Silent)));
    }

    #[test]
    fn a_keeper_that_says_that_it_is_there_is_waited_for() {
        let (mut patience, mut now) = (SilenceTimer::default(), Instant::now());
        for _ in 0..100 {
            assert_eq!(next(&mut patience, &mut now).1, Ok(SilenceAction::Ask));
            patience.heard();
        }
    }

    #[test]
    fn a_stopped_keeper_is_told_as_such() {
        let (mut patience, mut now) = (SilenceTimer::default(), Instant::now());
        assert_eq!(next(&mut patience, &mut now).1, Ok(SilenceAction::Ask));
        let stopped = KeeperStopped { pid: 2 };
        assert_eq!(patience.consider(Some(stopped), now), Ok(SilenceAction::Wait));
        now += STOPPED_FOR;
        assert_eq!(patience.consider(Some(stopped), now), Err(NoAnswer::Stopped(stopped)));
        // A keeper that is continued has its full time again.
        assert_eq!(next(&mut patience, &mut now), (5, Ok(SilenceAction::Ask)));
    }
}
