//! Points that the session can go back to, and going back.
//!
//! A checkpoint has an image of each kernel that was idle: a copy of the process
//! where the language can be copied, else its written-down state. Images are
//! shared between checkpoints, and go with the last that needs them.
//!
//! Going back first brings everything up that is needed, and only then lets go
//! of what was there: whatever fails on the way, the session is as it was.

use super::Keeper;
use super::images::{Form, ImageId};
use super::operations::{Progress, Stage};
use super::requests::refuse;
use sessile_protocol::{
    Answer, Auto, Carried, CarriedKernel, CheckpointView, Code, DropCheckpoints, Failure, Language,
    LeftBehind, NewCheckpoint, Rewind, RewindTo, RewoundView, RunNo,
};
use sessile_session::{Epoch, Input, Origin, PointId, Unfound};
use sessile_store::{Entry, Remarks, timestamp};
use std::collections::BTreeMap;

/// What belongs to a point of the timeline.
#[derive(Debug)]
pub(super) struct Checkpoint {
    created_at: String,
    images: BTreeMap<Language, ImageId>,
    /// Kernels that had a run, and are not part of it.
    busy: Vec<Language>,
}

/// A checkpoint whose images are yet to come.
#[derive(Debug)]
pub(super) struct Checkpointing {
    point: PointId,
}

#[derive(Debug)]
pub(super) struct Rewinding {
    point: PointId,
    plan: Vec<(Language, Origin)>,
    /// Processes that are to come up first.
    expected: Vec<Language>,
    /// Told when the kernels have been replaced.
    done: Option<Box<RewoundView>>,
}

impl Keeper {
    // Taking them.

    pub(super) fn begin_checkpoint(&mut self, new: NewCheckpoint) -> Progress {
        let as_of = self.session.last_run();
        let name = new.name.clone();
        let Some(point) = self.timeline.mark(new.name, as_of) else {
            let name = name.unwrap_or_default();
            let message = format!(
                "there is a checkpoint {name:?} already; drop it first, or take another name"
            );
            return Progress::failed(Failure::new(Code::CheckpointExists, message));
        };
        let checkpoint = self.images_of_now();
        self.checkpoints.insert(point, checkpoint);
        self.go_on_checkpointing(Checkpointing { point }, false)
    }

    pub(super) fn go_on_checkpointing(
        &mut self,
        checkpointing: Checkpointing,
        is_over: bool,
    ) -> Progress {
        let point = checkpointing.point;
        let images = self.checkpoints.get(&point).map(|c| c.images.clone()).unwrap_or_default();
        let mut lost = None;
        let mut is_coming = false;
        for id in images.values() {
            match self.images.get(id).map(|image| (&image.form, image.language)) {
                Some((Form::Coming(_), _)) => is_coming = true,
                Some((Form::Lost(why), language)) => lost = Some((language, why.clone())),
                Some((Form::Process(..) | Form::Saved(_) | Form::Current, _)) | None => {}
            }
        }
        if is_coming && !is_over && lost.is_none() {
            return Progress::Waiting(Stage::Checkpointing(checkpointing), Self::copy_patience());
        }
        if let Some((language, why)) = lost
            .or(is_coming
                .then(|| (self.boot.kernel.language, "it did not come up in time".to_owned())))
        {
            self.timeline.remove(|other| other.id == point);
            self.forget_checkpoints(&[point]);
            let message = format!("no checkpoint was taken: the state of {language}: {why}");
            return Progress::failed(Failure::new(Code::ForkFailed, message));
        }
        match self.checkpoint_view(point) {
            Some(view) => Progress::Done(Ok(Answer::Checkpointed(Box::new(view)))),
            None => Progress::failed(Failure::new(Code::CheckpointLost, "the checkpoint is gone")),
        }
    }

