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
use super::durable::{DurableSaves, Kept, keep};
use super::gathering::{Dump, Gathered, remove};
use super::waiters::{Caller, Ticket, WaitsFor};
use crate::processes;
use crate::source::Source;
use crate::worker::{Awaited, Progress, Worker};
use rustix::process::{Pid, Signal};
use sessile_protocol::{Answer, Code, Failure, Language, LeftBehind, RunNo};
use sessile_session::Tick;
use sessile_store::{Metadata, SavedKernel, UserState};
use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;

#[derive(Debug)]
pub(super) struct SaveOrder {
    /// The file to write; for a durable session's own saves there may be none.
    pub(super) path: Option<PathBuf>,
    pub(super) files: bool,
    pub(super) wait: bool,
}

#[derive(Debug, Default)]
pub(super) struct Saves {
    /// The first is under way.
    pub(super) queue: VecDeque<Saving>,
    /// When it is saved by itself, if it is durable.
    pub(super) durable: Option<DurableSaves>,
    /// Numbers the files that kernels are asked for.
    pub(super) last_dump: u64,
    /// States that were captured last and could not be written to the file.
    pub(super) aside: BTreeMap<Language, SavedKernel>,
}

#[derive(Debug)]
pub(super) struct Saving {
    pub(super) asker: Asker,
    pub(super) order: SaveOrder,
    pub(super) phase: Phase,
}

/// Who wants a save.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asker {
    Client(Ticket),
    /// The session is durable, and it was quiet.
    Durability,
}

#[derive(Debug)]
pub(super) enum Phase {
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

impl Keeper {
    pub(super) fn begin_save(
        &mut self,
        caller: Caller,
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
        let ticket = self.clients.waiters.add(caller, WaitsFor::Save, None);
        self.queue_save(Asker::Client(ticket), order);
        Ok(None)
    }

    pub(super) fn queue_save(&mut self, asker: Asker, order: SaveOrder) {
        self.saves.queue.push_back(Saving { asker, order, phase: Phase::Waiting });
        self.tend_savings();
    }

    pub(super) fn is_working(&self) -> bool {
        self.session.running().next().is_some() || self.session.queued() > 0
    }

    /// Whether every kernel that there is could be looked into now.
    fn is_quiet(&self) -> bool {
        let is_idle = |language: &Language| self.session.idle_as_of(*language).is_some();
        !self.is_working() && self.kernels.live.keys().all(is_idle)
    }

    /// Goes on with the first save, as far as it can.
    pub(super) fn tend_savings(&mut self) {
        while let Some(saving) = self.saves.queue.front() {
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
        match &self.saves.queue.front()?.phase {
            Phase::Waiting | Phase::Writing { .. } => None,
            Phase::Gathering { kernels, states_due, dumps_due, .. } => {
                let is_described = kernels.values().all(|kernel| kernel.state.is_some());
                Some(if is_described { *dumps_due } else { *states_due })
            }
        }
    }

    pub(super) fn save_is_overdue(&mut self) {
        let Some(Phase::Gathering { kernels, .. }) = self.saves.queue.front().map(|s| &s.phase)
        else {
            return;
        };
        let slow = kernels.iter().find(|(_, kernel)| !kernel.is_complete());
        let slow = slow.map_or(self.home.boot.kernel.language, |(language, _)| *language);
        let message = format!("{slow} does not write its state down; try again");
        self.end_save(Err(Failure::new(Code::Storage, message)));
        self.tend_savings();
    }

    /// Everything is there: a worker makes the file of it.
    fn write_bundle(&mut self) -> Result<(), Failure> {
        let Some(saving) = self.saves.queue.front_mut() else {
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
            let version = self.kernels.live.get(&language).and_then(|live| live.kernel.version());
            let (as_of, epoch, state) = (kernel.as_of, kernel.epoch, kernel.state?);
            let dump = dump.map(|path| DumpFile { path, origin });
            Some(KernelContents { language, as_of, epoch, version, state, dump, carried })
        });
        let contents = Contents {
            user: UserState::at(self.home.boot.user_state.clone()),
            files: saving.order.files,
            directory: self.home.directory.clone(),
            metadata: Metadata {
                execution_count: *execution_count,
                ..self.records.metadata.clone()
            },
            last_run: *last_run,
            as_of: *as_of,
            kernels: kernels.collect(),
            left: std::mem::take(left),
        };
        let (asker, path) = (saving.asker, saving.order.path.clone());
        let work = move || {
            let answer = match (asker, path) {
                (Asker::Durability, path) => serde_json::to_vec(&keep(contents, path)),
                (Asker::Client(_), Some(path)) => {
                    serde_json::to_vec(&bundle::write(&contents, &path))
                }
                (Asker::Client(_), None) => Ok(Vec::new()),
            };
            answer.unwrap_or_default()
        };
        let awaited = match asker {
            Asker::Durability => Awaited::ByNobody,
            Asker::Client(_) => Awaited::ByClient,
        };
        let worker =
            Worker::spawn(&self.reactor, Source::SaveWorker, awaited, work).map_err(|error| {
                Failure::new(Code::Storage, format!("the file cannot be written: {error}"))
            })?;
        saving.phase = Phase::Writing { worker, dumps };
        Ok(())
    }

    /// The worker answers.
    pub(super) fn read_save_worker(&mut self) {
        let Some(saving) = self.saves.queue.front_mut() else {
            return;
        };
        let asker = saving.asker;
        let Phase::Writing { worker, .. } = &mut saving.phase else {
            return;
        };
        let answer = match worker.read(&mut self.output.buffer) {
            Progress::Going => return,
            Progress::Done(answer) => answer,
            Progress::Failed => Vec::new(),
        };
        let outcome = match asker {
            Asker::Client(_) => {
                understood(&answer).map(|view| Outcome::Answer(Answer::Saved(Box::new(view))))
            }
            Asker::Durability => understood(&answer).map(|kept| Outcome::Kept(Box::new(kept))),
        };
        self.end_save(outcome);
        self.tend_savings();
    }

    /// Tells whoever wanted the first save, and clears away what it has made.
    pub(super) fn end_save(&mut self, outcome: Result<Outcome, Failure>) {
        let Some(saving) = self.saves.queue.pop_front() else {
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
            (Asker::Client(ticket), outcome) => {
                self.clients.answer_ticket(ticket, outcome, &self.reactor);
            }
            (Asker::Durability, Err(failure)) => self.save_has_failed(&failure),
            (Asker::Durability, Ok(_)) => {}
        }
    }

    /// Whoever asked for this is gone.
    pub(super) fn withdraw_save(&mut self, ticket: Ticket) {
        let at = self.saves.queue.iter().position(|saving| saving.asker == Asker::Client(ticket));
        if let Some(saving) = at.and_then(|at| self.saves.queue.remove(at)) {
            clear_away(saving);
        }
        self.tend_savings();
    }

    /// The session ends, or is reset.
    pub(super) fn cancel_savings(&mut self) {
        while !self.saves.queue.is_empty() {
            self.end_save(Err(ending()));
        }
    }

    /// Whether a process is there for a save.
    pub(super) fn works_on_save(&self, pid: Pid) -> bool {
        let uploads = self.saves.durable.as_ref().is_some_and(|durable| durable.uploads(pid));
        uploads
            || self.saves.queue.iter().any(|saving| match &saving.phase {
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
pub(super) enum Outcome {
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

fn ending() -> Failure {
    Failure::new(Code::Ending, "the session is ending or being reset; nothing was saved")
}
