//! The driver: takes every event in order, asks the session what to do, does
//! it. The only owner of all that a keeper has.

mod agenda;
mod births;
mod bundle;
mod checkpoints;
mod deadlines;
mod durable;
mod effects;
mod events;
mod family;
mod following;
mod forks;
mod gathering;
mod images;
mod interaction;
mod jobs;
mod live;
mod operations;
mod orders;
mod preparing;
mod prompts;
mod records;
mod requests;
mod rewinding;
mod saving;
mod silence;
mod terminals;
mod timeline;
mod waiting;
mod workspace;

use crate::alertness::Alertness;
use crate::connections::Connections;
use crate::origins::Origins;
use crate::reactor::{Lookout, Reactor};
use crate::runs::{Runs, ticks};
use crate::scratch::Scratch;
use crate::source::{ClientId, ImageId, LeftPipeId, Pipe, Source};
use crate::streams::{CHUNK, Lingering};
use crate::{guardian, processes};
use rustix::process::Pid;
use sessile_protocol::{
    Boot, Code, Duty, Failure, Language, LeftBehind, RunNo, SESSION_MARKER as MARKER, SessionId,
};
use sessile_session::{Effect, Epoch, Input, Limits, Pacing, PointId, Session, Tick, Timeline};
use sessile_store::{
    Accepted, Directory, Entry, History, Keys, Lock, Metadata, SavedKernel, SessionStatus,
    UserState,
};
use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsString;
use std::io;
use std::time::Instant;

/// Runs that may wait for one kernel.
const QUEUE: usize = 256;

use agenda::{Agenda, Item};
use deadlines::{Deadline, Deadlines};
pub(crate) use family::{Birth, Kin};
use live::{Inheritance, Live};

/// One session of a keeper process, with all that it has.
pub(crate) struct Keeper {
    boot: Boot,
    /// The environment that kernels start with.
    env: BTreeMap<OsString, OsString>,
    directory: Directory,
    metadata: Metadata,
    history: History,
    /// How far the numbers have got; none where the disk has no place for it.
    accepted: Option<Accepted>,
    /// Read when the first order with a key comes.
    keys: Option<Keys>,
    scratch: Scratch,
    reactor: Reactor<Source>,
    deadlines: Deadlines,
    agenda: Agenda,
    /// It minds the process's signals.
    minds_signals: bool,
    was_signalled: bool,
    kin: Kin,
    connections: Connections,
    session: Session,
    kernels: BTreeMap<Language, Live>,
    /// The exit code of each language's last run, for a shell's `$?`.
    last_status: BTreeMap<Language, i32>,
    /// What the next run of a language has to tell of what came before it.
    news: BTreeMap<Language, Vec<String>>,
    /// Why a kernel could not be started.
    launch_failures: BTreeMap<Language, String>,
    lingering: BTreeMap<LeftPipeId, Lingering>,
    last_left: u64,
    origins: Origins,
    runs: Runs,
    /// Finished runs whose output is still only in memory.
    unsettled: records::Unsettled,
    /// The same, because the disk has no place for it.
    refused: VecDeque<RunNo>,
    unrecorded: VecDeque<Entry>,
    /// When what is only in memory is written to disk.
    files: Pacing,
    /// How soon kernels that owe a report, and interactive runs, are looked at
    /// again.
    silence_pause: Tick,
    prompts_pause: Tick,
    closing: Vec<(ClientId, u64, requests::Closing)>,
    /// Asked for while files were put back, which is not left half done.
    closing_later: Vec<(ClientId, u64, requests::Closing)>,
    inspectors: Vec<requests::Inspector>,
    /// Those who wait for a terminal to change.
    viewers: Vec<terminals::Viewer>,
    followers: Vec<following::Follower>,
    /// What was asked of the session as a whole, and what is being done.
    wishes: VecDeque<(operations::Asker, operations::Wish)>,
    operation: Option<operations::Operation>,
    timeline: Timeline,
    checkpoints: BTreeMap<PointId, checkpoints::Checkpoint>,
    images: BTreeMap<ImageId, images::Image>,
    /// By language, with the process that it is an image of.
    newest_images: BTreeMap<Language, (Epoch, ImageId)>,
    last_image: u64,
    nascent: BTreeMap<Language, images::Nascent>,
    /// Processes that are to take the place of others.
    thawed: BTreeMap<Language, Live>,
    thaw_failures: BTreeMap<Language, String>,
    file_jobs: Vec<workspace::FileJob>,
    last_file_job: u64,
    /// What came of putting files back, and of copying them.
    put_back: Option<workspace::Step>,
    copied: Option<Result<Vec<LeftBehind>, Failure>>,
    preparing: Vec<preparing::Preparing>,
    /// Trees that went with their checkpoints since the files were last swept.
    dropped_trees: usize,
    is_timeline_written: bool,
    /// Forks for the family to take in, and those to end again.
    newborn: Vec<Keeper>,
    /// Directories of copies that could not be made, of whichever member.
    failed_copies: Vec<(String, String)>,
    /// Processes that have copied themselves from ours, with their directories.
    copies: Vec<(Pid, String)>,
    unwanted: Vec<SessionId>,
    /// Of a fork: whose, and whether its parent waits for it.
    parent: Option<SessionId>,
    is_expected: bool,
    birth: Option<Birth>,
    /// The first is under way.
    savings: VecDeque<saving::Saving>,
    /// When it is saved by itself, if it is durable.
    durable: Option<durable::Saves>,
    /// Numbers the files that kernels are asked for.
    last_dump: u64,
    /// States that were captured last and could not be written to the file.
    aside: BTreeMap<Language, SavedKernel>,
    alertness: Alertness,
    /// Streams that had more than their turn's worth.
    again: Vec<Source>,
    /// Those of which most is thrown away, until their next turn.
    excess: Vec<Pipe>,
    /// Room for what has news.
    news_room: Vec<Source>,
    buffer: Vec<u8>,
    clock: Instant,
    has_reported: bool,
    has_finished: bool,
    /// Last, so that it is released last.
    _lock: Lock,
}

