//! Points that the session can go back to.
//!
//! A checkpoint has an image of each kernel that was idle: a copy of the process
//! where the language can be copied, else its written-down state. Images are
//! shared between checkpoints, and go with the last that needs them.

use super::images::{ComingKernel, Form, Image};
use super::operations::{Progress, Stage};
use super::preparing::Preparing;
use super::workspace::{Outcome, Purpose, Taken, Task};
use super::{Keeper, Live, timeline};
use crate::source::ImageId;
use sessile_protocol::{
    Answer, Auto, Carried, CarriedKernel, CheckpointView, Code, DropCheckpoints, Failure, Language,
    LeftBehind, NewCheckpoint, RunNo,
};
use sessile_session::{Epoch, PointId, Timeline, Unfound};
use sessile_store::timestamp;
use std::collections::BTreeMap;

/// Where the session can go back to, and what is needed for that.
#[derive(Debug, Default)]
pub(super) struct Branches {
    pub(super) timeline: Timeline,
    pub(super) checkpoints: BTreeMap<PointId, Checkpoint>,
    pub(super) images: BTreeMap<ImageId, Image>,
    /// By language, with the process that it is an image of.
    pub(super) newest_images: BTreeMap<Language, (Epoch, ImageId)>,
    pub(super) last_image: u64,
    pub(super) coming: BTreeMap<Language, ComingKernel>,
    /// Processes that are to take the place of others.
    pub(super) thawed: BTreeMap<Language, Live>,
    pub(super) thaw_failures: BTreeMap<Language, String>,
    pub(super) preparing: Vec<Preparing>,
    /// Trees that went with their checkpoints since the files were last swept.
    pub(super) dropped_trees: usize,
    /// The timeline on disk is not up to date.
    pub(super) is_unwritten: bool,
}

/// What belongs to a point of the timeline.
#[derive(Debug)]
pub(super) struct Checkpoint {
    pub(super) created_at: String,
    pub(super) images: BTreeMap<Language, ImageId>,
    /// Kernels that had a run, and are not part of it.
    pub(super) busy: Vec<Language>,
    pub(super) files: Files,
}

/// The files of a checkpoint.
#[derive(Debug)]
pub(super) enum Files {
    None,
    /// They are being taken.
    Coming,
    Taken(Box<Taken>),
    /// They could not be taken.
    Failed(Failure),
}

/// So many trees may go before the files that they alone needed do: looking for
/// those costs a walk through all that is stored.
const SWEEP_AFTER: usize = 20;

/// A checkpoint whose images are yet to come.
#[derive(Debug)]
pub(super) struct Checkpointing {
    point: PointId,
}

impl Keeper {
    // Taking them.

    pub(super) fn begin_checkpoint(&mut self, new: NewCheckpoint) -> Progress {
        let as_of = self.session.last_begun();
        let name = new.name.clone();
        let Some(point) = self.branches.timeline.mark(new.name, as_of) else {
            let name = name.unwrap_or_default();
            let message = format!(
                "there is a checkpoint {name:?} already; drop it first, or take another name"
            );
            return Progress::failed(Failure::new(Code::CheckpointExists, message));
        };
        let mut checkpoint = self.images_of_now();
        if new.files {
            checkpoint.files = match self.send_out(Task::Take, Purpose::Checkpoint(point)) {
                Ok(()) => Files::Coming,
                Err(failure) => Files::Failed(failure),
            };
        }
        self.branches.checkpoints.insert(point, checkpoint);
        self.go_on_checkpointing(Checkpointing { point }, false)
    }

