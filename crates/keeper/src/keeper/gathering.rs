//! What a save is made of: the kernels' states and dumps, as they come in.

use super::Keeper;
use super::saving::{Asker, Phase};
use crate::kernels::{Dumped, outcome_file};
use crate::processes;
use crate::worker::stand_back;
use rustix::process::{Pid, Signal};
use sessile_protocol::{Code, Failure, Language, LeftBehind, RunNo};
use sessile_session::{Epoch, Input, Tick};
use sessile_store::SavedKernel;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

/// A kernel that has not described itself by then never will.
const STATE_PATIENCE: Tick = 10_000;

/// The same for a dump, which may be gigabytes on a slow disk.
const DUMP_PATIENCE: Tick = 600_000;

/// What is asked for.
/// What there is of a kernel so far.
#[derive(Debug)]
pub(super) struct Gathered {
    pub(super) as_of: RunNo,
    /// Of its process, if it has one.
    pub(super) epoch: Option<Epoch>,
    pub(super) state: Option<SavedKernel>,
    pub(super) dump: Dump,
}

#[derive(Debug)]
pub(super) enum Dump {
    /// There is none, and none is to come.
    None,
    Ordered(PathBuf),
    Writing {
        path: PathBuf,
        writer: Pid,
    },
    Written {
        path: PathBuf,
        carried: Option<u64>,
    },
    /// One that was there already.
    Kept(PathBuf),
}

impl Gathered {
    pub(super) fn is_complete(&self) -> bool {
        let has_dump = match self.dump {
            Dump::None | Dump::Written { .. } | Dump::Kept(_) => true,
            Dump::Ordered(_) | Dump::Writing { .. } => false,
        };
        has_dump && self.state.is_some()
    }

    /// A file of this save's own.
    pub(super) fn own_file(&self) -> Option<PathBuf> {
        match &self.dump {
            Dump::None | Dump::Kept(_) => None,
            Dump::Ordered(path) | Dump::Writing { path, .. } | Dump::Written { path, .. } => {
                Some(path.clone())
            }
        }
    }
}

impl Keeper {
    /// Gives all kernels their orders.
    pub(super) fn gather(&mut self) -> Result<(), Failure> {
        let mut left = self.jobs_left();
        let mut kernels = self.resting(&mut left);
        let live: Vec<Language> = self.kernels.live.keys().copied().collect();
        self.step(Input::Inspect);
        let asker = self.saves.queue.front().map(|saving| saving.asker);
        for language in live {
            let as_of = self.session.idle_as_of(language).unwrap_or_default();
            let kept = (asker == Some(Asker::Durability)).then(|| self.kept_dump(language, as_of));
            let dump = match kept.flatten() {
                Some(path) => Dump::Kept(path),
                None if language.is_shell() => Dump::None,
                None => self.order_dump(language, &mut left)?,
            };
            let epoch = self.kernels.live.get(&language).map(|live| live.epoch);
            kernels.insert(language, Gathered { as_of, epoch, state: None, dump });
        }
        let now = self.now();
        let as_of = kernels.values().map(|kernel| kernel.as_of).max().unwrap_or_default();
        if let Some(saving) = self.saves.queue.front_mut() {
            saving.phase = Phase::Gathering {
                kernels,
                left,
                as_of,
                last_run: self.session.last_run(),
                execution_count: self.records.metadata.execution_count,
                states_due: now + STATE_PATIENCE,
                dumps_due: now + DUMP_PATIENCE,
            };
        }
        Ok(())
    }

    /// Kernels without a process: what is known of them is on disk.
    fn resting(&self, left: &mut Vec<LeftBehind>) -> BTreeMap<Language, Gathered> {
        let state = self.home.directory.state().unwrap_or_default();
        let resting = state.kernels.into_iter().filter(|(l, _)| !self.kernels.live.contains_key(l));
        let mut found = BTreeMap::new();
        for (language, saved) in resting {
            let Some(as_of) = saved.comes_back_as_of() else {
                let reason = "its process is gone, and its state with it".to_owned();
                let name = format!("all of {language}");
                left.push(LeftBehind { language: Some(language), name, reason });
                continue;
            };
            let path = saved.dump.as_ref().and_then(|name| self.home.directory.dump(name));
            let dump = path.map_or(Dump::None, Dump::Kept);
            found.insert(language, Gathered { as_of, epoch: None, state: Some(saved), dump });
        }
        found
    }

    fn order_dump(
        &mut self,
        language: Language,
        left: &mut Vec<LeftBehind>,
    ) -> Result<Dump, Failure> {
        let folder = self
            .home
            .directory
            .make_kernels()
            .map_err(|error| Failure::new(Code::Storage, error.to_string()))?;
        self.saves.last_dump += 1;
        let path = folder.join(format!("save-{}-{language}", self.saves.last_dump));
        remove(&path);
        let Some(live) = self.kernels.live.get_mut(&language) else {
            return Ok(Dump::None);
        };
        match live.kernel.dump(&path) {
            Ok(()) => Ok(Dump::Ordered(path)),
            Err(error) if error.kind() == io::ErrorKind::Unsupported => {
                let reason = format!("the state of {language} cannot be carried yet");
                let name = format!("all of {language}");
                left.push(LeftBehind { language: Some(language), name, reason });
                Ok(Dump::None)
            }
            Err(error) => {
                let message = format!("{language} cannot be asked for its state: {error}");
                Err(Failure::new(Code::Storage, message))
            }
        }
    }

