//! Points that the session can go back to, and going back.
//!
//! A checkpoint has an image of each kernel that was idle: a copy of the process
//! where the language can be copied, else its written-down state. Images are
//! shared between checkpoints, and go with the last that needs them.
//!
//! Going back first brings everything up that is needed, and only then lets go
//! of what was there: whatever fails on the way, the session is as it was.

use super::Keeper;
use super::images::{Form, Image, ImageId};
use super::operations::{Progress, Stage};
use super::requests::refuse;
use super::workspace::{Journal, Outcome, Purpose, Step, Taken, Task};
use serde::{Deserialize, Serialize};
use sessile_protocol::{
    Answer, Auto, Carried, CarriedKernel, CheckpointView, Code, DropCheckpoints, Failure, Language,
    LeftBehind, NewCheckpoint, RestoredFiles, Rewind, RewoundView, RunNo,
};
use sessile_session::{Origin, Point, PointId, Unfound};
use sessile_snapshot::files::TreeId;
use sessile_store::{Directory, Entry, Remarks, SavedKernel, timestamp};
use std::collections::BTreeMap;

/// What belongs to a point of the timeline.
#[derive(Debug)]
pub(super) struct Checkpoint {
    created_at: String,
    images: BTreeMap<Language, ImageId>,
    /// Kernels that had a run, and are not part of it.
    busy: Vec<Language>,
    files: Files,
}

/// The files of a checkpoint.
#[derive(Debug)]
enum Files {
    None,
    /// They are being taken.
    Coming,
    Taken(Box<Taken>),
    /// They could not be taken.
    Failed(Failure),
}

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

const RECORD: &str = "checkpoints.json";

/// So many trees may go before the files that they alone needed do: looking for
/// those costs a walk through all that is stored.
const SWEEP_AFTER: usize = 20;

/// The files as they were before the last rewind that changed them.
const BEFORE_REWIND: &str = "files-before-rewind";

/// A process that is killed this often in a row will not get its work done.
const MOST_ATTEMPTS: u32 = 3;

/// A checkpoint whose images are yet to come.
#[derive(Debug)]
pub(super) struct Checkpointing {
    point: PointId,
}

#[derive(Debug)]
pub(super) struct Rewinding {
    point: PointId,
    /// Files to put back, and how far that is.
    files: Option<Putting>,
    plan: Vec<(Language, Origin)>,
    /// Processes that are to come up first.
    expected: Vec<Language>,
    /// Told when the kernels have been replaced.
    done: Option<Box<RewoundView>>,
    /// Told when the files have been taken back, because of this.
    failed: Option<Failure>,
}

#[derive(Debug)]
enum Putting {
    Wanted(TreeId),
    /// Those that are there are being taken.
    Taking(TreeId),
    UnderWay {
        tree: TreeId,
        before: Taken,
        attempts: u32,
    },
    Done(TreeId, RestoredFiles, Taken),
}

impl Rewinding {
    pub(super) fn changes_files(&self) -> bool {
        match self.files {
            Some(Putting::UnderWay { .. } | Putting::Done(..)) => true,
            Some(Putting::Wanted(_) | Putting::Taking(_)) | None => self.failed.is_some(),
        }
    }
}

impl Keeper {
    // Taking them.

