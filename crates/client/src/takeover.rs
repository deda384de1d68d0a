//! Moving a durable session: when another machine asks for its id, the session continues
//! there under the same id.
//!
//! The machine that takes over first says so in the store; it continues from the save that
//! is there at that time. The previous machine can no longer save the session. It learns of
//! the move when it tries to, or when it asks, and ends its own.
//!
//! A short-lived process speaks to the store (`Fetch`, `Fetched`): clients have no async
//! runtime, and a server should not hold the memory that this takes.

use crate::restore::Identity;
use crate::{Bounds, Launcher, RestoreError, RestoreOptions, RestoredSession, Trust};
use rustix::event::{PollFd, PollFlags};
use rustix::fs::{FlockOperation, Mode, OFlags};
use serde::{Deserialize, Serialize};
use sessile_protocol::{RunNo, SessionId};
use sessile_store::{
    Directory, DurableStore, Liveness, SaveState, SessionStatus, Sessions, timestamp,
};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// The first argument of the process that speaks to the store.
pub const FETCHER: &str = "fetcher";

/// The order to such a process.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fetch {
    /// Take over the session, and write its last save to a file.
    Take { url: String, session_id: SessionId, file: PathBuf },
    /// Return the machine that has the session.
    Ask { url: String, session_id: SessionId },
    /// The save could not be used: let the previous machine continue.
    GiveBack { url: String, session_id: SessionId, taken: serde_json::Value },
    /// Store the files of an agent.
    PutAgent { url: String, session_id: SessionId, agent: AgentFiles },
    /// Return the files of an agent.
    GetAgent { url: String, session_id: SessionId },
}

/// The files of an agent in a store: its record, and its thread if its session is saved
/// there, too.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentFiles {
    pub record: String,
    pub thread: Option<StoredThread>,
}

/// A thread, and the epoch of its session in which it was written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredThread {
    pub epoch: u64,
    pub text: String,
}

/// The result of storing an agent's files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AgentStored {
    Stored,
    /// Another machine has taken over the session: work on this machine does not count.
    Moved {
        host: String,
    },
}

/// The answer of such a process.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fetched {
    Taken {
        epoch: u64,
        as_of_run: RunNo,
        saved_at: String,
        /// The machine that had it.
        from: Option<String>,
        /// The argument for `GiveBack`.
        taken: serde_json::Value,
    },
    GivenBack,
    Held {
        epoch: u64,
        host: String,
    },
    /// The agent's files are stored.
    Kept,
    Agent(AgentFiles),
    /// The store has no such session.
    NotFound,
    Error {
        message: String,
    },
}

/// Settings of a session that continues on this machine.
#[derive(Clone, Debug)]
pub struct ContinueOptions {
    pub bounds: Bounds,
    pub environment: BTreeMap<String, String>,
    pub owner: Option<String>,
    pub max_queue: Option<u64>,
}

/// A session that continues on this machine.
#[derive(Debug)]
pub struct ContinuedSession {
    pub session: RestoredSession,
    /// URL of the store.
    pub store: String,
    /// The machine that had it before.
    pub from: Option<String>,
    pub as_of_run: RunNo,
}

impl Launcher {
    /// Takes over a session from the store, if there is one and it has the session. A
    /// session that is on this machine, and was not taken over elsewhere, is left alone.
    ///
    /// # Errors
    /// When the store cannot be asked, or the session cannot be restored from its save.
    pub fn take_up(
        &self,
        sessions: &Sessions,
        id: &SessionId,
        going_on: ContinueOptions,
    ) -> Result<Option<ContinuedSession>, RestoreError> {
        let Some(url) = self.store() else {
            return Ok(None);
        };
        let is_made = sessions.find(id).is_ok_and(|directory| directory.has_metadata());
        if is_made && is_here(sessions, id) {
            return Ok(None);
        }
        // If two clients ask at the same time, one does it.
        let private = sessions.private()?;
        let _lock = lock(&private.join("taking.lock"))?;
        if is_here(sessions, id) {
            return Ok(None);
        }
        await_end(sessions, id);
        if let Some(directory) = self.live_elsewhere(id) {
            return Err(RestoreError::Store(format!(
                "it is on this machine, in {}",
                directory.display()
            )));
        }
        let file = Download(private.join(format!("taking-{id}.sessile")));
        let (url, session_id) = (url.to_owned(), id.clone());
        let order = Fetch::Take { url: url.clone(), session_id, file: file.0.clone() };
        let (epoch, as_of_run, saved_at, from, taken) = match self.fetch(&order)? {
            Fetched::Taken { epoch, as_of_run, saved_at, from, taken } => {
                (epoch, as_of_run, saved_at, from, taken)
            }
            Fetched::NotFound
            | Fetched::GivenBack
            | Fetched::Held { .. }
            | Fetched::Kept
            | Fetched::Agent(_) => return Ok(None),
            Fetched::Error { message } => return Err(RestoreError::Store(message)),
        };
        let state = SaveState { as_of_run: Some(as_of_run), saved_at: Some(saved_at), error: None };
        let taken_from = from.clone();
        let store = DurableStore { epoch, state, taken_from, ..DurableStore::new(url.clone()) };
        let identity = Identity::Same { id: id.clone(), store };
        let restoring = RestoreOptions {
            path: file.0.clone(),
            cwd: None,
            bounds: going_on.bounds,
            // A user who configures a store trusts everyone who can write to it.
            trust: Trust::Given,
            max_size: u64::MAX,
            name: None,
            owner: going_on.owner,
            durable: None,
            max_queue: going_on.max_queue,
            environment: going_on.environment,
        };
        match self.restore_as(sessions, &restoring, identity) {
            Ok(session) => Ok(Some(ContinuedSession { session, store: url, from, as_of_run })),
            Err(error) => {
                // Otherwise no machine could continue it.
                let _ = self.fetch(&Fetch::GiveBack { url, session_id: id.clone(), taken });
                Err(error)
            }
        }
    }

