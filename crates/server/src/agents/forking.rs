//! Agents with the same past: the session is forked, and its thread copied.
//!
//! The plan is written first (`forking.json` in the session's directory). After a crash,
//! the next server finds it and gives the finished forks their threads. Whoever carries
//! out the plan holds a lock on the file.

use super::profile::Profile;
use super::thread_file::{self, storage};
use super::{AgentView, audit};
use crate::keepers::blocking;
use crate::service::{Caller, ErrorCode, Service, ServiceError};
use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use serde::{Deserialize, Serialize};
use sessile_agent::thread::{Entry, EntryKind};
use sessile_protocol::{ForkOrder, SessionId};
use sessile_store::{Directory, Sessions, timestamp};
use std::fs::File;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

const FORKING: &str = "forking.json";

/// A planned fork.
#[derive(Debug, Serialize, Deserialize)]
struct Plan {
    /// How many entries of the thread the forks get.
    entries: u64,
    /// When it was planned: older forks do not belong to it.
    since: String,
}

/// A plan that is being carried out.
#[derive(Debug)]
struct Forking {
    directory: Directory,
    plan: Plan,
    _lock: File,
}

fn path(directory: &Directory) -> PathBuf {
    directory.path().join(FORKING)
}

fn busy(message: &str) -> ServiceError {
    ServiceError::new(ErrorCode::Busy, message)
}

const UNDER_WAY: &str = "a task of this agent is not over; wait for it, or cancel it";
const BEGUN: &str = "a task of this agent has begun meanwhile; wait for it, and fork it then";
const FORKED: &str = "another server is just forking this agent; try again";

impl Forking {
    /// Writes the plan for an idle agent.
    fn begin(directory: &Directory) -> Result<Self, ServiceError> {
        let digest = thread_file::digest(directory)?;
        if digest.is_open() {
            return Err(busy(UNDER_WAY));
        }
        let plan = Plan { entries: digest.entries, since: timestamp() };
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::CLOEXEC;
        let file = rustix::fs::open(path(directory), flags, Mode::RUSR | Mode::WUSR);
        let mut file = match file {
            Ok(file) => File::from(file),
            Err(rustix::io::Errno::EXIST) => return Err(busy(FORKED)),
            Err(error) => return Err(storage("fork", &error)),
        };
        if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Err(busy(FORKED));
        }
        let text = serde_json::to_vec(&plan).map_err(|e| storage("fork", &e))?;
        file.write_all(&text).and_then(|()| file.sync_data()).map_err(|e| storage("fork", &e))?;
        Ok(Self { directory: directory.clone(), plan, _lock: file })
    }

    /// Returns a plan that was abandoned. A partly written plan was not begun.
    fn left(directory: &Directory) -> Option<Self> {
        let mut file = File::open(path(directory)).ok()?;
        flock(&file, FlockOperation::NonBlockingLockExclusive).ok()?;
        let mut text = Vec::new();
        file.read_to_end(&mut text).ok()?;
        match serde_json::from_slice(&text) {
            Ok(plan) => Some(Self { directory: directory.clone(), plan, _lock: file }),
            Err(_) => {
                let _ = std::fs::remove_file(path(directory));
                None
            }
        }
    }

    /// Copies the thread to a fork.
    fn give(&self, to: &Directory) -> Result<(), ServiceError> {
        let (profile, entries) = self.thread()?;
        let profile = profile.forked()?;
        let mut entries = entries;
        if let Some(first) = entries.first_mut()
            && let EntryKind::Created { thread, forked_from, .. } = &mut first.what
        {
            *forked_from = Some(std::mem::replace(thread, profile.thread_id.clone()));
        }
        // Removes a thread that a crash left unfinished.
        thread_file::remove(to)?;
        let digest = thread_file::create(to, &profile, &entries)?;
        audit::write(to, &profile, &digest)
    }

    fn thread(&self) -> Result<(Profile, Vec<Entry>), ServiceError> {
        let mut entries = thread_file::entries(&self.directory)?;
        entries.truncate(usize::try_from(self.plan.entries).unwrap_or(usize::MAX));
        Ok((thread_file::profile(&self.directory)?, entries))
    }

    /// Whether the agent has gone on since.
    fn is_outdated(&self) -> Result<bool, ServiceError> {
        Ok(thread_file::digest(&self.directory)?.entries != self.plan.entries)
    }

    /// Returns the finished forks that have no thread.
    fn without_threads(&self, sessions: &Sessions) -> Result<Vec<Directory>, ServiceError> {
        let id = self.directory.metadata()?.session_id;
        let made = sessions.recorded()?.into_iter().filter(|(directory, metadata)| {
            let is_of = metadata.forked_from.as_ref().is_some_and(|from| from.session_id == id);
            is_of && metadata.created_at >= self.plan.since && !thread_file::is_whole(directory)
        });
        Ok(made.map(|(directory, _)| directory).collect())
    }

    /// Whether forks may still appear: the keeper goes on when the server is gone, and
    /// copies files before it records a fork.
    fn is_open(&self, sessions: &Sessions) -> Result<bool, ServiceError> {
        let since = self.plan.since.parse::<jiff::Timestamp>().unwrap_or_default();
        let age = Duration::try_from(jiff::Timestamp::now().duration_since(since));
        let is_new = age.is_ok_and(|age| age < ENOUGH);
        Ok(is_new || !sessions.being_made()?.is_empty())
    }

    fn finish(self) {
        let _ = std::fs::remove_file(path(&self.directory));
    }
}

