//! Queries about runs and kernels. Nothing here changes anything.

use super::{Core, Phase};
use crate::effect::Epoch;
use crate::input::{Limits, Refusal};
use crate::kernel::{Kernel, Place};
use sessile_protocol::{Language, RunNo};

impl Core {
    /// Returns the epoch of a kernel's current process.
    #[must_use]
    pub fn epoch(&self, language: Language) -> Option<Epoch> {
        self.kernels.get(&language).map(Kernel::epoch)
    }

    /// Returns the runs that wait for their preparation.
    pub fn preparing(&self) -> impl Iterator<Item = (Language, Epoch, RunNo)> + '_ {
        self.kernels.values().filter_map(Kernel::preparing)
    }

    /// Returns the first run that is active or being prepared.
    #[must_use]
    pub fn busy_with(&self) -> Option<RunNo> {
        self.kernels.values().find_map(Kernel::busy_with)
    }

    /// Returns whether no run is active or being prepared, and no kernel is starting.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.is_open() && self.kernels.values().all(Kernel::is_settled)
    }

    /// Returns whether a kernel exists and has no active run; one may be about to begin.
    #[must_use]
    pub fn is_at_rest(&self, language: Language) -> bool {
        self.kernels.get(&language).is_some_and(Kernel::is_at_rest)
    }

    /// Returns whether the current state of a kernel is captured.
    #[must_use]
    pub fn is_captured(&self, language: Language) -> bool {
        self.kernels.get(&language).is_some_and(Kernel::is_captured)
    }

    /// Returns the newest number before the first queued run.
    #[must_use]
    pub fn last_begun(&self) -> RunNo {
        let next = self.kernels.values().filter_map(Kernel::next).min();
        next.map_or(self.last_run, |next| RunNo(next.0.saturating_sub(1)))
    }

    /// Returns, for each kernel with a process, the run that its state is "as of".
    pub fn states(&self) -> impl Iterator<Item = (Language, RunNo)> + '_ {
        let there = self.kernels.iter().filter(|(_, kernel)| kernel.is_there());
        there.map(|(language, kernel)| (*language, kernel.finished()))
    }

    /// Returns the number that a run of this language would get now.
    ///
    /// # Errors
    /// When the session is ending or too many runs wait already.
    pub fn admits(&self, language: Language) -> Result<RunNo, Refusal> {
        match self.phase {
            Phase::Open => {}
            // A reset is over in a moment, but it must not forget a run that was accepted
            // in between.
            Phase::Closing { .. } | Phase::Closed => return Err(Refusal::Ending),
        }
        let queued = self.kernels.get(&language).map_or(0, Kernel::queued);
        if queued >= self.limits.queue {
            return Err(Refusal::QueueFull { limit: self.limits.queue });
        }
        Ok(self.last_run.next())
    }

    /// Returns the active runs.
    pub fn running(&self) -> impl Iterator<Item = RunNo> + '_ {
        self.kernels.values().filter_map(Kernel::running)
    }

    pub(crate) fn limits(&self) -> Limits {
        self.limits
    }

    /// Returns whether runs are active or queued.
    #[must_use]
    pub fn is_working(&self) -> bool {
        self.running().next().is_some() || self.queued() > 0
    }

    /// Returns whether every kernel with a process could be inspected now.
    pub(crate) fn is_quiet(&self) -> bool {
        let mut there = self.kernels.values().filter(|kernel| kernel.is_there());
        self.is_open() && !self.is_working() && there.all(Kernel::is_idle)
    }

    /// Returns the highest number given out.
    #[must_use]
    pub fn last_run(&self) -> RunNo {
        self.last_run
    }

    #[must_use]
    pub fn queued(&self) -> usize {
        self.kernels.values().map(Kernel::queued).sum()
    }

    /// Returns the place of a run that has not begun in its queue.
    #[must_use]
    pub fn place(&self, run: RunNo) -> Option<Place> {
        self.kernels.values().find_map(|kernel| kernel.place(run))
    }

    /// Returns the run that a kernel's state is "as of", if no run is active.
    #[must_use]
    pub fn idle_as_of(&self, language: Language) -> Option<RunNo> {
        self.kernels.get(&language).filter(|k| k.has_no_run()).map(Kernel::finished)
    }

    #[must_use]
    pub fn is_open(&self) -> bool {
        matches!(self.phase, Phase::Open)
    }
}
