//! The driver of a session: takes every event in order, asks the session what
//! to do, and does it.
//!
//! ```text
//!  reactor ─► sources ─┐            ┌─► effects ─► kernels, output, clients, …
//!  deadlines ──────────┼─► agenda ──┤
//!  clients ─► requests ┘   facts    └─◄ session decides
//! ```
//!
//! [`Keeper`] has parts, each of which owns its data and has a file of its own.
//! What concerns several of them is here and in `sources`, `reports`, `endings`,
//! `requests`, `effects` and `waiting`.

mod agenda;
mod bombs;
mod captures;
mod clients;
mod deadlines;
mod deferred;
mod disk;
mod dying;
mod effects;
mod endings;
mod environment;
mod family;
mod home;
mod interaction;
mod jobs;
mod launching;
mod lists;
mod live;
mod operations;
mod orders;
mod output;
mod pressing;
mod program;
mod prompts;
mod records;
mod refusals;
mod removed;
mod reports;
mod requests;
mod resources;
mod screens;
mod silence;
mod sources;
mod starting;
mod terminals;
mod waiters;
mod waiting;

use crate::busy_polling::BusyPolling;
use crate::reactor::{CoreUse, Reactor};
use crate::runs::Runs;
use crate::source::Source;
use sessile_protocol::{Failure, RunNo, SESSION_MARKER as MARKER};
use sessile_session::operations::Event;
use sessile_session::{Effect, Input, Session, Tick};
use std::io;
use std::time::Instant;

use agenda::{Agenda, Fact, Item};
use clients::Clients;
use deadlines::{Deadline, Deadlines};
pub(crate) use environment::inherited;
use family::FamilyLinks;
pub(crate) use family::{ForkOutcome, Position};
use home::{Home, Moved};
use live::{Kernels, Live};
use operations::Operations;
use operations::files::FileJobs;
use output::Output;
use program::Watched;
use records::{Disk, Records};
pub(crate) use refusals::Whose;

/// One session of a keeper process, with all that it has.
pub(crate) struct Keeper {
    /// What it was started with, and where its files are.
    home: Home,
    /// Decides.
    session: Session,
    /// What is yet to be decided and done.
    agenda: Agenda,
    /// Watches descriptors.
    reactor: Reactor<Source>,
    deadlines: Deadlines,
    /// Connections, and who waits for what.
    clients: Clients,
    /// Interpreters that live.
    kernels: Kernels,
    /// Runs that are not over, or not on disk.
    runs: Runs,
    /// What is on disk, or is to be.
    records: Records,
    /// The pipes of runs.
    output: Output,
    /// Forks, checkpoints, rewinds and saves.
    operations: Operations,
    /// Work on the files of the workspace.
    files: FileJobs,
    /// What ties it to other sessions of the process.
    family: FamilyLinks,
    /// The program that it ends with, if there is one.
    program: Watched,
    busy_polling: BusyPolling,
    /// Room for what has news.
    news: Vec<Source>,
    lifecycle: Lifecycle,
}

/// How far a session has got as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lifecycle {
    /// Whoever launched it waits to hear of it.
    Starting,
    Serving,
    Finished,
}

impl Keeper {
    /// Waits for news, at most this long, and acts on it.
    pub(crate) fn turn(&mut self, patience: Option<Tick>) -> io::Result<()> {
        let mut news = std::mem::take(&mut self.news);
        self.output.take_again(&mut news);
        let lookout = self.reactor.wait(patience, self.awake_until(), &mut news)?;
        self.looked_out(lookout);
        for source in news.drain(..) {
            self.handle(source);
        }
        self.news = news;
        self.forget_gone_clients();
        self.set_deadlines();
        for deadline in self.deadlines.take_due(self.now()) {
            self.meet(deadline);
        }
        Ok(())
    }

