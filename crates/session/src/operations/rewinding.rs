//! Going back to a checkpoint.
//!
//! A rewind first brings up all processes that it needs, then puts the files back, and only
//! then discards the kernels. If anything fails on the way, the session stays as it was.

mod plan;

use super::checkpoints::Files;
use super::event::PutFailure;
use super::queue::{Current, Patience, Progress, Stage};
use super::{COPY_PATIENCE, Context, CopyId, Done, FILES_PATIENCE, FilesId, Operations, Task};
use crate::effect::Tick;
use crate::input::Refusal;
use crate::kernel::Origin;
use crate::timeline::PointId;
use sessile_protocol::{
    Code, Failure, FilesView, Language, LeftBehind, RestoredFiles, Rewind, RewoundView,
};

/// Name of the checkpoint with the files from before the last rewind that changed them.
const BEFORE_REWIND: &str = "files-before-rewind";

/// Attempts after which a killed process is not tried again.
const MOST_ATTEMPTS: u32 = 3;

#[derive(Debug)]
pub(crate) struct Rewinding {
    point: PointId,
    plan: Vec<(Language, Origin)>,
    /// Processes that are to replace kernels.
    copies: Vec<Replacement>,
    /// Files to put back.
    tree: Option<FilesId>,
    step: Step,
}

#[derive(Debug)]
struct Replacement {
    id: CopyId,
    language: Language,
    state: ReplacementState,
}

#[derive(Debug)]
enum ReplacementState {
    Starting,
    Up,
    Lost(String),
}

/// The files from before the rewind.
#[derive(Debug)]
struct FilesBefore {
    files: FilesId,
    view: FilesView,
}

/// The steps, each with its pending and received results.
#[derive(Debug)]
enum Step {
    BringingUp,
    /// The current files are taken; nothing changes until that is done.
    TakingFiles(FilesId, Option<Result<FilesView, Failure>>),
    WritingJournal(FilesBefore, Option<Result<(), Failure>>),
    PuttingFiles {
        before: FilesBefore,
        job: FilesId,
        attempts: u32,
        outcome: Option<Result<RestoredFiles, PutFailure>>,
    },
    WritingStates {
        put: Option<(FilesBefore, RestoredFiles)>,
        outcome: Option<Result<Vec<LeftBehind>, Failure>>,
    },
    /// The files are restored to match the kernels, because of `failure`.
    TakingBack {
        before: FilesBefore,
        job: FilesId,
        attempts: u32,
        outcome: Option<Result<(), PutFailure>>,
        failure: Failure,
    },
    /// The kernels are replaced and starting.
    Settling(Box<RewoundView>),
}

/// The result of a step.
#[derive(Debug)]
enum Next {
    Step(Step),
    /// The step waits for an event, for this long at most.
    Wait(Step, Tick),
    Over(Result<Done, Failure>),
    /// Nothing was replaced, and the new processes are not needed.
    Fail(Failure),
}

impl Rewinding {
    pub(crate) fn changes_files(&self) -> bool {
        match &self.step {
            Step::BringingUp | Step::TakingFiles(..) | Step::Settling(_) => false,
            Step::WritingStates { put, .. } => put.is_some(),
            Step::WritingJournal(..) | Step::PuttingFiles { .. } | Step::TakingBack { .. } => true,
        }
    }

    pub(crate) fn takes(&self, files: FilesId) -> bool {
        matches!(&self.step, Step::TakingFiles(of, _) if *of == files)
    }

    // Inputs.

    pub(crate) fn copy_up(&mut self, copy: CopyId) {
        let starting = self.copies.iter_mut().find(|c| c.id == copy);
        if let Some(starting) = starting.filter(|c| matches!(c.state, ReplacementState::Starting)) {
            starting.state = ReplacementState::Up;
        }
    }

    pub(crate) fn copy_lost(&mut self, copy: CopyId, why: String) {
        if let Some(lost) = self.copies.iter_mut().find(|c| c.id == copy) {
            lost.state = ReplacementState::Lost(why);
        }
    }

