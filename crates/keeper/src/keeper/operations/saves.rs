//! Saves a session to a file: kernels are asked for their states (`gathering`), and a
//! worker writes them (`bundle`) or keeps them where a durable session continues from
//! (`durable`).

use super::super::Keeper;
use super::Operations;
use super::bundle::{self, Contents, DumpFile, KernelContents, Origin};
use super::durable::{LocalSave, Upload, keep, kept_dump};
use super::gathering::{Dump, Gathered, Gathering};
use crate::dumps::Dumps;
use crate::kernels::DumpOutcome;
use crate::processes;
use crate::shortage::{of_scratch, of_start};
use crate::source::Source;
use crate::worker::{Priority, Progress, Worker, lower_priority};
use rustix::process::{Pid, Signal};
use sessile_protocol::{Code, Failure, Language, LeftBehind, RunNo};
use sessile_session::Epoch;
use sessile_session::operations::{Event, Part, SaveId, Saved, Target};
use sessile_store::{Metadata, SaveState, UserState};
use std::io;
use std::path::{Path, PathBuf};

#[derive(Debug, Default)]
pub(in super::super) struct Saves {
    /// The save in progress.
    pub(super) current: Option<Save>,
    pub(super) upload: Option<Upload>,
    /// Worker that asks the store which machine has the session.
    pub(super) look: Option<Worker>,
    /// What the store has received, until that is recorded.
    pub(super) uploaded: Option<(SaveId, SaveState)>,
    /// Number of the last file that a kernel was asked for.
    last_dump: u64,
}

#[derive(Debug)]
pub(super) struct Save {
    pub(super) id: SaveId,
    target: Target,
    gathering: Gathering,
    /// The last run when the save began.
    last_run: RunNo,
    execution_count: u64,
    pub(super) work: Work,
}

#[derive(Debug)]
pub(super) enum Work {
    Gathering,
    Writing(Worker),
    /// A worker has saved it in the session directory, for a durable session.
    SavedLocally(Box<LocalSave>),
    Done,
}

impl Saves {
    /// Whether a process works for a save.
    pub(in super::super) fn has_process(&self, pid: Pid) -> bool {
        let uploads = self.upload.as_ref().is_some_and(|upload| upload.worker.pid() == pid);
        let works = self.current.as_ref().is_some_and(|save| match &save.work {
            Work::Gathering => save.gathering.has_writer(pid),
            Work::Writing(worker) => worker.pid() == pid,
            Work::SavedLocally(_) | Work::Done => false,
        });
        let looks = self.look.as_ref().is_some_and(|worker| worker.pid() == pid);
        uploads || looks || works
    }

    /// Returns the save that is gathering, and its parts.
    fn gathering(&mut self) -> Option<(SaveId, &mut Gathering)> {
        let save = self.current.as_mut()?;
        match save.work {
            Work::Gathering => Some((save.id, &mut save.gathering)),
            Work::Writing(_) | Work::SavedLocally(_) | Work::Done => None,
        }
    }

    fn is_durable(&self) -> bool {
        let target = self.current.as_ref().map(|save| &save.target);
        matches!(target, Some(Target::Here { .. }))
    }

    /// Notes the separate process that writes a kernel's dump.
    pub(in super::super) fn has_writer(
        &mut self,
        language: Language,
        path: &Path,
        writer: Option<Pid>,
        dumps: &Dumps,
    ) -> Vec<Event> {
        let is_durable = self.is_durable();
        let wanted = self.gathering().filter(|(_, gathering)| gathering.expects(language, path));
        let Some((save, gathering)) = wanted else {
            // The dump is no longer wanted.
            processes::signal(writer.as_slice(), Signal::KILL);
            dumps.remove_told(path);
            return Vec::new();
        };
        let Some(writer) = writer else {
            // It ended before its report was read: no event will report its end.
            let dumped = gathering.left_at(path);
            let begun = Event::SaveGathered { save, language, part: Part::Writer };
            return [begun]
                .into_iter()
                .chain(gathering.take_dump(save, language, dumped))
                .collect();
        };
        gathering.take_writer(language, path, writer);
        if is_durable {
            lower_priority(writer);
        }
        let mut news = vec![Event::SaveGathered { save, language, part: Part::Writer }];
        // It may have ended before its report was read.
        if rustix::process::test_kill_process(writer).is_err() {
            news.extend(self.writer_ended(writer));
        }
        news
    }

    /// Handles the end of a child of the keeper that may have written a dump.
    pub(in super::super) fn writer_ended(&mut self, pid: Pid) -> Option<Event> {
        let (save, gathering) = self.gathering()?;
        let (language, dumped) = gathering.left_by(pid)?;
        gathering.take_dump(save, language, dumped)
    }

