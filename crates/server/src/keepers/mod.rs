//! The keepers of all sessions, and the connections to them.
//!
//! The server owns no session: it finds their keepers by the session directory, like
//! every client, so it can be killed and restarted at any time. A connection is used by
//! one caller at a time and kept for the next, which makes a call one write and one read
//! without a task in between.

mod ancestry;
mod continuity;
mod link;

pub(crate) use ancestry::HomeIndex;
pub(crate) use link::{Link, LinkError};

use crate::metrics::Metrics;
use crate::service::{ServiceError, internal};
use sessile_client::{ContinuedSession, Launcher, RestoredSession};
use sessile_gateway::answer::Continuity;
use sessile_protocol::{Answer, Request, SessionId};
use sessile_sandbox::Policy;
use sessile_store::{Directory, Liveness, Metadata, Sessions, StoreError};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How many idle connections are kept for a session: more are needed only while several
/// callers wait in it at once.
const IDLE_LINKS: usize = 4;

#[derive(Debug)]
pub(crate) struct Keepers {
    sessions: Sessions,
    launcher: Launcher,
    metrics: Arc<Metrics>,
    reached: Mutex<HashMap<SessionId, Arc<Place>>>,
    /// Sessions taken up from a store, until a caller is told.
    taken: Mutex<HashMap<SessionId, Continuity>>,
}

/// A session's location, and its properties that never change.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) id: SessionId,
    pub(crate) directory: Directory,
    /// The directory that decides who may use it.
    pub(crate) home: PathBuf,
    /// Its sandbox, if any.
    pub(crate) sandbox: Option<Policy>,
    idle: Mutex<Vec<Link>>,
}

impl Place {
    /// Reads the files of the sessions that it was forked from.
    pub(crate) fn new(sessions: &Sessions, directory: Directory, metadata: &Metadata) -> Self {
        let home = ancestry::home_on_disk(metadata, sessions);
        let id = metadata.session_id.clone();
        let sandbox = crate::service::policy(metadata);
        Self { id, directory, home, sandbox, idle: Mutex::default() }
    }
}

/// A session with a connection to its keeper.
#[derive(Debug)]
pub(crate) struct ConnectedSession {
    pub(crate) place: Arc<Place>,
    pub(crate) continuity: Continuity,
    link: Option<Link>,
}

impl ConnectedSession {
    /// Sends a request to the keeper. If the caller goes away meanwhile, the connection
    /// is dropped, because its next answer would belong to this call.
    pub(crate) async fn call(&mut self, request: Request) -> Result<Answer, ServiceError> {
        let Some(mut link) = self.link.take() else {
            return Err(LinkError::Gone.into());
        };
        let outcome = link.call(request).await;
        if matches!(outcome, Ok(_) | Err(LinkError::Refused(_))) {
            self.link = Some(link);
        }
        Ok(outcome?)
    }

    /// Takes the connection for several calls at once; it is not reused after that.
    pub(crate) fn into_link(mut self) -> Option<Link> {
        self.link.take()
    }
}

impl Drop for ConnectedSession {
    fn drop(&mut self) {
        if let Some(link) = self.link.take() {
            let mut idle = lock(&self.place.idle);
            if idle.len() < IDLE_LINKS {
                idle.push(link);
            }
        }
    }
}

impl Keepers {
    pub(crate) fn new(sessions: Sessions, launcher: Launcher, metrics: Arc<Metrics>) -> Self {
        Self { sessions, launcher, metrics, reached: Mutex::default(), taken: Mutex::default() }
    }

    pub(crate) fn sessions(&self) -> &Sessions {
        &self.sessions
    }

    pub(crate) fn launcher(&self) -> &Launcher {
        &self.launcher
    }

    /// Whether the session was used before: then this is its whole id.
    pub(crate) fn knows(&self, id: &SessionId) -> bool {
        lock(&self.reached).contains_key(id)
    }

    /// Finds a session, live or not.
    pub(crate) async fn find(&self, id: &SessionId) -> Result<Arc<Place>, ServiceError> {
        if let Some(place) = lock(&self.reached).get(id) {
            return Ok(place.clone());
        }
        let (sessions, id) = (self.sessions.clone(), id.clone());
        blocking(move || {
            let directory = sessions.find(&id)?;
            // Skips a session that is just being made.
            if !directory.has_metadata() {
                return Err(StoreError::NotFound(id.to_string()).into());
            }
            let metadata = directory.metadata()?;
            Ok(Arc::new(Place::new(&sessions, directory, &metadata)))
        })
        .await
    }

    /// Connects to a session's keeper; restarts the keeper of a lost session.
    pub(crate) async fn reach(&self, place: Arc<Place>) -> Result<ConnectedSession, ServiceError> {
        if let Some(mut reached) = self.reach_idle(&place) {
            reached.continuity = self.unreported(&place.id);
            return Ok(reached);
        }
        let (link, continuity) = match Link::open(place.directory.clone()).await {
            Ok(link) => (link, self.unreported(&place.id)),
            Err(LinkError::Gone) => {
                lock(&self.reached).remove(&place.id);
                let continuity = self.revive(&place).await?;
                (Link::open(place.directory.clone()).await?, continuity)
            }
            Err(error) => return Err(error.into()),
        };
        let place = lock(&self.reached).entry(place.id.clone()).or_insert(place).clone();
        Ok(ConnectedSession { place, continuity, link: Some(link) })
    }

