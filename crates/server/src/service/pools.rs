//! Prepared sessions of a server, by name, as templates for new ones.
//!
//! A pool is one live session in which everything has been done that its configuration
//! asks for. A new session is a copy of it, made on request, so that a pool is never
//! empty; or before, if copies are to be `ready`.
//!
//! It is an ordinary session: listed, visible in its directory, outliving the server. Its
//! owner, a name that no token can have, says which configuration it was prepared by; the
//! next server goes on with it, or ends it.

mod ready;

use super::{Caller, ErrorCode, Service, ServiceError, StartedOnce};
use crate::keepers::blocking;
use ready::ReadyCopies;
use sessile_client::{NewSession, StartOnce};
use sessile_protocol::{Answer, Completed, Exec, Request, RunNo, SessionId};
use sessile_store::{Directory, Metadata, SessionStatus};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::{Mutex, Notify};

/// The configuration of a pool's session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pool {
    pub name: String,
    /// bash, sh, dash, zsh, python3 or node, or the path of one.
    pub shell: String,
    /// Code that is run in it once.
    pub code: Option<String>,
    /// The first workspace root when absent.
    pub cwd: Option<PathBuf>,
    pub env: BTreeMap<String, String>,
    /// How many copies are made in advance.
    pub ready: usize,
}

impl Pool {
    /// Returns the owner of sessions with this configuration, whatever the number of copies.
    fn owner(&self) -> String {
        let Self { name, shell, code, cwd, env, ready: _ } = self;
        let mut hash = Sha256::new();
        hash.update(format!("{:?}", (name, shell, code, cwd, env)));
        let hash: String = hash.finalize().iter().take(8).map(|b| format!("{b:02x}")).collect();
        format!("{PREFIX}{}:{hash}", self.name)
    }
}

/// Prefix of a pool's owner. No token's name has a colon.
const PREFIX: &str = "pool:";

/// The run that prepares a session.
const PREPARATION: RunNo = RunNo(1);

/// How much of a preparation's output an error repeats.
const TOLD: usize = 300;

/// How often a copy is tried when the session dies meanwhile.
const ATTEMPTS: usize = 3;

#[derive(Debug, Default)]
pub(super) struct Pools {
    pools: BTreeMap<String, PoolState>,
    /// Notified when there are fewer copies ready than there should be.
    used: Notify,
}

/// How long a copy that was given away is not replaced: making one takes a core for some
/// ten milliseconds, which would delay the first run of the session that was given away.
const BEFORE_REFILL: Duration = Duration::from_millis(50);

impl Pools {
    /// Waits until copies can be made without delaying anybody, or must be made because a
    /// pool has none left.
    async fn leave_time(&self) {
        let is_used_up = |kept: &PoolState| kept.pool.ready > 0 && kept.ready.is_used_up();
        let pause = tokio::time::sleep(BEFORE_REFILL);
        tokio::pin!(pause);
        while !self.pools.values().any(is_used_up) {
            // Cancel-safe: a notification that comes late is kept for the next wait.
            tokio::select! {
                () = &mut pause => return,
                () = self.used.notified() => {}
            }
        }
    }
}

#[derive(Debug)]
struct PoolState {
    pool: Pool,
    /// Locked while a session is prepared: other requests wait.
    prepared: Mutex<Option<Prepared>>,
    ready: ReadyCopies,
}

/// A prepared session. It counts only with this keeper: a new one would not have all of
/// its state.
#[derive(Clone, Debug)]
struct Prepared {
    session: SessionId,
    directory: Directory,
    keeper: Option<u32>,
}

impl Prepared {
    fn of(directory: Directory, metadata: &Metadata) -> Self {
        let (session, keeper) = (metadata.session_id.clone(), metadata.keeper_pid);
        Self { session, directory, keeper }
    }

    /// Asks its keeper: one that was killed a moment ago still accepts connections, and a
    /// session that is brought back has lost its Python.
    fn is_there(&self) -> bool {
        self.directory.observed_metadata().is_ok_and(|metadata| {
            metadata.status == SessionStatus::Active && metadata.keeper_pid == self.keeper
        })
    }

    async fn still_there(&self) -> Result<bool, ServiceError> {
        let prepared = self.clone();
        blocking(move || Ok(prepared.is_there())).await
    }