    pub(crate) fn files_taken(&mut self, taken: Result<FilesView, Failure>) {
        if let Step::TakingFiles(_, outcome @ None) = &mut self.step {
            *outcome = Some(taken);
        }
    }

    pub(crate) fn journal_written(&mut self, written: Result<(), Failure>) {
        if let Step::WritingJournal(_, outcome @ None) = &mut self.step {
            *outcome = Some(written);
        }
    }

    pub(crate) fn files_put(&mut self, files: FilesId, put: Result<RestoredFiles, PutFailure>) {
        match &mut self.step {
            Step::PuttingFiles { job, outcome: outcome @ None, .. } if *job == files => {
                *outcome = Some(put);
            }
            Step::TakingBack { job, outcome: outcome @ None, .. } if *job == files => {
                *outcome = Some(put.map(|_| ()));
            }
            Step::BringingUp
            | Step::TakingFiles(..)
            | Step::WritingJournal(..)
            | Step::PuttingFiles { .. }
            | Step::WritingStates { .. }
            | Step::TakingBack { .. }
            | Step::Settling(_) => {}
        }
    }

    pub(crate) fn states_written(&mut self, written: Result<Vec<LeftBehind>, Failure>) {
        if let Step::WritingStates { outcome: outcome @ None, .. } = &mut self.step {
            *outcome = Some(written);
        }
    }

    // Actions.

    /// Ends the processes that were to replace kernels.
    pub(crate) fn abandon(&self, context: &mut Context<'_>) {
        match self.step {
            // They are the kernels now.
            Step::Settling(_) | Step::TakingBack { .. } => {}
            Step::BringingUp
            | Step::TakingFiles(..)
            | Step::WritingJournal(..)
            | Step::PuttingFiles { .. }
            | Step::WritingStates { .. } => {
                if !self.copies.is_empty() {
                    let copies = self.copies.iter().map(|copy| copy.id).collect();
                    context.task(Task::Abandon { copies });
                }
            }
        }
    }

    /// Returns whether the rewind can still be cancelled without a change.
    fn can_be_given_up(&self) -> bool {
        match self.step {
            Step::Settling(_) => false,
            Step::BringingUp
            | Step::TakingFiles(..)
            | Step::WritingJournal(..)
            | Step::PuttingFiles { .. }
            | Step::WritingStates { .. }
            | Step::TakingBack { .. } => !self.changes_files(),
        }
    }

    fn fail(&self, failure: Failure, context: &mut Context<'_>) -> Progress {
        self.abandon(context);
        Progress::failed(failure)
    }

    /// Returns the failure of a process that was to replace a kernel.
    fn lost_copy(&self) -> Option<Failure> {
        self.copies.iter().find_map(|copy| match &copy.state {
            ReplacementState::Lost(why) => Some(not_copied(copy.language, why)),
            ReplacementState::Starting | ReplacementState::Up => None,
        })
    }

    fn missing_copy(&self) -> Option<Language> {
        let starting =
            self.copies.iter().find(|copy| matches!(copy.state, ReplacementState::Starting));
        starting.map(|copy| copy.language)
    }

    fn waits(self, patience: Tick) -> Progress {
        Progress::Waiting(Stage::Rewinding(Box::new(self)), Patience(patience))
    }
}

impl Operations {
    pub(crate) fn rewinding_mut(&mut self) -> Option<&mut Rewinding> {
        match &mut self.current {
            Some(Current { stage: Stage::Rewinding(rewinding), .. }) => Some(rewinding),
            Some(_) | None => None,
        }
    }

