//! The files of the workspace: taken, put back, copied.
//!
//! A workspace may be large and its disk slow, so workers do all of this. Before files
//! are put back, the current ones are taken and a journal is written: if the keeper is
//! killed in the middle, the next one finishes the work.

use super::super::Keeper;
use super::bundle::omissions;
use super::record;
use crate::confined::Confined;
use crate::shortage::of_start;
use crate::source::{FileJobId, Source};
use crate::worker::{Priority, Progress, Worker};
use serde::{Deserialize, Serialize};
use sessile_layer::{UPPER, remember_bases};
use sessile_protocol::{Code, Failure, FilesView, Language, LeftBehind, RestoredFiles, RunNo};
use sessile_session::operations::{Event, FilesId, PutFailure, RequestId};
use sessile_snapshot::files::{self, Depot, Restored, Rules, TreeId};
use sessile_store::{Directory, Entry, SavedKernel};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Larger files are left out of checkpoints, and a rewind leaves them alone.
const LARGEST_FILE: u64 = 256 << 20;
/// Limit for all files together.
const LARGEST_WORKSPACE: u64 = 4 << 30;

/// Directory for the files of a session's checkpoints.
const DEPOT: &str = "files";
/// Journal of a rewind in progress.
const JOURNAL: &str = "rewind.json";

/// A workspace and where its files are stored.
#[derive(Clone, Debug)]
struct Place {
    root: PathBuf,
    depot: PathBuf,
    sessions: PathBuf,
    /// The layer on top of the workspace in a sandbox, if there is one.
    layer: Option<PathBuf>,
}

#[derive(Debug)]
enum Task {
    Take,
    /// Restore the workspace to `tree`, or leave it as it is.
    Put {
        tree: TreeId,
        before: TreeId,
    },
    /// Make copies for forks.
    Copy(Vec<PathBuf>),
    /// Remove what none of these trees needs.
    Sweep(Vec<TreeId>),
}

/// Files that were taken.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct TakenFiles {
    pub(super) tree: TreeId,
    pub(super) view: FilesView,
}

#[derive(Debug, Serialize, Deserialize)]
enum Outcome {
    Taken(TakenFiles),
    Put(RestoredFiles),
    /// What is missing from the copies.
    Copied(Vec<LeftBehind>),
    Swept,
}

/// What a worker works for.
#[derive(Debug)]
enum Purpose {
    Take(FilesId),
    Put(FilesId),
    Fork(RequestId),
    Sweep,
}

#[derive(Debug)]
struct FileJob {
    id: FileJobId,
    worker: Worker,
    purpose: Purpose,
}

/// Work on the files, and the trees that were taken.
#[derive(Debug, Default)]
pub(super) struct FileJobs {
    jobs: Vec<FileJob>,
    last: u64,
    trees: BTreeMap<FilesId, TakenFiles>,
}

impl FileJobs {
    pub(super) fn tree(&self, files: FilesId) -> Option<&TakenFiles> {
        self.trees.get(&files)
    }

    pub(super) fn keep(&mut self, files: FilesId, taken: TakenFiles) {
        self.trees.insert(files, taken);
    }
}

/// The goal of a rewind that has begun to change files.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Journal {
    pub(super) tree: TreeId,
    /// The state before, which is put back if `tree` cannot be restored.
    pub(super) before: TreeId,
    /// The runs that lead to the checkpoint.
    #[serde(default)]
    pub(super) line: Vec<RunNo>,
    pub(super) root: PathBuf,
    pub(super) checkpoint: String,
    pub(super) kernels: BTreeMap<Language, SavedKernel>,
    pub(super) language: Language,
    pub(super) run: RunNo,
}

impl Keeper {
    fn place(&self) -> Place {
        let directory = self.home.directory.path();
        Place {
            root: self.home.files(),
            depot: directory.join(DEPOT),
            sessions: directory.parent().unwrap_or(directory).to_owned(),
            layer: self.home.confined.as_ref().map(|confined| confined.layer().to_owned()),
        }
    }

    pub(super) fn take_files(&mut self, files: FilesId) {
        if let Err(failure) = self.start_file_job(Task::Take, Purpose::Take(files)) {
            self.operate(Event::FilesNotTaken { files, failure });
        }
    }

    pub(super) fn put_files(&mut self, files: FilesId, to: FilesId, before: FilesId) {
        let tree = |files| self.operations.files.tree(files).map(|taken| taken.tree);
        let task = match (tree(to), tree(before)) {
            (Some(tree), Some(before)) => Ok(Task::Put { tree, before }),
            (None, _) | (_, None) => Err(unexpected()),
        };
        let started = task.and_then(|task| self.start_file_job(task, Purpose::Put(files)));
        if let Err(failure) = started {
            let failure = PutFailure::Refused(failure);
            self.operate(Event::FilesNotPut { files, failure });
        }
    }