    /// Images of all kernels that are idle; those that there are already are
    /// used again.
    fn images_of_now(&mut self) -> Checkpoint {
        let states: Vec<(Language, RunNo)> = self.session.states().collect();
        let mut checkpoint =
            Checkpoint { created_at: timestamp(), images: BTreeMap::new(), busy: Vec::new() };
        for (language, as_of) in states {
            if self.session.is_busy(language) {
                checkpoint.busy.push(language);
                continue;
            }
            let id = self.image_of_now(language, as_of);
            checkpoint.images.insert(language, id);
        }
        checkpoint
    }

    fn image_of_now(&mut self, language: Language, as_of: RunNo) -> ImageId {
        let epoch = self.session.epoch(language).unwrap_or_default();
        if let Some((of, id)) = self.newest_images.get(&language)
            && *of == epoch
            && let Some(image) = self.images.get(id)
            && image.as_of == as_of
            && !matches!(image.form, Form::Lost(_))
        {
            return *id;
        }
        let id = match language {
            Language::Python => self.freeze(language, as_of),
            Language::Bash | Language::Sh | Language::Zsh | Language::Node => {
                self.keep_captured(language, as_of)
            }
        };
        self.newest_images.insert(language, (epoch, id));
        id
    }

    /// Before a run, in a session that takes checkpoints by itself.
    pub(super) fn prepare(&mut self, language: Language, epoch: Epoch, run: RunNo) {
        if let Some(auto) = self.boot.auto {
            self.checkpoint_before(run, auto);
        }
        self.step(Input::Prepared { language, epoch, run });
    }

    fn checkpoint_before(&mut self, run: RunNo, auto: Auto) {
        let keep = usize::try_from(auto.keep).unwrap_or(usize::MAX);
        let as_of = RunNo(run.0.saturating_sub(1));
        let (point, gone) = self.timeline.mark_before(run, as_of, keep);
        let checkpoint = self.images_of_now();
        self.checkpoints.insert(point, checkpoint);
        if !gone.is_empty() {
            self.forget_checkpoints(&gone);
        }
    }

    // Looking at them.

    pub(super) fn checkpoint_views(&self) -> Vec<CheckpointView> {
        let points = self.timeline.points().iter();
        points.filter_map(|point| self.checkpoint_view(point.id)).collect()
    }