    /// Puts the files of an agent into the store, if there is one.
    ///
    /// # Errors
    /// When the store refuses.
    pub fn store_agent(
        &self,
        id: &SessionId,
        agent: AgentFiles,
    ) -> Result<AgentStored, RestoreError> {
        let Some(url) = self.store().map(str::to_owned) else {
            return Ok(AgentStored::Stored);
        };
        let order = Fetch::PutAgent { url, session_id: id.clone(), agent };
        match self.fetch_within(&order, PUTTING)? {
            Fetched::Error { message } => Err(RestoreError::Store(message)),
            Fetched::Held { host, .. } => Ok(AgentStored::Moved { host }),
            Fetched::Taken { .. }
            | Fetched::GivenBack
            | Fetched::Kept
            | Fetched::Agent(_)
            | Fetched::NotFound => Ok(AgentStored::Stored),
        }
    }

    /// Returns the files of an agent from the store.
    ///
    /// # Errors
    /// When the store cannot be asked.
    pub fn fetch_agent(&self, id: &SessionId) -> Result<Option<AgentFiles>, RestoreError> {
        let Some(url) = self.store().map(str::to_owned) else {
            return Ok(None);
        };
        match self.fetch(&Fetch::GetAgent { url, session_id: id.clone() })? {
            Fetched::Agent(agent) => Ok(Some(agent)),
            Fetched::Error { message } => Err(RestoreError::Store(message)),
            Fetched::Taken { .. }
            | Fetched::GivenBack
            | Fetched::Held { .. }
            | Fetched::Kept
            | Fetched::NotFound => Ok(None),
        }
    }

    /// Returns the other directory on this machine where the user has the session live.
    /// Waits for a keeper that was just killed or is about to exit.
    fn live_elsewhere(&self, id: &SessionId) -> Option<PathBuf> {
        let (directory, _) = self.user().registered_as(id)?;
        let deadline = Instant::now() + Duration::from_secs(3);
        loop {
            let is_live = match directory.observed_metadata().ok()?.status {
                SessionStatus::Active => true,
                SessionStatus::Starting => matches!(directory.lock(), Ok(None)),
                SessionStatus::Lost | SessionStatus::Unknown => false,
                // The status is written a moment before the keeper is gone.
                SessionStatus::Terminated => match directory.lock() {
                    Ok(None) if Instant::now() < deadline => {
                        std::thread::sleep(Duration::from_millis(2));
                        continue;
                    }
                    Ok(lock) => lock.is_none(),
                    Err(_) => false,
                },
            };
            let path = directory.path();
            return is_live.then(|| path.parent().unwrap_or(path).to_owned());
        }
    }

    fn fetch(&self, order: &Fetch) -> Result<Fetched, RestoreError> {
        let output = self.fetcher(order)?.wait_with_output()?;
        understood(&output.stdout)
    }

