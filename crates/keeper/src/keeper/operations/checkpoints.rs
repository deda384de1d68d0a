//! Checkpoints, as clients see them.

use super::super::Keeper;
use sessile_protocol::{CheckpointView, Code, Failure};
use sessile_session::PointId;

impl Keeper {
    pub(in super::super) fn checkpoint_views(&self) -> Vec<CheckpointView> {
        let points = self.session.operations().timeline().points().iter();
        points.filter_map(|point| self.checkpoint_view(point.id)).collect()
    }

    pub(super) fn checkpoint_view(&self, id: PointId) -> Option<CheckpointView> {
        let operations = self.session.operations();
        let point = operations.timeline().point(id)?;
        let description = operations.describe(id)?;
        Some(CheckpointView {
            name: point.name.clone(),
            created_at: self.operations.record.created_at(id),
            as_of_run: point.as_of,
            auto: point.is_auto,
            kernels: description.kernels,
            files: description.files,
            left: description.left,
        })
    }
}

pub(super) fn gone() -> Failure {
    Failure::new(Code::CheckpointLost, "the checkpoint is gone")
}