impl Keeper {
    /// Becomes the keeper: in a process of its own, detached from the caller's.
    pub(crate) fn start(boot: Boot) -> Result<Self, Failure> {
        close_inherited_descriptors();
        let storage = |error: io::Error| {
            Failure::new(Code::Storage, format!("the keeper cannot start: {error}"))
        };
        let directory = Directory::at(boot.directory.clone());
        let lock = directory
            .lock()
            .map_err(|e| Failure::new(Code::Storage, e.to_string()))?
            .ok_or_else(|| Failure::new(Code::Ending, "the session has a keeper already"))?;
        let metadata =
            directory.metadata().map_err(|e| Failure::new(Code::Storage, e.to_string()))?;
        if boot.duty == Duty::GoOn {
            processes::kill_strays(&format!("{MARKER}={}", boot.session));
        }
        let scratch = Scratch::create(boot.session.as_str()).map_err(storage)?;
        guardian::detach(scratch.path()).map_err(storage)?;
        let _ = std::env::set_current_dir("/");
        let limits = Self::limits(&boot);
        let language = boot.kernel.language;
        if boot.duty == Duty::Begin {
            let session = Session::new(language, limits, 0);
            return Self::assemble(boot, directory, lock, metadata, scratch, session)
                .map_err(storage);
        }
        workspace::recover(&directory);
        directory.sweep_kernels();
        let kernels = directory.state().unwrap_or_default().kernels;
        let unrestorable = kernels.iter().filter(|(_, saved)| saved.comes_back_as_of().is_none());
        let mut news: BTreeMap<Language, Vec<String>> = unrestorable
            .map(|(l, saved)| (*l, Vec::from_iter(events::losses(*l, saved))))
            .collect();
        for (language, note) in durable::losses(&metadata, &kernels, &directory.history()) {
            news.entry(language).or_default().push(note);
        }
        let known: Vec<(Language, Option<RunNo>)> = kernels
            .into_iter()
            .map(|(language, saved)| (language, saved.comes_back_as_of()))
            .collect();
        let keys = directory.keys();
        let recorded = directory.history().runs().into_iter().max();
        let last = recorded.max(Some(keys.last_run())).max(Some(RunNo(metadata.execution_count)));
        let last = last.unwrap_or_default();
        let accepted = directory.accepted(last).ok();
        let last = accepted.as_ref().map(Accepted::last).unwrap_or_default().max(last);
        let session = Session::revived(language, limits, 0, last, &known);
        let keeper = Self::assemble(boot, directory, lock, metadata, scratch, session);
        let mut keeper = keeper.map_err(storage)?;
        keeper.bring_back_timeline();
        Ok(Self { news, keys: Some(keys), accepted, ..keeper })
    }