    /// Like `fetch`, if the store answers within this time.
    fn fetch_within(&self, order: &Fetch, limit: Duration) -> Result<Fetched, RestoreError> {
        let mut fetcher = self.fetcher(order)?;
        let has_answered = fetcher.stdout.as_ref().is_some_and(|pipe| {
            let limit = rustix::time::Timespec::try_from(limit).ok();
            let mut pipes = [PollFd::new(pipe, PollFlags::IN)];
            rustix::event::poll(&mut pipes, limit.as_ref()).is_ok_and(|ready| ready > 0)
        });
        if !has_answered {
            let _ = fetcher.kill();
        }
        let output = fetcher.wait_with_output()?;
        if has_answered {
            understood(&output.stdout)
        } else {
            Err(RestoreError::Store("it does not answer".to_owned()))
        }
    }

    fn fetcher(&self, order: &Fetch) -> Result<Child, RestoreError> {
        let order = serde_json::to_vec(order).map_err(io::Error::from)?;
        let mut command = Command::new(self.program());
        for name in self.hidden() {
            command.env_remove(name);
        }
        let mut fetcher = command
            .arg(FETCHER)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        if let Some(mut stdin) = fetcher.stdin.take() {
            stdin.write_all(&order)?;
        }
        Ok(fetcher)
    }

    /// Returns whether another machine has taken over a session since its keeper on this
    /// machine was lost. Such a session has ended here, which is recorded.
    ///
    /// The store is not asked if the session has a keeper: the keeper asks by itself, and
    /// learns of a move when it saves.
    ///
    /// # Errors
    /// When the store cannot be asked; nothing has changed then.
    pub fn check_for_move(&self, directory: &Directory) -> Result<bool, RestoreError> {
        let metadata = directory.metadata()?;
        let store = metadata.durable.as_ref().and_then(|durable| durable.store.as_ref());
        let Some(store) = store.filter(|_| metadata.status != SessionStatus::Terminated) else {
            return Ok(metadata.moved_to().is_some());
        };
        if !matches!(directory.connect_at_once(), Some(Liveness::Gone)) {
            return Ok(false);
        }
        let (url, session_id) = (store.url.clone(), metadata.session_id.clone());
        let host = match self.fetch_within(&Fetch::Ask { url, session_id }, ASKING)? {
            Fetched::Held { epoch, host } if epoch > store.epoch => host,
            Fetched::Error { message } => return Err(RestoreError::Store(message)),
            Fetched::Held { .. }
            | Fetched::Taken { .. }
            | Fetched::GivenBack
            | Fetched::Kept
            | Fetched::Agent(_)
            | Fetched::NotFound => return Ok(false),
        };
        self.sweep(directory, &metadata)?;
        // Unless it has a keeper again, which finds out by itself.
        let Some(_lock) = directory.await_lock()? else { return Ok(false) };
        let mut metadata = directory.metadata()?;
        metadata.status = SessionStatus::Terminated;
        metadata.ended_at = Some(timestamp());
        metadata.ended_by = Some(format!("a move to {host}"));
        metadata.keeper_pid = None;
        if let Some(store) = metadata.durable.as_mut().and_then(|durable| durable.store.as_mut()) {
            store.moved_to = Some(host);
        }
        directory.write_metadata(&metadata)?;
        Ok(true)
    }
}

/// Returns whether a session is on this machine, and was not taken over elsewhere.
fn is_here(sessions: &Sessions, id: &SessionId) -> bool {
    let Ok(directory) = sessions.find(id) else {
        return false;
    };
    directory.metadata().map_or(true, |metadata| {
        metadata.moved_to().is_none() || metadata.status != SessionStatus::Terminated
    })
}

/// Waits for the keeper of a session that has moved: the session has ended here, and its
/// keeper exits in a moment.
fn await_end(sessions: &Sessions, id: &SessionId) {
    let deadline = Instant::now() + ENDING;
    while let Ok(directory) = sessions.find(id)
        && !matches!(directory.connect_at_once(), Some(Liveness::Gone))
        && Instant::now() < deadline
    {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Ending takes up to two seconds.
const ENDING: Duration = Duration::from_secs(4);

/// How long the store may take to name the machine that has a session: a machine without a
/// network has to stay usable, too.
const ASKING: Duration = Duration::from_secs(5);

/// Storing a thread of some megabytes takes a while. Calls wait for it.
const PUTTING: Duration = Duration::from_secs(60);

fn understood(answer: &[u8]) -> Result<Fetched, RestoreError> {
    serde_json::from_slice(answer)
        .map_err(|_| RestoreError::Store("the process that asks it was ended".to_owned()))
}

fn lock(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::CREATE | OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let file = rustix::fs::open(path, flags, Mode::from_raw_mode(0o600))?;
    loop {
        match rustix::fs::flock(&file, FlockOperation::LockExclusive) {
            Ok(()) => return Ok(file),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// A downloaded save, removed when it is no longer needed.
struct Download(PathBuf);

impl Drop for Download {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
