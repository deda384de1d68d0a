//! New sessions, and ending them.

use crate::restore::{Move, Place};
use crate::{Client, ClientError, Launcher, stopped};
use rustix::process::{Pid, Signal};
use sessile_protocol::{Answer, Auto, ForkOrder, Language, Request, RunNo, SessionId};
use sessile_sandbox::Policy;
use sessile_store::{
    Claim, Directory, Durable, DurableStore, Liveness, Metadata, SavedState, SessionStatus,
    Sessions, new_session_id, timestamp,
};
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What a session is to be.
#[derive(Clone, Debug)]
pub struct NewSession {
    /// The id that it is to have, of a session that is gone or by an order's key; else a
    /// new one.
    pub id: Option<SessionId>,
    /// bash, sh, dash, zsh, python3 or node, or the path of one.
    pub program: String,
    /// A session whose kernels' state it begins with, and whose program it has.
    pub from: Option<SessionId>,
    /// With that: wait for a run that is going in it, instead of failing.
    pub wait: bool,
    /// With that: the keeper that must have it still. One that was started anew
    /// would not have all of its state.
    pub from_keeper: Option<u32>,
    /// The current directory when absent.
    pub cwd: Option<PathBuf>,
    pub env: BTreeMap<String, String>,
    /// Zero: never.
    pub idle_timeout_ms: u64,
    /// Only runs keep it from being idle: not jobs, nor who looks at it.
    pub idle_without_runs: bool,
    /// Zero: never.
    pub command_timeout_ms: u64,
    pub max_history: u64,
    pub output_cap: u64,
    /// Runs that may wait in it, if fewer than a keeper allows by itself.
    pub max_queue: Option<u64>,
    pub workspace: Option<String>,
    /// The key by which it is one of several of its workspace.
    pub session_key: Option<String>,
    pub name: Option<String>,
    pub owner: Option<String>,
    /// Whether it is saved in idle time.
    pub durable: Option<SavedTo>,
    /// Checkpoints that it takes before runs.
    pub auto: Option<Auto>,
    /// The policy that it is confined by, resolved.
    pub sandbox: Option<Policy>,
}

/// Where a durable session's saves go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SavedTo {
    /// The session's own directory.
    Disk,
    /// A store, and the session's own directory as well.
    Store(String),
}

impl SavedTo {
    pub(crate) fn durable(self) -> Durable {
        let store = match self {
            Self::Disk => None,
            Self::Store(url) => Some(DurableStore::new(url)),
        };
        Durable { store, ..Durable::default() }
    }
}

impl Default for NewSession {
    fn default() -> Self {
        Self {
            id: None,
            program: "bash".to_owned(),
            from: None,
            wait: false,
            from_keeper: None,
            cwd: None,
            env: BTreeMap::new(),
            idle_timeout_ms: 30 * 60 * 1000,
            idle_without_runs: false,
            command_timeout_ms: 30 * 1000,
            max_history: 100,
            output_cap: 64 << 20,
            max_queue: None,
            workspace: None,
            session_key: None,
            name: None,
            owner: None,
            durable: None,
            auto: None,
            sandbox: None,
        }
    }
}

impl NewSession {
    /// A workspace's own session.
    #[must_use]
    pub fn of_workspace(workspace: &Path, session_key: Option<String>) -> Self {
        Self {
            session_key,
            cwd: Some(workspace.to_owned()),
            workspace: Some(workspace.display().to_string()),
            ..Self::default()
        }
    }

    fn metadata(self) -> Result<Metadata, ClientError> {
        let Some(language) = Language::of_program(&self.program) else {
            return Err(ClientError::UnknownProgram(self.program));
        };
        let cwd = self.cwd.unwrap_or_else(|| PathBuf::from("."));
        let bad = |why: String| ClientError::BadDirectory { path: cwd.clone(), why };
        let work_dir = std::fs::canonicalize(&cwd).map_err(|error| bad(error.to_string()))?;
        if !work_dir.is_dir() {
            return Err(bad("it is not a directory".to_owned()));
        }
        // A path is meant from here, wherever the session's directory is.
        let command = if self.program.contains('/') {
            std::path::absolute(&self.program)?.to_string_lossy().into_owned()
        } else {
            self.program
        };
        Ok(Metadata {
            session_id: match self.id {
                Some(id) => id,
                None => new_session_id()?,
            },
            command,
            created_at: timestamp(),
            last_executed_at: None,
            status: SessionStatus::Starting,
            work_dir,
            execution_count: 0,
            language,
            ended_at: None,
            ended_by: None,
            lost_at_end: Vec::new(),
            keeper_pid: None,
            env: self.env,
            idle_timeout_ms: self.idle_timeout_ms,
            idle_without_runs: self.idle_without_runs,
            command_timeout_ms: self.command_timeout_ms,
            max_history: self.max_history.max(1),
            output_cap: self.output_cap,
            max_queue: self.max_queue,
            workspace: self.workspace,
            session_key: self.session_key,
            name: self.name,
            owner: self.owner,
            durable: self.durable.map(SavedTo::durable),
            auto: self.auto,
            sandbox: self
                .sandbox
                .map(serde_json::to_value)
                .transpose()
                .map_err(|error| ClientError::Launch(error.into()))?,
            notes: Vec::new(),
            forked_from: None,
            restored_from: None,
        })
    }
}

