//! The server's operations, independent of the surface: sessions and runs, for a caller
//! who may use some directories.
//!
//! No HTTP here, and no MCP: those are gateways over this.

mod admission;
mod branches;
mod callers;
mod confinement;
mod error;
mod events;
mod files;
mod following;
mod jobs;
mod joining;
mod layer;
mod naming;
mod once;
mod pools;
mod ports;
mod reservations;
mod restoring;
mod runs;
mod saving;
mod sessions;
mod starting;
mod terminals;
mod tool;
mod top;
mod transcript;
mod watch;

pub use error::ServiceError;
pub(crate) use error::internal;
pub use pools::Pool;
pub use sessile_gateway::ErrorCode;

pub(crate) use admission::{Caller, IfMoved, RequiredSandbox};
pub use admission::{Limits, SessionDefaults};
pub(crate) use callers::{ForksEnd, program_of};
pub(crate) use confinement::policy;
pub(crate) use events::{Cursor, Event, Follower, StreamGuard};
pub(crate) use files::{CutOff, ListOrder, Piece, incoming};
pub(crate) use following::{RunsFollower, SessionEvent};
pub(crate) use joining::{JoinPoint, ScreenDrawing};
pub(crate) use restoring::{RestoreOrder, Source, Upload, too_large};
pub(crate) use runs::{RunAnswer, RunOrder, WaitFor};
pub(crate) use saving::{ExportedSession, SaveOrder};
pub(crate) use sessions::{Filter, StartSession};
pub(crate) use starting::{OrderKey, StartedOnce};
pub(crate) use terminals::{AwaitedScreen, ScreenWait, check_drawable};
pub(crate) use tool::ToolAnswer;
pub(crate) use top::{Scope, TopWatch};
pub(crate) use transcript::{ReadFrom, SessionFollower, TranscriptEvent};
pub(crate) use watch::Watch;

use crate::agents::{Agents, Model};
use crate::keepers::{ConnectedSession, Keepers, Place};
use crate::metrics::Metrics;
use sessile_client::Launcher;
use sessile_gateway::answer::Continuity;
use sessile_protocol::SessionId;
use sessile_store::Sessions;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use tokio::sync::{OnceCell, Semaphore};

#[derive(Debug)]
pub struct Service {
    keepers: Keepers,
    limits: Limits,
    defaults: SessionDefaults,
    /// Directories that sessions from the network may be in, canonical.
    roots: Vec<PathBuf>,
    pub(crate) metrics: Arc<Metrics>,
    /// Upper bound for the number of live sessions. Recounted before one is refused.
    live: AtomicU64,
    reservations: Arc<reservations::Reservations>,
    streams: Arc<Semaphore>,
    /// Sessions of workspaces that were used before.
    workspaces: Mutex<HashMap<String, Arc<Place>>>,
    /// Cache from the names of callers' sessions to their ids.
    names: Mutex<HashMap<(Option<String>, String), SessionId>>,
    /// Exists while a client watches the activity of sessions.
    sampler: top::SharedSampler,
    pools: pools::Pools,
    pub(crate) agents: Agents,
    /// Programs whose end ends their sessions.
    callers: callers::Callers,
    /// The secret of the sessions directory; read when it is first needed.
    secret: OnceCell<[u8; 32]>,
}

impl Service {
    /// # Errors
    /// When a root is not a directory.
    pub fn new(
        sessions: Sessions,
        launcher: Launcher,
        roots: &[PathBuf],
        limits: Limits,
    ) -> Result<Self, ServiceError> {
        let metrics = Arc::new(Metrics::new());
        Ok(Self {
            keepers: Keepers::new(sessions, launcher, metrics.clone()),
            roots: admission::roots(roots)?,
            metrics,
            live: AtomicU64::new(0),
            reservations: Arc::default(),
            streams: Arc::new(Semaphore::new(limits.streams)),
            limits,
            defaults: SessionDefaults::default(),
            workspaces: Mutex::default(),
            names: Mutex::default(),
            sampler: Mutex::default(),
            pools: pools::Pools::default(),
            agents: Agents::default(),
            callers: callers::Callers::default(),
            secret: OnceCell::new(),
        })
    }

    /// Sets the defaults for new sessions.
    #[must_use]
    pub fn with_defaults(self, defaults: SessionDefaults) -> Self {
        Self { defaults, ..self }
    }

    /// Sets the models for agents.
    #[must_use]
    pub fn with_models(self, models: Vec<Model>) -> Self {
        Self { agents: Agents::new(models), ..self }
    }

    /// Sets the configuration file that messages may name. Only for a server that is used
    /// by its owner alone.
    #[must_use]
    pub fn with_configuration(self, file: PathBuf) -> Self {
        Self { agents: self.agents.with_configuration(file), ..self }
    }

    /// Takes over the existing sessions, and returns their number.
    ///
    /// # Errors
    /// When the sessions directory cannot be read.
    pub async fn adopt(&self) -> Result<usize, ServiceError> {
        let live = self.keepers.adopt().await?;
        self.live.store(live as u64, std::sync::atomic::Ordering::Relaxed);
        Ok(live)
    }

    /// Returns the program that helper processes are started from.
    pub(crate) fn program(&self) -> &std::path::Path {
        self.keepers.launcher().program()
    }

    #[must_use]
    pub(crate) fn defaults(&self) -> &SessionDefaults {
        &self.defaults
    }

    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    #[must_use]
    pub fn roots(&self) -> &[PathBuf] {
        &self.roots
    }

    /// Finds a session that this caller may use.
    pub(crate) async fn place(
        &self,
        caller: &Caller,
        id: &SessionId,
    ) -> Result<Arc<Place>, ServiceError> {
        let place = self.keepers.find(id).await?;
        caller.admit(&place)?;
        self.admit_confined(caller, &place)?;
        Ok(place)
    }

    /// Brings a lost session back, and returns what became of it.
    pub(crate) async fn wake(
        &self,
        caller: &Caller,
        id: &SessionId,
    ) -> Result<Continuity, ServiceError> {
        Ok(self.reach(caller, id).await?.continuity.clone())
    }

    /// Makes the next request look up the session anew.
    pub(crate) fn forget(&self, id: &SessionId) {
        self.keepers.forget(id);
    }

    pub(crate) fn launcher(&self) -> Launcher {
        self.keepers.launcher().clone()
    }

    pub(crate) fn has_store(&self) -> bool {
        self.keepers.launcher().has_store()
    }

    /// Returns the sessions of this server.
    pub(crate) fn sessions(&self) -> &Sessions {
        self.keepers.sessions()
    }

    /// Connects to a session's keeper, which is restarted if it was lost. A session that
    /// has moved to another machine is taken up again.
    async fn reach(
        &self,
        caller: &Caller,
        id: &SessionId,
    ) -> Result<ConnectedSession, ServiceError> {
        let place = self.place(caller, id).await?;
        match self.keepers.reach(place).await {
            Err(error) if error.code == ErrorCode::SessionEnded => {
                if !self.take_up(caller, id).await? {
                    return Err(error);
                }
                let place = self.place(caller, id).await?;
                self.keepers.reach(place).await
            }
            outcome => outcome,
        }
    }
}

/// An answer of a session, with what became of the session.
#[derive(Debug)]
pub(crate) struct WithContinuity<T> {
    pub(crate) answer: T,
    pub(crate) continuity: Continuity,
}
