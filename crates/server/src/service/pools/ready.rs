//! Copies of a pool's session that are made before somebody asks for them.
//!
//! Such a copy is a session that nobody has: it gets its owner, its name and the
//! time that it may be idle for when it is given away. It is as a session is that
//! was asked for without anything else; who wants another directory, other
//! variables or the like gets a copy that is made for it. They go with the server
//! that has made them, which is the next one's work.

use super::Kept;
use crate::keepers::{Place, blocking, lock};
use crate::service::sessions::Places;
use crate::service::{Caller, Service, ServiceError, StartSession};
use sessile_client::{Client, ClientError, NewSession};
use sessile_protocol::{Adoption, Request};
use sessile_store::{Directory, Liveness, Metadata, timestamp};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

/// Oldest first.
#[derive(Debug, Default)]
pub(super) struct Ready {
    copies: Mutex<VecDeque<Copy>>,
}

#[derive(Debug)]
struct Copy {
    directory: Directory,
    /// What it was made as.
    made: NewSession,
}

/// Whether a session that is wanted is what a copy was made as, but for what it
/// gets when it is given away.
fn is_as_made(wanted: &NewSession, made: &NewSession) -> bool {
    let NewSession {
        id,
        program: _,
        from: _,
        wait: _,
        from_keeper: _,
        cwd,
        env,
        idle_timeout_ms: _,
        idle_without_runs,
        command_timeout_ms,
        max_history,
        output_cap,
        max_queue,
        workspace,
        session_key,
        name: _,
        owner: _,
        durable,
        auto,
        sandbox,
    } = wanted;
    let is_plain = id.is_none() && workspace.is_none() && session_key.is_none();
    let is_unbound = durable.is_none() && auto.is_none() && sandbox.is_none();
    is_plain
        && is_unbound
        && (cwd, env) == (&made.cwd, &made.env)
        && (idle_without_runs, command_timeout_ms)
            == (&made.idle_without_runs, &made.command_timeout_ms)
        && (max_history, output_cap, max_queue)
            == (&made.max_history, &made.output_cap, &made.max_queue)
}

impl Service {
    /// Gives a copy away, if there is one that is what is wanted.
    pub(super) async fn take_ready(
        &self,
        caller: &Caller,
        kept: &Kept,
        wanted: &NewSession,
    ) -> Result<Option<Metadata>, ServiceError> {
        if kept.pool.ready == 0 {
            return Ok(None);
        }
        let wanted = self.confined(caller, self.limited(wanted.clone()));
        let _room = self.admit_places(caller.token.as_deref(), Places::Ready).await?;
        loop {
            let Some(copy) = kept.ready.take(&wanted) else {
                self.pools.used.notify_one();
                return Ok(None);
            };
            let (sessions, wanted) = (self.keepers.sessions().clone(), wanted.clone());
            let adopted = blocking(move || {
                let names: Vec<String> = wanted.name.iter().cloned().collect();
                let reserved = match sessions.reserve_names(&names, wanted.owner.as_deref()) {
                    Ok(reserved) => reserved,
                    Err(error) => return Ok((Some(copy), Err(error.into()))),
                };
                let adopted = adopt(&copy.directory, &wanted).ok();
                drop(reserved);
                let place = |metadata: Metadata| {
                    (Place::new(&sessions, copy.directory, &metadata), metadata)
                };
                Ok((None, Ok(adopted.map(place))))
            });
            match adopted.await? {
                (copy, Err(error)) => {
                    kept.ready.put_back(copy);
                    return Err(error);
                }
                (_, Ok(Some((place, metadata)))) => {
                    self.keepers.admit(&Arc::new(place));
                    self.pools.used.notify_one();
                    return Ok(Some(metadata));
                }
                // It has gone: the next one may be there.
                (_, Ok(None)) => {}
            }
        }
    }

    /// Makes copies, one after the other, until there are enough.
    pub(super) async fn refill(&self, kept: &Kept) {
        while kept.ready.len() < kept.pool.ready {
            match self.make_ready(kept).await {
                Ok(Some(copy)) => kept.ready.put(copy),
                Ok(None) => return,
                Err(error) => {
                    let pool = &kept.pool.name;
                    return tracing::warn!(pool, %error, "no copy was made ahead");
                }
            }
        }
        tracing::debug!(pool = kept.pool.name, copies = kept.pool.ready, "copies are ready");
    }

    async fn make_ready(&self, kept: &Kept) -> Result<Option<Copy>, ServiceError> {
        let nobody = Caller::owner();
        let plain = StartSession::default().resolve(self, &nobody).await?;
        let plain = self.confined(&nobody, self.limited(plain));
        if !is_as_made(&plain, &plain) {
            tracing::warn!(
                pool = kept.pool.name,
                "no copies are made ahead: sessions of this server are confined or durable"
            );
            return Ok(None);
        }
        let _room = self.admit_sessions(None, 1).await?;
        let owner = Some(format!("{}:ready", kept.pool.owner()));
        let made = NewSession { owner, idle_timeout_ms: 0, ..plain };
        let template = self.pooled(&kept.pool.name).await?;
        let new = template.copied_into(made.clone());
        let (sessions, launcher) =
            (self.keepers.sessions().clone(), self.keepers.launcher().clone());
        let (directory, _) = blocking(move || Ok(launcher.create(&sessions, new)?)).await?;
        self.live.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Ok(Some(Copy { directory, made }))
    }
}

/// Tells a copy whose it is. One whose keeper has gone is not started anew: it
/// would not have all of its state.
fn adopt(directory: &Directory, wanted: &NewSession) -> Result<Metadata, ClientError> {
    let Liveness::Live(socket) = directory.connect() else { return Err(ClientError::Gone) };
    let adoption = Adoption {
        owner: wanted.owner.clone(),
        name: wanted.name.clone(),
        idle_timeout_ms: wanted.idle_timeout_ms,
        created_at: timestamp(),
    };
    Client::new(socket).call(Request::Adopt(adoption))?;
    Ok(directory.metadata()?)
}

impl Ready {
    fn len(&self) -> usize {
        lock(&self.copies).len()
    }

    fn put(&self, copy: Copy) {
        lock(&self.copies).push_back(copy);
    }

    fn put_back(&self, copy: Option<Copy>) {
        if let Some(copy) = copy {
            lock(&self.copies).push_front(copy);
        }
    }

    fn take(&self, wanted: &NewSession) -> Option<Copy> {
        let mut copies = lock(&self.copies);
        let at = copies.iter().position(|copy| is_as_made(wanted, &copy.made))?;
        copies.remove(at)
    }
}