    pub(crate) fn begin_rewinding(
        &mut self,
        rewind: &Rewind,
        context: &mut Context<'_>,
    ) -> Progress {
        let plan = self.checkpoints.find(&rewind.to).and_then(|point| {
            let plan = self.plan_rewind(point, context)?;
            Ok((point, plan))
        });
        let (point, plan) = match plan {
            Ok(planned) => planned,
            Err(failure) => return Progress::failed(failure),
        };
        let tree = match self.checkpoints.get(point).map(|checkpoint| &checkpoint.files) {
            Some(Files::Taken(files, _)) if !rewind.keep_files => Some(*files),
            Some(Files::Taken(..) | Files::None | Files::Pending(_) | Files::Failed(_)) | None => {
                None
            }
        };
        let mut copies = Vec::new();
        for (language, origin) in &plan {
            let images = self.checkpoints.get(point).map(|checkpoint| &checkpoint.images);
            let image = images.and_then(|images| images.get(language)).copied();
            if let (Origin::Image(_), Some(image)) = (origin, image) {
                let (id, language) = (self.next_copy(), *language);
                context.task(Task::BringUp { copy: id, language, image });
                copies.push(Replacement { id, language, state: ReplacementState::Starting });
            }
        }
        let rewinding = Rewinding { point, plan, copies, tree, step: Step::BringingUp };
        self.advance_rewind(rewinding, false, context)
    }

    pub(crate) fn advance_rewind(
        &mut self,
        mut rewinding: Rewinding,
        is_over: bool,
        context: &mut Context<'_>,
    ) -> Progress {
        loop {
            if rewinding.can_be_given_up()
                && let Some(failure) = rewinding.lost_copy()
            {
                return rewinding.fail(failure, context);
            }
            let step = std::mem::replace(&mut rewinding.step, Step::BringingUp);
            match self.next_step_back(&rewinding, step, is_over, context) {
                Next::Step(step) => rewinding.step = step,
                Next::Wait(step, patience) => {
                    rewinding.step = step;
                    return rewinding.waits(patience);
                }
                Next::Over(outcome) => return Progress::Done(outcome),
                Next::Fail(failure) => return rewinding.fail(failure, context),
            }
        }
    }

    fn next_step_back(
        &mut self,
        rewinding: &Rewinding,
        step: Step,
        is_over: bool,
        context: &mut Context<'_>,
    ) -> Next {
        match step {
            Step::BringingUp => self.bring_up(rewinding, is_over, context),
            Step::TakingFiles(files, Some(Ok(view))) => {
                let (point, plan) = (rewinding.point, rewinding.plan.clone());
                let to = rewinding.tree.unwrap_or(files);
                context.task(Task::WriteJournal { point, plan, to, before: files });
                Next::Step(Step::WritingJournal(FilesBefore { files, view }, None))
            }
            Step::TakingFiles(_, Some(Err(failure))) => {
                Next::Fail(failure.about("nothing was changed"))
            }
            Step::WritingJournal(_, Some(Err(failure))) => Next::Fail(failure),
            Step::WritingJournal(before, Some(Ok(()))) => {
                Next::Step(self.put_files(rewinding, before, 1, context))
            }
            Step::PuttingFiles { before, attempts, outcome: Some(outcome), .. } => {
                self.files_are_put(rewinding, before, attempts, outcome, context)
            }
            Step::WritingStates { put, outcome: Some(outcome) } => {
                self.states_are_written(rewinding, put, outcome, context)
            }
            Step::TakingBack { before, attempts, outcome: Some(outcome), failure, .. } => {
                self.files_are_back(rewinding, (before, attempts), outcome, failure, context)
            }
            Step::TakingBack { before, failure, .. } if is_over => {
                self.leave_files(before, &failure, "it took too long", context)
            }
            Step::Settling(view) if context.core.is_settled() || is_over => {
                Next::Over(Ok(Done::Rewound(view)))
            }
            step @ Step::Settling(_) => Next::Wait(step, COPY_PATIENCE),
            step @ (Step::TakingFiles(..)
            | Step::WritingJournal(..)
            | Step::PuttingFiles { .. }
            | Step::WritingStates { .. }
            | Step::TakingBack { .. }) => Next::Wait(step, FILES_PATIENCE),
        }
    }

