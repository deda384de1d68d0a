//! Kernel processes, and what their clients know of them.

use sessile_protocol::{Language, RunNo};
use sessile_session::{Epoch, Input, Source, Tick};
use std::collections::BTreeSet;

/// A kernel process as the model knows it.
#[derive(Debug, Default)]
pub(super) struct Process {
    pub(super) epoch: Epoch,
    pub(super) phase: Phase,
    /// Captures that were asked for and are not written yet.
    pub(super) captures: Vec<RunNo>,
    /// When a run first changed what the last one asked for would have.
    pub(super) changed: Option<Tick>,
    /// When one was asked for that is not over.
    pub(super) capturing: Option<Tick>,
    /// When the run was first pressed upon.
    pub(super) pressed: Option<Tick>,
    /// When the run began, and when it last gave a sign of life.
    pub(super) begun: Tick,
    pub(super) heard: Tick,
    /// The session wants to know of that.
    pub(super) is_listened_to: bool,
    pub(super) has_been_killed: bool,
    /// The run has come to its end, which is not told yet.
    pub(super) is_over: bool,
    /// It is gone, which is not told yet.
    pub(super) is_dying: bool,
    /// What may be tried again if somebody kills it at its start; and that has
    /// happened, so that this one is to be tried.
    pub(super) repeatable: Option<Source>,
    pub(super) repeated: Option<Source>,
    /// It starts from nothing, so that nothing is lost if it does not.
    pub(super) is_first: bool,
    /// The last run whose effects are in its state.
    pub(super) holds: RunNo,
}

impl Process {
    /// The ways in which it may have ended.
    pub(super) fn deaths(&self, language: Language) -> [Input; 2] {
        [true, false].map(|left_state| Input::Died {
            language,
            epoch: self.epoch,
            exit_code: if left_state { 3 } else { 137 },
            // One that was killed leaves nothing, nor one in its start.
            left_state: left_state && !self.has_been_killed && self.phase != Phase::Starting,
        })
    }

    /// What a process that is gone may have reported before.
    pub(super) fn last_report(&self, language: Language) -> Option<Input> {
        let epoch = self.epoch;
        match self.phase {
            Phase::Busy(run) => Some(Input::Reported { language, epoch, run, exit_code: 0 }),
            Phase::Gone | Phase::Starting | Phase::Idle => None,
        }
    }

    /// It was gone before it got the order of its run.
    pub(super) fn unsent(&self, language: Language) -> Option<Input> {
        let epoch = self.epoch;
        match self.phase {
            Phase::Busy(run) if !self.is_over && !self.is_dying && self.pressed.is_none() => {
                Some(Input::Unsent { language, epoch, run })
            }
            Phase::Busy(_) | Phase::Gone | Phase::Starting | Phase::Idle => None,
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Phase {
    #[default]
    Gone,
    Starting,
    Idle,
    Busy(RunNo),
}

/// What has become of the state of a language's kernel.
#[derive(Debug)]
pub(super) struct Story {
    /// The runs whose state was captured, since the last reset.
    pub(super) captured: BTreeSet<RunNo>,
    /// The process that clients know of: the one that the last answer came
    /// from, or the successor that it announced.
    pub(super) told_of: Epoch,
    pub(super) last_begun: RunNo,
}

impl Story {
    pub(super) fn of(first: Epoch) -> Self {
        Self { captured: BTreeSet::new(), told_of: first, last_begun: RunNo(0) }
    }
}
