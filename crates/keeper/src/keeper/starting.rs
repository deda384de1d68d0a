//! The start of a session's keeper.

use super::agenda::Agenda;
use super::clients::Clients;
use super::deadlines::Deadlines;
use super::family::FamilyLinks;
use super::home::Home;
use super::live::Kernels;
use super::operations::Operations;
use super::operations::durable;
use super::operations::files;
use super::output::Output;
use super::program::WatchedProgram;
use super::records::Records;
use super::room::Guard;
use super::waiters::Waiters;
use super::{Keeper, Lifecycle, MARKER, endings};
use crate::busy_polling::BusyPolling;
use crate::confined::Confined;
use crate::connections::Connections;
use crate::directory_watch::DirectoryWatch;
use crate::groups::Groups;
use crate::reactor::Reactor;
use crate::runs::Runs;
use crate::scratch::Scratch;
use crate::shortage::{of_scratch, of_start};
use crate::{guardian, processes};
use sessile_protocol::{Boot, BootPurpose, Code, Failure, Language, RunNo};
use sessile_session::{Activity, Core, Limits, Session};
use sessile_store::{Accepted, Directory, Lock, Metadata, SessionStatus};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::rc::Rc;
use std::time::Instant;

/// Number of runs that may wait for one kernel.
const QUEUE: usize = 256;

impl Keeper {
    /// Becomes the keeper, in a separate process that is detached from the caller's.
    pub(crate) fn start(mut boot: Boot, origin: guardian::Origin) -> Result<Self, Failure> {
        close_inherited_descriptors();
        let storage =
            |error: io::Error| Failure::because(Code::Storage, "the keeper cannot start", &error);
        let directory = Directory::at(boot.directory.clone());
        let lock = directory
            .lock()
            .map_err(|error| Failure::from_error(Code::Storage, &error))?
            .ok_or_else(|| Failure::new(Code::Ending, "the session has a keeper already"))?;
        let metadata = match boot.metadata.take() {
            Some(text) => Metadata::of_bytes(&text),
            None => directory.metadata(),
        };
        let metadata = metadata.map_err(|error| Failure::from_error(Code::Storage, &error))?;
        if boot.duty == BootPurpose::GoOn {
            processes::kill_strays(boot.session.as_str());
            Groups::written_down(&boot).remove();
        }
        let scratch = Scratch::create(boot.session.as_str())
            .map_err(|error| of_scratch(Code::Storage, "the keeper cannot start", &error))?;
        if let Err(error) = guardian::detach(origin, scratch.path(), &Groups::of(&boot)) {
            scratch.remove();
            return Err(of_start(Code::Storage, "the keeper cannot start", &error));
        }
        let _ = std::env::set_current_dir("/");
        let limits = Self::limits(&boot);
        let language = boot.kernel.language;
        let confined = Confined::of(&boot, scratch.path())?;
        let place = (scratch, confined);
        if boot.duty == BootPurpose::Begin {
            let session = Session::from(Core::new(language, limits, 0));
            return Self::assemble(boot, directory, lock, metadata, place, session)
                .map_err(storage);
        }
        files::recover(&directory, place.1.as_deref());
        directory.sweep_kernels();
        let kernels = directory.state().unwrap_or_default().kernels;
        let unrestorable = kernels.iter().filter(|(_, saved)| saved.comes_back_as_of().is_none());
        let mut news: BTreeMap<Language, Vec<String>> = unrestorable
            .map(|(l, saved)| (*l, Vec::from_iter(endings::losses(*l, saved))))
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
        let session = Session::from(Core::revived(language, limits, 0, last, &known));
        let keeper = Self::assemble(boot, directory, lock, metadata, place, session);
        let mut keeper = keeper.map_err(storage)?;
        keeper.bring_back_timeline();
        keeper.watch_program_again();
        keeper.kernels.news = news;
        (keeper.records.keys, keeper.records.accepted) = (Some(keys), accepted);
        Ok(keeper)
    }

    /// Clears away what the last keeper of a session has left.
    pub(crate) fn sweep(boot: &Boot) -> Result<u32, Failure> {
        let directory = Directory::at(boot.directory.clone());
        let lock = directory.lock();
        let lock = lock.map_err(|error| Failure::from_error(Code::Storage, &error))?;
        let _lock =
            lock.ok_or_else(|| Failure::new(Code::Ending, "the session has a keeper again"))?;
        processes::kill_strays(boot.session.as_str());
        Groups::written_down(boot).remove();
        let scratch = Scratch::create(boot.session.as_str());
        scratch.map_err(|error| Failure::from_error(Code::Storage, &error))?.remove();
        Ok(std::process::id())
    }