    /// Handles the report that a dump is written, or failed.
    pub(in super::super) fn has_dump(
        &mut self,
        language: Language,
        dumped: DumpOutcome,
        dumps: &Dumps,
    ) -> Option<Event> {
        if self.current.is_none() {
            dumps.remove_told(&dumped.path);
        }
        let (save, gathering) = self.gathering()?;
        gathering.take_dump(save, language, dumped)
    }
}

impl Keeper {
    /// Gives all kernels their orders.
    pub(super) fn gather_save(
        &mut self,
        save: SaveId,
        target: Target,
        kernels: &[(Language, Epoch, RunNo)],
    ) {
        let mut left = self.jobs_left();
        let is_portable = match target {
            Target::File { .. } => true,
            Target::Here { for_store } => for_store,
        };
        if is_portable && self.home.has_changed_system() {
            left.push(LeftBehind::system());
        }
        let mut gathering = Gathering::new(self.home.dumps(), left);
        let directory = self.home.directory.clone();
        let state = directory.state();
        let is_live = |language| kernels.iter().any(|(other, ..)| *other == language);
        gathering.add_without_process(state.clone().unwrap_or_default(), &directory, is_live);
        let mut news = Vec::new();
        for (language, epoch, as_of) in kernels.iter().copied() {
            let earlier = match target {
                Target::Here { .. } => kept_dump(&directory, state.as_ref(), language, as_of),
                Target::File { .. } => None,
            };
            let dump = match earlier {
                Some(path) => Dump::Earlier(path),
                None if language.is_shell() => Dump::None,
                None => match self.order_dump(language) {
                    Ok(Some(path)) => Dump::Ordered(path),
                    Ok(None) => {
                        let reason = format!("the state of {language} cannot be carried yet");
                        gathering.leave_behind(language, &reason);
                        Dump::None
                    }
                    Err(failure) => {
                        news.push(Event::SaveFailed { save, failure });
                        Dump::None
                    }
                },
            };
            match dump {
                Dump::None | Dump::Earlier(_) => {
                    news.push(Event::SaveGathered { save, language, part: Part::Dump });
                }
                Dump::Ordered(_) | Dump::Writing { .. } | Dump::Written { .. } => {}
            }
            let gathered = Gathered { as_of, epoch: Some(epoch), state: None, dump };
            gathering.kernels.insert(language, gathered);
        }
        self.operations.saves.current = Some(Save {
            id: save,
            target,
            gathering,
            last_run: self.session.last_run(),
            execution_count: self.records.metadata.execution_count,
            work: Work::Gathering,
        });
        self.operate_all(news);
        // A kernel that has lost its directory for good would never answer: the save fails
        // now, and a durable session's next one has what a new kernel starts from.
        self.mend_directories();
    }

    /// Orders a dump from a kernel. Returns its path, or none if the kernel has no dumps.
    fn order_dump(&mut self, language: Language) -> Result<Option<PathBuf>, Failure> {
        self.operations.saves.last_dump += 1;
        let number = self.operations.saves.last_dump;
        let path = self.home.dumps().for_save(&format!("{number}-{language}"));
        let path = path.map_err(|error| Failure::from_error(Code::Storage, &error))?;
        let _ = self.renew_directory(language, None);
        let Some(live) = self.kernels.live.get_mut(&language) else {
            return Ok(None);
        };
        match live.kernel.dump(&path) {
            Ok(()) => Ok(Some(path)),
            Err(error) if error.kind() == io::ErrorKind::Unsupported => Ok(None),
            Err(error) => {
                let what = format!("{language} cannot be asked for its state");
                Err(of_scratch(Code::Storage, what, &error))
            }
        }
    }

    /// Returns the background processes, which stay here.
    fn jobs_left(&mut self) -> Vec<LeftBehind> {
        let jobs = self.jobs().jobs.into_iter();
        jobs.map(|job| LeftBehind {
            language: job.language,
            name: job.command,
            reason: format!("a background process stays where it is (process {})", job.pid),
        })
        .collect()
    }

    /// Handles a kernel's state that was written, to the session's file or aside.
    pub(in super::super) fn save_learns_state(&mut self, language: Language, as_of: RunNo) {
        let Operations { saves, images, .. } = &mut self.operations;
        let Some((save, gathering)) = saves.gathering() else {
            return;
        };
        if !gathering.wants_state(language, as_of) {
            return;
        }
        let in_file = || self.home.directory.state()?.kernels.remove(&language);
        let saved = images.aside.get(&language).cloned().or_else(in_file);
        if let Some(saved) = saved.filter(|saved| saved.as_of_run == as_of) {
            let event = gathering.take_state(save, language, saved);
            self.operate(event);
        }
    }