/// A keeper that is well answers within this, or is busy with its end.
const SOON: Duration = Duration::from_secs(1);

/// An end takes two seconds where programs ignore SIGTERM, and longer on a busy
/// machine. After this the keeper is killed; its guardian clears away.
const AT_THE_LATEST: Duration = Duration::from_secs(20);

/// Has a keeper end its session. One that is stopped goes on for that, and one
/// that does not answer is killed.
fn end_keeper(directory: &Directory) -> Result<(), ClientError> {
    let Some(socket) = connect(directory)? else {
        return Ok(());
    };
    let keeper = stopped::process(&socket);
    let mut client = Client::new(socket);
    let begun = Instant::now();
    let mut reply = client.ask(Request::End).and_then(|_| client.reply_by(begun + SOON));
    if let (Ok(None), Some(keeper)) = (&reply, keeper) {
        stopped::wake(keeper);
        reply = client.reply_by(begun + AT_THE_LATEST);
    }
    match (reply, keeper) {
        (Ok(Some(reply)), _) => reply.outcome.map(drop).map_err(ClientError::from),
        // Gone while we asked: somebody else ended it at the same moment.
        (Err(ClientError::Gone), _) => Ok(()),
        (Err(error), _) => Err(error),
        (Ok(None), Some(keeper)) => {
            rustix::process::kill_process(keeper, Signal::KILL).map_err(std::io::Error::from)?;
            stopped::wake(keeper);
            Ok(())
        }
        (Ok(None), None) => Err(ClientError::Silent),
    }
}