    pub(super) fn copy_files(
        &mut self,
        request: RequestId,
        to: Vec<PathBuf>,
    ) -> Result<(), Failure> {
        self.start_file_job(Task::Copy(to), Purpose::Fork(request))
    }

    /// Removes the files that no checkpoint needs any more.
    pub(super) fn sweep_files(&mut self, keep: &[FilesId]) {
        let trees = &mut self.operations.files.trees;
        trees.retain(|files, _| keep.contains(files));
        let keep = trees.values().map(|taken| taken.tree).collect();
        let _ = self.start_file_job(Task::Sweep(keep), Purpose::Sweep);
    }

    fn start_file_job(&mut self, task: Task, purpose: Purpose) -> Result<(), Failure> {
        let place = self.place();
        let work = move || serde_json::to_vec(&perform(&place, task)).unwrap_or_default();
        let files = &mut self.operations.files;
        let id = FileJobId(files.last + 1);
        let worker = Worker::spawn(&self.reactor, Source::FileWorker(id), Priority::Normal, work)
            .map_err(|error| {
            of_start(Code::Storage, "the files cannot be looked after", &error)
        })?;
        files.last += 1;
        files.jobs.push(FileJob { id, worker, purpose });
        Ok(())
    }

    /// Reads a worker's answer.
    pub(in super::super) fn read_file_worker(&mut self, id: FileJobId) {
        let jobs = &mut self.operations.files.jobs;
        let Some(at) = jobs.iter().position(|job| job.id == id) else {
            return;
        };
        let outcome: Option<Result<Outcome, Failure>> =
            match jobs[at].worker.read(&mut self.output.buffer) {
                Progress::Going => return,
                Progress::Done(answer) => serde_json::from_slice(&answer).ok(),
                Progress::Failed => None,
            };
        match jobs.remove(at).purpose {
            Purpose::Take(files) => self.files_taken(files, outcome.unwrap_or_else(was_ended)),
            Purpose::Put(files) => self.operate(match outcome {
                Some(Ok(Outcome::Put(restored))) => Event::FilesPut { files, restored },
                Some(Ok(Outcome::Taken(_) | Outcome::Copied(_) | Outcome::Swept)) => {
                    Event::FilesNotPut { files, failure: PutFailure::Refused(unexpected()) }
                }
                Some(Err(failure)) => {
                    Event::FilesNotPut { files, failure: PutFailure::Refused(failure) }
                }
                None => Event::FilesNotPut { files, failure: PutFailure::Killed },
            }),
            Purpose::Fork(request) => {
                let outcome = outcome.unwrap_or_else(was_ended);
                let copied = outcome.and_then(|outcome| match outcome {
                    Outcome::Copied(left) => Ok(left),
                    Outcome::Taken(_) | Outcome::Put(_) | Outcome::Swept => Err(unexpected()),
                });
                self.files_copied(request, copied);
            }
            Purpose::Sweep => {}
        }
    }

    fn files_taken(&mut self, files: FilesId, outcome: Result<Outcome, Failure>) {
        let event = match outcome {
            Ok(Outcome::Taken(taken)) => {
                let view = taken.view.clone();
                self.operations.files.keep(files, taken);
                Event::FilesTaken { files, view }
            }
            Ok(Outcome::Put(_) | Outcome::Copied(_) | Outcome::Swept) => {
                Event::FilesNotTaken { files, failure: unexpected() }
            }
            Err(failure) => Event::FilesNotTaken { files, failure },
        };
        self.operate(event);
    }

    /// Whether a process works on the files.
    pub(in super::super) fn works_on_files(&self, pid: rustix::process::Pid) -> bool {
        self.operations.files.jobs.iter().any(|job| job.worker.pid() == pid)
    }

    /// Ends all work and removes the stored files: they are no longer needed.
    pub(super) fn remove_files(&mut self) {
        for job in std::mem::take(&mut self.operations.files.jobs) {
            job.worker.kill();
        }
        self.operations.files.trees.clear();
        let depot = self.place().depot;
        if depot.exists() {
            let _ = std::fs::remove_dir_all(depot);
        }
    }

    pub(super) fn write_to_journal(&self, journal: &Journal) -> Result<(), Failure> {
        self.home
            .directory
            .write_json(JOURNAL, journal)
            .map_err(|error| Failure::because(Code::Storage, "nothing was changed", &error))
    }

    pub(super) fn remove_journal(&self) {
        let _ = std::fs::remove_file(self.home.directory.path().join(JOURNAL));
    }
}