    pub(super) fn limits(boot: &Boot) -> Limits {
        let asked = boot.max_queue.and_then(|n| usize::try_from(n).ok());
        let queue = asked.map_or(QUEUE, |n| n.clamp(1, QUEUE));
        let activity = if boot.idle_without_runs { Activity::Runs } else { Activity::All };
        Limits { idle_timeout: boot.idle_timeout_ms, activity, queue, auto: boot.auto }
    }

    pub(super) fn assemble(
        boot: Boot,
        directory: Directory,
        lock: Lock,
        metadata: Metadata,
        (scratch, confined): (Scratch, Option<Rc<Confined>>),
        mut session: Session,
    ) -> io::Result<Self> {
        let reactor = Reactor::new()?;
        let mut env: BTreeMap<OsString, OsString> = match &confined {
            Some(confined) => confined.environment(&boot),
            None => {
                let inherited = super::inherited(&boot);
                let given = boot.env.iter().map(|(k, v)| (k.into(), v.into()));
                inherited.chain(given).collect()
            }
        };
        env.insert(MARKER.into(), boot.session.as_str().into());
        let history = directory.history();
        if let Some(durable) = &metadata.durable {
            session.make_durable(durable::in_store(durable), 0);
        }
        let clock = Instant::now();
        Ok(Self {
            home: Home {
                boot,
                env,
                directory,
                scratch,
                confined,
                watch: None,
                followed: 0,
                clock,
                _lock: lock,
            },
            session,
            agenda: Agenda::default(),
            reactor,
            deadlines: Deadlines::default(),
            clients: Clients { connections: Connections::default(), waiters: Waiters::default() },
            kernels: Kernels::default(),
            runs: Runs::new(),
            records: Records::new(metadata, history, None),
            output: Output::default(),
            operations: Operations::default(),
            family: FamilyLinks::default(),
            guard: Guard::default(),
            program: WatchedProgram::default(),
            busy_polling: BusyPolling::new(),
            news: Vec::new(),
            lifecycle: Lifecycle::Starting,
        })
    }

    /// Starts the session's first kernel.
    pub(crate) fn open(&mut self) {
        let effects = self.session.open(self.now());
        self.perform(effects);
        // A shell starts in about the time that files on a disk take, so the files are
        // created meanwhile.
        if let Err(error) = self.begin_listening() {
            let failure = Failure::because(Code::Storage, "the keeper cannot listen", &error);
            self.report_start(Err(failure));
        }
    }

    /// Starts listening: from here on, clients can connect and give orders.
    pub(super) fn begin_listening(&mut self) -> io::Result<()> {
        let connections = &mut self.clients.connections;
        if self.lifecycle == Lifecycle::Finished || connections.is_listening() {
            return Ok(());
        }
        connections.listen(self.home.directory.listen()?, &self.reactor)?;
        self.home.watch = DirectoryWatch::over(self.home.directory.path()).ok();
        if self.records.accepted.is_none() {
            self.records.accepted = self.home.directory.accepted(self.session.last_run()).ok();
        }
        self.home.register();
        Ok(())
    }

    /// Tells the launching client that the session can be used, or why not.
    pub(super) fn report_start(&mut self, outcome: Result<(), Failure>) {
        match self.lifecycle {
            Lifecycle::Starting => self.lifecycle = Lifecycle::Serving,
            Lifecycle::Serving | Lifecycle::Finished => return,
        }
        if outcome.is_ok() {
            self.records.metadata.status = SessionStatus::Active;
            self.records.metadata.ended_at = None;
            self.records.metadata.keeper_pid = Some(std::process::id());
            let confined = self.home.confined.as_ref();
            self.records.metadata.notes = confined.map(|it| it.notes()).unwrap_or_default();
            // Who starts a session and who works in it may be two.
            if let Some(note) = confined.and_then(|it| it.hidden_from_git())
                && self.home.boot.duty == BootPurpose::Begin
            {
                let language = self.home.boot.kernel.language;
                self.kernels.news.entry(language).or_default().push(note.clone());
            }
        }
        let written = self.write_metadata();
        let outcome = outcome.and(written).map(|()| std::process::id());
        let has_failed = outcome.is_err();
        crate::report(outcome);
        if has_failed {
            self.home.directory.remove_socket();
            self.home.user().unregister(&self.home.boot.session);
            self.lifecycle = Lifecycle::Finished;
        }
    }
}

/// Closes all descriptors inherited from the launching process.
fn close_inherited_descriptors() {
    // SAFETY: called before anything in this process has opened a descriptor above the
    // standard streams.
    unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, 0) };
}