    /// Has a worker write the file: all parts are there.
    pub(super) fn write_save(&mut self, id: SaveId) {
        if let Err(error) = self.try_write_save(id) {
            let failure = of_start(Code::Storage, "the file cannot be written", &error);
            self.operate(Event::SaveFailed { save: id, failure });
        }
    }

    fn try_write_save(&mut self, id: SaveId) -> io::Result<()> {
        let contents = self.contents(id).ok_or(io::ErrorKind::NotFound)?;
        let save = self.operations.saves.current.as_mut().ok_or(io::ErrorKind::NotFound)?;
        let target = save.target.clone();
        let priority = match target {
            Target::Here { .. } => Priority::Low,
            Target::File { .. } => Priority::Normal,
        };
        let outgoing = match target {
            Target::Here { for_store: true } => {
                Some(self.home.directory.outgoing_save().map_err(|error| error.to_string()))
            }
            Target::Here { for_store: false } | Target::File { .. } => None,
        };
        let work = move || {
            let answer = match target {
                Target::Here { .. } => serde_json::to_vec(&keep(contents, outgoing)),
                Target::File { path, .. } => serde_json::to_vec(&bundle::write(&contents, &path)),
            };
            answer.unwrap_or_default()
        };
        let worker = Worker::spawn(&self.reactor, Source::SaveWorker, priority, work)?;
        save.work = Work::Writing(worker);
        Ok(())
    }

    /// Returns all that goes into a save.
    fn contents(&self, id: SaveId) -> Option<Contents> {
        let save = self.operations.saves.current.as_ref().filter(|save| save.id == id)?;
        let kernels = save.gathering.kernels.iter().filter_map(|(language, kernel)| {
            let (dump, carried) = match &kernel.dump {
                Dump::Written { path, carried } => (Some((path, Origin::ThisSave)), *carried),
                Dump::Earlier(path) => (Some((path, Origin::Before)), None),
                Dump::None | Dump::Ordered(_) | Dump::Writing { .. } => (None, None),
            };
            let live = self.kernels.live.get(language);
            Some(KernelContents {
                language: *language,
                as_of: kernel.as_of,
                epoch: kernel.epoch,
                version: live.and_then(|live| live.kernel.version()),
                state: kernel.state.clone()?,
                dump: dump.map(|(path, origin)| DumpFile { path: path.clone(), origin }),
                carried,
            })
        });
        Some(Contents {
            user: UserState::at(self.home.boot.user_state.clone()),
            files: matches!(save.target, Target::File { files: true, .. }),
            directory: self.home.directory.clone(),
            root: self.home.files(),
            metadata: Metadata {
                execution_count: save.execution_count,
                ..self.records.metadata.clone()
            },
            last_run: save.last_run,
            as_of: save.gathering.as_of(),
            kernels: kernels.collect(),
            left: save.gathering.left.clone(),
        })
    }

    /// Reads the worker's answer.
    pub(in super::super) fn read_save_worker(&mut self) {
        let Some(save) = &mut self.operations.saves.current else {
            return;
        };
        let Work::Writing(worker) = &mut save.work else {
            return;
        };
        let answer = match worker.read(&mut self.output.buffer) {
            Progress::Going => return,
            Progress::Done(answer) => answer,
            Progress::Failed => Vec::new(),
        };
        let (id, work) = (save.id, Work::Done);
        let (work, saved) = match save.target {
            Target::File { .. } => (work, understood(&answer).map(Saved::File)),
            Target::Here { .. } => match understood::<Box<LocalSave>>(&answer) {
                Ok(local) => {
                    let outgoing = local.outgoing.clone().map(|file| file.map(|_| ()));
                    (Work::SavedLocally(local), Ok(Saved::Here { outgoing }))
                }
                Err(failure) => (work, Err(failure)),
            },
        };
        save.work = work;
        self.operate(match saved {
            Ok(saved) => Event::SaveWritten { save: id, saved },
            Err(failure) => Event::SaveFailed { save: id, failure },
        });
    }

    /// Ends the processes that work for a save, and removes its files.
    pub(super) fn release_save(&mut self, id: SaveId) {
        let Some(save) = self.operations.saves.current.take_if(|save| save.id == id) else {
            return;
        };
        match save.work {
            Work::Gathering | Work::Done => {}
            Work::Writing(worker) => worker.kill(),
            Work::SavedLocally(local) => local.clear_away(),
        }
        save.gathering.clear_away();
    }
}

/// Parses a worker's answer.
fn understood<T: serde::de::DeserializeOwned>(answer: &[u8]) -> Result<T, Failure> {
    serde_json::from_slice(answer).unwrap_or_else(|_| {
        let message = "the file was not written: the process that wrote it was ended";
        Err(Failure::new(Code::Storage, message))
    })
}
