//! What can be asked of runs and kernels. Nothing here changes anything.

use super::{Core, Phase};
use crate::effect::Epoch;
use crate::input::{Limits, Refusal};
use crate::kernel::{Kernel, Place};
use sessile_protocol::{Language, RunNo};

impl Core {
    /// The epoch that a forked kernel's process has.
    #[must_use]
    pub fn epoch(&self, language: Language) -> Option<Epoch> {
        self.kernels.get(&language).map(Kernel::epoch)
    }

    /// Runs that wait for what has to be done before they begin.
    pub fn preparing(&self) -> impl Iterator<Item = (Language, Epoch, RunNo)> + '_ {
        self.kernels.values().filter_map(Kernel::preparing)
    }

    /// The first run that is going, or about to.
    #[must_use]
    pub fn busy_with(&self) -> Option<RunNo> {
        self.kernels.values().find_map(Kernel::busy_with)
    }

    /// Whether no run is going or about to, and no kernel is coming up.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.is_open() && self.kernels.values().all(Kernel::is_settled)
    }

    /// Whether a kernel is there and has no run; one may be about to begin.
    #[must_use]
    pub fn is_at_rest(&self, language: Language) -> bool {
        self.kernels.get(&language).is_some_and(Kernel::is_at_rest)
    }

    /// Whether the state of a kernel as it is now has been written down.
    #[must_use]
    pub fn is_captured(&self, language: Language) -> bool {
        self.kernels.get(&language).is_some_and(Kernel::is_captured)
    }

    /// The newest number of what is not still to come.
    #[must_use]
    pub fn last_begun(&self) -> RunNo {
        let next = self.kernels.values().filter_map(Kernel::next).min();
        next.map_or(self.last_run, |next| RunNo(next.0.saturating_sub(1)))
    }

    /// The run whose state a kernel has, of each that is there.
    pub fn states(&self) -> impl Iterator<Item = (Language, RunNo)> + '_ {
        let there = self.kernels.iter().filter(|(_, kernel)| kernel.is_there());
        there.map(|(language, kernel)| (*language, kernel.finished()))
    }

    /// The number that a run of this language would get now.
    ///
    /// # Errors
    /// When the session is ending or too many runs wait already.
    pub fn admits(&self, language: Language) -> Result<RunNo, Refusal> {
        match self.phase {
            Phase::Open => {}
            // A reset is over in a moment, but what it forgets must not
            // include a run that was accepted in between.
            Phase::Closing { .. } | Phase::Closed => return Err(Refusal::Ending),
        }
        let queued = self.kernels.get(&language).map_or(0, Kernel::queued);
        if queued >= self.limits.queue {
            return Err(Refusal::QueueFull { limit: self.limits.queue });
        }
        Ok(self.last_run.next())
    }

    /// The runs that are running now.
    pub fn running(&self) -> impl Iterator<Item = RunNo> + '_ {
        self.kernels.values().filter_map(Kernel::running)
    }

    pub(crate) fn limits(&self) -> Limits {
        self.limits
    }

    /// Whether runs are going, or wait for their turn.
    #[must_use]
    pub fn is_working(&self) -> bool {
        self.running().next().is_some() || self.queued() > 0
    }

    /// Whether every kernel that there is could be looked into now.
    pub(crate) fn is_quiet(&self) -> bool {
        let mut there = self.kernels.values().filter(|kernel| kernel.is_there());
        self.is_open() && !self.is_working() && there.all(Kernel::is_idle)
    }

    /// The highest number that a run has had.
    #[must_use]
    pub fn last_run(&self) -> RunNo {
        self.last_run
    }

    #[must_use]
    pub fn queued(&self) -> usize {
        self.kernels.values().map(Kernel::queued).sum()
    }

    /// Where a run that has not begun stands in its queue.
    #[must_use]
    pub fn place(&self, run: RunNo) -> Option<Place> {
        self.kernels.values().find_map(|kernel| kernel.place(run))
    }

    /// The run that a kernel's state is "as of", if it is at none.
    #[must_use]
    pub fn idle_as_of(&self, language: Language) -> Option<RunNo> {
        self.kernels.get(&language).filter(|k| k.has_no_run()).map(Kernel::finished)
    }

    #[must_use]
    pub fn is_open(&self) -> bool {
        matches!(self.phase, Phase::Open)
    }
}
