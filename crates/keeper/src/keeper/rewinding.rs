//! Going back to a checkpoint.
//!
//! First everything is brought up that is needed, then the files are put back,
//! and only then what was there is let go of: whatever fails on the way, the
//! session is as it was.

use super::Keeper;
use super::checkpoints::{Checkpoint, Files, gone};
use super::images::{Form, Image};
use super::operations::{Progress, Stage};
use super::requests::refuse;
use super::workspace::{Journal, Purpose, Step, Taken, Task};
use crate::source::ImageId;
use sessile_protocol::{
    Answer, Code, Failure, Language, LeftBehind, RestoredFiles, Rewind, RewoundView, RunNo,
};
use sessile_session::{Origin, PointId};
use sessile_snapshot::files::TreeId;
use sessile_store::{Directory, Entry, Remarks, SavedKernel, timestamp};
use std::collections::BTreeMap;

/// The files as they were before the last rewind that changed them.
const BEFORE_REWIND: &str = "files-before-rewind";

/// A process that is killed this often in a row will not get its work done.
const MOST_ATTEMPTS: u32 = 3;

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
    pub(super) fn begin_rewind(&mut self, rewind: &Rewind) -> Progress {
        let point = match self.branches.timeline.find(&rewind.to) {
            Ok(point) => point,
            Err(unfound) => return Progress::failed(self.explain(&unfound)),
        };
        match self.plan_rewind(point) {
            Ok(plan) => {
                let tree = match self.branches.checkpoints.get(&point).map(|point| &point.files) {
                    Some(Files::Taken(taken)) if !rewind.keep_files => Some(taken.tree),
                    Some(Files::Taken(_) | Files::None | Files::Coming | Files::Failed(_))
                    | None => None,
                };
                let files = tree.map(Putting::Wanted);
                self.operations.put_back = None;
                let (expected, done, failed) = (Vec::new(), None, None);
                self.bring_up(Rewinding { point, files, plan, expected, done, failed })
            }
            Err(failure) => Progress::failed(failure),
        }
    }

    /// What has to change so that the kernels are as they were.
    fn plan_rewind(&self, point: PointId) -> Result<Vec<(Language, Origin)>, Failure> {
        let Some(checkpoint) = self.branches.checkpoints.get(&point) else {
            return Err(gone());
        };
        let mut plan = Vec::new();
        for (language, id) in &checkpoint.images {
            let Some(image) = self.branches.images.get(id) else {
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
        let newest = self.branches.newest_images.get(&language);
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
            let image = self
                .branches
                .checkpoints
                .get(&rewinding.point)
                .and_then(|c| c.images.get(language));
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
            if self.operations.put_back.is_none() && !is_over {
                return Progress::Waiting(Stage::Rewinding(rewinding), Self::files_patience());
            }
            self.remove_journal();
            return Progress::failed(failure.clone());
        }
        if let Some((language, why)) = self.branches.thaw_failures.pop_first() {
            self.abandon_thawed();
            return Progress::failed(not_copied(language, &why));
        }
        let missing =
            rewinding.expected.iter().find(|l| !self.branches.thawed.contains_key(l)).copied();
        if let Some(language) = missing {
            if is_over {
                self.abandon_thawed();
                return Progress::failed(not_copied(language, "it did not come up in time"));
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
        let next = match (putting, self.operations.put_back.take()) {
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
        let point = self.branches.timeline.point(rewinding.point);
        Journal {
            tree,
            before,
            line: point.map(|point| point.line().to_vec()).unwrap_or_default(),
            root: self.home.boot.work_dir.clone(),
            checkpoint: point.map(|point| point.name.clone()).unwrap_or_default(),
            kernels: self.states_after(rewinding.point, &rewinding.plan),
            language: self.home.boot.kernel.language,
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
        let undone = self.branches.timeline.rewind(point);
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
        let (point, gone) = self.branches.timeline.mark_aside(BEFORE_REWIND, run);
        let states = self.session.states().map(|(language, _)| language);
        let checkpoint = Checkpoint {
            created_at: timestamp(),
            images: BTreeMap::new(),
            busy: states.collect(),
            files: Files::Taken(Box::new(before)),
        };
        self.branches.checkpoints.insert(point, checkpoint);
        self.forget_checkpoints(&gone);
        RestoredFiles { before: Some(BEFORE_REWIND.to_owned()), ..restored }
    }

    /// The written-down states that there are after going back.
    fn states_after(
        &self,
        point: PointId,
        plan: &[(Language, Origin)],
    ) -> BTreeMap<Language, SavedKernel> {
        let mut kernels = self.home.directory.state().unwrap_or_default().kernels;
        let images = self.branches.checkpoints.get(&point).map(|checkpoint| &checkpoint.images);
        for (language, origin) in plan {
            let image = images.and_then(|images| self.branches.images.get(images.get(language)?));
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
        let mut state = self.home.directory.state().unwrap_or_default();
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
                *name = self.link_dump(name, &self.home.directory)?;
            }
        }
        state.kernels = kernels;
        state.captured_at = timestamp();
        self.home
            .directory
            .write_state(&state)
            .map_err(|error| Failure::new(Code::Storage, format!("nothing was changed: {error}")))
    }

    /// Another name for the file of a kernel's state, in a session's directory.
    pub(super) fn link_dump(&self, name: &str, to: &Directory) -> Result<String, Failure> {
        let storage = |error: String| Failure::new(Code::Storage, error);
        let from =
            self.home.directory.dump(name).ok_or_else(|| storage("no such dump".to_owned()))?;
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
        self.records.accept(run);
        let taken: Vec<String> = undone.iter().map(ToString::to_string).collect();
        let what = match taken.len() {
            0 => "takes back nothing".to_owned(),
            1 => format!("takes back run {}", taken.join("")),
            _ => format!("takes back runs {}", taken.join(", ")),
        };
        let entry =
            Entry::event(run, self.home.boot.kernel.language, "rewind", format!("rewind {name}"));
        let remarks = Remarks { notes: vec![what], ..Remarks::default() };
        let _ = self.records.history.append(&Entry { remarks, ..entry });
        run
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

fn not_copied(language: Language, why: &str) -> Failure {
    let message = format!("nothing was changed: {language} could not be brought back: {why}");
    Failure::new(Code::CheckpointLost, message)
}
