//! New sessions, and ending them.

use crate::restore::{DirectoryMapping, Move};
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

/// Settings of a new session.
#[derive(Clone, Debug)]
pub struct NewSession {
    /// The id of the session: that of a session that is gone, or one derived from an
    /// idempotency key; otherwise a new one.
    pub id: Option<SessionId>,
    /// bash, sh, dash, zsh, python3 or node, or the path of one.
    pub program: String,
    /// A session whose kernel states and program it starts with.
    pub from: Option<SessionId>,
    /// With `from`: wait for active runs in it, instead of failing.
    pub wait: bool,
    /// With `from`: the keeper that it must still have. A new keeper would not have its
    /// whole state.
    pub from_keeper: Option<u32>,
    /// The current directory when absent.
    pub cwd: Option<PathBuf>,
    pub env: BTreeMap<String, String>,
    /// Zero means never.
    pub idle_timeout_ms: u64,
    /// Only runs keep it from being idle; jobs and watching clients do not.
    pub idle_without_runs: bool,
    /// Zero means never.
    pub command_timeout_ms: u64,
    pub max_history: u64,
    pub output_cap: u64,
    /// Maximum number of queued runs, if lower than a keeper's own limit.
    pub max_queue: Option<u64>,
    pub workspace: Option<String>,
    /// The key that distinguishes it from other sessions of its workspace.
    pub session_key: Option<String>,
    pub name: Option<String>,
    pub owner: Option<String>,
    /// Where it is saved in idle time, if it is durable.
    pub durable: Option<SavedTo>,
    /// Automatic checkpoints before runs.
    pub auto: Option<Auto>,
    /// The resolved policy of its sandbox.
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
    /// Returns a workspace's default session.
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
        // A relative path starts at our directory, not at the session's.
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

/// A healthy keeper answers within this time, or is busy ending.
const SOON: Duration = Duration::from_secs(1);

/// An end takes two seconds if programs ignore SIGTERM, and longer on a busy machine. After
/// this time the keeper is killed; its guardian cleans up.
const AT_THE_LATEST: Duration = Duration::from_secs(20);

/// Has a keeper end its session. A stopped keeper is continued, and one that does not
/// answer is killed.
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
        // Gone while we asked: another client ended it at the same moment.
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

/// Connects to a keeper, if there is one. If it is stopped and its queue of connections is
/// full, it is continued.
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

/// Reserves the session's name, if it has one, until others can see it.
pub(crate) fn reserve_name(
    sessions: &Sessions,
    metadata: &Metadata,
) -> Result<Vec<Claim>, ClientError> {
    let names: Vec<String> = metadata.name.iter().cloned().collect();
    Ok(sessions.reserve_names(&names, metadata.owner.as_deref())?)
}

impl Launcher {
    /// Starts a session. If that fails, nothing of it is left.
    ///
    /// # Errors
    /// When the settings make no sense, or the session cannot be started.
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
        // Its keeper has recorded what is weaker in the sandbox than requested.
        let written = metadata.sandbox.as_ref().and_then(|_| directory.metadata().ok());
        let notes = written.map(|written| written.notes).unwrap_or_default();
        Ok((directory, Metadata { notes, ..metadata }))
    }

    /// Has the template's keeper make the session: only the parent learns of the end of a
    /// copied process.
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

    /// Makes a session from what an ended one left on disk: the last state of its shells,
    /// and for a durable session the last save of the other kernels.
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
            place: if before.sandbox.is_some() {
                DirectoryMapping::Confined
            } else {
                DirectoryMapping::New
            },
        };
        for (language, saved) in &mut kernels {
            moved.fit(*language, saved);
            // The new session has had no run yet.
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

    /// Gives a session another name, or none, even during a run.
    ///
    /// # Errors
    /// When the name is invalid, belongs to another live session of the owner, or cannot be
    /// written.
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

    /// Ends a session, including one that has already ended or was lost. Returns its
    /// metadata, with what was lost at its end.
    ///
    /// # Errors
    /// When its keeper refuses, or its files cannot be read.
    pub fn end(&self, directory: &Directory) -> Result<Metadata, ClientError> {
        end_keeper(directory)?;
        let mut metadata = directory.observed_metadata()?;
        if metadata.status == SessionStatus::Lost {
            // The guardian may have been killed together with the keeper.
            self.sweep(directory, &metadata)?;
            metadata.status = SessionStatus::Terminated;
            metadata.ended_at = Some(timestamp());
            metadata.ended_by = Some("request".to_owned());
            directory.write_metadata(&metadata)?;
        }
        Ok(metadata)
    }
}
