//! The files of the workspace: taken, put back, copied.
//!
//! A workspace may be large and its disk slow, so all of it is done by workers.
//! Before files are put back those that are there are taken, and what is to be
//! done is written down: a keeper that is killed in the middle leaves it to the
//! next, which finishes it.

use super::bundle::omissions;
use super::{Keeper, timeline};
use crate::source::{FileJobId, Source};
use crate::worker::{Awaited, Progress, Worker};
use serde::{Deserialize, Serialize};
use sessile_protocol::{Code, Failure, FilesView, Language, LeftBehind, RestoredFiles, RunNo};
use sessile_session::{Epoch, PointId};
use sessile_snapshot::files::{self, Depot, Restored, Rules, TreeId};
use sessile_store::{Directory, Entry, SavedKernel};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Larger files are left out of checkpoints, and a rewind leaves them alone.
const LARGEST_FILE: u64 = 256 << 20;
/// Of all files together.
const LARGEST_WORKSPACE: u64 = 4 << 30;

/// Where a session has its checkpoints' files.
const DEPOT: &str = "files";
/// What is being put back.
const JOURNAL: &str = "rewind.json";

/// A workspace and where its files are stored.
#[derive(Clone, Debug)]
pub(super) struct Place {
    root: PathBuf,
    depot: PathBuf,
    sessions: PathBuf,
}

#[derive(Debug)]
pub(super) enum Task {
    Take,
    /// Make the workspace what it was, or leave it as it is.
    Put {
        tree: TreeId,
        before: TreeId,
    },
    /// Copies for forks.
    Copy(Vec<PathBuf>),
    /// Remove what none of these needs.
    Sweep(Vec<TreeId>),
}

/// Files that were taken.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Taken {
    pub(super) tree: TreeId,
    pub(super) view: FilesView,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Outcome {
    Taken(Taken),
    Put(RestoredFiles),
    /// What is not in the copies.
    Copied(Vec<LeftBehind>),
    Swept,
}

/// What became of a rewind's worker.
#[derive(Debug)]
pub(super) enum Step {
    Taken(Taken),
    Put(RestoredFiles),
    /// Nothing was changed.
    Refused(Failure),
    /// It was ended, and nobody knows how far it was.
    Killed,
}

/// Whom a worker works for.
#[derive(Debug)]
pub(super) enum Purpose {
    Checkpoint(PointId),
    Prepare { point: PointId, language: Language, epoch: Epoch, run: RunNo },
    Rewind,
    Fork,
    Sweep,
}

/// What workers do with the files.
#[derive(Debug, Default)]
pub(super) struct FileJobs {
    pub(super) jobs: Vec<FileJob>,
    pub(super) last: u64,
}

#[derive(Debug)]
pub(super) struct FileJob {
    id: FileJobId,
    worker: Worker,
    purpose: Purpose,
}

/// What a rewind that has begun to change files is to bring about.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Journal {
    pub(super) tree: TreeId,
    /// What there was before; where that cannot be had, neither can this.
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
            root: self.home.boot.work_dir.clone(),
            depot: directory.join(DEPOT),
            sessions: directory.parent().unwrap_or(directory).to_owned(),
        }
    }

    pub(super) fn send_out(&mut self, task: Task, purpose: Purpose) -> Result<(), Failure> {
        let place = self.place();
        let work = move || serde_json::to_vec(&perform(&place, task)).unwrap_or_default();
        let id = FileJobId(self.files.last + 1);
        let worker = Worker::spawn(&self.reactor, Source::FileWorker(id), Awaited::ByClient, work)
            .map_err(|error| {
                Failure::new(Code::Storage, format!("the files cannot be looked after: {error}"))
            })?;
        self.files.last += 1;
        self.files.jobs.push(FileJob { id, worker, purpose });
        Ok(())
    }

    /// A worker answers.
    pub(super) fn read_file_worker(&mut self, id: FileJobId) {
        let Some(at) = self.files.jobs.iter().position(|job| job.id == id) else {
            return;
        };
        let outcome = match self.files.jobs[at].worker.read(&mut self.output.buffer) {
            Progress::Going => return,
            Progress::Done(answer) => serde_json::from_slice(&answer).ok(),
            Progress::Failed => None,
        };
        let FileJob { purpose, .. } = self.files.jobs.remove(at);
        let was_killed = outcome.is_none();
        let outcome: Result<Outcome, Failure> = outcome.unwrap_or_else(|| {
            let message = "the process that looked after the files was ended";
            Err(Failure::new(Code::Storage, message))
        });
        match purpose {
            Purpose::Checkpoint(point) => self.files_taken(point, outcome),
            Purpose::Prepare { point, language, epoch, run } => {
                if let Err(failure) = &outcome {
                    let note = format!("undo will not bring the files back: {failure}");
                    self.tell(language, None, note);
                }
                self.files_taken(point, outcome);
                self.prepared(language, epoch, run);
            }
            Purpose::Rewind => {
                self.operations.put_back = Some(match outcome {
                    Ok(Outcome::Taken(before)) => Step::Taken(before),
                    Ok(Outcome::Put(restored)) => Step::Put(restored),
                    Ok(Outcome::Copied(_) | Outcome::Swept) => Step::Refused(unexpected()),
                    Err(_) if was_killed => Step::Killed,
                    Err(failure) => Step::Refused(failure),
                });
            }
            Purpose::Fork => {
                self.operations.copied = Some(outcome.and_then(|outcome| match outcome {
                    Outcome::Copied(left) => Ok(left),
                    Outcome::Taken(_) | Outcome::Put(_) | Outcome::Swept => Err(unexpected()),
                }));
            }
            Purpose::Sweep => {}
        }
        self.pump_operations();
    }

    /// Whether a process is there for the files.
    pub(super) fn works_on_files(&self, pid: rustix::process::Pid) -> bool {
        self.files.jobs.iter().any(|job| job.worker.pid() == pid)
    }

    /// Nobody needs any of it any more.
    pub(super) fn remove_files(&mut self) {
        for job in std::mem::take(&mut self.files.jobs) {
            job.worker.kill();
        }
        let depot = self.place().depot;
        if depot.exists() {
            let _ = std::fs::remove_dir_all(depot);
        }
    }

    pub(super) fn write_journal(&self, journal: &Journal) -> Result<(), Failure> {
        self.home
            .directory
            .write_json(JOURNAL, journal)
            .map_err(|error| Failure::new(Code::Storage, format!("nothing was changed: {error}")))
    }

    pub(super) fn remove_journal(&self) {
        let _ = std::fs::remove_file(self.home.directory.path().join(JOURNAL));
    }
}