    /// Returns a session that begins with the state of this one.
    fn copied_into(&self, new: NewSession) -> NewSession {
        NewSession { from: Some(self.session.clone()), from_keeper: self.keeper, ..new }
    }
}

impl Service {
    /// Sets the pools.
    #[must_use]
    pub fn with_pools(self, pools: Vec<Pool>) -> Self {
        let kept = |pool: Pool| {
            let (prepared, ready) = (Mutex::default(), ReadyCopies::default());
            (pool.name.clone(), PoolState { pool, prepared, ready })
        };
        let pools = pools.into_iter().map(kept).collect();
        Self { pools: Pools { pools, used: Notify::new() }, ..self }
    }

    /// Prepares all pools, and goes on making copies if any are to be ready.
    pub async fn keep_pools(&self) {
        self.prepare_pools().await;
        while self.pools.pools.values().any(|kept| kept.pool.ready > 0) {
            for kept in self.pools.pools.values() {
                self.refill(kept).await;
            }
            self.pools.used.notified().await;
            self.pools.leave_time().await;
        }
    }

    /// Prepares all pools, one after the other. Goes on with sessions that an earlier
    /// server has prepared, and ends those that are no longer configured.
    async fn prepare_pools(&self) {
        if let Err(error) = self.end_stale_pools().await {
            tracing::warn!(%error, "sessions of earlier pools were not ended");
        }
        for name in self.pools.pools.keys() {
            match self.pooled(name).await {
                Ok(Prepared { session, .. }) => {
                    tracing::info!(pool = name, %session, "the pool is ready");
                }
                Err(error) => tracing::error!(pool = name, %error, "the pool is not ready"),
            }
        }
    }

    pub(super) fn has_pool(&self, name: &str) -> bool {
        self.pools.pools.contains_key(name)
    }

    /// Starts a session from a pool: a copy that is ready, or one that is made now.
    pub(super) async fn start_pooled(
        &self,
        caller: &Caller,
        name: &str,
        new: NewSession,
    ) -> Result<Metadata, ServiceError> {
        if let Some(kept) = self.pools.pools.get(name)
            && let Some(started) = self.take_ready(caller, kept, &new, None).await?
        {
            return Ok(started.metadata().clone());
        }
        self.copy_of_pool(name, new, |from| self.create(caller, from)).await
    }

    /// Starts a session from a pool for a request with a key: a repeated request gets the
    /// same session.
    pub(super) async fn start_pooled_once(
        &self,
        caller: &Caller,
        name: &str,
        order: &StartOnce,
        new: NewSession,
    ) -> Result<StartedOnce, ServiceError> {
        if let Some(kept) = self.pools.pools.get(name)
            && let Some(started) = self.take_ready(caller, kept, &new, Some(order)).await?
        {
            return Ok(started);
        }
        self.copy_of_pool(name, new, |from| self.create_once(caller, order, from)).await
    }

    /// Copies the pool's session. If it dies meanwhile, prepares it anew.
    async fn copy_of_pool<T, F: Future<Output = Result<T, ServiceError>>>(
        &self,
        name: &str,
        new: NewSession,
        create: impl Fn(NewSession) -> F,
    ) -> Result<T, ServiceError> {
        let mut attempt = 1;
        loop {
            let template = self.pooled(name).await?;
            match create(template.copied_into(new.clone())).await {
                Err(_) if attempt < ATTEMPTS && !template.still_there().await? => attempt += 1,
                outcome => return outcome,
            }
        }
    }

    /// Returns the pool's session, and prepares it if necessary.
    async fn pooled(&self, name: &str) -> Result<Prepared, ServiceError> {
        let Some(kept) = self.pools.pools.get(name) else {
            let message = format!("there is no session and no pool that is called {name:?}");
            return Err(ServiceError::new(ErrorCode::SessionNotFound, message));
        };
        let mut prepared = kept.prepared.lock().await;
        if let Some(there) = &*prepared
            && there.still_there().await?
        {
            return Ok(there.clone());
        }
        let found = match self.found(&kept.pool, prepared.take()).await? {
            Some(found) => found,
            None => self.prepare(&kept.pool).await?,
        };
        Ok(prepared.insert(found).clone())
    }

