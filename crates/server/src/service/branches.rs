//! Forks of sessions, and checkpoints to go back to.
//!
//! A caller that goes away while it waits for the session's runs drops its connection to
//! the keeper, and with it its request.

use super::{Caller, ErrorCode, Service, ServiceError, WithContinuity};
use crate::keepers::{ConnectedSession, blocking};
use sessile_gateway::tool::Target;
use sessile_protocol::{
    Answer, CheckpointView, DropCheckpoints, ForkOrder, ForkedView, NewCheckpoint, Request, Rewind,
    RewoundView, SessionId,
};
use sessile_store::SessionStatus;
use std::sync::atomic::Ordering;

impl Service {
    /// Makes new sessions with the state of this one. They have the owner of this
    /// session, and count as the owner's.
    pub(crate) async fn fork(
        &self,
        caller: &Caller,
        id: &SessionId,
        order: ForkOrder,
    ) -> Result<WithContinuity<Box<ForkedView>>, ServiceError> {
        order.check()?;
        let mut reached = self.reach(caller, id).await?;
        let directory = reached.place.directory.clone();
        let (sessions, names) = (self.keepers.sessions().clone(), order.names());
        // Held until others can see that the forks have these names.
        let (owner, _reservation) = blocking(move || {
            let owner = directory.metadata()?.owner;
            let reserved = sessions.reserve_names(&names, owner.as_deref())?;
            Ok((owner, reserved))
        })
        .await?;
        let count = u64::from(order.count);
        let _reservation = self.admit_sessions(owner.as_deref(), count).await?;
        let view = match self.fork_confined(&reached, &order).await? {
            Some(view) => view,
            None => {
                let Answer::Forked(view) = reached.call(Request::Fork(order)).await? else {
                    return Err(ServiceError::unexpected());
                };
                view
            }
        };
        self.live.fetch_add(count, Ordering::Relaxed);
        Ok(WithContinuity { answer: view, continuity: reached.continuity.clone() })
    }

    /// Forks a session in a sandbox, where each fork has its own layer, if that was
    /// requested.
    async fn fork_confined(
        &self,
        reached: &ConnectedSession,
        order: &ForkOrder,
    ) -> Result<Option<Box<ForkedView>>, ServiceError> {
        let launcher = self.keepers.launcher().clone();
        let sessions = self.keepers.sessions().clone();
        let (directory, order) = (reached.place.directory.clone(), order.clone());
        blocking(move || {
            if !launcher.forks_by_copying(&directory, &order)? {
                return Ok(None);
            }
            let forked = launcher.fork_confined(&sessions, &directory, &order);
            let view = forked.map_err(|error| super::restoring::refusal(error, 0))?;
            Ok(Some(Box::new(view)))
        })
        .await
    }

    /// Forks a workspace's session: the fork becomes the workspace's session with another key.
    pub(crate) async fn fork_workspace(
        &self,
        caller: &Caller,
        target: &Target,
        order: ForkOrder,
        new_key: &str,
    ) -> Result<WithContinuity<Box<ForkedView>>, ServiceError> {
        let session = self.workspace_session(caller, target).await?;
        let workspace = self.workspace_directory(caller, target).await?;
        let of_fork = Target { session_key: Some(new_key.to_owned()), ..target.clone() };
        let key = self.key(caller, &of_fork, &workspace);
        let sessions = self.keepers.sessions().clone();
        // Held until the fork is recorded: with two of one key, one would be lost.
        let (claim, is_taken) = blocking(move || {
            let claim = sessions.claim(&key)?;
            let other = claim.session().and_then(|id| sessions.find(&id).ok());
            let is_taken = other
                .and_then(|directory| directory.observed_metadata().ok())
                .is_some_and(|metadata| metadata.status != SessionStatus::Terminated);
            Ok((claim, is_taken))
        })
        .await?;
        if is_taken {
            let message = format!(
                "this workspace has a session with the key {new_key:?} already; take another new_key"
            );
            return Err(ServiceError::new(ErrorCode::BadRequest, message));
        }
        let told = self.fork(caller, &session, order).await?;
        let fork = told.answer.forks.first().map(|fork| fork.session.clone());
        let fork = fork.ok_or_else(ServiceError::unexpected)?;
        blocking(move || Ok(claim.record(&fork)?)).await?;
        Ok(told)
    }

    pub(crate) async fn checkpoint(
        &self,
        caller: &Caller,
        id: &SessionId,
        new: NewCheckpoint,
    ) -> Result<WithContinuity<Box<CheckpointView>>, ServiceError> {
        new.check()?;
        let mut reached = self.reach(caller, id).await?;
        let Answer::Checkpointed(view) = reached.call(Request::Checkpoint(new)).await? else {
            return Err(ServiceError::unexpected());
        };
        Ok(WithContinuity { answer: view, continuity: reached.continuity.clone() })
    }

    /// Returns the checkpoints, oldest first; none for a session that has ended.
    pub(crate) async fn checkpoints(
        &self,
        caller: &Caller,
        id: &SessionId,
    ) -> Result<Vec<CheckpointView>, ServiceError> {
        let Some(mut reached) = self.reach_unless_ended(caller, id).await? else {
            return Ok(Vec::new());
        };
        let Answer::Checkpoints { checkpoints } = reached.call(Request::Checkpoints).await? else {
            return Err(ServiceError::unexpected());
        };
        Ok(checkpoints)
    }

    pub(crate) async fn rewind(
        &self,
        caller: &Caller,
        id: &SessionId,
        rewind: Rewind,
    ) -> Result<WithContinuity<Box<RewoundView>>, ServiceError> {
        let mut reached = self.reach(caller, id).await?;
        let Answer::Rewound(view) = reached.call(Request::Rewind(rewind)).await? else {
            return Err(ServiceError::unexpected());
        };
        Ok(WithContinuity { answer: view, continuity: reached.continuity.clone() })
    }

    /// Drops checkpoints, and returns the names of those that existed.
    pub(crate) async fn drop_checkpoints(
        &self,
        caller: &Caller,
        id: &SessionId,
        which: DropCheckpoints,
    ) -> Result<Vec<String>, ServiceError> {
        let Some(mut reached) = self.reach_unless_ended(caller, id).await? else {
            return match which {
                DropCheckpoints::All => Ok(Vec::new()),
                DropCheckpoints::Named(_) => {
                    let message = "the session has ended, and its checkpoints went with it";
                    Err(ServiceError::new(ErrorCode::CheckpointNotFound, message))
                }
            };
        };
        let answer = reached.call(Request::DropCheckpoints(which)).await?;
        let Answer::Dropped { names } = answer else { return Err(ServiceError::unexpected()) };
        Ok(names)
    }

    /// Continues a lost session: only a keeper can read the records of its checkpoints.
    async fn reach_unless_ended(
        &self,
        caller: &Caller,
        id: &SessionId,
    ) -> Result<Option<ConnectedSession>, ServiceError> {
        match self.reach(caller, id).await {
            Ok(reached) => Ok(Some(reached)),
            Err(error) if error.code == ErrorCode::SessionEnded => Ok(None),
            Err(error) => Err(error),
        }
    }
}
