//! Keeps a layer without a size limit from filling the disk: processes that write when
//! little space is left are ended. What was written stays, and the session goes on.

use super::{Deadline, Keeper};
use crate::processes;
use rustix::process::{Pid, Signal};
use sessile_sandbox::limits::{DiskCheck, SOONEST, Stop};
use sessile_session::Tick;
use std::time::Duration;

/// Most runs have ended before the first check.
const FIRST: Duration = SOONEST.saturating_mul(2);

/// Each round finds the processes that were started during the last one.
const ROUNDS: u32 = 3;

impl Keeper {
    /// Starts the checks when a run begins.
    pub(super) fn watch_disk(&mut self, now: Tick) {
        if self.home.confined.as_ref().is_some_and(|confined| confined.disk().is_some()) {
            self.deadlines.set_earlier(Deadline::Disk, now + ticks(FIRST));
        }
    }

    /// Checks the disk, and goes on checking as long as anything runs.
    pub(super) fn look_at_disk(&mut self) {
        let Some(confined) = &self.home.confined else { return };
        let Some(disk) = confined.disk() else { return };
        let pause = match disk.check() {
            DiskCheck::Fine(pause) => pause,
            DiskCheck::Full(stop) => {
                self.end_writers(stop);
                SOONEST
            }
        };
        let is_busy = self.kernels.live.values().any(|live| live.current.is_some());
        if is_busy || self.has_jobs() {
            self.deadlines.set_earlier(Deadline::Disk, self.now() + ticks(pause));
        }
    }

    /// Ends programs at first. If that does not help, a kernel itself writes: it is ended
    /// and comes back with its last state.
    fn end_writers(&self, stop: Stop) {
        for _ in 0..ROUNDS {
            let is_ended = |pid: &Pid| match stop {
                Stop::First => !self.kernels.has_pid(*pid),
                Stop::Again => true,
            };
            let is_ours =
                |pid: &Pid| self.works_on_files(*pid) || self.operations.saves.has_process(*pid);
            let all = self.own_descendants().into_iter();
            let ended: Vec<Pid> = all.filter(|pid| is_ended(pid) && !is_ours(pid)).collect();
            processes::signal(&ended, Signal::KILL);
        }
    }
}

fn ticks(duration: Duration) -> Tick {
    Tick::try_from(duration.as_millis()).unwrap_or(Tick::MAX)
}