/// Ends the plan without blocking the async thread.
async fn finished(forking: Forking) -> Result<(), ServiceError> {
    blocking(move || {
        forking.finish();
        Ok(())
    })
    .await
}

impl Service {
    /// Forks an agent.
    pub(crate) async fn fork_agent(
        self: &Arc<Self>,
        caller: &Caller,
        id: &SessionId,
        order: ForkOrder,
    ) -> Result<Vec<AgentView>, ServiceError> {
        let place = self.place(caller, id).await?;
        let _lock = self.agents.forking.lock(id).await;
        self.complete_forks(&place.directory).await?;
        let directory = place.directory.clone();
        let forking = blocking(move || Forking::begin(&directory)).await?;
        let forked = match self.fork(caller, id, order).await {
            Ok(forked) => forked.answer,
            Err(error) => {
                finished(forking).await?;
                return Err(error);
            }
        };
        let forks: Vec<SessionId> = forked.forks.iter().map(|fork| fork.session.clone()).collect();
        let sessions = self.sessions().clone();
        let of = forks.clone();
        let given = blocking(move || {
            let outcome = (|| {
                if forking.is_outdated()? {
                    return Err(busy(BEGUN));
                }
                of.iter().try_for_each(|fork| forking.give(&sessions.find(fork)?))
            })();
            Ok((forking, outcome))
        });
        let (forking, outcome) = given.await?;
        if let Err(error) = outcome {
            // Sessions without their agents are of no use to the client.
            for fork in &forks {
                let _ = self.end(caller, fork).await;
            }
            finished(forking).await?;
            return Err(error);
        }
        finished(forking).await?;
        let mut views = Vec::new();
        for fork in &forks {
            views.push(self.agent(caller, fork).await?);
        }
        Ok(views)
    }

    /// Gives threads to the forks that a crash left without them, as far as they exist.
    pub(super) async fn finish_forks(
        &self,
        id: &SessionId,
        directory: &Directory,
    ) -> Result<UnfinishedForks, ServiceError> {
        // Waits for a fork in this server: its lock must not be taken for another server's.
        let _lock = self.agents.forking.lock(id).await;
        self.complete_forks(directory).await
    }

    async fn complete_forks(&self, directory: &Directory) -> Result<UnfinishedForks, ServiceError> {
        let (directory, sessions) = (directory.clone(), self.sessions().clone());
        blocking(move || {
            let Some(forking) = Forking::left(&directory) else {
                return Ok(UnfinishedForks::Nothing);
            };
            // Asked before the search: a fork that appears in between is found the next time.
            let is_open = forking.is_open(&sessions)?;
            for fork in forking.without_threads(&sessions)? {
                forking.give(&fork)?;
            }
            if is_open {
                return Ok(UnfinishedForks::MayCome);
            }
            forking.finish();
            Ok(UnfinishedForks::Nothing)
        })
        .await
    }

    /// Repeats this until no fork can appear any more; for a server that has just started.
    pub(super) async fn await_forks(self: Arc<Self>, id: SessionId, directory: Directory) {
        loop {
            match self.finish_forks(&id, &directory).await {
                Ok(UnfinishedForks::Nothing) => return,
                Ok(UnfinishedForks::MayCome) => tokio::time::sleep(PAUSE).await,
                Err(error) => {
                    let path = directory.path().display();
                    tracing::warn!(%path, %error, "forks of an agent have no threads");
                    return;
                }
            }
        }
    }
}

/// What is left to do after forks were interrupted by a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UnfinishedForks {
    Nothing,
    /// The keeper may still be making them.
    MayCome,
}

/// A keeper begins with a request within this time.
const ENOUGH: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(500);
