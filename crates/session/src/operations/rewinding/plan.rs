//! The changes that a rewind makes to kernels.

use crate::kernel::Origin;
use crate::operations::images::{Form, Image};
use crate::operations::{Context, ImageId, Operations};
use crate::timeline::PointId;
use sessile_protocol::{Code, Failure, Language};

impl Operations {
    /// Returns the changes that restore the kernels as of the checkpoint.
    pub(super) fn plan_rewind(
        &self,
        point: PointId,
        context: &Context<'_>,
    ) -> Result<Vec<(Language, Origin)>, Failure> {
        let Some(checkpoint) = self.checkpoints.get(point) else {
            return Err(Failure::new(Code::CheckpointLost, "the checkpoint is gone"));
        };
        let mut plan = Vec::new();
        for (language, id) in &checkpoint.images {
            let Some(image) = self.image(*id).filter(|image| !self.shows_now(*id, image, context))
            else {
                continue;
            };
            match &image.form {
                Form::Process => plan.push((*language, Origin::Image(image.as_of))),
                Form::Written => plan.push((*language, Origin::Saved(image.as_of))),
                Form::Pending(_) => {
                    let message = format!("the checkpoint of {language} is not whole yet");
                    return Err(Failure::new(Code::Busy, message));
                }
                Form::Lost(why) => {
                    let message = format!(
                        "the session cannot go back to this checkpoint: the state of {language} is gone ({why})"
                    );
                    return Err(Failure::new(Code::CheckpointLost, message));
                }
            }
        }
        let is_known =
            |l: &Language| checkpoint.images.contains_key(l) || checkpoint.busy.contains(l);
        let later = context.core.states().map(|(language, _)| language).filter(|l| !is_known(l));
        plan.extend(later.map(|language| (language, Origin::Nothing)));
        Ok(plan)
    }

    /// Returns whether a kernel still has the state of its image: no run has begun since.
    fn shows_now(&self, id: ImageId, image: &Image, context: &Context<'_>) -> bool {
        let language = image.language;
        let is_as_of = context.core.states().any(|state| state == (language, image.as_of));
        // A kernel that changes without runs may have several images of the same run.
        let epoch = context.core.epoch(language).unwrap_or_default();
        let newest = self.checkpoints.images().newest_of(language, epoch);
        let is_newest = newest.is_some_and(|(newest, _)| newest == id);
        is_as_of && (!image.is_restless || is_newest)
    }
}
