//! Preparation of each run in a session with automatic checkpoints.
//!
//! A fork of a shell writes the shell's state, which takes longer than many runs; and a run
//! may end the shell. So the run waits for it, but with a deadline: a shell that is busy
//! with itself must stay usable.

use super::checkpoints::Files;
use super::{Context, FilesId, Operations, Task};
use crate::effect::{Epoch, Tick};
use crate::timeline::PointId;
use sessile_protocol::{Auto, Failure, FilesView, Language, RunNo};

/// A shell that has not written its state by then has a reason that will not go away; the
/// checkpoint omits its state.
const PATIENCE: Tick = 2000;

/// A run that waits for its checkpoint.
#[derive(Debug)]
pub(crate) struct Preparing {
    point: PointId,
    language: Language,
    epoch: Epoch,
    run: RunNo,
    step: Step,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Capturing { due: Tick },
    TakingFiles(FilesId),
}

impl Preparing {
    pub(crate) fn due(&self) -> Option<Tick> {
        match self.step {
            Step::Capturing { due } => Some(due),
            Step::TakingFiles(_) => None,
        }
    }
}

impl Operations {
    /// Takes the checkpoints that runs wait for, and begins the runs whose checkpoint is ready.
    pub(crate) fn prepare_runs(&mut self, context: &mut Context<'_>) {
        let Some(auto) = self.auto else {
            return;
        };
        let waiting: Vec<(Language, Epoch, RunNo)> = context.core.preparing().collect();
        // Removes those whose kernel has died, or that were interrupted.
        self.preparing.retain(|p| waiting.contains(&(p.language, p.epoch, p.run)));
        for (language, epoch, run) in waiting {
            let is_known = |p: &Preparing| (p.language, p.epoch, p.run) == (language, epoch, run);
            if !self.preparing.iter().any(is_known) {
                self.begin_preparing(language, epoch, run, auto, context);
            }
        }
        for mut preparing in std::mem::take(&mut self.preparing) {
            match self.next_step(&preparing, auto, context) {
                Some(step) => {
                    preparing.step = step;
                    self.preparing.push(preparing);
                }
                None => {
                    let Preparing { language, epoch, run, .. } = preparing;
                    let effects = context.core.prepared(language, epoch, run, context.now);
                    context.out.extend(effects);
                }
            }
        }
    }

    fn begin_preparing(
        &mut self,
        language: Language,
        epoch: Epoch,
        run: RunNo,
        auto: Auto,
        context: &mut Context<'_>,
    ) {
        let keep = usize::try_from(auto.keep).unwrap_or(usize::MAX);
        let (point, gone) = self.checkpoints.mark_before(run, keep, context);
        self.checkpoints.forget(&gone);
        if !gone.is_empty() {
            self.release_images(context);
        }
        context.task(Task::NoteTimeline);
        let as_of = context.core.states().find(|(other, _)| *other == language);
        if let Some((_, as_of)) = as_of
            && language.is_shell()
            && self.checkpoints.is_coming_in(point, language)
        {
            context.task(Task::Capture { language, as_of });
        }
        let step = Step::Capturing { due: context.now + PATIENCE };
        self.preparing.push(Preparing { point, language, epoch, run, step });
    }

    /// Returns the next step of a run's preparation; none if the run can begin.
    fn next_step(
        &mut self,
        preparing: &Preparing,
        auto: Auto,
        context: &mut Context<'_>,
    ) -> Option<Step> {
        let Preparing { point, language, .. } = *preparing;
        match preparing.step {
            // Only a shell has to finish first: a process gets the order to copy itself
            // before the run.
            step @ Step::Capturing { due }
                if due > context.now
                    && language.is_shell()
                    && self.checkpoints.is_coming_in(point, language) =>
            {
                Some(step)
            }
            Step::Capturing { .. } => {
                auto.files.then(|| Step::TakingFiles(self.checkpoints.take_files(point, context)))
            }
            step @ Step::TakingFiles(files) => {
                let checkpoint = self.checkpoints.get(point);
                let is_pending = checkpoint.is_some_and(|c| c.files == Files::Pending(files));
                is_pending.then_some(step)
            }
        }
    }

    /// Takes the outcome of taking files.
    pub(crate) fn files_taken(
        &mut self,
        files: FilesId,
        outcome: Result<FilesView, Failure>,
        context: &mut Context<'_>,
    ) {
        if let Some(rewinding) = self.rewinding_mut()
            && rewinding.takes(files)
        {
            return rewinding.files_taken(outcome);
        }
        let is_it = |p: &&Preparing| matches!(p.step, Step::TakingFiles(of) if of == files);
        if let (Some(preparing), Err(failure)) = (self.preparing.iter().find(is_it), &outcome) {
            let note = format!("undo will not bring the files back: {failure}");
            context.task(Task::Tell { language: preparing.language, note });
        }
        self.checkpoints.files_taken(files, outcome, context);
    }

    /// Makes an image in idle time, so that the next run need not wait for a copy.
    pub(crate) fn prepare_ahead(&mut self, language: Language, context: &mut Context<'_>) {
        // A client that dropped all checkpoints wants no copied process to stay.
        let is_wanted = self.auto.is_some() && !self.checkpoints.is_empty();
        if is_wanted && language == Language::Python {
            self.checkpoints.image_of_kernel(language, context);
            self.release_images(context);
        }
    }
}