    fn checkpoint_view(&self, id: PointId) -> Option<CheckpointView> {
        let point = self.timeline.point(id)?;
        let checkpoint = self.checkpoints.get(&id)?;
        let mut left = Vec::new();
        let mut kernels: Vec<CarriedKernel> = Vec::new();
        for (language, id) in &checkpoint.images {
            let Some(image) = self.images.get(id) else {
                continue;
            };
            left.extend(image.left.iter().cloned());
            let carried = match &image.form {
                Form::Process(..) => Carried::Live,
                Form::Coming(_) if *language == Language::Python => Carried::Live,
                Form::Coming(_) | Form::Saved(_) | Form::Current => Carried::Saved,
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
        Some(CheckpointView {
            name: point.name.clone(),
            created_at: checkpoint.created_at.clone(),
            as_of_run: point.as_of,
            auto: point.is_auto,
            kernels,
            files: None,
            left,
        })
    }

    // Going back.

    pub(super) fn begin_rewind(&mut self, rewind: &Rewind) -> Progress {
        let point = match self.timeline.find(&rewind.to) {
            Ok(point) => point,
            Err(unfound) => return Progress::failed(self.explain(&rewind.to, &unfound)),
        };
        match self.plan_rewind(point) {
            Ok(plan) => {
                let rewinding = Rewinding { point, plan, expected: Vec::new(), done: None };
                self.bring_up(rewinding)
            }
            Err(failure) => Progress::failed(failure),
        }
    }

    /// What has to change so that the kernels are as they were.
    fn plan_rewind(&self, point: PointId) -> Result<Vec<(Language, Origin)>, Failure> {
        let Some(checkpoint) = self.checkpoints.get(&point) else {
            return Err(Failure::new(Code::CheckpointLost, "the checkpoint is gone"));
        };
        let mut plan = Vec::new();
        for (language, id) in &checkpoint.images {
            let Some(image) = self.images.get(id) else {
                continue;
            };
            let is_same = self.session.states().any(|state| state == (*language, image.as_of));
            if is_same {
                continue;
            }
            match &image.form {
                Form::Process(..) => plan.push((*language, Origin::Image(image.as_of))),
                Form::Saved(_) | Form::Current => {
                    plan.push((*language, Origin::Saved(image.as_of)));
                }
                Form::Coming(_) => {
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
        let later = self.session.states().map(|(language, _)| language).filter(|l| !is_known(l));
        plan.extend(later.map(|language| (language, Origin::Nothing)));
        Ok(plan)
    }

    /// Has the processes made that are needed.
    fn bring_up(&mut self, mut rewinding: Rewinding) -> Progress {
        for (language, origin) in &rewinding.plan {
            let Origin::Image(_) = origin else {
                continue;
            };
            let image = self.checkpoints.get(&rewinding.point).and_then(|c| c.images.get(language));
            let thawed = match image.copied() {
                Some(id) => self.thaw(id),
                None => Err("it is gone".to_owned()),
            };
            if let Err(why) = thawed {
                self.abandon_thawed();
                return Progress::failed(not_copied(*language, &why));
            }
            rewinding.expected.push(*language);
        }
        self.go_on_rewinding(rewinding, false)
    }

    pub(super) fn go_on_rewinding(&mut self, mut rewinding: Rewinding, is_over: bool) -> Progress {
        if let Some(done) = rewinding.done {
            if self.session.is_settled() || is_over {
                self.durable_changed();
                return Progress::Done(Ok(Answer::Rewound(done)));
            }
            rewinding.done = Some(done);
            return Progress::Waiting(Stage::Rewinding(rewinding), Self::copy_patience());
        }
        if let Some((language, why)) = self.thaw_failures.pop_first() {
            self.abandon_thawed();
            return Progress::failed(not_copied(language, &why));
        }
        if rewinding.expected.iter().any(|language| !self.thawed.contains_key(language)) {
            if is_over {
                self.abandon_thawed();
                let why = "it did not come up in time";
                return Progress::failed(not_copied(self.boot.kernel.language, why));
            }
            return Progress::Waiting(Stage::Rewinding(rewinding), Self::copy_patience());
        }
        match self.switch(rewinding.point, &rewinding.plan) {
            Ok(view) => {
                rewinding.done = Some(Box::new(view));
                self.go_on_rewinding(rewinding, false)
            }
            Err(failure) => {
                self.abandon_thawed();
                Progress::failed(failure)
            }
        }
    }

    /// The moment at which the session has gone back.
    fn switch(
        &mut self,
        point: PointId,
        plan: &[(Language, Origin)],
    ) -> Result<RewoundView, Failure> {
        let before: Vec<LeftBehind> = self.left_by(plan);
        self.put_back_states(point, plan)?;
        let effects = self.session.replace(plan, self.now()).map_err(|r| refuse(&r))?;
        self.perform(effects);
        let undone = self.timeline.rewind(point);
        let view = self.checkpoint_view(point);
        let view =
            view.ok_or_else(|| Failure::new(Code::CheckpointLost, "the checkpoint is gone"))?;
        let run = self.record_rewind(&view.name, &undone);
        Ok(RewoundView {
            checkpoint: view.name,
            as_of_run: view.as_of_run,
            run,
            undone,
            kernels: view.kernels,
            files: None,
            left: [view.left, before].concat(),
        })
    }

    /// What goes on although the kernel that started it does not.
    fn left_by(&mut self, plan: &[(Language, Origin)]) -> Vec<LeftBehind> {
        if plan.is_empty() {
            return Vec::new();
        }
        let jobs = self.jobs().jobs;
        let left = jobs.into_iter().map(|job| LeftBehind {
            language: None,
            name: format!("process {} ({})", job.pid, job.command),
            reason: "a background process is not taken back; it goes on".to_owned(),
        });
        left.collect()
    }

    /// The written-down states that new kernels start from.
    fn put_back_states(
        &mut self,
        point: PointId,
        plan: &[(Language, Origin)],
    ) -> Result<(), Failure> {
        let Some(checkpoint) = self.checkpoints.get(&point) else {
            return Ok(());
        };
        let images = checkpoint.images.clone();
        let mut state = self.directory.state().unwrap_or_default();
        // Before another takes its place in the file.
        for (language, _) in plan {
            if let Some(current) = state.kernels.get(language) {
                self.take_out_of_file(*language, current);
            }
        }
        for (language, origin) in plan {
            match (origin, images.get(language).and_then(|id| self.images.get(id))) {
                (Origin::Saved(_), Some(image)) => {
                    if let Form::Saved(saved) = &image.form {
                        state.kernels.insert(*language, (**saved).clone());
                    }
                }
                (Origin::Saved(_), None) | (Origin::Image(_) | Origin::Nothing, _) => {
                    state.kernels.remove(language);
                }
            }
        }
        state.captured_at = timestamp();
        self.directory
            .write_state(&state)
            .map_err(|error| Failure::new(Code::Storage, format!("nothing was changed: {error}")))
    }

    /// Nothing is pretended away: a rewind has its place in the history.
    fn record_rewind(&mut self, name: &str, undone: &[RunNo]) -> RunNo {
        let run = self.session.take_number();
        if let Some(accepted) = &mut self.accepted {
            let _ = accepted.accept(run);
        }
        let taken: Vec<String> = undone.iter().map(ToString::to_string).collect();
        let what = match taken.len() {
            0 => "takes back nothing".to_owned(),
            1 => format!("takes back run {}", taken.join("")),
            _ => format!("takes back runs {}", taken.join(", ")),
        };
        let entry =
            Entry::event(run, self.boot.kernel.language, "rewind", format!("rewind {name}"));
        let remarks = Remarks { notes: vec![what], ..Remarks::default() };
        let _ = self.history.append(&Entry { remarks, ..entry });
        run
    }

    fn explain(&self, to: &RewindTo, unfound: &Unfound) -> Failure {
        let points = self.timeline.points();
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
        debug_assert!(matches!(to, RewindTo::Newest | RewindTo::Name(_) | RewindTo::Runs(_)));
        Failure::new(Code::CheckpointNotFound, message)
    }

    // Letting go of them.

    pub(super) fn drop_checkpoints(&mut self, which: &DropCheckpoints) -> Result<Answer, Failure> {
        if let DropCheckpoints::Named(names) = which {
            let points = self.timeline.points();
            let unknown = names.iter().find(|name| points.iter().all(|p| p.name != **name));
            if let Some(name) = unknown {
                let to = RewindTo::Name(name.clone());
                return Err(self.explain(&to, &Unfound::Name(name.clone())));
            }
        }
        let gone = self.timeline.remove(|point| match which {
            DropCheckpoints::All => true,
            DropCheckpoints::Named(names) => names.contains(&point.name),
        });
        let ids: Vec<PointId> = gone.iter().map(|point| point.id).collect();
        self.forget_checkpoints(&ids);
        Ok(Answer::Dropped { names: gone.into_iter().map(|point| point.name).collect() })
    }

    pub(super) fn forget_checkpoints(&mut self, gone: &[PointId]) {
        for id in gone {
            self.checkpoints.remove(id);
        }
        let needed: Vec<ImageId> =
            self.checkpoints.values().flat_map(|c| c.images.values().copied()).collect();
        self.drop_images(|id| needed.contains(&id));
        let there = &self.images;
        self.newest_images.retain(|_, (_, id)| there.contains_key(id));
    }

    /// After a reset, or at the end.
    pub(super) fn clear_checkpoints(&mut self) {
        self.timeline.clear();
        self.checkpoints.clear();
        self.newest_images.clear();
        self.drop_images(|_| false);
        self.abandon_thawed();
    }
}

fn lost(language: Language, why: &str) -> LeftBehind {
    LeftBehind { language: Some(language), name: "state".to_owned(), reason: why.to_owned() }
}

fn not_copied(language: Language, why: &str) -> Failure {
    let message = format!("nothing was changed: {language} could not be brought back: {why}");
    Failure::new(Code::CheckpointLost, message)
}
