//! The driver: takes every event in order, asks the session what to do, does
//! it. The only owner of all that a keeper has.

mod births;
mod bundle;
mod checkpoints;
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
use crate::reactor::{Reactor, Token};
use crate::runs::{Runs, ticks};
use crate::scratch::Scratch;
use crate::streams::{CHUNK, Lingering};
use crate::{guardian, processes};
use rustix::process::Pid;
use sessile_protocol::{
    Boot, Code, Duty, Failure, Language, LeftBehind, RunNo, SESSION_MARKER as MARKER, SessionId,
};
use sessile_session::{Effect, Epoch, Input, Limits, PointId, Session, Tick, Timeline};
use sessile_store::{
    Accepted, Directory, Entry, History, Keys, Lock, Metadata, SavedKernel, SessionStatus,
};
use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsString;
use std::io;
use std::time::Instant;

/// Runs that may wait for one kernel.
const QUEUE: usize = 256;

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
    reactor: Reactor,
    /// Where the process's signals are read, if this member minds them.
    signalled: Option<Token>,
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
    lingering: BTreeMap<Token, Lingering>,
    origins: Origins,
    runs: Runs,
    /// Finished runs whose output is still only in memory.
    unsettled: Vec<RunNo>,
    /// The same, because the disk has no place for it.
    refused: VecDeque<RunNo>,
    unrecorded: VecDeque<Entry>,
    unsettled_since: Option<Tick>,
    /// When what is only in memory is written to disk.
    settle_due: Option<Tick>,
    /// When the streams of running runs are read along.
    watch_due: Option<Tick>,
    /// When the ended stdin of a run is looked after.
    stdin_due: Option<Tick>,
    /// When it is looked who still has the terminal of a run that is over.
    terminals_due: Option<Tick>,
    /// When a waiting client is answered, whatever there is.
    patience_due: Option<Tick>,
    silence: Option<silence::Watch>,
    /// When it is looked whether runs wait for input.
    prompts: Option<prompts::Look>,
    closing: Vec<(Token, u64, requests::Closing)>,
    /// Asked for while files were put back, which is not left half done.
    closing_later: Vec<(Token, u64, requests::Closing)>,
    inspectors: Vec<requests::Inspector>,
    /// Those who wait for a terminal to change.
    viewers: Vec<terminals::Viewer>,
    followers: Vec<following::Follower>,
    /// What was asked of the session as a whole, and what is being done.
    wishes: VecDeque<(operations::Asker, operations::Wish)>,
    operation: Option<operations::Operation>,
    timeline: Timeline,
    checkpoints: BTreeMap<PointId, checkpoints::Checkpoint>,
    images: BTreeMap<images::ImageId, images::Image>,
    /// By language, with the process that it is an image of.
    newest_images: BTreeMap<Language, (Epoch, images::ImageId)>,
    last_image: u64,
    nascent: BTreeMap<Language, images::Nascent>,
    /// Processes that are to take the place of others.
    thawed: BTreeMap<Language, Live>,
    thaw_failures: BTreeMap<Language, String>,
    errands: Vec<workspace::Errand>,
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
    again: Vec<Token>,
    /// Those of which most is thrown away, and when they have their next turn.
    excess: Vec<Token>,
    excess_due: Option<Tick>,
    /// Room for what has news.
    tokens: Vec<Token>,
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
        Limits { idle_timeout: boot.idle_timeout_ms, queue, gated: boot.auto.is_some() }
    }

    fn assemble(
        boot: Boot,
        directory: Directory,
        lock: Lock,
        metadata: Metadata,
        scratch: Scratch,
        session: Session,
    ) -> io::Result<Self> {
        let mut reactor = Reactor::new()?;
        let connections = Connections::new(directory.listen()?, &mut reactor)?;
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
            signalled: None,
            was_signalled: false,
            kin: Kin::None,
            connections,
            session,
            kernels: BTreeMap::new(),
            last_status: BTreeMap::new(),
            news: BTreeMap::new(),
            launch_failures: BTreeMap::new(),
            lingering: BTreeMap::new(),
            origins: Origins::default(),
            runs: Runs::new(),
            unsettled: Vec::new(),
            refused: VecDeque::new(),
            unrecorded: VecDeque::new(),
            unsettled_since: None,
            settle_due: None,
            watch_due: None,
            stdin_due: None,
            terminals_due: None,
            patience_due: None,
            silence: None,
            prompts: None,
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
            errands: Vec::new(),
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
            excess_due: None,
            tokens: Vec::new(),
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
        let mut tokens = std::mem::take(&mut self.tokens);
        tokens.append(&mut self.again);
        self.reactor.wait(patience, self.awake_until(), &mut tokens)?;
        for token in tokens.drain(..) {
            self.handle(token);
        }
        self.tokens = tokens;
        self.forget_gone_clients();
        self.tend();
        Ok(())
    }

    /// Does what is due.
    fn tend(&mut self) {
        let now = self.now();
        if self.session.due().is_some_and(|due| due <= now) {
            self.step(Input::Tick);
        }
        if self.settle_due.is_some_and(|due| due <= now) {
            self.settle();
        }
        if self.excess_due.is_some_and(|due| due <= now) {
            self.take_excess();
        }
        if self.watch_due.is_some_and(|due| due <= now) {
            self.watch_streams();
        }
        if self.stdin_due.is_some_and(|due| due <= now) {
            self.tend_stdins();
        }
        if self.terminals_due.is_some_and(|due| due <= now) {
            self.tend_terminals();
        }
        if self.patience_due.is_some_and(|due| due <= now) {
            self.answer_impatient();
        }
        if self.silence.is_some_and(|watch| watch.due <= now) {
            self.look_for_silence();
        }
        if self.prompts.is_some_and(|look| look.due <= now) {
            self.look_for_prompts();
        }
        if self.viewing_due().is_some_and(|due| due <= now) {
            self.answer_viewers(None);
        }
        if self.inspection_due().is_some_and(|due| due <= now) {
            self.answer_inspectors(None);
        }
        if self.saving_due().is_some_and(|due| due <= now) {
            self.save_is_overdue();
        }
        if self.durable_due().is_some_and(|due| due <= now) {
            self.begin_durable_save();
        }
        if self.preparing_due().is_some_and(|due| due <= now) {
            self.pump_preparing();
        }
        self.tend_savings();
        let is_late = self.operation_due().is_some_and(|due| due <= now);
        if is_late || (self.operation.is_none() && !self.wishes.is_empty()) {
            self.pump_operations();
        }
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

    pub(crate) fn has_finished(&self) -> bool {
        self.has_finished
    }

    fn now(&self) -> Tick {
        ticks(self.clock)
    }

    /// How long to wait for events at the most.
    pub(crate) fn patience(&self) -> Option<Tick> {
        if !self.again.is_empty() {
            return Some(0);
        }
        let own = [
            self.settle_due,
            self.excess_due,
            self.watch_due,
            self.stdin_due,
            self.terminals_due,
            self.patience_due,
            self.silence.map(|watch| watch.due),
            self.prompts.map(|look| look.due),
            self.inspection_due(),
            self.viewing_due(),
            self.operation_due(),
            self.preparing_due(),
            self.saving_due(),
            self.durable_due(),
        ];
        let due = self.session.due().into_iter().chain(own.into_iter().flatten()).min()?;
        Some(due.saturating_sub(self.now()))
    }

    /// Until when to look out for events without sleeping, if at all.
    pub(crate) fn awake_until(&self) -> Option<Instant> {
        self.alertness.until()
    }

    fn step(&mut self, input: Input) {
        let effects = self.session.step(input, self.now());
        self.perform(effects);
    }

    fn perform(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            self.effect(effect);
        }
    }
}

/// Whatever the launching process had open is none of ours.
fn close_inherited_descriptors() {
    // SAFETY: called before anything in this process has opened a descriptor
    // above the standard streams.
    unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, 0) };
}
