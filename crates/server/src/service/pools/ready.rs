//! Copies of a pool's session that are made in advance.
//!
//! Such a copy has no owner: it gets its owner, name and idle timeout when it is given
//! away. It is made like a session without further options; a request for another
//! directory, other variables or the like gets a new copy. The copies go with the server
//! that made them; the next one removes them.

use super::PoolState;
use crate::keepers::{Place, blocking, lock};
use crate::service::sessions::RequestedSessions;
use crate::service::{Caller, Service, ServiceError, StartSession, StartedOnce};
use sessile_client::{Client, ClientError, Launcher, NewSession, OnceClaim, StartOnce};
use sessile_protocol::{Adoption, Request, SessionId};
use sessile_store::{Directory, Liveness, Metadata, Sessions, timestamp};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

#[derive(Debug, Default)]
pub(super) struct ReadyCopies {
    stock: Mutex<CopyStock>,
}

#[derive(Debug, Default)]
struct CopyStock {
    /// Oldest first.
    copies: VecDeque<Copy>,
    /// Copies that may be returned: no others are made in their place meanwhile.
    lent: usize,
}

#[derive(Debug)]
struct Copy {
    id: SessionId,
    directory: Directory,
    /// The options that it was made with.
    made: NewSession,
}

/// Whether a request matches the options of a copy, except those that are set when it is
/// given away.
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
    /// Gives a copy away, if one matches the request.
    pub(super) async fn take_ready(
        &self,
        caller: &Caller,
        kept: &PoolState,
        wanted: &NewSession,
        order: Option<&StartOnce>,
    ) -> Result<Option<StartedOnce>, ServiceError> {
        if kept.pool.ready == 0 {
            return Ok(None);
        }
        let wanted = self.confined(caller, self.limited(wanted.clone()));
        let _reservation =
            self.admit_requested(caller.token.as_deref(), RequestedSessions::Ready).await?;
        loop {
            let Some(copy) = kept.ready.take(&wanted) else {
                self.pools.used.notify_one();
                return Ok(None);
            };
            let giving = Handover {
                sessions: self.keepers.sessions().clone(),
                launcher: self.keepers.launcher().clone(),
                wanted: wanted.clone(),
                order: order.cloned(),
            };
            let given = blocking(move || Ok(giving.give(copy))).await;
            let (came_back, outcome) = match given {
                Ok(HandoverOutcome::Now(directory, metadata)) => {
                    let place = Place::new(self.keepers.sessions(), directory, &metadata);
                    self.keepers.admit(&Arc::new(place));
                    (None, Some(Ok(StartedOnce::Now(*metadata))))
                }
                Ok(HandoverOutcome::Before(copy, metadata)) => {
                    (Some(copy), Some(Ok(StartedOnce::Before(*metadata))))
                }
                Ok(HandoverOutcome::Refused(copy, error)) => (Some(copy), Some(Err(error))),
                // The next copy may be alive.
                Ok(HandoverOutcome::Gone) => (None, None),
                Err(error) => (None, Some(Err(error))),
            };
            let is_used = came_back.is_none();
            kept.ready.give_back(came_back);
            if is_used {
                self.pools.used.notify_one();
            }
            if let Some(outcome) = outcome {
                return outcome.map(Some);
            }
        }
    }

    /// Makes copies, one after the other, until there are enough.
    pub(super) async fn refill(&self, kept: &PoolState) {
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

    async fn make_ready(&self, kept: &PoolState) -> Result<Option<Copy>, ServiceError> {
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
        let _reservation = self.admit_sessions(None, 1).await?;
        let owner = Some(format!("{}:ready", kept.pool.owner()));
        let made = NewSession { owner, idle_timeout_ms: 0, ..plain };
        let template = self.pooled(&kept.pool.name).await?;
        let new = template.copied_into(made.clone());
        let (sessions, launcher) =
            (self.keepers.sessions().clone(), self.keepers.launcher().clone());
        let (directory, metadata) = blocking(move || Ok(launcher.create(&sessions, new)?)).await?;
        self.live.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Ok(Some(Copy { id: metadata.session_id, directory, made }))
    }
}

/// What is needed to give a copy away on a thread for blocking work.
struct Handover {
    sessions: Sessions,
    launcher: Launcher,
    wanted: NewSession,
    order: Option<StartOnce>,
}

/// The outcome. A copy that was not given away is unchanged.
enum HandoverOutcome {
    Now(Directory, Box<Metadata>),
    /// The request was carried out before, with another session.
    Before(Copy, Box<Metadata>),
    Refused(Copy, ServiceError),
    /// The copy has died.
    Gone,
}

impl Handover {
    fn give(self, copy: Copy) -> HandoverOutcome {
        let Some(order) = &self.order else { return self.give_now(copy) };
        let mut turn = match self.launcher.turn_to_give(&self.sessions, order) {
            Ok(OnceClaim::Free(turn)) => turn,
            Ok(OnceClaim::Before(metadata)) => return HandoverOutcome::Before(copy, metadata),
            Err(error) => return HandoverOutcome::Refused(copy, error.into()),
        };
        // Recorded before it is given away: after a crash, a repeated request finds the
        // session, or finds that it still has no owner.
        let given = match turn.record(&order.digest, Some(&copy.id)) {
            Ok(()) => self.give_now(copy),
            Err(error) => HandoverOutcome::Refused(copy, error.into()),
        };
        match &given {
            HandoverOutcome::Now(..) | HandoverOutcome::Before(..) => {}
            HandoverOutcome::Refused(..) | HandoverOutcome::Gone => {
                let _ = turn.directory().remove();
            }
        }
        given
    }

    fn give_now(&self, copy: Copy) -> HandoverOutcome {
        let names: Vec<String> = self.wanted.name.iter().cloned().collect();
        let _reservation = match self.sessions.reserve_names(&names, self.wanted.owner.as_deref()) {
            Ok(reserved) => reserved,
            Err(error) => return HandoverOutcome::Refused(copy, error.into()),
        };
        match adopt(&copy.directory, &self.wanted) {
            Ok(metadata) => HandoverOutcome::Now(copy.directory, Box::new(metadata)),
            Err(_) => HandoverOutcome::Gone,
        }
    }
}

/// Tells a copy its owner. A copy whose keeper is gone is not restarted: it would not
/// have all of its state.
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

impl ReadyCopies {
    /// Returns how many there are, including those that may be returned.
    fn len(&self) -> usize {
        let stock = lock(&self.stock);
        stock.copies.len() + stock.lent
    }

    /// Whether a request now would get none.
    pub(super) fn is_used_up(&self) -> bool {
        lock(&self.stock).copies.is_empty()
    }

    fn put(&self, copy: Copy) {
        lock(&self.stock).copies.push_back(copy);
    }

    /// Returns a taken copy; `None` if it is gone.
    fn give_back(&self, copy: Option<Copy>) {
        let mut stock = lock(&self.stock);
        stock.lent -= 1;
        if let Some(copy) = copy {
            stock.copies.push_front(copy);
        }
    }

    fn take(&self, wanted: &NewSession) -> Option<Copy> {
        let mut stock = lock(&self.stock);
        let at = stock.copies.iter().position(|copy| is_as_made(wanted, &copy.made))?;
        let copy = stock.copies.remove(at)?;
        stock.lent += 1;
        Some(copy)
    }
}
