//! Points that the session can go back to, and the parts of each: an image of every kernel
//! that was idle, and optionally the files.
//!
//! Checkpoints share images; an image is released with the last checkpoint that needs it.
//! Files that only removed checkpoints needed are removed later, many at a time.

use super::images::{Form, ImageMethod, Images};
use super::{Context, FilesId, ImageId, Task};
use crate::core::Core;
use crate::timeline::{NoSuchPoint, Point, PointId, Timeline};
use sessile_protocol::{
    Carried, CarriedKernel, Code, Failure, FilesView, Language, LeftBehind, RewindTo, RunNo,
};
use std::collections::BTreeMap;

/// Number of trees that may be dropped before their files are swept: finding those costs a
/// walk through the whole store.
const SWEEP_AFTER: usize = 20;

/// The parts of a point of the timeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    pub images: BTreeMap<Language, ImageId>,
    /// Kernels that had an active run, and are not part of the checkpoint.
    pub busy: Vec<Language>,
    pub files: Files,
}

/// The files of a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Files {
    None,
    /// They are being taken.
    Pending(FilesId),
    Taken(FilesId, FilesView),
    /// They could not be taken.
    Failed(Failure),
}

/// The contents of a checkpoint, for display.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Description {
    pub kernels: Vec<CarriedKernel>,
    pub files: Option<FilesView>,
    pub left: Vec<LeftBehind>,
}

/// A checkpoint that an earlier keeper took.
#[derive(Clone, Debug)]
pub struct EarlierCheckpoint {
    pub name: String,
    pub is_auto: bool,
    pub as_of: RunNo,
    pub line: Vec<RunNo>,
    pub kernels: BTreeMap<Language, EarlierKernel>,
    pub busy: Vec<Language>,
    pub files: Option<FilesView>,
}

/// A kernel in a checkpoint that an earlier keeper took.
#[derive(Clone, Debug)]
pub struct EarlierKernel {
    pub as_of: RunNo,
    /// Why its state is missing, if it is.
    pub lost: Option<String>,
}

/// The ids of a recalled checkpoint and its parts.
#[derive(Clone, Debug)]
pub struct Recalled {
    pub point: PointId,
    pub images: BTreeMap<Language, ImageId>,
    pub files: Option<FilesId>,
}

#[derive(Debug, Default)]
pub(crate) struct Checkpoints {
    timeline: Timeline,
    by_point: BTreeMap<PointId, Checkpoint>,
    images: Images,
    last_files: u64,
    /// Trees whose checkpoints were removed since the last sweep of the files.
    dropped_trees: usize,
}

impl Checkpoints {
    pub(crate) fn timeline(&self) -> &Timeline {
        &self.timeline
    }

    pub(crate) fn images(&self) -> &Images {
        &self.images
    }

    pub(crate) fn images_mut(&mut self) -> &mut Images {
        &mut self.images
    }

    pub(crate) fn get(&self, point: PointId) -> Option<&Checkpoint> {
        self.by_point.get(&point)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_point.is_empty()
    }

    pub(crate) fn ran(&mut self, run: RunNo) {
        self.timeline.ran(run);
    }

    pub(crate) fn set_line(&mut self, line: Vec<RunNo>) {
        self.timeline.set_line(line);
    }

    pub(crate) fn next_files(&mut self) -> FilesId {
        self.last_files += 1;
        FilesId(self.last_files)
    }

    // Making them.

    /// Adds a named point for the current state. Returns none when the name is taken.
    pub(crate) fn mark(
        &mut self,
        name: Option<String>,
        context: &mut Context<'_>,
    ) -> Result<PointId, Failure> {
        let as_of = context.core.last_begun();
        let Some(point) = self.timeline.mark(name.clone(), as_of) else {
            let name = name.unwrap_or_default();
            let message = format!(
                "there is a checkpoint {name:?} already; drop it first, or take another name"
            );
            return Err(Failure::new(Code::CheckpointExists, message));
        };
        self.fill(point, context);
        Ok(point)
    }

    /// Adds a point before a run, and forgets those that exceed the number to keep.
    pub(crate) fn mark_before(
        &mut self,
        run: RunNo,
        keep: usize,
        context: &mut Context<'_>,
    ) -> (PointId, Vec<PointId>) {
        let as_of = RunNo(run.0.saturating_sub(1));
        let (point, gone) = self.timeline.mark_before(run, as_of, keep);
        self.fill(point, context);
        (point, gone)
    }