    /// Clears away what the last keeper of a session has left.
    pub(crate) fn sweep(boot: &Boot) -> Result<u32, Failure> {
        let storage = |error: String| Failure::new(Code::Storage, error);
        let directory = Directory::at(boot.directory.clone());
        let lock = directory.lock().map_err(|error| storage(error.to_string()))?;
        let _lock =
            lock.ok_or_else(|| Failure::new(Code::Ending, "the session has a keeper again"))?;
        processes::kill_strays(&format!("{MARKER}={}", boot.session));
        let scratch = Scratch::create(boot.session.as_str());
        scratch.map_err(|error| storage(error.to_string()))?.remove();
        Ok(std::process::id())
    }

    fn limits(boot: &Boot) -> Limits {
        let asked = boot.max_queue.and_then(|n| usize::try_from(n).ok());
        let queue = asked.map_or(QUEUE, |n| n.clamp(1, QUEUE));
        Limits { idle_timeout: boot.idle_timeout_ms, queue, auto: boot.auto }
    }

    fn assemble(
        boot: Boot,
        directory: Directory,
        lock: Lock,
        metadata: Metadata,
        scratch: Scratch,
        session: Session,
    ) -> io::Result<Self> {
        let reactor = Reactor::new()?;
        let connections = Connections::new(directory.listen()?, &reactor)?;
        let mut env: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
        env.extend(boot.env.iter().map(|(k, v)| (k.into(), v.into())));
        env.insert(MARKER.into(), boot.session.as_str().into());
        let history = directory.history();
        let accepted = directory.accepted(session.last_run()).ok();
        let durable = metadata.durable.as_ref().map(durable::Saves::of);
        Ok(Self {
            boot,
            env,
            directory,
            metadata,
            history,
            accepted,
            keys: None,
            scratch,
            reactor,
            deadlines: Deadlines::default(),
            agenda: Agenda::default(),
            minds_signals: false,
            was_signalled: false,
            kin: Kin::None,
            connections,
            session,
            kernels: BTreeMap::new(),
            last_status: BTreeMap::new(),
            news: BTreeMap::new(),
            launch_failures: BTreeMap::new(),
            lingering: BTreeMap::new(),
            last_left: 0,
            origins: Origins::default(),
            runs: Runs::new(),
            unsettled: records::Unsettled::default(),
            refused: VecDeque::new(),
            unrecorded: VecDeque::new(),
            files: Pacing::default(),
            silence_pause: 0,
            prompts_pause: 0,
            closing: Vec::new(),
            closing_later: Vec::new(),
            inspectors: Vec::new(),
            viewers: Vec::new(),
            followers: Vec::new(),
            wishes: VecDeque::new(),
            operation: None,
            timeline: Timeline::default(),
            checkpoints: BTreeMap::new(),
            images: BTreeMap::new(),
            newest_images: BTreeMap::new(),
            last_image: 0,
            nascent: BTreeMap::new(),
            thawed: BTreeMap::new(),
            thaw_failures: BTreeMap::new(),
            file_jobs: Vec::new(),
            last_file_job: 0,
            put_back: None,
            copied: None,
            preparing: Vec::new(),
            dropped_trees: 0,
            is_timeline_written: true,
            newborn: Vec::new(),
            failed_copies: Vec::new(),
            copies: Vec::new(),
            unwanted: Vec::new(),
            parent: None,
            is_expected: false,
            birth: None,
            savings: VecDeque::new(),
            durable,
            last_dump: 0,
            aside: BTreeMap::new(),
            alertness: Alertness::new(),
            again: Vec::new(),
            excess: Vec::new(),
            news_room: Vec::new(),
            buffer: vec![0; CHUNK],
            clock: Instant::now(),
            has_reported: false,
            has_finished: false,
            _lock: lock,
        })
    }

    /// Starts the session's first kernel.
    pub(crate) fn open(&mut self) {
        let effects = self.session.open(self.now());
        self.perform(effects);
    }