/// Finishes the rewind of a keeper that was killed. Files and shells are then as of the
/// checkpoint or, if that is impossible, as they were before.
pub(in super::super) fn recover(directory: &Directory, confined: Option<&Confined>) {
    let Ok(journal) = directory.read_json::<Journal>(JOURNAL) else {
        return;
    };
    let sessions = directory.path().parent().unwrap_or(directory.path()).to_owned();
    let depot = directory.path().join(DEPOT);
    let root = match confined {
        Some(confined) => confined.sandbox().outside(confined.work_dir()),
        None => journal.root,
    };
    let layer = confined.map(|confined| confined.layer().to_owned());
    let place = Place { root, depot, sessions, layer };
    let what = match put(&place, journal.tree, journal.before) {
        Ok(_) => {
            let mut state = directory.state().unwrap_or_default();
            state.kernels = journal.kernels;
            let _ = directory.write_state(&state);
            record::recover_line(directory, journal.line);
            "finished after the keeper was ended".to_owned()
        }
        Err(failure) => format!("the keeper was ended in it: {failure}"),
    };
    let command = format!("rewind {} ({what})", journal.checkpoint);
    let entry = Entry::event(journal.run, journal.language, "rewind", command);
    let mut history = directory.history();
    let _ = history.append(&entry).and_then(|()| history.complete());
    let _ = std::fs::remove_file(directory.path().join(JOURNAL));
}

fn was_ended<T>() -> Result<T, Failure> {
    Err(Failure::new(
        Code::Storage,
        "the process that reads and writes the files was killed; try again",
    ))
}

fn unexpected() -> Failure {
    Failure::new(
        Code::Storage,
        "the process that reads and writes the files gave an unexpected answer; try again",
    )
}

// In the worker: everything here blocks.

fn rules(place: &Place) -> Rules {
    let limits = files::Limits {
        total: Some(LARGEST_WORKSPACE),
        file: Some(LARGEST_FILE),
        over: files::OverLimit::LeaveOut,
    };
    Rules { limits, skip: vec![place.sessions.clone()], ..Rules::default() }
}

fn perform(place: &Place, task: Task) -> Result<Outcome, Failure> {
    let done = match task {
        Task::Take => take(place).map(Outcome::Taken),
        Task::Put { tree, before } => return put(place, tree, before),
        Task::Copy(to) => copy(place, &to).map(Outcome::Copied),
        Task::Sweep(keep) => sweep(place, &keep).map(|()| Outcome::Swept),
    };
    done.map_err(|error| failure(&error))
}

fn failure(error: &files::Error) -> Failure {
    let what = if error.is_disk_full() {
        "there is no room for the workspace's files"
    } else {
        "the workspace's files"
    };
    Failure::because(Code::Storage, what, error)
}

fn take(place: &Place) -> Result<TakenFiles, files::Error> {
    let snapshot = Depot::open(&place.depot)?.snapshot(&place.root, &rules(place))?;
    let report = &snapshot.report;
    let view = FilesView {
        files: report.kept.files,
        bytes: report.kept.bytes,
        stored_bytes: report.new_blob_bytes + report.new_listing_bytes,
        left_out: report.left_out.total(),
        examples: omissions(&report.left_out),
    };
    Ok(TakenFiles { tree: snapshot.tree, view })
}

fn put(place: &Place, tree: TreeId, before: TreeId) -> Result<Outcome, Failure> {
    let depot = Depot::open(&place.depot).map_err(|error| failure(&error))?;
    // Files that are put back are new files, which no longer show since when they belong
    // to the session.
    if let Some(layer) = place.layer.as_ref().filter(|layer| layer.join(UPPER).is_dir()) {
        remember_bases(layer).map_err(|error| {
            Failure::new(Code::Storage, format!("nothing was changed: {error}"))
        })?;
    }
    let restored = depot.restore(tree, &place.root, &rules(place));
    let refused = match restored {
        Ok(restored) if restored.is_complete() => {
            return Ok(Outcome::Put(restored_files(&restored)));
        }
        Ok(restored) => match restored.failed.first() {
            Some(first) => Failure::because(Code::Storage, first.path.display(), &first.error),
            None => Failure::new(
                Code::Storage,
                "some of the saved files are missing; go back to another checkpoint",
            ),
        },
        Err(error) => Failure::from_error(Code::Storage, &error),
    };
    // All or nothing.
    let undone = depot.restore(before, &place.root, &rules(place));
    Err(refused.about(match undone {
        Ok(undone) if undone.is_complete() => {
            "nothing was changed, because not all files could be put back"
        }
        Ok(_) | Err(_) => "not all files could be put back",
    }))
}

fn restored_files(restored: &Restored) -> RestoredFiles {
    RestoredFiles {
        written: (restored.created.len() + restored.changed.len() + restored.attributes.len())
            as u64,
        removed: restored.deleted.len() as u64,
        before: None,
        problems: omissions(&restored.left_alone),
    }
}

fn copy(place: &Place, to: &[PathBuf]) -> Result<Vec<LeftBehind>, files::Error> {
    let mut left = Vec::new();
    for path in to {
        let copied =
            files::copy(&place.root, Path::new(path), std::slice::from_ref(&place.sessions))?;
        left = omissions(&copied.left_out);
    }
    Ok(left)
}

fn sweep(place: &Place, keep: &[TreeId]) -> Result<(), files::Error> {
    let depot = Depot::open(&place.depot)?;
    depot.sweep()?.keep(keep).map(|_| ())
}