    /// Adds a point with files only. It replaces the point with the same name.
    pub(crate) fn mark_aside(
        &mut self,
        name: &str,
        as_of: RunNo,
        files: Files,
        context: &mut Context<'_>,
    ) -> Vec<PointId> {
        let (point, gone) = self.timeline.mark_aside(name, as_of);
        let busy = context.core.states().map(|(language, _)| language).collect();
        self.by_point.insert(point, Checkpoint { images: BTreeMap::new(), busy, files });
        context.task(Task::Mark { point });
        gone
    }

    /// Adds images of all idle kernels.
    fn fill(&mut self, point: PointId, context: &mut Context<'_>) {
        let states: Vec<(Language, RunNo)> = context.core.states().collect();
        let mut checkpoint =
            Checkpoint { images: BTreeMap::new(), busy: Vec::new(), files: Files::None };
        context.task(Task::Mark { point });
        for (language, as_of) in states {
            if !context.core.is_at_rest(language) {
                checkpoint.busy.push(language);
                continue;
            }
            let image = self.images.of_now(language, as_of, context);
            checkpoint.images.insert(language, image);
        }
        self.by_point.insert(point, checkpoint);
    }

    /// Returns an image of one kernel, if it exists and is idle.
    pub(crate) fn image_of_kernel(
        &mut self,
        language: Language,
        context: &mut Context<'_>,
    ) -> Option<ImageId> {
        let as_of = context.core.idle_as_of(language)?;
        Some(self.images.of_now(language, as_of, context))
    }

    /// Returns the newest image of a kernel, if it shows the current state and is written.
    pub(crate) fn image_at_hand(&self, language: Language, core: &Core) -> Option<ImageId> {
        let (id, image) = self.images.newest_of(language, core.epoch(language)?)?;
        let is_current = core.idle_as_of(language) == Some(image.as_of);
        (is_current && image.form == Form::Written).then_some(id)
    }

    /// Returns whether the image of a kernel in a checkpoint is pending.
    pub(crate) fn is_coming_in(&self, point: PointId, language: Language) -> bool {
        let image = self.get(point).and_then(|checkpoint| checkpoint.images.get(&language));
        image.is_some_and(|id| self.images.is_pending(*id))
    }

    /// Orders the files of a checkpoint.
    pub(crate) fn take_files(&mut self, point: PointId, context: &mut Context<'_>) -> FilesId {
        let files = self.next_files();
        if let Some(checkpoint) = self.by_point.get_mut(&point) {
            checkpoint.files = Files::Pending(files);
        }
        context.task(Task::TakeFiles { files });
        files
    }

    /// Records that the files of a checkpoint were taken, or could not be.
    pub(crate) fn files_taken(
        &mut self,
        files: FilesId,
        outcome: Result<FilesView, Failure>,
        context: &mut Context<'_>,
    ) {
        let mut all = self.by_point.values_mut();
        let Some(checkpoint) = all.find(|checkpoint| checkpoint.files == Files::Pending(files))
        else {
            // Its checkpoint was removed meanwhile.
            self.dropped_trees += 1;
            return;
        };
        checkpoint.files = match outcome {
            Ok(view) => Files::Taken(files, view),
            Err(failure) => Files::Failed(failure),
        };
        context.task(Task::NoteTimeline);
    }

    // Queries.

    /// # Errors
    /// When there is no such point. The failure lists the existing ones.
    pub(crate) fn find(&self, to: &RewindTo) -> Result<PointId, Failure> {
        self.timeline.find(to).map_err(|unfound| self.explain(&unfound))
    }

    pub(crate) fn explain(&self, unfound: &NoSuchPoint) -> Failure {
        let points = self.timeline.points();
        let names: Vec<&str> =
            points.iter().rev().take(10).map(|point| point.name.as_str()).collect();
        let there = match names.len() {
            0 => "the session has no checkpoints; take one with `checkpoint`, or start a session with `auto`".to_owned(),
            _ => format!("the newest are: {}", names.join(", ")),
        };
        let message = match unfound {
            NoSuchPoint::Name(name) => format!("there is no checkpoint {name:?}; {there}"),
            NoSuchPoint::Empty => there,
            NoSuchPoint::TooFew { runs } => {
                format!("the session has not made {runs} runs that could be taken back; {there}")
            }
            NoSuchPoint::Before(run) => {
                format!("there is no checkpoint from right before run {run}; {there}")
            }
        };
        Failure::new(Code::CheckpointNotFound, message)
    }

