//! A session becomes a file: first all kernels write their state down, at one
//! moment between two runs; then a worker writes the file.
//!
//! ```text
//! Waiting ──quiet──► Gathering ──all there──► Writing ──► answered
//! ```
//!
//! The kernels are free again as soon as they have their orders: later runs are
//! not in the file, and do not wait for it. One save at a time; whoever asked
//! and goes takes it back.

use super::Keeper;
use super::bundle::{self, Contents, DumpFile, KernelContents, Origin};
use super::durable::{Kept, keep};
use crate::kernels::{Dumped, outcome_file};
use crate::processes;
use crate::reactor::Token;
use crate::worker::{Progress, Worker};
use rustix::process::{Pid, Signal};
use sessile_protocol::{Answer, Code, Failure, Language, LeftBehind, Reply, RunNo};
use sessile_session::{Epoch, Input, Tick};
use sessile_store::{Metadata, SavedKernel};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

/// A kernel that has not described itself by then never will.
const STATE_PATIENCE: Tick = 10_000;

/// The same for a dump, which may be gigabytes on a slow disk.
const DUMP_PATIENCE: Tick = 600_000;

/// What is asked for.
#[derive(Debug)]
pub(super) struct SaveOrder {
    /// The file to write; for a durable session's own saves there may be none.
    pub(super) path: Option<PathBuf>,
    pub(super) files: bool,
    pub(super) wait: bool,
}

#[derive(Debug)]
pub(super) struct Saving {
    asker: Asker,
    order: SaveOrder,
    phase: Phase,
}

/// Who wants a save.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asker {
    Client {
        connection: Token,
        call: u64,
    },
    /// The session is durable, and it was quiet.
    Durability,
}

#[derive(Debug)]
enum Phase {
    /// For runs to end, and for kernels to come up.
    Waiting,
    Gathering {
        kernels: BTreeMap<Language, Gathered>,
        left: Vec<LeftBehind>,
        as_of: RunNo,
        last_run: RunNo,
        execution_count: u64,
        states_due: Tick,
        dumps_due: Tick,
    },
    Writing {
        worker: Worker,
        dumps: Vec<PathBuf>,
    },
}

/// What there is of a kernel so far.
#[derive(Debug)]
struct Gathered {
    as_of: RunNo,
    /// Of its process, if it has one.
    epoch: Option<Epoch>,
    state: Option<SavedKernel>,
    dump: Dump,
}

#[derive(Debug)]
enum Dump {
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
    fn is_complete(&self) -> bool {
        let has_dump = match self.dump {
            Dump::None | Dump::Written { .. } | Dump::Kept(_) => true,
            Dump::Ordered(_) | Dump::Writing { .. } => false,
        };
        has_dump && self.state.is_some()
    }

    /// A file of this save's own.
    fn own_file(&self) -> Option<PathBuf> {
        match &self.dump {
            Dump::None | Dump::Kept(_) => None,
            Dump::Ordered(path) | Dump::Writing { path, .. } | Dump::Written { path, .. } => {
                Some(path.clone())
            }
        }
    }
}

impl Keeper {
    pub(super) fn begin_save(
        &mut self,
        connection: Token,
        call: u64,
        order: SaveOrder,
    ) -> Result<Option<Answer>, Failure> {
        if !self.session.is_open() {
            return Err(ending());
        }
        if !order.path.as_ref().is_some_and(|path| path.is_absolute()) {
            return Err(Failure::new(
                Code::BadRequest,
                "the path of a file to save to is absolute",
            ));
        }
        if !order.wait && self.is_working() {
            let message = "a run is going, and its state cannot be saved before it ends; wait for it, or save with --wait";
            return Err(Failure::new(Code::Busy, message));
        }
        self.queue_save(Asker::Client { connection, call }, order);
        Ok(None)
    }

    pub(super) fn queue_save(&mut self, asker: Asker, order: SaveOrder) {
        self.savings.push_back(Saving { asker, order, phase: Phase::Waiting });
        self.tend_savings();
    }

