//! Rewinds: what is written to disk.

use super::super::Keeper;
use super::files::Journal;
use super::images::Content;
use sessile_protocol::{Code, Failure, Language, LeftBehind, RunNo};
use sessile_session::operations::FilesId;
use sessile_session::{Origin, PointId};
use sessile_store::{Directory, Entry, Remarks, SavedKernel, timestamp};
use std::collections::BTreeMap;

impl Keeper {
    /// Writes the goal, for a keeper that may have to finish the rewind.
    pub(super) fn write_journal(
        &self,
        id: PointId,
        plan: &[(Language, Origin)],
        to: FilesId,
        before: FilesId,
    ) -> Result<(), Failure> {
        let tree = |files| {
            let taken = self.operations.files.tree(files);
            let gone = || {
                Failure::new(
                    Code::Storage,
                    "nothing was changed: the checkpoint's files are gone; take another checkpoint",
                )
            };
            taken.map(|taken| taken.tree).ok_or_else(gone)
        };
        let point = self.session.operations().timeline().point(id);
        self.write_to_journal(&Journal {
            tree: tree(to)?,
            before: tree(before)?,
            line: point.map(|point| point.line().to_vec()).unwrap_or_default(),
            root: self.home.boot.work_dir.clone(),
            checkpoint: point.map(|point| point.name.clone()).unwrap_or_default(),
            kernels: self.states_after(id, plan),
            language: self.home.boot.kernel.language,
            run: self.session.last_run().next(),
        })
    }

    /// Writes the states that new kernels start from. Returns the processes that go on
    /// although their kernel does not.
    pub(super) fn write_states(
        &mut self,
        point: PointId,
        plan: &[(Language, Origin)],
    ) -> Result<Vec<LeftBehind>, Failure> {
        let left = self.left_by(plan);
        let kernels = self.states_after(point, plan);
        self.put_back_states(plan, kernels)?;
        Ok(left)
    }

    /// Returns the processes that go on although their kernel does not.
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

    /// Returns the written states that exist after the rewind.
    fn states_after(
        &self,
        point: PointId,
        plan: &[(Language, Origin)],
    ) -> BTreeMap<Language, SavedKernel> {
        let mut kernels = self.home.directory.state().unwrap_or_default().kernels;
        let checkpoint = self.session.operations().checkpoint(point);
        let images = checkpoint.map(|checkpoint| &checkpoint.images);
        for (language, origin) in plan {
            let image = images.and_then(|images| images.get(language));
            match (origin, image.and_then(|image| self.operations.images.get(*image))) {
                (Origin::Saved(_), Some(Content::Saved(saved))) => {
                    kernels.insert(*language, (**saved).clone());
                }
                // The state is in the file already.
                (Origin::Saved(_), Some(Content::Current(_))) => {}
                (Origin::Saved(_) | Origin::Image(_) | Origin::Nothing, _) => {
                    kernels.remove(language);
                }
            }
        }
        kernels
    }

    /// Writes the states that new kernels start from.
    fn put_back_states(
        &mut self,
        plan: &[(Language, Origin)],
        mut kernels: BTreeMap<Language, SavedKernel>,
    ) -> Result<(), Failure> {
        let mut state = self.home.directory.state().unwrap_or_default();
        for (language, _) in plan {
            // Before another state replaces it in the file.
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
            .map_err(|error| Failure::because(Code::Storage, "nothing was changed", &error))
    }

    /// Links the file of a kernel's state under another name in a session's directory.
    pub(super) fn link_dump(&self, name: &str, to: &Directory) -> Result<String, Failure> {
        let lost = |error| Failure::because(Code::Storage, format!("the state in {name}"), &error);
        self.home.dumps().link(name, to).map_err(lost)
    }

    /// Adds the rewind to the history, so that it stays visible.
    pub(super) fn record_rewind(&mut self, run: RunNo, name: &str, undone: &[RunNo]) {
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
        let _ = self.records.history.complete();
        self.answer_followers();
    }
}