/// Finishes what a keeper that was killed had begun: the session is as of the
/// checkpoint then, files and shells; or, if that cannot be, as it was.
pub(super) fn recover(directory: &Directory) {
    let Ok(journal) = directory.read_json::<Journal>(JOURNAL) else {
        return;
    };
    let sessions = directory.path().parent().unwrap_or(directory.path()).to_owned();
    let depot = directory.path().join(DEPOT);
    let place = Place { root: journal.root, depot, sessions };
    let what = match put(&place, journal.tree, journal.before) {
        Ok(_) => {
            let mut state = directory.state().unwrap_or_default();
            state.kernels = journal.kernels;
            let _ = directory.write_state(&state);
            timeline::recover_line(directory, journal.line);
            "finished after the keeper was ended".to_owned()
        }
        Err(failure) => format!("the keeper was ended in it: {failure}"),
    };
    let command = format!("rewind {} ({what})", journal.checkpoint);
    let entry = Entry::event(journal.run, journal.language, "rewind", command);
    let _ = directory.history().append(&entry);
    let _ = std::fs::remove_file(directory.path().join(JOURNAL));
}

fn unexpected() -> Failure {
    Failure::new(Code::Storage, "the process that looked after the files did something else")
}

// In the worker: everything here blocks.

fn rules(place: &Place) -> Rules {
    let limits = files::Limits {
        total: Some(LARGEST_WORKSPACE),
        file: Some(LARGEST_FILE),
        over: files::Over::LeaveOut,
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
    let message = if error.is_disk_full() {
        format!("there is no room for the workspace's files: {error}")
    } else {
        format!("the workspace's files: {error}")
    };
    Failure::new(Code::Storage, message)
}

fn take(place: &Place) -> Result<Taken, files::Error> {
    let snapshot = Depot::open(&place.depot)?.snapshot(&place.root, &rules(place))?;
    let report = &snapshot.report;
    let view = FilesView {
        files: report.kept.files,
        bytes: report.kept.bytes,
        stored_bytes: report.new_blob_bytes + report.new_listing_bytes,
        left_out: report.left_out.total(),
        examples: omissions(&report.left_out),
    };
    Ok(Taken { tree: snapshot.tree, view })
}

fn put(place: &Place, tree: TreeId, before: TreeId) -> Result<Outcome, Failure> {
    let depot = Depot::open(&place.depot).map_err(|error| failure(&error))?;
    let restored = depot.restore(tree, &place.root, &rules(place));
    let refused = match restored {
        Ok(restored) if restored.is_complete() => {
            return Ok(Outcome::Put(told(&restored)));
        }
        Ok(restored) => {
            let first = restored.failed.first();
            first.map(|f| format!("{}: {}", f.path.display(), f.error)).unwrap_or_default()
        }
        Err(error) => error.to_string(),
    };
    // All or nothing.
    let undone = depot.restore(before, &place.root, &rules(place));
    let message = match undone {
        Ok(undone) if undone.is_complete() => {
            format!("nothing was changed, because not all files could be put back: {refused}")
        }
        Ok(_) | Err(_) => format!("not all files could be put back: {refused}"),
    };
    Err(Failure::new(Code::Storage, message))
}

fn told(restored: &Restored) -> RestoredFiles {
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