    /// Checks whether all needed processes are up.
    fn bring_up(
        &mut self,
        rewinding: &Rewinding,
        is_over: bool,
        context: &mut Context<'_>,
    ) -> Next {
        match (rewinding.missing_copy(), rewinding.tree) {
            (Some(language), _) if is_over => {
                Next::Fail(not_copied(language, "it did not come up in time"))
            }
            (Some(_), _) => Next::Wait(Step::BringingUp, COPY_PATIENCE),
            (None, Some(_)) => {
                let files = self.checkpoints.next_files();
                context.task(Task::TakeFiles { files });
                Next::Step(Step::TakingFiles(files, None))
            }
            (None, None) => Next::Step(write_states(rewinding, None, context)),
        }
    }

    fn files_are_put(
        &mut self,
        rewinding: &Rewinding,
        before: FilesBefore,
        attempts: u32,
        outcome: Result<RestoredFiles, PutFailure>,
        context: &mut Context<'_>,
    ) -> Next {
        let failure = match outcome {
            Ok(restored) => {
                return Next::Step(match rewinding.lost_copy() {
                    None => write_states(rewinding, Some((before, restored)), context),
                    Some(failure) => self.take_back(rewinding, before, 1, failure, context),
                });
            }
            // The whole job can be repeated.
            Err(PutFailure::Killed) if attempts < MOST_ATTEMPTS => {
                return Next::Step(self.put_files(rewinding, before, attempts + 1, context));
            }
            Err(PutFailure::Killed) => half_done(),
            Err(PutFailure::Refused(failure)) => failure,
        };
        context.task(Task::RemoveJournal);
        Next::Fail(failure)
    }

    fn states_are_written(
        &mut self,
        rewinding: &Rewinding,
        put: Option<(FilesBefore, RestoredFiles)>,
        outcome: Result<Vec<LeftBehind>, Failure>,
        context: &mut Context<'_>,
    ) -> Next {
        let lost = rewinding.lost_copy().map_or(Ok(()), Err);
        let switched = lost.and(outcome).and_then(|left| {
            let files = put.as_ref().map(|(before, restored)| (before, restored));
            self.switch(rewinding, left, files, context)
        });
        match (switched, put) {
            (Ok(view), _) => Next::Step(Step::Settling(Box::new(view))),
            (Err(failure), None) => Next::Fail(failure),
            (Err(failure), Some((before, _))) => {
                Next::Step(self.take_back(rewinding, before, 1, failure, context))
            }
        }
    }

    fn put_files(
        &mut self,
        rewinding: &Rewinding,
        before: FilesBefore,
        attempts: u32,
        context: &mut Context<'_>,
    ) -> Step {
        let job = self.checkpoints.next_files();
        let to = rewinding.tree.unwrap_or(before.files);
        context.task(Task::PutFiles { files: job, to, before: before.files });
        Step::PuttingFiles { before, job, attempts, outcome: None }
    }

    /// Restores the files to match the kernels.
    fn take_back(
        &mut self,
        rewinding: &Rewinding,
        before: FilesBefore,
        attempts: u32,
        failure: Failure,
        context: &mut Context<'_>,
    ) -> Step {
        if attempts == 1 {
            rewinding.abandon(context);
        }
        let job = self.checkpoints.next_files();
        let there = rewinding.tree.unwrap_or(before.files);
        context.task(Task::PutFiles { files: job, to: before.files, before: there });
        Step::TakingBack { before, job, attempts, outcome: None, failure }
    }

    /// Handles the outcome of restoring the files.
    fn files_are_back(
        &mut self,
        rewinding: &Rewinding,
        (before, attempts): (FilesBefore, u32),
        outcome: Result<(), PutFailure>,
        failure: Failure,
        context: &mut Context<'_>,
    ) -> Next {
        match outcome {
            Ok(()) => {
                context.task(Task::RemoveJournal);
                Next::Over(Err(failure))
            }
            Err(PutFailure::Killed) if attempts < MOST_ATTEMPTS => {
                Next::Step(self.take_back(rewinding, before, attempts + 1, failure, context))
            }
            Err(PutFailure::Killed) => {
                self.leave_files(before, &failure, "the process that does it is ended", context)
            }
            Err(PutFailure::Refused(why)) => {
                self.leave_files(before, &failure, &why.message, context)
            }
        }
    }