    /// Returns what is to be reported about a live session.
    fn unreported(&self, id: &SessionId) -> Continuity {
        lock(&self.taken).remove(id).unwrap_or(Continuity::Live)
    }

    /// Connects to a session's keeper, if it has one. A lost session stays lost, and its
    /// report stays unread, until a caller needs it.
    pub(crate) async fn reach_live(
        &self,
        place: &Arc<Place>,
    ) -> Result<Option<ConnectedSession>, ServiceError> {
        let link = match Link::open(place.directory.clone()).await {
            Ok(link) => link,
            Err(LinkError::Gone) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let place = lock(&self.reached).entry(place.id.clone()).or_insert(place.clone()).clone();
        Ok(Some(ConnectedSession { place, continuity: Continuity::Live, link: Some(link) }))
    }

    /// Reuses an idle connection.
    pub(crate) fn reach_idle(&self, place: &Arc<Place>) -> Option<ConnectedSession> {
        let mut idle = lock(&place.idle);
        let link = std::iter::from_fn(|| idle.pop()).find(Link::is_alive)?;
        Some(ConnectedSession {
            place: place.clone(),
            continuity: Continuity::Live,
            link: Some(link),
        })
    }

    /// Adds a session that was just made.
    pub(crate) fn admit(&self, place: &Arc<Place>) {
        lock(&self.reached).insert(place.id.clone(), place.clone());
    }

    /// Adds a session that another machine had.
    pub(crate) async fn taken_up(&self, taken: &ContinuedSession) -> Result<(), ServiceError> {
        let RestoredSession { directory, metadata, .. } = &taken.session;
        let previous = Box::new(metadata.clone());
        let (as_of_run, lost_runs) = (taken.as_of_run, Vec::new());
        tracing::warn!(
            session_id = %metadata.session_id,
            store = taken.store,
            from = taken.from.as_deref().unwrap_or("another machine"),
            "the session was taken up from its store"
        );
        let lost = continuity::left_behind(metadata);
        let continuity = Continuity::Restored { as_of_run, lost_runs, lost, previous };
        lock(&self.taken).insert(metadata.session_id.clone(), continuity);
        let (sessions, directory) = (self.sessions.clone(), directory.clone());
        let metadata = metadata.clone();
        let place = blocking(move || Ok(Place::new(&sessions, directory, &metadata))).await?;
        self.admit(&Arc::new(place));
        Ok(())
    }

    pub(crate) fn forget(&self, id: &SessionId) {
        lock(&self.reached).remove(id);
    }

    /// Continues a lost session from what was kept of it.
    async fn revive(&self, place: &Place) -> Result<Continuity, ServiceError> {
        let (launcher, directory) = (self.launcher.clone(), place.directory.clone());
        let continuity = blocking(move || {
            // Read before there is a new keeper, which continues the numbering.
            let before = continuity::LostSession::of(&directory);
            // If it has moved, this ends it here, and `open` says so.
            if let Err(error) = launcher.check_for_move(&directory) {
                let error: &dyn std::error::Error = &error;
                tracing::warn!(error, "a lost session goes on; its store cannot be asked");
            }
            let client = launcher.open(&directory)?;
            Ok(match client.revived() {
                Some(previous) => {
                    before.remember(&directory);
                    before.into_continuity(Box::new(previous.clone()))
                }
                None => Continuity::Live,
            })
        })
        .await?;
        if let Continuity::Restored { previous, .. } | Continuity::Fresh { previous, .. } =
            &continuity
        {
            self.metrics.keepers_lost.inc();
            tracing::warn!(
                session_id = %place.id,
                last_activity = previous.last_executed_at.as_deref().unwrap_or("never"),
                continuity = continuity.as_str(),
                "the session's keeper was lost; the session goes on with a new one"
            );
        }
        Ok(continuity)
    }

    /// Counts the keepers that were running before this server.
    pub(crate) async fn adopt(&self) -> Result<usize, ServiceError> {
        let sessions = self.sessions.clone();
        let live = blocking(move || {
            let live = |(directory, _): &(Directory, Metadata)| {
                !matches!(directory.connect_at_once(), Some(Liveness::Gone))
            };
            Ok(sessions.list()?.iter().filter(|session| live(session)).count())
        })
        .await?;
        self.metrics.keepers_adopted.inc_by(live as u64);
        Ok(live)
    }
}

/// Runs blocking work on a thread for it.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ServiceError> + Send + 'static,
) -> Result<T, ServiceError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(outcome) => outcome,
        Err(_) => Err(internal("a blocking task panicked")),
    }
}

/// Locks a mutex. These locks are held for a few instructions, which do not panic.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