    /// Waits for news, at most this long, and acts on it.
    pub(crate) fn turn(&mut self, patience: Option<Tick>) -> io::Result<()> {
        let mut news = std::mem::take(&mut self.news_room);
        news.append(&mut self.again);
        let lookout = self.reactor.wait(patience, self.awake_until(), &mut news)?;
        self.looked_out(lookout);
        for source in news.drain(..) {
            self.handle(source);
        }
        self.news_room = news;
        self.forget_gone_clients();
        self.set_deadlines();
        for deadline in self.deadlines.take_due(self.now()) {
            self.meet(deadline);
        }
        self.tend_savings();
        if self.operation.is_none() && !self.wishes.is_empty() {
            self.pump_operations();
        }
        Ok(())
    }

    /// Does what is due.
    fn meet(&mut self, deadline: Deadline) {
        match deadline {
            Deadline::Session => self.step(Input::Tick),
            Deadline::Settle => self.settle(),
            Deadline::Excess => self.take_excess(),
            Deadline::Output => self.watch_streams(),
            Deadline::Stdins => self.tend_stdins(),
            Deadline::Terminals => self.tend_terminals(),
            Deadline::Calls => self.answer_impatient(),
            Deadline::Silence => self.look_for_silence(),
            Deadline::Prompts => self.look_for_prompts(),
            Deadline::Screens => self.answer_viewers(None),
            Deadline::States => self.answer_inspectors(None),
            Deadline::Save => self.save_is_overdue(),
            Deadline::DurableSave => self.begin_durable_save(),
            Deadline::Preparation => self.pump_preparing(),
            Deadline::Operation => self.pump_operations(),
        }
    }

    /// Deadlines that follow from the state of something else.
    fn set_deadlines(&mut self) {
        self.deadlines.set(Deadline::Session, self.session.due());
        self.deadlines.set(Deadline::Settle, self.files.due());
        self.deadlines.set(Deadline::Screens, self.viewing_due());
        self.deadlines.set(Deadline::States, self.inspection_due());
        self.deadlines.set(Deadline::Save, self.saving_due());
        self.deadlines.set(Deadline::DurableSave, self.durable_due());
        self.deadlines.set(Deadline::Preparation, self.preparing_due());
        self.deadlines.set(Deadline::Operation, self.operation_due());
    }

    /// Tells the launching client that the session can be used, or why not.
    fn report_start(&mut self, outcome: Result<(), Failure>) {
        if std::mem::replace(&mut self.has_reported, true) {
            return;
        }
        if outcome.is_ok() {
            self.metadata.status = SessionStatus::Active;
            self.metadata.ended_at = None;
            self.metadata.keeper_pid = Some(std::process::id());
            // Whoever cannot be found elsewhere is still found here.
            let _ = self.user().register(&self.boot.session, self.directory.path());
        }
        let written = self.write_metadata();
        let outcome = outcome.and(written).map(|()| std::process::id());
        let has_failed = outcome.is_err();
        crate::report(outcome);
        if has_failed {
            self.directory.remove_socket();
            self.has_finished = true;
        }
    }

    /// Where the user keeps what belongs to no workspace.
    fn user(&self) -> UserState {
        UserState::at(self.boot.user_state.clone())
    }

    pub(crate) fn has_finished(&self) -> bool {
        self.has_finished
    }

    fn now(&self) -> Tick {
        ticks(self.clock)
    }

    /// How long to wait for events at the most.
    pub(crate) fn patience(&mut self) -> Option<Tick> {
        if !self.again.is_empty() {
            return Some(0);
        }
        self.set_deadlines();
        Some(self.deadlines.next()?.saturating_sub(self.now()))
    }

    /// Takes note of what was noticed while news was looked out for.
    pub(crate) fn looked_out(&mut self, lookout: Lookout) {
        match lookout {
            Lookout::Undisturbed => {}
            Lookout::Crowded => self.alertness.crowded(Instant::now()),
        }
    }

    /// Until when to look out for events without sleeping, if at all.
    pub(crate) fn awake_until(&self) -> Option<Instant> {
        self.alertness.until()
    }

    /// Tells the session of a fact, and does what it decides.
    fn step(&mut self, fact: Input) {
        self.agenda.note(fact);
        self.work_off();
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
                Item::Decide(fact) => {
                    let effects = self.session.step(fact, self.now());
                    self.agenda.add(effects);
                }
                Item::Perform(effect) => self.effect(effect),
            }
        }
    }
}

/// Whatever the launching process had open is none of ours.
fn close_inherited_descriptors() {
    // SAFETY: called before anything in this process has opened a descriptor
    // above the standard streams.
    unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, 0) };
}