    /// Leaves the files as of the checkpoint, though the kernels are not. The files from
    /// before are kept under the name that a rewind gives them.
    fn leave_files(
        &mut self,
        before: FilesBefore,
        failure: &Failure,
        why: &str,
        context: &mut Context<'_>,
    ) -> Next {
        let as_of = context.core.last_run();
        let taken = Files::Taken(before.files, before.view);
        let gone = self.checkpoints.mark_aside(BEFORE_REWIND, as_of, taken, context);
        self.checkpoints.forget(&gone);
        context.task(Task::WriteTimeline { request: None });
        context.task(Task::RemoveJournal);
        let message = format!(
            "{}; the files are as of the checkpoint, and could not be taken back ({why}): rewind \
             to {BEFORE_REWIND} for them",
            failure.message.trim_start_matches("nothing was changed: ")
        );
        Next::Over(Err(Failure { message, ..failure.clone() }))
    }

    /// Switches to the state of the checkpoint.
    fn switch(
        &mut self,
        rewinding: &Rewinding,
        left: Vec<LeftBehind>,
        files: Option<(&FilesBefore, &RestoredFiles)>,
        context: &mut Context<'_>,
    ) -> Result<RewoundView, Failure> {
        let point = rewinding.point;
        let gone = || Failure::new(Code::CheckpointLost, "the checkpoint is gone");
        let description = self.checkpoints.describe(point).ok_or_else(gone)?;
        let (checkpoint, as_of_run) = {
            let point = self.timeline().point(point).ok_or_else(gone)?;
            (point.name.clone(), point.as_of)
        };
        let effects = context.core.replace(&rewinding.plan, context.now).map_err(refused)?;
        context.out.extend(effects);
        let undone = self.checkpoints.rewind(point);
        let run = context.core.take_number();
        let (name, taken_back) = (checkpoint.clone(), undone.clone());
        context.task(Task::RecordRewind { run, checkpoint: name, undone: taken_back });
        let restored = files.map(|(before, restored)| {
            let taken = Files::Taken(before.files, before.view.clone());
            let gone = self.checkpoints.mark_aside(BEFORE_REWIND, run, taken, context);
            self.checkpoints.forget(&gone);
            RestoredFiles { before: Some(BEFORE_REWIND.to_owned()), ..restored.clone() }
        });
        context.task(Task::WriteTimeline { request: None });
        if restored.is_some() {
            context.task(Task::RemoveJournal);
        }
        let left = [description.left, left].concat();
        let kernels = description.kernels;
        Ok(RewoundView { checkpoint, as_of_run, run, undone, kernels, files: restored, left })
    }
}

fn write_states(
    rewinding: &Rewinding,
    put: Option<(FilesBefore, RestoredFiles)>,
    context: &mut Context<'_>,
) -> Step {
    let (point, plan) = (rewinding.point, rewinding.plan.clone());
    context.task(Task::WriteStates { point, plan });
    Step::WritingStates { put, outcome: None }
}

fn refused(refusal: Refusal) -> Failure {
    match refusal {
        Refusal::Busy { run } => Failure::new(
            Code::Busy,
            format!("run {run} is going; wait for it, or interrupt it, and try again"),
        ),
        Refusal::Ending | Refusal::QueueFull { .. } => {
            Failure::new(Code::Ending, "the session is ending or being reset; try again")
        }
    }
}

fn half_done() -> Failure {
    let message = "the process that puts the files back is ended again and again: some of them may be as of the checkpoint; rewind again";
    Failure::new(Code::Storage, message)
}

fn not_copied(language: Language, why: &str) -> Failure {
    let message = format!("nothing was changed: {language} could not be brought back: {why}");
    Failure::in_words(Code::CheckpointLost, message)
}

#[cfg(test)]
mod tests;