    pub(super) fn begin_checkpoint(&mut self, new: NewCheckpoint) -> Progress {
        let as_of = self.session.last_begun();
        let name = new.name.clone();
        let Some(point) = self.timeline.mark(new.name, as_of) else {
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
        self.checkpoints.insert(point, checkpoint);
        self.go_on_checkpointing(Checkpointing { point }, false)
    }

    pub(super) fn go_on_checkpointing(
        &mut self,
        checkpointing: Checkpointing,
        is_over: bool,
    ) -> Progress {
        let point = checkpointing.point;
        let Some(checkpoint) = self.checkpoints.get(&point) else {
            return Progress::failed(gone());
        };
        let mut problem = match &checkpoint.files {
            Files::Failed(failure) => Some(failure.clone()),
            Files::Coming | Files::None | Files::Taken(_) => None,
        };
        let is_taking = matches!(checkpoint.files, Files::Coming);
        let is_coming = checkpoint.images.values().any(|id| self.is_image_coming(*id));
        for image in checkpoint.images.values().filter_map(|id| self.images.get(id)) {
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
            self.timeline.remove(|other| other.id == point);
            self.forget_checkpoints(&[point]);
            let message = format!("no checkpoint was taken: {message}");
            return Progress::failed(Failure::new(code, message));
        }
        if let Err(error) = self.write_timeline() {
            self.timeline.remove(|other| other.id == point);
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
        let Some(checkpoint) = self.checkpoints.get_mut(&point) else {
            self.dropped_trees += 1;
            return;
        };
        checkpoint.files = match outcome {
            Ok(Outcome::Taken(taken)) => Files::Taken(Box::new(taken)),
            Ok(Outcome::Put(_) | Outcome::Copied(_) | Outcome::Swept) => Files::None,
            Err(failure) => Files::Failed(failure),
        };
        self.is_timeline_written = false;
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
        let checkpoint = self.checkpoints.get(&point);
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
        if let Some(checkpoint) = self.checkpoints.get_mut(&point) {
            checkpoint.files = files;
        }
        is_coming
    }

    /// The newest image of a kernel, if it shows it as it is.
    pub(super) fn image_at_hand(&self, language: Language) -> Option<&Image> {
        let (epoch, id) = self.newest_images.get(&language)?;
        let image = self.images.get(id)?;
        let is_current = self.session.idle_as_of(language) == Some(image.as_of)
            && self.session.epoch(language) == Some(*epoch);
        is_current.then_some(image)
    }

    fn image_of_now(&mut self, language: Language, as_of: RunNo) -> ImageId {
        let epoch = self.session.epoch(language).unwrap_or_default();
        if let Some((of, id)) = self.newest_images.get(&language)
            && *of == epoch
            && let Some(image) = self.images.get(id)
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
        self.newest_images.insert(language, (epoch, id));
        id
    }

    /// In idle time, in a session that takes checkpoints by itself: the next run
    /// then need not wait for a copy to be made.
    pub(super) fn prepare_ahead(&mut self, language: Language) {
        // Who has let go of all of them wants no process left behind.
        let is_wanted = self.boot.auto.is_some() && !self.checkpoints.is_empty();
        if is_wanted && language == Language::Python {
            self.image_of_kernel(language);
            self.forget_checkpoints(&[]);
        }
    }

    pub(super) fn checkpoint_before(&mut self, run: RunNo, auto: Auto) -> PointId {
        let keep = usize::try_from(auto.keep).unwrap_or(usize::MAX);
        let as_of = RunNo(run.0.saturating_sub(1));
        let (point, gone) = self.timeline.mark_before(run, as_of, keep);
        let checkpoint = self.images_of_now();
        self.checkpoints.insert(point, checkpoint);
        if !gone.is_empty() {
            self.forget_checkpoints(&gone);
        }
        self.is_timeline_written = false;
        point
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

    // Going back.

    pub(super) fn begin_rewind(&mut self, rewind: &Rewind) -> Progress {
        let point = match self.timeline.find(&rewind.to) {
            Ok(point) => point,
            Err(unfound) => return Progress::failed(self.explain(&unfound)),
        };
        match self.plan_rewind(point) {
            Ok(plan) => {
                let tree = match self.checkpoints.get(&point).map(|point| &point.files) {
                    Some(Files::Taken(taken)) if !rewind.keep_files => Some(taken.tree),
                    Some(Files::Taken(_) | Files::None | Files::Coming | Files::Failed(_))
                    | None => None,
                };
                let files = tree.map(Putting::Wanted);
                self.put_back = None;
                let (expected, done, failed) = (Vec::new(), None, None);
                self.bring_up(Rewinding { point, files, plan, expected, done, failed })
            }
            Err(failure) => Progress::failed(failure),
        }
    }

    /// What has to change so that the kernels are as they were.
    fn plan_rewind(&self, point: PointId) -> Result<Vec<(Language, Origin)>, Failure> {
        let Some(checkpoint) = self.checkpoints.get(&point) else {
            return Err(gone());
        };
        let mut plan = Vec::new();
        for (language, id) in &checkpoint.images {
            let Some(image) = self.images.get(id) else {
                continue;
            };
            if self.shows_now(*language, *id, image) {
                continue;
            }
            match &image.form {
                Form::Process(..) => plan.push((*language, Origin::Image(image.as_of))),
                Form::Saved(_) | Form::Current => {
                    plan.push((*language, Origin::Saved(image.as_of)));
                }
                Form::Coming(_) | Form::Dumping(_) => {
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

    /// Whether a kernel is as its image: it has had no run since.
    fn shows_now(&self, language: Language, id: ImageId, image: &Image) -> bool {
        let is_as_of = self.session.states().any(|state| state == (language, image.as_of));
        // One that changes by itself as well has several of the same run.
        let newest = self.newest_images.get(&language);
        let is_newest = newest.is_some_and(|(epoch, newest)| {
            *newest == id && self.session.epoch(language) == Some(*epoch)
        });
        is_as_of && (!image.is_restless || is_newest)
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
        if let Some(failure) = &rewinding.failed {
            if self.put_back.is_none() && !is_over {
                return Progress::Waiting(Stage::Rewinding(rewinding), Self::files_patience());
            }
            self.remove_journal();
            return Progress::failed(failure.clone());
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
        match self.put_files_back(&mut rewinding) {
            Ok(true) => {}
            Ok(false) => {
                return Progress::Waiting(Stage::Rewinding(rewinding), Self::files_patience());
            }
            Err(failure) => {
                self.remove_journal();
                self.abandon_thawed();
                return Progress::failed(failure);
            }
        }
        let files = match rewinding.files.take() {
            Some(Putting::Done(tree, restored, before)) => Some((tree, restored, before)),
            Some(Putting::Wanted(_) | Putting::Taking(_) | Putting::UnderWay { .. }) | None => None,
        };
        let trees = files.as_ref().map(|(tree, _, before)| (*tree, before.tree));
        let files = files.map(|(_, restored, before)| (restored, before));
        match self.switch(rewinding.point, &rewinding.plan, files) {
            Ok(view) => {
                self.remove_journal();
                rewinding.done = Some(Box::new(view));
                self.go_on_rewinding(rewinding, false)
            }
            Err(failure) => {
                self.abandon_thawed();
                let Some((tree, before)) = trees else {
                    return Progress::failed(failure);
                };
                // The files go where the kernels are.
                let back = Task::Put { tree: before, before: tree };
                if self.send_out(back, Purpose::Rewind).is_err() {
                    return Progress::failed(failure);
                }
                rewinding.failed = Some(failure);
                Progress::Waiting(Stage::Rewinding(rewinding), Self::files_patience())
            }
        }
    }

    /// True when the files are as they should be. Those that are there are taken
    /// first: nothing has been changed until that is done.
    fn put_files_back(&mut self, rewinding: &mut Rewinding) -> Result<bool, Failure> {
        let Some(putting) = rewinding.files.take() else {
            return Ok(true);
        };
        let next = match (putting, self.put_back.take()) {
            (Putting::Wanted(tree), _) => {
                self.send_out(Task::Take, Purpose::Rewind)?;
                Putting::Taking(tree)
            }
            (Putting::Taking(tree), Some(Step::Taken(before))) => {
                self.write_journal(&self.journal(rewinding, tree, before.tree))?;
                self.send_out(Task::Put { tree, before: before.tree }, Purpose::Rewind)?;
                Putting::UnderWay { tree, before, attempts: 1 }
            }
            (Putting::UnderWay { tree, before, .. }, Some(Step::Put(restored))) => {
                Putting::Done(tree, restored, before)
            }
            // Whatever it has done can be done again.
            (Putting::UnderWay { tree, before, attempts }, Some(Step::Killed))
                if attempts < MOST_ATTEMPTS =>
            {
                self.send_out(Task::Put { tree, before: before.tree }, Purpose::Rewind)?;
                Putting::UnderWay { tree, before, attempts: attempts + 1 }
            }
            (Putting::UnderWay { .. }, Some(Step::Killed)) => return Err(half_done()),
            (_, Some(Step::Refused(failure))) => return Err(failure),
            (Putting::Taking(_), Some(Step::Killed | Step::Put(_))) => return Err(not_taken()),
            (waiting, None | Some(Step::Taken(_) | Step::Put(_) | Step::Killed)) => waiting,
        };
        let is_done = matches!(next, Putting::Done(..));
        rewinding.files = Some(next);
        Ok(is_done)
    }

    /// What is to be brought about, for a keeper that may have to finish it.
    fn journal(&self, rewinding: &Rewinding, tree: TreeId, before: TreeId) -> Journal {
        let point = self.timeline.point(rewinding.point);
        Journal {
            tree,
            before,
            line: point.map(|point| point.line().to_vec()).unwrap_or_default(),
            root: self.boot.work_dir.clone(),
            checkpoint: point.map(|point| point.name.clone()).unwrap_or_default(),
            kernels: self.states_after(rewinding.point, &rewinding.plan),
            language: self.boot.kernel.language,
            run: self.session.last_run().next(),
        }
    }

    /// The moment at which the session has gone back.
    fn switch(
        &mut self,
        point: PointId,
        plan: &[(Language, Origin)],
        files: Option<(RestoredFiles, Taken)>,
    ) -> Result<RewoundView, Failure> {
        let before: Vec<LeftBehind> = self.left_by(plan);
        let kernels = self.states_after(point, plan);
        self.put_back_states(plan, kernels)?;
        let effects = self.session.replace(plan, self.now()).map_err(|r| refuse(&r))?;
        self.perform(effects);
        let undone = self.timeline.rewind(point);
        let view = self.checkpoint_view(point);
        let view = view.ok_or_else(gone)?;
        let run = self.record_rewind(&view.name, &undone);
        self.answer_followers();
        let files = files.map(|(restored, before)| self.keep_files_before(run, restored, before));
        let _ = self.write_timeline();
        Ok(RewoundView {
            checkpoint: view.name,
            as_of_run: view.as_of_run,
            run,
            undone,
            kernels: view.kernels,
            files,
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

    /// Where one finds the files that a rewind has changed.
    fn keep_files_before(
        &mut self,
        run: RunNo,
        restored: RestoredFiles,
        before: Taken,
    ) -> RestoredFiles {
        let (point, gone) = self.timeline.mark_aside(BEFORE_REWIND, run);
        let states = self.session.states().map(|(language, _)| language);
        let checkpoint = Checkpoint {
            created_at: timestamp(),
            images: BTreeMap::new(),
            busy: states.collect(),
            files: Files::Taken(Box::new(before)),
        };
        self.checkpoints.insert(point, checkpoint);
        self.forget_checkpoints(&gone);
        RestoredFiles { before: Some(BEFORE_REWIND.to_owned()), ..restored }
    }

    /// The written-down states that there are after going back.
    fn states_after(
        &self,
        point: PointId,
        plan: &[(Language, Origin)],
    ) -> BTreeMap<Language, SavedKernel> {
        let mut kernels = self.directory.state().unwrap_or_default().kernels;
        let images = self.checkpoints.get(&point).map(|checkpoint| &checkpoint.images);
        for (language, origin) in plan {
            let image = images.and_then(|images| self.images.get(images.get(language)?));
            match (origin, image.map(|image| &image.form)) {
                (Origin::Saved(_), Some(Form::Saved(saved))) => {
                    kernels.insert(*language, (**saved).clone());
                }
                // It is there already.
                (Origin::Saved(_), Some(Form::Current)) => {}
                (Origin::Saved(_) | Origin::Image(_) | Origin::Nothing, _) => {
                    kernels.remove(language);
                }
            }
        }
        kernels
    }

    /// Writes down what new kernels start from.
    fn put_back_states(
        &mut self,
        plan: &[(Language, Origin)],
        mut kernels: BTreeMap<Language, SavedKernel>,
    ) -> Result<(), Failure> {
        let mut state = self.directory.state().unwrap_or_default();
        for (language, _) in plan {
            // Before another takes its place in the file.
            if let Some(current) = state.kernels.get(language)
                && kernels.get(language) != Some(current)
            {
                self.take_out_of_file(*language, current);
            }
            // The image keeps its own file.
            let dump = kernels.get_mut(language).and_then(|saved| saved.dump.as_mut());
            if let Some(name) = dump {
                *name = self.link_dump(name, &self.directory)?;
            }
        }
        state.kernels = kernels;
        state.captured_at = timestamp();
        self.directory
            .write_state(&state)
            .map_err(|error| Failure::new(Code::Storage, format!("nothing was changed: {error}")))
    }

    /// Another name for the file of a kernel's state, in a session's directory.
    pub(super) fn link_dump(&self, name: &str, to: &Directory) -> Result<String, Failure> {
        let storage = |error: String| Failure::new(Code::Storage, error);
        let from = self.directory.dump(name).ok_or_else(|| storage("no such dump".to_owned()))?;
        let folder = to.make_kernels().map_err(|error| storage(error.to_string()))?;
        let plain = name.trim_start_matches("linked-");
        let linked = format!("linked-{plain}");
        let path = folder.join(&linked);
        let _ = std::fs::remove_file(&path);
        std::fs::hard_link(&from, &path)
            .or_else(|_| std::fs::copy(&from, &path).map(|_| ()))
            .map_err(|error| storage(format!("{}: {error}", path.display())))?;
        Ok(linked)
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

    fn explain(&self, unfound: &Unfound) -> Failure {
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
        Failure::new(Code::CheckpointNotFound, message)
    }

    // Letting go of them.

    pub(super) fn drop_checkpoints(&mut self, which: &DropCheckpoints) -> Result<Answer, Failure> {
        if let DropCheckpoints::Named(names) = which {
            let points = self.timeline.points();
            let unknown = names.iter().find(|name| points.iter().all(|p| p.name != **name));
            if let Some(name) = unknown {
                return Err(self.explain(&Unfound::Name(name.clone())));
            }
        }
        if self.needs_checkpoints() {
            let message = "a checkpoint is being taken or gone back to; try again when it is done";
            return Err(Failure::new(Code::Busy, message));
        }
        let gone = self.timeline.remove(|point| match which {
            DropCheckpoints::All => true,
            DropCheckpoints::Named(names) => names.contains(&point.name),
        });
        let ids: Vec<PointId> = gone.iter().map(|point| point.id).collect();
        // Also the one that was made ahead of the next run.
        self.newest_images.clear();
        self.forget_checkpoints(&ids);
        self.sweep_files();
        self.write_timeline()?;
        Ok(Answer::Dropped { names: gone.into_iter().map(|point| point.name).collect() })
    }

    pub(super) fn forget_checkpoints(&mut self, gone: &[PointId]) {
        for id in gone {
            if let Some(checkpoint) = self.checkpoints.remove(id)
                && let Files::Taken(_) | Files::Coming = checkpoint.files
            {
                self.dropped_trees += 1;
            }
        }
        if self.dropped_trees >= SWEEP_AFTER {
            self.sweep_files();
        }
        let mut needed: Vec<ImageId> =
            self.checkpoints.values().flat_map(|c| c.images.values().copied()).collect();
        if self.boot.auto.is_some() {
            needed.extend(self.newest_images.values().map(|(_, id)| *id));
        }
        self.drop_images(|id| needed.contains(&id));
        let there = &self.images;
        self.newest_images.retain(|_, (_, id)| there.contains_key(id));
    }

    /// Has the files removed that no checkpoint needs any more.
    fn sweep_files(&mut self) {
        // One that is just being taken is not known yet.
        let is_taking = self.checkpoints.values().any(|c| matches!(c.files, Files::Coming));
        if self.dropped_trees == 0 || is_taking || self.needs_checkpoints() {
            return;
        }
        let keep = self.checkpoints.values().filter_map(|checkpoint| match &checkpoint.files {
            Files::Taken(taken) => Some(taken.tree),
            Files::None | Files::Coming | Files::Failed(_) => None,
        });
        let keep = keep.collect();
        if self.send_out(Task::Sweep(keep), Purpose::Sweep).is_ok() {
            self.dropped_trees = 0;
        }
    }

    // Keeping them on disk.

    pub(super) fn write_timeline(&mut self) -> Result<(), Failure> {
        self.is_timeline_written = true;
        let state = self.directory.state().unwrap_or_default();
        let record = |point: &Point| {
            let checkpoint = self.checkpoints.get(&point.id)?;
            let kernels = checkpoint.images.iter().filter_map(|(language, id)| {
                let image = self.images.get(id)?;
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
        let checkpoints: Vec<Recorded> = self.timeline.points().iter().filter_map(record).collect();
        if checkpoints.is_empty() {
            let _ = std::fs::remove_file(self.directory.path().join(RECORD));
            return Ok(());
        }
        let timeline = RecordedTimeline { line: self.timeline.line().to_vec(), checkpoints };
        self.directory
            .write_json(RECORD, &timeline)
            .map_err(|error| Failure::new(Code::Storage, error.to_string()))
    }

    /// After a keeper's death: what was written down is still there.
    pub(super) fn bring_back_timeline(&mut self) {
        let Ok(recorded) = self.directory.read_json::<RecordedTimeline>(RECORD) else {
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
            let id = self.timeline.bring_back(point.name, point.auto, point.as_of_run, point.line);
            let files = point.files.map_or(Files::None, |taken| Files::Taken(Box::new(taken)));
            let (created_at, busy) = (point.created_at, point.busy);
            self.checkpoints.insert(id, Checkpoint { created_at, images, busy, files });
        }
        self.timeline.set_line(recorded.line);
    }

    /// After a reset, or at the end.
    pub(super) fn clear_checkpoints(&mut self) {
        let _ = std::fs::remove_file(self.directory.path().join(RECORD));
        self.remove_files();
        self.timeline.clear();
        self.preparing.clear();
        self.checkpoints.clear();
        self.newest_images.clear();
        self.drop_images(|_| false);
        self.abandon_thawed();
    }
}

/// A rewind that was finished later: the runs that have led to where it went.
pub(super) fn recover_line(directory: &Directory, line: Vec<RunNo>) {
    if let Ok(recorded) = directory.read_json::<RecordedTimeline>(RECORD) {
        let _ = directory.write_json(RECORD, &RecordedTimeline { line, ..recorded });
    }
}

fn not_taken() -> Failure {
    let message = "nothing was changed: the process that looked after the files was ended";
    Failure::new(Code::Storage, message)
}

fn half_done() -> Failure {
    let message = "the process that puts the files back is ended again and again: some of them may be as of the checkpoint; rewind again";
    Failure::new(Code::Storage, message)
}

fn gone() -> Failure {
    Failure::new(Code::CheckpointLost, "the checkpoint is gone")
}

fn lost(language: Language, why: &str) -> LeftBehind {
    LeftBehind { language: Some(language), name: "state".to_owned(), reason: why.to_owned() }
}

fn not_copied(language: Language, why: &str) -> Failure {
    let message = format!("nothing was changed: {language} could not be brought back: {why}");
    Failure::new(Code::CheckpointLost, message)
}
