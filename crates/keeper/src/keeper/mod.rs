//! The driver of a session: takes the events in order, asks the session what to do, and
//! does it.
//!
//! ```text
//!  reactor ─► sources ─┐            ┌─► effects ─► kernels, output, clients, …
//!  deadlines ──────────┼─► agenda ──┤
//!  clients ─► requests ┘   facts    └─◄ session decides
//! ```
//!
//! Each part of [`Keeper`] owns its data and has its own file. Code that concerns several
//! parts is here and in `sources`, `reports`, `endings`, `requests`, `effects` and
//! `waiting`.

mod agenda;
mod bomb_detection;
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
mod patience;
mod pressing;
mod program;
mod prompts;
mod records;
mod refusals;
mod removed;
mod reports;
mod requests;
mod resources;
mod room;
mod screens;
mod silence;
mod sources;
mod starting;
mod terminals;
mod unsent;
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
use output::Output;
use program::WatchedProgram;
use records::{Disk, Records};
pub(crate) use refusals::RefusalScope;
use room::Guard;

/// One session of a keeper process, with all its resources.
pub(crate) struct Keeper {
    /// The boot parameters and the location of the session's files.
    home: Home,
    /// The decision logic.
    session: Session,
    /// Pending decisions and effects.
    agenda: Agenda,
    /// Watches file descriptors.
    reactor: Reactor<Source>,
    deadlines: Deadlines,
    /// Connections, and the clients that wait for an answer.
    clients: Clients,
    /// Running interpreters.
    kernels: Kernels,
    /// Runs that have not ended or are not yet on disk.
    runs: Runs,
    /// Records that are on disk or still to be written.
    records: Records,
    /// The pipes of runs.
    output: Output,
    /// Forks, checkpoints, rewinds and saves.
    operations: Operations,
    /// Links to the other sessions of the process.
    family: FamilyLinks,
    /// Checks for leftovers that hold the process limit.
    guard: Guard,
    /// The program with which the session ends, if there is one.
    program: WatchedProgram,
    busy_polling: BusyPolling,
    /// Reused buffer for sources with news.
    news: Vec<Source>,
    lifecycle: Lifecycle,
}

/// Stage of a session's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lifecycle {
    /// The launcher still waits for the boot report.
    Starting,
    Serving,
    Finished,
}

impl Keeper {
    /// Waits for events, at most for `patience`, and handles them.
    pub(crate) fn turn(&mut self, patience: Option<Tick>) -> io::Result<()> {
        let mut news = std::mem::take(&mut self.news);
        self.output.take_again(&mut news);
        let lookout = self.reactor.wait(patience, self.poll_until(), &mut news)?;
        self.note_core_use(lookout);
        for source in news.drain(..) {
            self.handle(source);
        }
        self.news = news;
        self.forget_gone_clients();
        self.set_deadlines();
        for deadline in self.deadlines.take_due(self.now()) {
            self.handle_deadline(deadline);
        }
        Ok(())
    }

    /// Does what is due.
    fn handle_deadline(&mut self, deadline: Deadline) {
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
            Deadline::ProcessLimit => self.check_process_limit(),
            Deadline::Deferred => self.begin_deferred(),
            Deadline::Deaths => self.continue_deaths(),
            Deadline::Disk => self.look_at_disk(),
        }
    }

    /// Updates the deadlines that follow from other state.
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

    /// Returns how long to wait for events at most.
    pub(crate) fn patience(&mut self) -> Option<Tick> {
        if self.output.has_more() {
            return Some(0);
        }
        self.set_deadlines();
        Some(self.deadlines.next()?.saturating_sub(self.now()))
    }

    /// Takes note of what was noticed while news was looked out for.
    pub(crate) fn note_core_use(&mut self, lookout: CoreUse) {
        match lookout {
            CoreUse::Unknown => {}
            CoreUse::Undisturbed => self.busy_polling.undisturbed(),
            CoreUse::Crowded => self.busy_polling.crowded(Instant::now()),
        }
    }

    /// Notes that a run has data that is only in memory.
    fn unsettle(&mut self, number: RunNo) {
        let run = self.runs.get(&number);
        if self.records.unsettle(number, run, self.home.now()) {
            self.settle();
        }
    }

    /// If the session's directory was moved, continues to write its files at the new
    /// place.
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
    pub(crate) fn poll_until(&self) -> Option<Instant> {
        self.busy_polling.until()
    }

    /// Tells the session a fact and does what it decides.
    fn step(&mut self, fact: Input) {
        self.agenda.note(fact);
        self.process_agenda();
    }

    /// Does the same for an event of an operation on the session as a whole.
    fn operate(&mut self, event: Event) {
        self.agenda.note(Fact::Event(event));
        self.process_agenda();
    }

    fn operate_all(&mut self, events: impl IntoIterator<Item = Event>) {
        for event in events {
            self.operate(event);
        }
    }

    fn perform(&mut self, effects: Vec<Effect>) {
        self.agenda.add(effects);
        self.process_agenda();
    }

    /// Decides and performs until nothing is left of either.
    fn process_agenda(&mut self) {
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