    pub(crate) fn describe(&self, id: PointId) -> Option<Description> {
        let point = self.timeline.point(id)?;
        let checkpoint = self.by_point.get(&id)?;
        let (mut kernels, mut left) = (Vec::new(), Vec::new());
        for (language, id) in &checkpoint.images {
            let (language, Some(image)) = (*language, self.images.get(*id)) else {
                continue;
            };
            left.extend(image.left.iter().cloned());
            let carried = match &image.form {
                Form::Process | Form::Pending(ImageMethod::Copy) => Carried::Live,
                Form::Pending(ImageMethod::Dump | ImageMethod::Capture) | Form::Written => {
                    Carried::Saved
                }
                Form::Lost(why) => {
                    let (name, reason) = ("state".to_owned(), why.clone());
                    left.push(LeftBehind { language: Some(language), name, reason });
                    Carried::Lost
                }
            };
            kernels.push(CarriedKernel { language, as_of_run: image.as_of, carried });
        }
        for language in &checkpoint.busy {
            let (as_of_run, carried) = (point.as_of, Carried::Busy);
            kernels.push(CarriedKernel { language: *language, as_of_run, carried });
        }
        let files = match &checkpoint.files {
            Files::Taken(_, view) => Some(view.clone()),
            Files::Failed(failure) => {
                let (name, reason) = ("files".to_owned(), failure.message.clone());
                left.push(LeftBehind { language: None, name, reason });
                None
            }
            Files::None | Files::Pending(_) => None,
        };
        Some(Description { kernels, files, left })
    }

    /// Goes back to a point, and returns the runs that are no longer in the line.
    pub(crate) fn rewind(&mut self, point: PointId) -> Vec<RunNo> {
        self.timeline.rewind(point)
    }

    // Removal.

    pub(crate) fn remove(&mut self, is_unwanted: impl Fn(&Point) -> bool) -> Vec<Point> {
        let gone = self.timeline.remove(is_unwanted);
        let ids: Vec<PointId> = gone.iter().map(|point| point.id).collect();
        self.forget(&ids);
        gone
    }

    /// Removes the parts of points that are no longer in the timeline.
    pub(crate) fn forget(&mut self, gone: &[PointId]) {
        for id in gone {
            if let Some(checkpoint) = self.by_point.remove(id)
                && let Files::Taken(..) | Files::Pending(_) = checkpoint.files
            {
                self.dropped_trees += 1;
            }
        }
    }

    pub(crate) fn needs(&self, image: ImageId, is_auto: bool, in_use: &[ImageId]) -> bool {
        let mut all = self.by_point.values().flat_map(|checkpoint| checkpoint.images.values());
        in_use.contains(&image)
            || all.any(|id| *id == image)
            || (is_auto && self.images.is_newest(image))
    }

    /// Releases the images that nothing needs.
    pub(crate) fn release_images(
        &mut self,
        is_auto: bool,
        in_use: &[ImageId],
        context: &mut Context<'_>,
    ) {
        let ids: Vec<ImageId> = self.images.iter().map(|(id, _)| id).collect();
        let needed: Vec<ImageId> =
            ids.into_iter().filter(|id| self.needs(*id, is_auto, in_use)).collect();
        self.images.keep_only(|id| needed.contains(&id), context);
    }

    /// Orders the removal of files that no checkpoint needs: at once, or when there are
    /// enough of them.
    pub(crate) fn sweep(&mut self, is_at_once: bool, context: &mut Context<'_>) {
        let enough = if is_at_once { 1 } else { SWEEP_AFTER };
        // A tree that is being taken is not known yet.
        let is_taking = self.by_point.values().any(|c| matches!(c.files, Files::Pending(_)));
        if self.dropped_trees < enough || is_taking {
            return;
        }
        let keep = self.by_point.values().filter_map(|checkpoint| match &checkpoint.files {
            Files::Taken(files, _) => Some(*files),
            Files::None | Files::Pending(_) | Files::Failed(_) => None,
        });
        let keep = keep.collect();
        self.dropped_trees = 0;
        context.task(Task::SweepFiles { keep });
    }

    pub(crate) fn clear(&mut self, context: &mut Context<'_>) {
        self.timeline.clear();
        self.by_point.clear();
        self.dropped_trees = 0;
        self.images.clear(context);
    }

    /// Adds a checkpoint that an earlier keeper took.
    pub(crate) fn recall(&mut self, recalling: EarlierCheckpoint) -> Recalled {
        let EarlierCheckpoint { name, is_auto, as_of, line, kernels, busy, files } = recalling;
        let mut images = BTreeMap::new();
        for (language, kernel) in kernels {
            let form = kernel.lost.map_or(Form::Written, Form::Lost);
            images.insert(language, self.images.recall(language, kernel.as_of, form));
        }
        let point = self.timeline.bring_back(name, is_auto, as_of, line);
        let taken = files.map(|view| (self.next_files(), view));
        let id = taken.as_ref().map(|(files, _)| *files);
        let files = taken.map_or(Files::None, |(files, view)| Files::Taken(files, view));
        self.by_point.insert(point, Checkpoint { images: images.clone(), busy, files });
        Recalled { point, images, files: id }
    }
}