    /// Does what is due.
    fn meet(&mut self, deadline: Deadline) {
        match deadline {
            Deadline::Session => self.step(Input::Tick),
            Deadline::Settle => self.settle(),
            Deadline::Excess => self.output.resume(&self.kernels, &self.reactor),
            Deadline::Output => self.watch_output(),
            Deadline::Stdins => self.show_stdin_ends(),
            Deadline::Terminals => self.release_terminals(),
            Deadline::Calls => self.answer_overdue(),
            Deadline::Silence => self.look_for_silence(),
            Deadline::Prompts => self.look_for_prompts(),
            Deadline::Bombs => self.look_after_bombs(),
            Deadline::Deferred => self.begin_deferred(),
            Deadline::Deaths => self.go_on_dying(),
            Deadline::Disk => self.look_at_disk(),
        }
    }

    /// Deadlines that follow from the state of something else.
    fn set_deadlines(&mut self) {
        self.deadlines.set(Deadline::Session, self.session.due());
        self.deadlines.set(Deadline::Settle, self.records.due());
        self.deadlines.set(Deadline::Calls, self.clients.waiters.due());
    }

    pub(crate) fn has_finished(&self) -> bool {
        self.lifecycle == Lifecycle::Finished
    }

    fn now(&self) -> Tick {
        self.home.now()
    }

    /// How long to wait for events at the most.
    pub(crate) fn patience(&mut self) -> Option<Tick> {
        if self.output.has_more() {
            return Some(0);
        }
        self.set_deadlines();
        Some(self.deadlines.next()?.saturating_sub(self.now()))
    }

    /// Takes note of what was noticed while news was looked out for.
    pub(crate) fn looked_out(&mut self, lookout: CoreUse) {
        match lookout {
            CoreUse::Unknown => {}
            CoreUse::Undisturbed => self.busy_polling.undisturbed(),
            CoreUse::Crowded => self.busy_polling.crowded(Instant::now()),
        }
    }

    /// A run has something that is only in memory.
    fn unsettle(&mut self, number: RunNo) {
        let run = self.runs.get(&number);
        if self.records.unsettle(number, run, self.home.now()) {
            self.settle();
        }
    }

    /// The files of a session whose directory was moved are written where it is.
    fn follow_directory(&mut self) {
        match self.home.follow_directory() {
            Moved::No => {}
            Moved::Yes => {
                self.records.moved_to(&self.home.directory);
                let runs = self.home.directory.runs();
                self.runs.values_mut().for_each(|run| run.moved_to(&runs));
            }
        }
    }

    /// Brings the files up to date.
    fn settle(&mut self) {
        self.follow_directory();
        self.forget_origins();
        let Home { boot, directory, clock, .. } = &self.home;
        let disk = Disk { directory, max_history: boot.max_history, clock: *clock };
        let waiters = &self.clients.waiters;
        let is_awaited = |run: RunNo| waiters.any_of_run(run, |_| true);
        self.records.settle(&mut self.runs, &disk, is_awaited);
        if !self.operations.record.is_written {
            let _ = self.write_timeline();
        }
    }

    fn write_metadata(&self) -> Result<(), Failure> {
        self.records.write_metadata(&self.home.directory)
    }

    /// Until when to look out for events without sleeping, if at all.
    pub(crate) fn awake_until(&self) -> Option<Instant> {
        self.busy_polling.until()
    }

    /// Tells the session of a fact, and does what it decides.
    fn step(&mut self, fact: Input) {
        self.agenda.note(fact);
        self.work_off();
    }

    /// The same of a fact about what is done with it as a whole.
    fn operate(&mut self, event: Event) {
        self.agenda.note(Fact::Event(event));
        self.work_off();
    }

    fn operate_all(&mut self, events: impl IntoIterator<Item = Event>) {
        for event in events {
            self.operate(event);
        }
    }

    fn perform(&mut self, effects: Vec<Effect>) {
        self.agenda.add(effects);
        self.work_off();
    }

    /// Decides and performs until nothing is left of either.
    fn work_off(&mut self) {
        if !self.agenda.begin() {
            return;
        }
        while let Some(item) = self.agenda.next() {
            match item {
                Item::Decide(Fact::Input(input)) => {
                    let effects = self.session.step(input, self.now());
                    self.agenda.add(effects);
                }
                Item::Decide(Fact::Event(event)) => {
                    let effects = self.session.operate(event, self.now());
                    self.agenda.add(effects);
                }
                Item::Perform(effect) => self.effect(effect),
            }
        }
    }
}