    /// What runs in the background stays here.
    fn jobs_left(&mut self) -> Vec<LeftBehind> {
        let jobs = self.jobs().jobs.into_iter();
        jobs.map(|job| LeftBehind {
            language: job.language,
            name: job.command,
            reason: format!("a background process stays where it is (process {})", job.pid),
        })
        .collect()
    }

    fn gathering(&mut self, language: Language) -> Option<&mut Gathered> {
        match &mut self.saves.queue.front_mut()?.phase {
            Phase::Waiting | Phase::Writing { .. } => None,
            Phase::Gathering { kernels, .. } => kernels.get_mut(&language),
        }
    }

    /// A kernel's state was written down.
    pub(super) fn save_learns_state(&mut self, language: Language, as_of: RunNo) {
        if self.saves.queue.is_empty() {
            return;
        }
        let in_file = || self.home.directory.state()?.kernels.remove(&language);
        let saved = self.saves.aside.get(&language).cloned().or_else(in_file);
        let Some(saved) = saved.filter(|saved| saved.as_of_run == as_of) else {
            return;
        };
        if let Some(kernel) = self.gathering(language)
            && kernel.state.is_none()
            && kernel.as_of == as_of
        {
            kernel.state = Some(saved);
            self.tend_savings();
        }
    }

    /// A process of its own writes a kernel's dump.
    pub(super) fn save_learns_writer(&mut self, language: Language, path: PathBuf, writer: Pid) {
        let is_it = |kernel: &&mut Gathered| match &kernel.dump {
            Dump::Ordered(ordered) => *ordered == path,
            Dump::None | Dump::Writing { .. } | Dump::Written { .. } | Dump::Kept(_) => false,
        };
        let Some(kernel) = self.gathering(language).filter(is_it) else {
            // Nobody wants it any more.
            processes::signal(&[writer], Signal::KILL);
            remove(&path);
            return;
        };
        kernel.dump = Dump::Writing { path, writer };
        if self.saves.queue.front().is_some_and(|saving| saving.asker == Asker::Durability) {
            stand_back(writer);
        }
        // It may have been faster than its news.
        if rustix::process::test_kill_process(writer).is_err() {
            self.writer_ended(writer);
        }
    }

    /// A child of the keeper is gone: perhaps one that wrote a dump.
    pub(super) fn writer_ended(&mut self, pid: Pid) {
        let Some(Phase::Gathering { kernels, .. }) = self.saves.queue.front().map(|s| &s.phase)
        else {
            return;
        };
        let found = kernels.iter().find_map(|(language, kernel)| match &kernel.dump {
            Dump::Writing { path, writer } if *writer == pid => Some((*language, path.clone())),
            Dump::None
            | Dump::Ordered(_)
            | Dump::Writing { .. }
            | Dump::Written { .. }
            | Dump::Kept(_) => None,
        });
        let Some((language, path)) = found else {
            return;
        };
        let report = std::fs::read(outcome_file(&path)).ok();
        let dumped = report.and_then(|report| serde_json::from_slice(&report).ok());
        self.save_learns_dump(language, dumped.unwrap_or_else(|| cut_short(path)));
    }

    /// A dump is written, or will not be.
    pub(super) fn save_learns_dump(&mut self, language: Language, dumped: Dumped) {
        let Some(saving) = self.saves.queue.front_mut() else {
            remove(&dumped.path);
            return;
        };
        let Phase::Gathering { kernels, left, .. } = &mut saving.phase else {
            return;
        };
        let Some(kernel) = kernels.get_mut(&language) else {
            return;
        };
        if kernel.own_file().as_ref() != Some(&dumped.path) {
            return;
        }
        if let Some(error) = dumped.error {
            let message = format!("the state of {language} could not be written down: {error}");
            self.end_save(Err(Failure::new(Code::Storage, message)));
        } else {
            left.extend(dumped.left.into_iter().map(|item| LeftBehind {
                language: Some(language),
                name: item.name,
                reason: item.reason,
            }));
            kernel.dump = Dump::Written { path: dumped.path, carried: Some(dumped.carried) };
        }
        self.tend_savings();
    }

    /// A kernel that owes its state is gone.
    pub(super) fn save_loses_kernel(&mut self, language: Language) {
        let is_owing = |kernel: &mut Gathered| match kernel.dump {
            Dump::Ordered(_) => true,
            Dump::None | Dump::Writing { .. } | Dump::Written { .. } | Dump::Kept(_) => {
                kernel.state.is_none()
            }
        };
        if self.gathering(language).is_some_and(is_owing) {
            let message = format!("the {language} process ended before its state was written down");
            self.end_save(Err(Failure::new(Code::Storage, message)));
            self.tend_savings();
        }
    }
}

/// Removes a dump, and what is said of it.
pub(super) fn remove(dump: &Path) {
    let _ = std::fs::remove_file(dump);
    let _ = std::fs::remove_file(outcome_file(dump));
}

fn cut_short(path: PathBuf) -> Dumped {
    // On a disk without room, not even that can be written down.
    let is_full = path.parent().and_then(|folder| rustix::fs::statvfs(folder).ok());
    let is_full = is_full.is_some_and(|disk| disk.f_bavail == 0);
    let why =
        if is_full { "no space left on device" } else { "the process that wrote it was ended" };
    Dumped { path, carried: 0, left: Vec::new(), error: Some(why.to_owned()) }
}