    async fn end_stale_pools(&self) -> Result<(), ServiceError> {
        let wanted: Vec<String> = self.pools.pools.values().map(|kept| kept.pool.owner()).collect();
        let launcher = self.keepers.launcher().clone();
        let all = self.all().await?;
        blocking(move || {
            let is_stale = |metadata: &Metadata| {
                let owner = metadata.owner.as_deref().unwrap_or_default();
                let is_live = metadata.status != SessionStatus::Terminated;
                is_live && owner.starts_with(PREFIX) && !wanted.iter().any(|name| name == owner)
            };
            for (directory, _) in all.iter().filter(|(_, metadata)| is_stale(metadata)) {
                launcher.end(directory)?;
            }
            Ok(())
        })
        .await
    }

    /// Finds a session that an earlier server has prepared. Ends those that were not
    /// finished or were lost since, and also the previous one: if it has a keeper, that
    /// is a new one without all of its state.
    async fn found(
        &self,
        pool: &Pool,
        before: Option<Prepared>,
    ) -> Result<Option<Prepared>, ServiceError> {
        let owner = pool.owner();
        let needs_run = pool.code.is_some();
        let launcher = self.keepers.launcher().clone();
        let all = self.all().await?;
        blocking(move || {
            let mut found = None;
            for (directory, metadata) in all {
                let is_live = metadata.status != SessionStatus::Terminated;
                if !is_live || metadata.owner.as_deref() != Some(&owner) {
                    continue;
                }
                let prepared = Prepared::of(directory, &metadata);
                let run = prepared.directory.recorded_run(PREPARATION, 0);
                let is_done = !needs_run || run.is_some();
                let is_new = before.as_ref().is_none_or(|old| old.session != prepared.session);
                if found.is_none() && is_done && is_new && prepared.is_there() {
                    found = Some(prepared);
                } else {
                    launcher.end(&prepared.directory)?;
                }
            }
            Ok(found)
        })
        .await
    }

    async fn prepare(&self, pool: &Pool) -> Result<Prepared, ServiceError> {
        let _reservation = self.admit_sessions(None, 1).await?;
        let new = NewSession {
            program: pool.shell.clone(),
            cwd: pool.cwd.clone().or_else(|| self.roots.first().cloned()),
            env: pool.env.clone(),
            idle_timeout_ms: 0,
            command_timeout_ms: 0,
            name: Some(format!("pool {}", pool.name)),
            owner: Some(pool.owner()),
            ..self.limited(NewSession::default())
        };
        let (sessions, launcher) =
            (self.keepers.sessions().clone(), self.keepers.launcher().clone());
        let code = pool.code.clone();
        let prepared = blocking(move || {
            let (directory, _) = launcher.create(&sessions, new)?;
            let outcome = match code {
                Some(code) => {
                    let text = code.into_bytes();
                    let order = Exec { text, max_output: TOLD as u64, ..Exec::default() };
                    launcher.open(&directory)?.call(Request::Exec(order)).map(Some)
                }
                None => Ok(None),
            };
            let failure = match outcome {
                Ok(Some(Answer::Completed(done))) => complaint(&done),
                Ok(Some(_)) => Some("its code was not run".to_owned()),
                Ok(None) => None,
                Err(error) => Some(error.to_string()),
            };
            if failure.is_some() {
                launcher.end(&directory)?;
            }
            let metadata = directory.metadata()?;
            Ok(failure.map_or(Ok(Prepared::of(directory, &metadata)), Err))
        })
        .await?;
        let prepared = prepared.map_err(|why| {
            let message = format!("the pool {} could not be prepared: {why}", pool.name);
            ServiceError::new(ErrorCode::KernelUnavailable, message)
        })?;
        self.live.fetch_add(1, Ordering::Relaxed);
        Ok(prepared)
    }
}

/// Returns why a preparation has failed, if it has.
fn complaint(done: &Completed) -> Option<String> {
    if done.exit_code == 0 && done.error.is_none() {
        return None;
    }
    let stderr = [&done.stderr.head[..], &done.stderr.tail].concat();
    let said = match &done.error {
        Some(error) => format!("{}: {}", error.kind, error.message),
        None => String::from_utf8_lossy(&stderr).into_owned(),
    };
    let said: Vec<&str> = said.split_whitespace().collect();
    let said: String = said.join(" ").chars().take(TOLD).collect();
    Some(format!("its code ended with exit code {}: {said}", done.exit_code))
}