    pub(super) fn go_on_checkpointing(
        &mut self,
        checkpointing: Checkpointing,
        is_over: bool,
    ) -> Progress {
        let point = checkpointing.point;
        let Some(checkpoint) = self.branches.checkpoints.get(&point) else {
            return Progress::failed(gone());
        };
        let mut problem = match &checkpoint.files {
            Files::Failed(failure) => Some(failure.clone()),
            Files::Coming | Files::None | Files::Taken(_) => None,
        };
        let is_taking = matches!(checkpoint.files, Files::Coming);
        let is_coming = checkpoint.images.values().any(|id| self.is_image_coming(*id));
        for image in checkpoint.images.values().filter_map(|id| self.branches.images.get(id)) {
            if let Form::Lost(why) = &image.form {
                let message = format!("the state of {}: {why}", image.language);
                problem = Some(Failure::new(Code::ForkFailed, message));
            }
        }
        if problem.is_none() && (is_coming || is_taking) {
            if !is_over {
                let patience =
                    if is_taking { Self::files_patience() } else { Self::copy_patience() };
                return Progress::Waiting(Stage::Checkpointing(checkpointing), patience);
            }
            problem = Some(Failure::new(Code::ForkFailed, "it took too long"));
        }
        if let Some(Failure { code, message }) = problem {
            self.branches.timeline.remove(|other| other.id == point);
            self.forget_checkpoints(&[point]);
            let message = format!("no checkpoint was taken: {message}");
            return Progress::failed(Failure::new(code, message));
        }
        if let Err(error) = self.write_timeline() {
            self.branches.timeline.remove(|other| other.id == point);
            self.forget_checkpoints(&[point]);
            return Progress::failed(error);
        }
        match self.checkpoint_view(point) {
            Some(view) => Progress::Done(Ok(Answer::Checkpointed(Box::new(view)))),
            None => Progress::failed(gone()),
        }
    }

    /// The files of a checkpoint are there, or will not be.
    pub(super) fn files_taken(&mut self, point: PointId, outcome: Result<Outcome, Failure>) {
        let Some(checkpoint) = self.branches.checkpoints.get_mut(&point) else {
            self.branches.dropped_trees += 1;
            return;
        };
        checkpoint.files = match outcome {
            Ok(Outcome::Taken(taken)) => Files::Taken(Box::new(taken)),
            Ok(Outcome::Put(_) | Outcome::Copied(_) | Outcome::Swept) => Files::None,
            Err(failure) => Files::Failed(failure),
        };
        self.branches.is_unwritten = true;
    }

    /// Images of all kernels that are idle; those that there are already are
    /// used again.
    fn images_of_now(&mut self) -> Checkpoint {
        let states: Vec<(Language, RunNo)> = self.session.states().collect();
        let mut checkpoint = Checkpoint {
            created_at: timestamp(),
            images: BTreeMap::new(),
            busy: Vec::new(),
            files: Files::None,
        };
        for (language, as_of) in states {
            if !self.session.is_at_rest(language) {
                checkpoint.busy.push(language);
                continue;
            }
            let id = self.image_of_now(language, as_of);
            checkpoint.images.insert(language, id);
        }
        checkpoint
    }

    /// An image of one kernel, if it is there.
    pub(super) fn image_of_kernel(&mut self, language: Language) -> Option<ImageId> {
        let as_of = self.session.idle_as_of(language)?;
        Some(self.image_of_now(language, as_of))
    }

    /// The image of a kernel in a checkpoint, while it is yet to come.
    pub(super) fn is_coming_in(&self, point: PointId, language: Language) -> bool {
        let checkpoint = self.branches.checkpoints.get(&point);
        let image = checkpoint.and_then(|checkpoint| checkpoint.images.get(&language));
        image.is_some_and(|id| self.is_image_coming(*id))
    }

    /// Has the files of a checkpoint taken. False when they will not be.
    pub(super) fn take_files(&mut self, point: PointId, purpose: Purpose) -> bool {
        let files = match self.send_out(Task::Take, purpose) {
            Ok(()) => Files::Coming,
            Err(failure) => Files::Failed(failure),
        };
        let is_coming = matches!(files, Files::Coming);
        if let Some(checkpoint) = self.branches.checkpoints.get_mut(&point) {
            checkpoint.files = files;
        }
        is_coming
    }

    /// The newest image of a kernel, if it shows it as it is.
    pub(super) fn image_at_hand(&self, language: Language) -> Option<&Image> {
        let (epoch, id) = self.branches.newest_images.get(&language)?;
        let image = self.branches.images.get(id)?;
        let is_current = self.session.idle_as_of(language) == Some(image.as_of)
            && self.session.epoch(language) == Some(*epoch);
        is_current.then_some(image)
    }