    pub(super) fn is_working(&self) -> bool {
        self.session.running().next().is_some() || self.session.queued() > 0
    }

    /// Whether every kernel that there is could be looked into now.
    fn is_quiet(&self) -> bool {
        let is_idle = |language: &Language| self.session.idle_as_of(*language).is_some();
        !self.is_working() && self.kernels.keys().all(is_idle)
    }

    /// Goes on with the first save, as far as it can.
    pub(super) fn tend_savings(&mut self) {
        while let Some(saving) = self.savings.front() {
            let step = match &saving.phase {
                Phase::Waiting if self.is_quiet() => self.gather(),
                Phase::Gathering { kernels, .. } if kernels.values().all(Gathered::is_complete) => {
                    self.write_bundle()
                }
                Phase::Waiting | Phase::Writing { .. } | Phase::Gathering { .. } => return,
            };
            if let Err(failure) = step {
                self.end_save(Err(failure));
            }
        }
    }

    /// When something that a save waits for is overdue.
    pub(super) fn saving_due(&self) -> Option<Tick> {
        match &self.savings.front()?.phase {
            Phase::Waiting | Phase::Writing { .. } => None,
            Phase::Gathering { kernels, states_due, dumps_due, .. } => {
                let is_described = kernels.values().all(|kernel| kernel.state.is_some());
                Some(if is_described { *dumps_due } else { *states_due })
            }
        }
    }

    pub(super) fn save_is_overdue(&mut self) {
        let Some(Phase::Gathering { kernels, .. }) = self.savings.front().map(|s| &s.phase) else {
            return;
        };
        let slow = kernels.iter().find(|(_, kernel)| !kernel.is_complete());
        let slow = slow.map_or(self.boot.kernel.language, |(language, _)| *language);
        let message = format!("{slow} does not write its state down; try again");
        self.end_save(Err(Failure::new(Code::Storage, message)));
        self.tend_savings();
    }

    /// Gives all kernels their orders.
    fn gather(&mut self) -> Result<(), Failure> {
        let mut left = self.jobs_left();
        let mut kernels = self.resting(&mut left);
        let live: Vec<Language> = self.kernels.keys().copied().collect();
        self.step(Input::Inspect);
        let asker = self.savings.front().map(|saving| saving.asker);
        for language in live {
            let as_of = self.session.idle_as_of(language).unwrap_or_default();
            let kept = (asker == Some(Asker::Durability)).then(|| self.kept_dump(language, as_of));
            let dump = match kept.flatten() {
                Some(path) => Dump::Kept(path),
                None if language.is_shell() => Dump::None,
                None => self.order_dump(language, &mut left)?,
            };
            let epoch = self.kernels.get(&language).map(|live| live.epoch);
            kernels.insert(language, Gathered { as_of, epoch, state: None, dump });
        }
        let now = self.now();
        let as_of = kernels.values().map(|kernel| kernel.as_of).max().unwrap_or_default();
        if let Some(saving) = self.savings.front_mut() {
            saving.phase = Phase::Gathering {
                kernels,
                left,
                as_of,
                last_run: self.session.last_run(),
                execution_count: self.metadata.execution_count,
                states_due: now + STATE_PATIENCE,
                dumps_due: now + DUMP_PATIENCE,
            };
        }
        Ok(())
    }

