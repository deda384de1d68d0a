//! Forks: new sessions of this keeper with the state of this one.
//!
//! All or none: when one of them fails, the others are ended, because the client does not
//! learn of them.

use super::queue::{Patience, Progress, Stage};
use super::{
    COPY_PATIENCE, Context, Done, FILES_PATIENCE, ImageId, KernelStart, Operations, RequestId, Task,
};
use crate::effect::{Epoch, Tick};
use sessile_protocol::{Code, Failure, ForkOrder, Language, RunNo, SessionId};

/// How long a copy may take to report when its original is dead.
const LAST_WORDS: Tick = 1000;

#[derive(Debug)]
pub(crate) struct Forking {
    /// Images made for the forks.
    images: Vec<ImageId>,
    /// The process that copies itself for them.
    original: Option<Epoch>,
    step: Step,
    failure: Option<Failure>,
}

#[derive(Debug)]
enum Step {
    /// Directories and files are being made.
    Planning,
    Planned,
    /// The sessions are being made.
    Making,
    /// The forks whose processes are pending.
    ComingUp(Vec<SessionId>),
}

impl Forking {
    pub(crate) fn images(&self) -> &[ImageId] {
        &self.images
    }

    pub(crate) fn planned(&mut self, outcome: Result<(), Failure>) {
        match (&self.step, outcome) {
            (Step::Planning, Ok(())) => self.step = Step::Planned,
            (Step::Planning, Err(failure)) => {
                self.failure = Some(failure);
                self.step = Step::ComingUp(Vec::new());
            }
            (Step::Planned | Step::Making | Step::ComingUp(_), _) => {}
        }
    }

    pub(crate) fn made(&mut self, expected: Vec<SessionId>, failure: Option<Failure>) {
        match self.step {
            Step::Making => {
                self.step = Step::ComingUp(expected);
                self.failure = failure;
            }
            Step::Planning | Step::Planned | Step::ComingUp(_) => {}
        }
    }

    pub(crate) fn fork_up(&mut self, fork: &SessionId, outcome: Result<(), Failure>) {
        let Step::ComingUp(expected) = &mut self.step else {
            return;
        };
        let before = expected.len();
        expected.retain(|other| other != fork);
        if expected.len() < before
            && let Err(failure) = outcome
        {
            self.failure = Some(failure);
        }
    }
}

impl Operations {
    pub(crate) fn begin_forking(
        &mut self,
        request: RequestId,
        order: ForkOrder,
        images: Vec<ImageId>,
        context: &mut Context<'_>,
    ) -> Progress {
        let original = context.core.epoch(Language::Python);
        let kernels = self.kernel_starts(context);
        context.task(Task::PlanForks { request, order, kernels });
        let forking = Forking { images, original, step: Step::Planning, failure: None };
        Progress::Waiting(Stage::Forking(forking), Patience(FILES_PATIENCE))
    }

    pub(crate) fn advance_fork(
        &mut self,
        request: RequestId,
        mut forking: Forking,
        is_over: bool,
        context: &mut Context<'_>,
    ) -> Progress {
        let patience = match &mut forking.step {
            Step::Planning | Step::Making => FILES_PATIENCE,
            Step::Planned => {
                let kernels = self.kernel_starts(context);
                context.task(Task::MakeForks { request, kernels });
                forking.step = Step::Making;
                COPY_PATIENCE
            }
            Step::ComingUp(expected) => {
                if is_over && !expected.is_empty() {
                    expected.clear();
                    let failure = Failure::new(Code::ForkFailed, "a fork did not come up");
                    forking.failure = Some(failure);
                }
                if expected.is_empty() {
                    return finished(request, forking.failure, context);
                }
                // If the original is dead, only a copy that already exists can still report.
                let is_there = context.core.epoch(Language::Python) == forking.original;
                if is_there { COPY_PATIENCE } else { LAST_WORDS }
            }
        };
        Progress::Waiting(Stage::Forking(forking), Patience(patience))
    }

    /// Returns the state that each kernel of a fork starts from.
    fn kernel_starts(&self, context: &Context<'_>) -> Vec<(Language, RunNo, KernelStart)> {
        let states = context.core.states();
        let kernel_starts = states.map(|(language, as_of)| {
            let kernel_starts = match language {
                Language::Python => KernelStart::Copy,
                Language::Node => {
                    let image = self.checkpoints.image_at_hand(language, context.core);
                    image.map_or(KernelStart::Nothing, KernelStart::Image)
                }
                Language::Bash | Language::Sh | Language::Zsh => KernelStart::Written,
            };
            (language, as_of, kernel_starts)
        });
        kernel_starts.collect()
    }
}

fn finished(request: RequestId, failure: Option<Failure>, context: &mut Context<'_>) -> Progress {
    match failure {
        None => Progress::Done(Ok(Done::Forked)),
        Some(failure) => {
            context.task(Task::EndForks { request });
            Progress::failed(failure)
        }
    }
}