    fn image_of_now(&mut self, language: Language, as_of: RunNo) -> ImageId {
        let epoch = self.session.epoch(language).unwrap_or_default();
        if let Some((of, id)) = self.branches.newest_images.get(&language)
            && *of == epoch
            && let Some(image) = self.branches.images.get(id)
            && image.as_of == as_of
            && !image.is_restless
            && !matches!(image.form, Form::Lost(_))
        {
            return *id;
        }
        let id = match language {
            Language::Python => self.freeze(language, as_of),
            Language::Node => self.dump_image(language, as_of),
            Language::Bash | Language::Sh | Language::Zsh => self.keep_captured(language, as_of),
        };
        self.branches.newest_images.insert(language, (epoch, id));
        id
    }

    /// In idle time, in a session that takes checkpoints by itself: the next run
    /// then need not wait for a copy to be made.
    pub(super) fn prepare_ahead(&mut self, language: Language) {
        // Who has let go of all of them wants no process left behind.
        let is_wanted = self.home.boot.auto.is_some() && !self.branches.checkpoints.is_empty();
        if is_wanted && language == Language::Python {
            self.image_of_kernel(language);
            self.forget_checkpoints(&[]);
        }
    }

    pub(super) fn checkpoint_before(&mut self, run: RunNo, auto: Auto) -> PointId {
        let keep = usize::try_from(auto.keep).unwrap_or(usize::MAX);
        let as_of = RunNo(run.0.saturating_sub(1));
        let (point, gone) = self.branches.timeline.mark_before(run, as_of, keep);
        let checkpoint = self.images_of_now();
        self.branches.checkpoints.insert(point, checkpoint);
        if !gone.is_empty() {
            self.forget_checkpoints(&gone);
        }
        self.branches.is_unwritten = true;
        point
    }

    // Looking at them.

    pub(super) fn checkpoint_views(&self) -> Vec<CheckpointView> {
        let points = self.branches.timeline.points().iter();
        points.filter_map(|point| self.checkpoint_view(point.id)).collect()
    }

    pub(super) fn checkpoint_view(&self, id: PointId) -> Option<CheckpointView> {
        let point = self.branches.timeline.point(id)?;
        let checkpoint = self.branches.checkpoints.get(&id)?;
        let mut left = Vec::new();
        let mut kernels: Vec<CarriedKernel> = Vec::new();
        for (language, id) in &checkpoint.images {
            let Some(image) = self.branches.images.get(id) else {
                continue;
            };
            left.extend(image.left.iter().cloned());
            let carried = match &image.form {
                Form::Process(..) => Carried::Live,
                Form::Coming(_) if *language == Language::Python => Carried::Live,
                Form::Coming(_) | Form::Dumping(_) | Form::Saved(_) | Form::Current => {
                    Carried::Saved
                }
                Form::Lost(why) => {
                    left.push(lost(*language, why));
                    Carried::Lost
                }
            };
            kernels.push(CarriedKernel { language: *language, as_of_run: image.as_of, carried });
        }
        for language in &checkpoint.busy {
            let (as_of_run, carried) = (point.as_of, Carried::Busy);
            kernels.push(CarriedKernel { language: *language, as_of_run, carried });
        }
        let files = match &checkpoint.files {
            Files::Taken(taken) => Some(taken.view.clone()),
            Files::Failed(failure) => {
                left.push(LeftBehind {
                    language: None,
                    name: "files".to_owned(),
                    reason: failure.message.clone(),
                });
                None
            }
            Files::None | Files::Coming => None,
        };
        Some(CheckpointView {
            name: point.name.clone(),
            created_at: checkpoint.created_at.clone(),
            as_of_run: point.as_of,
            auto: point.is_auto,
            kernels,
            files,
            left,
        })
    }

