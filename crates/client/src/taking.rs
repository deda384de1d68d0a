//! A durable session whose id is asked for on another machine goes on there, under
//! the same id.
//!
//! Whoever takes it up says so in the store first, and the save that is there then
//! is the one that it goes on from. The machine that had it cannot save it any more;
//! when it tries to, it is told, and ends its own.
//!
//! A short-lived process speaks to the store (`Fetch`, `Fetched`): clients have no
//! runtime, and a server has better things to remember.

use crate::restore::Identity;
use crate::{Bounds, Launcher, RestoreError, RestoredSession, Restoring, Trust};
use rustix::fs::{FlockOperation, Mode, OFlags};
use serde::{Deserialize, Serialize};
use sessile_protocol::{RunNo, SessionId};
use sessile_store::{DurableStore, Liveness, SaveState, SessionStatus, Sessions};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The first argument of the process that speaks to the store.
pub const FETCHER: &str = "fetcher";

/// What such a process is told.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fetch {
    /// Take the session up, and write its last save into a file.
    Take { url: String, session_id: SessionId, file: PathBuf },
    /// It could not be used: let whoever had it go on.
    GiveBack { url: String, session_id: SessionId, taken: serde_json::Value },
}

/// What such a process answers.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fetched {
    Taken {
        epoch: u64,
        as_of_run: RunNo,
        saved_at: String,
        /// The machine that had it.
        from: Option<String>,
        /// To give it back.
        taken: serde_json::Value,
    },
    GivenBack,
    /// The store has no such session.
    NotFound,
    Error {
        message: String,
    },
}

/// How a session is to go on here.
#[derive(Clone, Debug)]
pub struct GoingOn {
    pub bounds: Bounds,
    pub environment: BTreeMap<String, String>,
    pub owner: Option<String>,
    pub max_queue: Option<u64>,
}

/// A session that goes on here.
#[derive(Debug)]
pub struct TakenUp {
    pub session: RestoredSession,
    /// The store.
    pub store: String,
    /// The machine that had it.
    pub from: Option<String>,
    pub as_of_run: RunNo,
}

impl Launcher {
    /// Takes a session up from the store, if there is one and it has the session.
    /// One that is here, and has not been taken up elsewhere, is left alone.
    ///
    /// # Errors
    /// When the store cannot be asked, or the session cannot be made of its save.
    pub fn take_up(
        &self,
        sessions: &Sessions,
        id: &SessionId,
        going_on: GoingOn,
    ) -> Result<Option<TakenUp>, RestoreError> {
        let Some(url) = self.store() else {
            return Ok(None);
        };
        if is_here(sessions, id) {
            return Ok(None);
        }
        // Of two clients that ask at the same time, one does it.
        let private = sessions.private()?;
        let _lock = lock(&private.join("taking.lock"))?;
        if is_here(sessions, id) {
            return Ok(None);
        }
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
            Fetched::NotFound | Fetched::GivenBack => return Ok(None),
            Fetched::Error { message } => return Err(RestoreError::Store(message)),
        };
        let state = SaveState { as_of_run: Some(as_of_run), saved_at: Some(saved_at), error: None };
        let taken_from = from.clone();
        let store = DurableStore { epoch, state, taken_from, ..DurableStore::new(url.clone()) };
        let identity = Identity::Same { id: id.clone(), store };
        let restoring = Restoring {
            path: file.0.clone(),
            cwd: None,
            bounds: going_on.bounds,
            // Whoever configures a store trusts those who can write to it.
            trust: Trust::Given,
            max_size: u64::MAX,
            name: None,
            owner: going_on.owner,
            durable: None,
            max_queue: going_on.max_queue,
            environment: going_on.environment,
        };
        match self.restore_as(sessions, &restoring, identity) {
            Ok(session) => Ok(Some(TakenUp { session, store: url, from, as_of_run })),
            Err(error) => {
                // Else nobody could go on with it.
                let _ = self.fetch(&Fetch::GiveBack { url, session_id: id.clone(), taken });
                Err(error)
            }
        }
    }

    /// Where else on this machine the user has the session, live.
    fn live_elsewhere(&self, id: &SessionId) -> Option<PathBuf> {
        let (directory, _) = self.user().registered_as(id)?;
        let is_live = matches!(directory.connect(), Liveness::Live(_));
        is_live.then(|| directory.path().parent().unwrap_or(directory.path()).to_owned())
    }

    fn fetch(&self, order: &Fetch) -> Result<Fetched, RestoreError> {
        let order = serde_json::to_vec(order).map_err(io::Error::from)?;
        let mut fetcher = Command::new(self.program())
            .arg(FETCHER)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        if let Some(mut stdin) = fetcher.stdin.take() {
            stdin.write_all(&order)?;
        }
        let output = fetcher.wait_with_output()?;
        serde_json::from_slice(&output.stdout)
            .map_err(|_| RestoreError::Store("the process that asks it was ended".to_owned()))
    }
}

/// Whether a session is on this machine, or has been and nobody took it up since.
fn is_here(sessions: &Sessions, id: &SessionId) -> bool {
    let Ok(directory) = sessions.find(id) else {
        return false;
    };
    directory.metadata().map_or(true, |metadata| {
        metadata.moved_to().is_none() || metadata.status != SessionStatus::Terminated
    })
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

/// A save that was brought here, removed when it is not needed any more.
struct Download(PathBuf);

impl Drop for Download {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