    /// Kernels without a process: what is known of them is on disk.
    fn resting(&self, left: &mut Vec<LeftBehind>) -> BTreeMap<Language, Gathered> {
        let state = self.directory.state().unwrap_or_default();
        let resting = state.kernels.into_iter().filter(|(l, _)| !self.kernels.contains_key(l));
        let mut found = BTreeMap::new();
        for (language, saved) in resting {
            let Some(as_of) = saved.comes_back_as_of() else {
                let reason = "its process is gone, and its state with it".to_owned();
                let name = format!("all of {language}");
                left.push(LeftBehind { language: Some(language), name, reason });
                continue;
            };
            let path = saved.dump.as_ref().and_then(|name| self.directory.dump(name));
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
            .directory
            .make_kernels()
            .map_err(|error| Failure::new(Code::Storage, error.to_string()))?;
        self.last_dump += 1;
        let path = folder.join(format!("save-{}-{language}", self.last_dump));
        remove(&path);
        let Some(live) = self.kernels.get_mut(&language) else {
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
        match &mut self.savings.front_mut()?.phase {
            Phase::Waiting | Phase::Writing { .. } => None,
            Phase::Gathering { kernels, .. } => kernels.get_mut(&language),
        }
    }

    /// A kernel's state was written down.
    pub(super) fn save_learns_state(&mut self, language: Language, as_of: RunNo) {
        if self.savings.is_empty() {
            return;
        }
        let in_file = || self.directory.state()?.kernels.remove(&language);
        let saved = self.aside.get(&language).cloned().or_else(in_file);
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
        // It may have been faster than its news.
        if rustix::process::test_kill_process(writer).is_err() {
            self.writer_ended(writer);
        }
    }

    /// A child of the keeper is gone: perhaps one that wrote a dump.
    pub(super) fn writer_ended(&mut self, pid: Pid) {
        let Some(Phase::Gathering { kernels, .. }) = self.savings.front().map(|s| &s.phase) else {
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
        let Some(saving) = self.savings.front_mut() else {
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

    /// Everything is there: a worker makes the file of it.
    fn write_bundle(&mut self) -> Result<(), Failure> {
        let Some(saving) = self.savings.front_mut() else {
            return Ok(());
        };
        let Phase::Gathering { kernels, left, as_of, last_run, execution_count, .. } =
            &mut saving.phase
        else {
            return Ok(());
        };
        let dumps = kernels.values().filter_map(Gathered::own_file).collect();
        let kernels = std::mem::take(kernels).into_iter().filter_map(|(language, kernel)| {
            let (dump, origin, carried) = match kernel.dump {
                Dump::Written { path, carried } => (Some(path), Origin::ThisSave, carried),
                Dump::Kept(path) => (Some(path), Origin::Before, None),
                Dump::None | Dump::Ordered(_) | Dump::Writing { .. } => {
                    (None, Origin::ThisSave, None)
                }
            };
            let version = self.kernels.get(&language).and_then(|live| live.kernel.version());
            let (as_of, epoch, state) = (kernel.as_of, kernel.epoch, kernel.state?);
            let dump = dump.map(|path| DumpFile { path, origin });
            Some(KernelContents { language, as_of, epoch, version, state, dump, carried })
        });
        let contents = Contents {
            files: saving.order.files,
            directory: self.directory.clone(),
            metadata: Metadata { execution_count: *execution_count, ..self.metadata.clone() },
            last_run: *last_run,
            as_of: *as_of,
            kernels: kernels.collect(),
            left: std::mem::take(left),
        };
        let (asker, path) = (saving.asker, saving.order.path.clone());
        let work = move || {
            let answer = match (asker, path) {
                (Asker::Durability, path) => serde_json::to_vec(&keep(contents, path)),
                (Asker::Client { .. }, Some(path)) => {
                    serde_json::to_vec(&bundle::write(&contents, &path))
                }
                (Asker::Client { .. }, None) => Ok(Vec::new()),
            };
            answer.unwrap_or_default()
        };
        let worker = Worker::spawn(&mut self.reactor, work).map_err(|error| {
            Failure::new(Code::Storage, format!("the file cannot be written: {error}"))
        })?;
        saving.phase = Phase::Writing { worker, dumps };
        Ok(())
    }

    /// A descriptor has news: perhaps that of the worker.
    pub(super) fn hear_worker(&mut self, token: Token) -> bool {
        let Some(saving) = self.savings.front_mut() else {
            return false;
        };
        let asker = saving.asker;
        let Phase::Writing { worker, .. } = &mut saving.phase else {
            return false;
        };
        if worker.token() != token {
            return false;
        }
        let answer = match worker.read(&mut self.buffer) {
            Progress::Going => return true,
            Progress::Done(answer) => answer,
            Progress::Failed => Vec::new(),
        };
        let outcome = match asker {
            Asker::Client { .. } => {
                understood(&answer).map(|view| Outcome::Answer(Answer::Saved(Box::new(view))))
            }
            Asker::Durability => understood(&answer).map(|kept| Outcome::Kept(Box::new(kept))),
        };
        self.end_save(outcome);
        self.tend_savings();
        true
    }

    /// Tells whoever wanted the first save, and clears away what it has made.
    fn end_save(&mut self, outcome: Result<Outcome, Failure>) {
        let Some(saving) = self.savings.pop_front() else {
            return;
        };
        let asker = saving.asker;
        clear_away(saving);
        let outcome = match outcome {
            Ok(Outcome::Kept(kept)) => return self.save_is_kept(*kept),
            Ok(Outcome::Answer(answer)) => Ok(answer),
            Err(failure) => Err(failure),
        };
        match (asker, outcome) {
            (Asker::Client { connection, call }, outcome) => {
                self.connections.send(connection, &Reply::new(call, outcome), &self.reactor);
            }
            (Asker::Durability, Err(failure)) => self.save_has_failed(&failure),
            (Asker::Durability, Ok(_)) => {}
        }
    }

    /// Whoever asked for these is gone.
    pub(super) fn forget_savings_of(&mut self, gone: &[Token]) {
        let is_gone = |saving: &mut Saving| match saving.asker {
            Asker::Client { connection, .. } => gone.contains(&connection),
            Asker::Durability => false,
        };
        let mut index = 0;
        while index < self.savings.len() {
            match self.savings.get_mut(index).is_some_and(is_gone) {
                true => self.savings.remove(index).into_iter().for_each(clear_away),
                false => index += 1,
            }
        }
        self.tend_savings();
    }

    /// The session ends, or is reset.
    pub(super) fn cancel_savings(&mut self) {
        while !self.savings.is_empty() {
            self.end_save(Err(ending()));
        }
    }

    /// Whether a process is there for a save.
    pub(super) fn works_on_save(&self, pid: Pid) -> bool {
        let uploads = self.durable.as_ref().is_some_and(|durable| durable.uploads(pid));
        uploads
            || self.savings.iter().any(|saving| match &saving.phase {
                Phase::Waiting => false,
                Phase::Writing { worker, .. } => worker.pid() == pid,
                Phase::Gathering { kernels, .. } => {
                    kernels.values().any(|kernel| match kernel.dump {
                        Dump::Writing { writer, .. } => writer == pid,
                        Dump::None | Dump::Ordered(_) | Dump::Written { .. } | Dump::Kept(_) => {
                            false
                        }
                    })
                }
            })
    }
}

/// What a save came to.
enum Outcome {
    Answer(Answer),
    Kept(Box<Kept>),
}

/// A worker's answer.
fn understood<T: serde::de::DeserializeOwned>(answer: &[u8]) -> Result<T, Failure> {
    serde_json::from_slice(answer).unwrap_or_else(|_| {
        let message = "the file was not written: the process that wrote it was ended";
        Err(Failure::new(Code::Storage, message))
    })
}

/// Ends what works for a save, and removes its files.
fn clear_away(saving: Saving) {
    match saving.phase {
        Phase::Waiting => {}
        Phase::Gathering { kernels, .. } => {
            for kernel in kernels.into_values() {
                if let Dump::Writing { writer, .. } = kernel.dump {
                    processes::signal(&[writer], Signal::KILL);
                }
                kernel.own_file().iter().for_each(|path| remove(path));
            }
        }
        Phase::Writing { worker, dumps } => {
            worker.kill();
            dumps.iter().for_each(|path| remove(path));
        }
    }
}

fn remove(dump: &Path) {
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

fn ending() -> Failure {
    Failure::new(Code::Ending, "the session is ending or being reset; nothing was saved")
}
