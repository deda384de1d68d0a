//! Checkpoints on disk. A checkpoint that was written completely can be restored after
//! the keeper's death; for the others, the record says what is lost.

use super::super::Keeper;
use super::files::TakenFiles;
use super::images::Content;
use serde::{Deserialize, Serialize};
use sessile_protocol::{Code, Failure, Language, RunNo};
use sessile_session::operations::{EarlierCheckpoint, EarlierKernel, Files};
use sessile_session::{Point, PointId};
use sessile_store::{Directory, SavedKernel, timestamp};
use std::collections::BTreeMap;

const RECORD: &str = "checkpoints.json";

/// What is known of points in addition to the session's knowledge.
pub(in super::super) struct Record {
    created: BTreeMap<PointId, String>,
    /// Whether the file is up to date.
    pub(in super::super) is_written: bool,
}

impl Default for Record {
    fn default() -> Self {
        Self { created: BTreeMap::new(), is_written: true }
    }
}

impl Record {
    pub(super) fn mark(&mut self, point: PointId) {
        self.created.insert(point, timestamp());
    }

    pub(super) fn created_at(&self, point: PointId) -> String {
        self.created.get(&point).cloned().unwrap_or_default()
    }

    pub(super) fn clear(&mut self, directory: &Directory) {
        *self = Self::default();
        let _ = std::fs::remove_file(directory.path().join(RECORD));
    }
}

/// A checkpoint as it is stored on disk.
#[derive(Debug, Serialize, Deserialize)]
struct Recorded {
    name: String,
    created_at: String,
    as_of_run: RunNo,
    auto: bool,
    line: Vec<RunNo>,
    /// The written states of its kernels; copies have none.
    kernels: BTreeMap<Language, RecordedKernel>,
    #[serde(default)]
    busy: Vec<Language>,
    #[serde(default)]
    files: Option<TakenFiles>,
}

#[derive(Debug, Serialize, Deserialize)]
struct RecordedKernel {
    as_of_run: RunNo,
    #[serde(default)]
    saved: Option<SavedKernel>,
}

#[derive(Debug, Serialize, Deserialize)]
struct RecordedTimeline {
    line: Vec<RunNo>,
    checkpoints: Vec<Recorded>,
}

impl Keeper {
    pub(in super::super) fn write_timeline(&mut self) -> Result<(), Failure> {
        let record = &mut self.operations.record;
        record.is_written = true;
        let timeline = self.session.operations().timeline();
        record.created.retain(|point, _| timeline.point(*point).is_some());
        let state = self.home.directory.state().unwrap_or_default();
        let points = timeline.points().iter();
        let checkpoints: Vec<Recorded> =
            points.filter_map(|point| self.recorded(point, &state.kernels)).collect();
        if checkpoints.is_empty() {
            let _ = std::fs::remove_file(self.home.directory.path().join(RECORD));
            return Ok(());
        }
        let timeline = RecordedTimeline { line: timeline.line().to_vec(), checkpoints };
        self.home
            .directory
            .write_json(RECORD, &timeline)
            .map_err(|error| Failure::from_error(Code::Storage, &error))
    }

    fn recorded(
        &self,
        point: &Point,
        current: &BTreeMap<Language, SavedKernel>,
    ) -> Option<Recorded> {
        let operations = self.session.operations();
        let checkpoint = operations.checkpoint(point.id)?;
        let kernels = checkpoint.images.iter().filter_map(|(language, id)| {
            let saved = match self.operations.images.get(*id) {
                Some(Content::Saved(saved)) => Some((**saved).clone()),
                Some(Content::Current(_)) => current.get(language).cloned(),
                Some(
                    Content::PendingCopy(_)
                    | Content::Dumping(_)
                    | Content::Process(..)
                    | Content::PendingCapture(..),
                )
                | None => None,
            };
            let as_of_run = operations.image(*id)?.as_of;
            Some((*language, RecordedKernel { as_of_run, saved }))
        });
        let files = match &checkpoint.files {
            Files::Taken(files, _) => self.operations.files.tree(*files).cloned(),
            Files::None | Files::Pending(_) | Files::Failed(_) => None,
        };
        Some(Recorded {
            name: point.name.clone(),
            created_at: self.operations.record.created_at(point.id),
            as_of_run: point.as_of,
            auto: point.is_auto,
            line: point.line().to_vec(),
            kernels: kernels.collect(),
            busy: checkpoint.busy.clone(),
            files,
        })
    }

    /// Reads the checkpoints that were written before the last keeper's death.
    pub(in super::super) fn bring_back_timeline(&mut self) {
        let Ok(recorded) = self.home.directory.read_json::<RecordedTimeline>(RECORD) else {
            return;
        };
        for point in recorded.checkpoints {
            self.recall(point);
        }
        self.session.set_line(recorded.line);
    }

    fn recall(&mut self, point: Recorded) {
        // The dump of a kernel went with the keeper.
        let is_there = |kernel: &RecordedKernel| {
            kernel.saved.as_ref().is_some_and(|saved| saved.restore.is_some())
        };
        let kernels = point.kernels.iter().map(|(language, kernel)| {
            let lost = "it ended with the session's keeper".to_owned();
            let lost = (!is_there(kernel)).then_some(lost);
            (*language, EarlierKernel { as_of: kernel.as_of_run, lost })
        });
        let recalled = self.session.recall(EarlierCheckpoint {
            name: point.name,
            is_auto: point.auto,
            as_of: point.as_of_run,
            line: point.line,
            kernels: kernels.collect(),
            busy: point.busy,
            files: point.files.as_ref().map(|taken| taken.view.clone()),
        });
        for (language, kernel) in point.kernels {
            if is_there(&kernel)
                && let (Some(image), Some(saved)) = (recalled.images.get(&language), kernel.saved)
            {
                self.operations.images.put(*image, Content::Saved(Box::new(saved)));
            }
        }
        if let (Some(files), Some(taken)) = (recalled.files, point.files) {
            self.operations.files.keep(files, taken);
        }
        self.operations.record.created.insert(recalled.point, point.created_at);
    }
}

/// Records the runs that lead to the goal of a rewind that was finished later.
pub(super) fn recover_line(directory: &Directory, line: Vec<RunNo>) {
    if let Ok(recorded) = directory.read_json::<RecordedTimeline>(RECORD) {
        let _ = directory.write_json(RECORD, &RecordedTimeline { line, ..recorded });
    }
}
