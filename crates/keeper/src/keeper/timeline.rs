//! Checkpoints on disk: those of which everything was written down can be gone
//! back to after the keeper's death, and of the others it is said what is lost.

use super::Keeper;
use super::checkpoints::{Checkpoint, Files};
use super::images::Form;
use super::workspace::Taken;
use serde::{Deserialize, Serialize};
use sessile_protocol::{Code, Failure, Language, RunNo};
use sessile_session::Point;
use sessile_store::{Directory, SavedKernel};
use std::collections::BTreeMap;

pub(super) const RECORD: &str = "checkpoints.json";

/// A checkpoint as it is kept on disk.
#[derive(Debug, Serialize, Deserialize)]
struct Recorded {
    name: String,
    created_at: String,
    as_of_run: RunNo,
    auto: bool,
    line: Vec<RunNo>,
    /// What is written down of its kernels; of copies, nothing.
    kernels: BTreeMap<Language, RecordedKernel>,
    #[serde(default)]
    busy: Vec<Language>,
    #[serde(default)]
    files: Option<Taken>,
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
    pub(super) fn write_timeline(&mut self) -> Result<(), Failure> {
        self.branches.is_unwritten = false;
        let state = self.home.directory.state().unwrap_or_default();
        let record = |point: &Point| {
            let checkpoint = self.branches.checkpoints.get(&point.id)?;
            let kernels = checkpoint.images.iter().filter_map(|(language, id)| {
                let image = self.branches.images.get(id)?;
                let saved = match &image.form {
                    Form::Saved(saved) => Some((**saved).clone()),
                    Form::Current => state.kernels.get(language).cloned(),
                    Form::Coming(_) | Form::Dumping(_) | Form::Process(..) | Form::Lost(_) => None,
                };
                Some((*language, RecordedKernel { as_of_run: image.as_of, saved }))
            });
            let files = match &checkpoint.files {
                Files::Taken(taken) => Some((**taken).clone()),
                Files::None | Files::Coming | Files::Failed(_) => None,
            };
            Some(Recorded {
                name: point.name.clone(),
                created_at: checkpoint.created_at.clone(),
                as_of_run: point.as_of,
                auto: point.is_auto,
                line: point.line().to_vec(),
                kernels: kernels.collect(),
                busy: checkpoint.busy.clone(),
                files,
            })
        };
        let checkpoints: Vec<Recorded> =
            self.branches.timeline.points().iter().filter_map(record).collect();
        if checkpoints.is_empty() {
            let _ = std::fs::remove_file(self.home.directory.path().join(RECORD));
            return Ok(());
        }
        let timeline =
            RecordedTimeline { line: self.branches.timeline.line().to_vec(), checkpoints };
        self.home
            .directory
            .write_json(RECORD, &timeline)
            .map_err(|error| Failure::new(Code::Storage, error.to_string()))
    }

    /// After a keeper's death: what was written down is still there.
    pub(super) fn bring_back_timeline(&mut self) {
        let Ok(recorded) = self.home.directory.read_json::<RecordedTimeline>(RECORD) else {
            return;
        };
        for point in recorded.checkpoints {
            let mut images = BTreeMap::new();
            for (language, kernel) in point.kernels {
                // What was in a file of its own went with the keeper.
                let saved = kernel.saved.filter(|saved| saved.restore.is_some());
                let form = match saved {
                    Some(saved) => Form::Saved(Box::new(saved)),
                    None => Form::Lost("it ended with the session's keeper".to_owned()),
                };
                images.insert(language, self.add_image(language, kernel.as_of_run, form));
            }
            let id = self.branches.timeline.bring_back(
                point.name,
                point.auto,
                point.as_of_run,
                point.line,
            );
            let files = point.files.map_or(Files::None, |taken| Files::Taken(Box::new(taken)));
            let (created_at, busy) = (point.created_at, point.busy);
            self.branches.checkpoints.insert(id, Checkpoint { created_at, images, busy, files });
        }
        self.branches.timeline.set_line(recorded.line);
    }
}

/// A rewind that was finished later: the runs that have led to where it went.
pub(super) fn recover_line(directory: &Directory, line: Vec<RunNo>) {
    if let Ok(recorded) = directory.read_json::<RecordedTimeline>(RECORD) {
        let _ = directory.write_json(RECORD, &RecordedTimeline { line, ..recorded });
    }
}