/// Connects to a keeper, if there is one. One that is stopped may have as many
/// connections waiting as it can have; it goes on then.
fn connect(directory: &Directory) -> Result<Option<OwnedFd>, ClientError> {
    let deadline = Instant::now() + AT_THE_LATEST;
    loop {
        match directory.connect_at_once() {
            Some(Liveness::Live(socket)) => return Ok(Some(socket)),
            Some(Liveness::Gone) => return Ok(None),
            None if Instant::now() > deadline => return Err(ClientError::Silent),
            None => {}
        }
        let pid = directory.metadata()?.keeper_pid.and_then(|pid| i32::try_from(pid).ok());
        if let Some(keeper) = pid.and_then(Pid::from_raw) {
            stopped::wake(keeper);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Holds the session's name, if it has one, until others can see that it has.
pub(crate) fn reserve_name(
    sessions: &Sessions,
    metadata: &Metadata,
) -> Result<Vec<Claim>, ClientError> {
    let names: Vec<String> = metadata.name.iter().cloned().collect();
    Ok(sessions.reserve_names(&names, metadata.owner.as_deref())?)
}

impl Launcher {
    /// Starts a session; when that fails, nothing of it is left.
    ///
    /// # Errors
    /// When it makes no sense, or cannot be started.
    pub fn create(
        &self,
        sessions: &Sessions,
        new: NewSession,
    ) -> Result<(Directory, Metadata), ClientError> {
        if let Some(template) = new.from.clone() {
            return self.create_from(sessions, &template, new);
        }
        let metadata = new.metadata()?;
        let _reserved = reserve_name(sessions, &metadata)?;
        let directory = sessions.create(&metadata.session_id)?;
        self.start(&directory, &metadata)?;
        // Its keeper has written what of the sandbox is weaker than it was asked for.
        let written = metadata.sandbox.as_ref().and_then(|_| directory.metadata().ok());
        let notes = written.map(|written| written.notes).unwrap_or_default();
        Ok((directory, Metadata { notes, ..metadata }))
    }

    /// The template's keeper makes it: only a parent hears of the end of a copied
    /// process.
    fn create_from(
        &self,
        sessions: &Sessions,
        template: &SessionId,
        new: NewSession,
    ) -> Result<(Directory, Metadata), ClientError> {
        let source = sessions.find(template)?;
        let before = source.observed_metadata()?;
        let is_as_it_was = |keeper: u32| {
            before.status == SessionStatus::Active && before.keeper_pid == Some(keeper)
        };
        if !new.from_keeper.is_none_or(is_as_it_was) {
            return Err(ClientError::Gone);
        }
        if before.status == SessionStatus::Terminated {
            return self.create_from_ended(sessions, &source, &before, new);
        }
        let new = new.confined_as(&before)?;
        if before.sandbox.is_some() {
            let wait = new.wait;
            let metadata = NewSession { program: before.command, ..new }.metadata()?;
            return self.create_confined(sessions, &source, metadata, wait);
        }
        let mut client = self.open(&source)?;
        if new.from_keeper.is_some() && client.revived().is_some() {
            return Err(ClientError::Gone);
        }
        let wait = new.wait;
        let metadata = NewSession { program: source.metadata()?.command, ..new }.metadata()?;
        let _reserved = reserve_name(sessions, &metadata)?;
        let directory = sessions.create(&metadata.session_id)?;
        let boot = self.new_boot(&directory, &metadata);
        match client.call(Request::Fork(ForkOrder { wait, ..ForkOrder::into_new(boot) })) {
            Ok(Answer::Forked(_)) => Ok((directory, metadata)),
            Ok(_) => Err(ClientError::Unexpected),
            Err(error) => {
                let _ = directory.remove();
                Err(error)
            }
        }
    }

    /// From what a session that has ended has left on disk: the last state of its
    /// shells, and of a durable one the last save of the others.
    fn create_from_ended(
        &self,
        sessions: &Sessions,
        source: &Directory,
        before: &Metadata,
        new: NewSession,
    ) -> Result<(Directory, Metadata), ClientError> {
        let mut kernels = source.left_kernels();
        if kernels.is_empty() || before.moved_to().is_some() {
            return Err(ClientError::ended(source, before));
        }
        let new = new.confined_as(before)?;
        let metadata = NewSession { program: before.command.clone(), ..new }.metadata()?;
        let moved = Move {
            session: &metadata.session_id,
            environment: &metadata.env,
            from: &before.work_dir,
            to: &metadata.work_dir,
            place: if before.sandbox.is_some() { Place::Confined } else { Place::New },
        };
        for (language, saved) in &mut kernels {
            moved.fit(*language, saved);
            // It has had no run of its own.
            saved.as_of_run = RunNo(0);
            saved.dump_as_of_run = saved.dump_as_of_run.map(|_| RunNo(0));
        }
        let _reserved = reserve_name(sessions, &metadata)?;
        let directory = sessions.create(&metadata.session_id)?;
        let dumps = kernels.values().filter_map(|saved| saved.dump.clone()).collect::<Vec<_>>();
        let made = directory
            .copy_dumps(source, &dumps)
            .and_then(|()| directory.write_state(&SavedState { captured_at: timestamp(), kernels }))
            .and_then(|()| directory.write_metadata(&metadata))
            .map_err(ClientError::from)
            .and_then(|()| self.revive_as(&directory, &metadata));
        match made {
            Ok(_) => Ok((directory.clone(), directory.metadata().unwrap_or(metadata))),
            Err(error) => {
                let _ = directory.remove();
                Err(error)
            }
        }
    }

    /// Gives a session another name, or none, whatever it is doing.
    ///
    /// # Errors
    /// When it cannot be a name, is that of another live session of the owner, or
    /// cannot be written down.
    pub fn rename(
        &self,
        sessions: &Sessions,
        directory: &Directory,
        name: Option<&str>,
    ) -> Result<Metadata, ClientError> {
        let metadata = directory.observed_metadata()?;
        if metadata.name.as_deref() == name {
            return Ok(metadata);
        }
        let owner = metadata.owner.as_deref();
        let _reserved = name.map(|name| sessions.reserve_name(name, owner)).transpose()?;
        let name = name.map(str::to_owned);
        match directory.connect_at_once() {
            Some(Liveness::Live(socket)) => {
                Client::new(socket).call(Request::Rename { name })?;
            }
            Some(Liveness::Gone) => {
                let Some(_lock) = directory.await_lock()? else { return Err(ClientError::Gone) };
                directory.write_metadata(&Metadata { name, ..directory.metadata()? })?;
            }
            None => return Err(ClientError::Silent),
        }
        Ok(directory.metadata()?)
    }

    /// Ends a session; one that has ended already, or was lost, is ended too. What it
    /// was comes back, with what was lost at its end.
    ///
    /// # Errors
    /// When its keeper refuses, or its files cannot be read.
    pub fn end(&self, directory: &Directory) -> Result<Metadata, ClientError> {
        end_keeper(directory)?;
        let mut metadata = directory.observed_metadata()?;
        if metadata.status == SessionStatus::Lost {
            // Who killed the keeper may have killed its guardian, too.
            self.sweep(directory, &metadata)?;
            metadata.status = SessionStatus::Terminated;
            metadata.ended_at = Some(timestamp());
            metadata.ended_by = Some("request".to_owned());
            directory.write_metadata(&metadata)?;
        }
        Ok(metadata)
    }
}
