//! What can be asked of the server, whatever the surface: sessions and runs,
//! for a caller that may use some directories.
//!
//! No HTTP here, and no MCP: those are gateways over this.

mod admission;
mod branches;
mod error;
mod events;
mod following;
mod jobs;
mod joining;
mod naming;
mod pools;
mod restoring;
mod room;
mod runs;
mod saving;
mod sessions;
mod terminals;
mod tool;
mod top;
mod transcript;
mod watch;

pub use error::ServiceError;
pub(crate) use error::internal;
pub use pools::Pool;
pub use sessile_gateway::ErrorCode;

pub(crate) use admission::Caller;
pub use admission::{Limits, SessionDefaults};
pub(crate) use events::{Cursor, Event, Follower, StreamGuard};
pub(crate) use following::{RunsFollower, SessionEvent};
pub(crate) use joining::Joined;
pub(crate) use restoring::{RestoreOrder, Source, Upload};
pub(crate) use runs::{Awaited, RunAnswer, RunOrder};
pub(crate) use saving::SaveOrder;
pub(crate) use sessions::{Filter, StartSession};
pub(crate) use terminals::{ScreenWait, Seen, check_drawable};
pub(crate) use tool::ToolAnswer;
pub(crate) use top::{Scope, TopWatch};
pub(crate) use transcript::{Beginning, Happening, SessionFollower};
pub(crate) use watch::Watch;

use crate::keepers::{Keepers, Place, Reached};
use crate::metrics::Metrics;
use sessile_client::Launcher;
use sessile_gateway::answer::Continuity;
use sessile_protocol::SessionId;
use sessile_store::Sessions;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use tokio::sync::Semaphore;

#[derive(Debug)]
pub struct Service {
    keepers: Keepers,
    limits: Limits,
    defaults: SessionDefaults,
    /// Directories that sessions from the network may be in, canonical.
    roots: Vec<PathBuf>,
    pub(crate) metrics: Arc<Metrics>,
    /// Sessions that may be live: never too low, and counted anew before one
    /// is refused.
    live: AtomicU64,
    room: Arc<room::Room>,
    streams: Arc<Semaphore>,
    /// Workspaces' sessions that were used before.
    workspaces: Mutex<HashMap<String, Arc<Place>>>,
    /// Names by which callers' sessions were found.
    names: Mutex<HashMap<(Option<String>, String), SessionId>>,
    /// There while somebody watches what sessions do.
    sampler: top::SharedSampler,
    pools: pools::Pools,
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
            room: Arc::default(),
            streams: Arc::new(Semaphore::new(limits.streams)),
            limits,
            defaults: SessionDefaults::default(),
            workspaces: Mutex::default(),
            names: Mutex::default(),
            sampler: Mutex::default(),
            pools: pools::Pools::default(),
        })
    }

    /// The same with other times for sessions that do not say theirs.
    #[must_use]
    pub fn with_defaults(self, defaults: SessionDefaults) -> Self {
        Self { defaults, ..self }
    }

    /// Takes over the sessions that are there. Their number.
    ///
    /// # Errors
    /// When the sessions directory cannot be read.
    pub async fn adopt(&self) -> Result<usize, ServiceError> {
        let live = self.keepers.adopt().await?;
        self.live.store(live as u64, std::sync::atomic::Ordering::Relaxed);
        Ok(live)
    }

    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    #[must_use]
    pub fn roots(&self) -> &[PathBuf] {
        &self.roots
    }

    /// A session that this caller may use.
    async fn place(&self, caller: &Caller, id: &SessionId) -> Result<Arc<Place>, ServiceError> {
        let place = self.keepers.find(id).await?;
        caller.admit(&place)?;
        Ok(place)
    }

    /// The same with its keeper, which is started anew if it was lost.
    /// One that has gone on on another machine is taken up again.
    async fn reach(&self, caller: &Caller, id: &SessionId) -> Result<Reached, ServiceError> {
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

/// An answer of a session, and what had become of the session.
#[derive(Debug)]
pub(crate) struct WithContinuity<T> {
    pub(crate) answer: T,
    pub(crate) continuity: Continuity,
}