    pub(super) fn explain(&self, unfound: &Unfound) -> Failure {
        let points = self.branches.timeline.points();
        let names: Vec<&str> =
            points.iter().rev().take(10).map(|point| point.name.as_str()).collect();
        let there = match names.len() {
            0 => "the session has no checkpoints (take one with `sessile checkpoint`, or start a session with --auto)".to_owned(),
            _ => format!("the newest are: {}", names.join(", ")),
        };
        let message = match unfound {
            Unfound::Name(name) => format!("there is no checkpoint {name:?}; {there}"),
            Unfound::Empty => there,
            Unfound::TooFew { runs } => {
                format!("the session has not made {runs} runs that could be taken back; {there}")
            }
            Unfound::Before(run) => {
                format!("there is no checkpoint from right before run {run}; {there}")
            }
        };
        Failure::new(Code::CheckpointNotFound, message)
    }

    // Letting go of them.

    pub(super) fn drop_checkpoints(&mut self, which: &DropCheckpoints) -> Result<Answer, Failure> {
        if let DropCheckpoints::Named(names) = which {
            let points = self.branches.timeline.points();
            let unknown = names.iter().find(|name| points.iter().all(|p| p.name != **name));
            if let Some(name) = unknown {
                return Err(self.explain(&Unfound::Name(name.clone())));
            }
        }
        if self.needs_checkpoints() {
            let message = "a checkpoint is being taken or gone back to; try again when it is done";
            return Err(Failure::new(Code::Busy, message));
        }
        let gone = self.branches.timeline.remove(|point| match which {
            DropCheckpoints::All => true,
            DropCheckpoints::Named(names) => names.contains(&point.name),
        });
        let ids: Vec<PointId> = gone.iter().map(|point| point.id).collect();
        // Also the one that was made ahead of the next run.
        self.branches.newest_images.clear();
        self.forget_checkpoints(&ids);
        self.sweep_files();
        self.write_timeline()?;
        Ok(Answer::Dropped { names: gone.into_iter().map(|point| point.name).collect() })
    }

    pub(super) fn forget_checkpoints(&mut self, gone: &[PointId]) {
        for id in gone {
            if let Some(checkpoint) = self.branches.checkpoints.remove(id)
                && let Files::Taken(_) | Files::Coming = checkpoint.files
            {
                self.branches.dropped_trees += 1;
            }
        }
        if self.branches.dropped_trees >= SWEEP_AFTER {
            self.sweep_files();
        }
        let mut needed: Vec<ImageId> =
            self.branches.checkpoints.values().flat_map(|c| c.images.values().copied()).collect();
        if self.home.boot.auto.is_some() {
            needed.extend(self.branches.newest_images.values().map(|(_, id)| *id));
        }
        self.drop_images(|id| needed.contains(&id));
        let there = &self.branches.images;
        self.branches.newest_images.retain(|_, (_, id)| there.contains_key(id));
    }

    /// Has the files removed that no checkpoint needs any more.
    fn sweep_files(&mut self) {
        // One that is just being taken is not known yet.
        let is_taking =
            self.branches.checkpoints.values().any(|c| matches!(c.files, Files::Coming));
        if self.branches.dropped_trees == 0 || is_taking || self.needs_checkpoints() {
            return;
        }
        let keep =
            self.branches.checkpoints.values().filter_map(|checkpoint| match &checkpoint.files {
                Files::Taken(taken) => Some(taken.tree),
                Files::None | Files::Coming | Files::Failed(_) => None,
            });
        let keep = keep.collect();
        if self.send_out(Task::Sweep(keep), Purpose::Sweep).is_ok() {
            self.branches.dropped_trees = 0;
        }
    }

    /// After a reset, or at the end.
    pub(super) fn clear_checkpoints(&mut self) {
        let _ = std::fs::remove_file(self.home.directory.path().join(timeline::RECORD));
        self.remove_files();
        self.branches.timeline.clear();
        self.branches.preparing.clear();
        self.branches.checkpoints.clear();
        self.branches.newest_images.clear();
        self.drop_images(|_| false);
        self.abandon_thawed();
    }
}

pub(super) fn gone() -> Failure {
    Failure::new(Code::CheckpointLost, "the checkpoint is gone")
}

fn lost(language: Language, why: &str) -> LeftBehind {
    LeftBehind { language: Some(language), name: "state".to_owned(), reason: why.to_owned() }
}
