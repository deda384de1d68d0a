//! Taking a checkpoint: all images and the files, or none of it.

use super::checkpoints::Files;
use super::images::Form;
use super::queue::{Patience, Progress, Stage};
use super::{COPY_PATIENCE, Context, Done, FILES_PATIENCE, Operations, RequestId, Task};
use crate::timeline::PointId;
use sessile_protocol::{Code, Failure, NewCheckpoint};

#[derive(Debug)]
pub(crate) struct Checkpointing {
    point: PointId,
    step: Step,
}

#[derive(Debug)]
enum Step {
    /// Images and files are pending.
    Taking,
    /// The checkpoint is being written to disk.
    Writing,
    Written(Result<(), Failure>),
}

impl Checkpointing {
    pub(crate) fn timeline_written(&mut self, outcome: Result<(), Failure>) {
        match self.step {
            Step::Writing => self.step = Step::Written(outcome),
            Step::Taking | Step::Written(_) => {}
        }
    }
}

impl Operations {
    pub(crate) fn begin_checkpointing(
        &mut self,
        request: RequestId,
        new: NewCheckpoint,
        context: &mut Context<'_>,
    ) -> Progress {
        let point = match self.checkpoints.mark(new.name, context) {
            Ok(point) => point,
            Err(failure) => return Progress::failed(failure),
        };
        if new.files {
            self.checkpoints.take_files(point, context);
        }
        self.advance_checkpoint(
            request,
            Checkpointing { point, step: Step::Taking },
            false,
            context,
        )
    }

    pub(crate) fn advance_checkpoint(
        &mut self,
        request: RequestId,
        mut checkpointing: Checkpointing,
        is_over: bool,
        context: &mut Context<'_>,
    ) -> Progress {
        let point = checkpointing.point;
        match checkpointing.step {
            Step::Taking => match self.is_taken(point, is_over) {
                Ok(true) => {
                    context.task(Task::WriteTimeline { request: Some(request) });
                    checkpointing.step = Step::Writing;
                }
                Ok(false) => {}
                Err(failure) => {
                    self.checkpoints.remove(|other| other.id == point);
                    return Progress::failed(failure.about("no checkpoint was taken"));
                }
            },
            Step::Writing => {}
            Step::Written(Ok(())) => return Progress::Done(Ok(Done::Checkpointed(point))),
            Step::Written(Err(failure)) => {
                self.checkpoints.remove(|other| other.id == point);
                return Progress::failed(failure);
            }
        }
        let files = self.checkpoints.get(point).map(|checkpoint| &checkpoint.files);
        let patience = match files {
            Some(Files::Pending(_)) => FILES_PATIENCE,
            Some(Files::None | Files::Taken(..) | Files::Failed(_)) | None => COPY_PATIENCE,
        };
        Progress::Waiting(Stage::Checkpointing(checkpointing), Patience(patience))
    }

    /// Returns whether all parts of a checkpoint are there.
    ///
    /// # Errors
    /// When a part failed, or did not come in time.
    fn is_taken(&self, point: PointId, is_over: bool) -> Result<bool, Failure> {
        let Some(checkpoint) = self.checkpoints.get(point) else {
            return Err(Failure::new(Code::CheckpointLost, "the checkpoint is gone"));
        };
        let mut is_pending = match &checkpoint.files {
            Files::Failed(failure) => return Err(failure.clone()),
            Files::Pending(_) => true,
            Files::None | Files::Taken(..) => false,
        };
        let images = self.checkpoints.images();
        for image in checkpoint.images.values().filter_map(|id| images.get(*id)) {
            match &image.form {
                Form::Pending(_) => is_pending = true,
                Form::Process | Form::Written => {}
                Form::Lost(why) => {
                    let message = format!("the state of {}: {why}", image.language);
                    return Err(Failure::in_words(Code::ForkFailed, message));
                }
            }
        }
        if is_pending && is_over {
            return Err(Failure::new(Code::ForkFailed, "it took too long"));
        }
        Ok(!is_pending)
    }
}
