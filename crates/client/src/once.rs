//! Sessions that are started once, however often the request is repeated.

use crate::{ClientError, Launcher, NewSession};
use sessile_protocol::{Code, Failure, SessionId};
use sessile_store::{Directory, Metadata, Sessions, StartTurn};
use std::time::{Duration, Instant};

/// A keeper whose client died during the start is up within this time.
const PATIENCE: Duration = Duration::from_secs(4);

/// A request to start a session, with an idempotency key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartOnce {
    /// Derived from the key.
    pub id: SessionId,
    /// Digest of everything that defines the request.
    pub digest: String,
    /// The owner of the request and of the session.
    pub owner: Option<String>,
}

/// A turn to carry out a request, unless that was done before.
#[derive(Debug)]
pub enum OnceClaim {
    Free(StartTurn),
    Before(Box<Metadata>),
}

/// A session, and whether this request has made it.
#[derive(Clone, Debug)]
pub enum CreatedOnce {
    Now(Directory, Metadata),
    Before(Metadata),
}

impl Launcher {
    /// Returns the session that an earlier request with the same key has made, if any.
    ///
    /// # Errors
    /// When that request was a different one.
    pub fn made_before(
        &self,
        sessions: &Sessions,
        order: &StartOnce,
    ) -> Result<Option<Metadata>, ClientError> {
        if sessions.find(&order.id).is_err() {
            return Ok(None);
        }
        self.made(sessions, &sessions.turn_to_start(&order.id)?, order, EarlierAttempt::Known)
    }

    /// Waits for the turn to give an existing session to this request.
    ///
    /// # Errors
    /// When an earlier request with the same key was a different one.
    pub fn turn_to_give(
        &self,
        sessions: &Sessions,
        order: &StartOnce,
    ) -> Result<OnceClaim, ClientError> {
        let turn = sessions.turn_to_start(&order.id)?;
        Ok(match self.made(sessions, &turn, order, EarlierAttempt::MayFinish)? {
            Some(metadata) => OnceClaim::Before(Box::new(metadata)),
            None => OnceClaim::Free(turn),
        })
    }

    /// Starts a session, or finds the one that this request has started before.
    ///
    /// # Errors
    /// When the settings make no sense, or the session cannot be started; then nothing of
    /// it is left, and the key is free.
    pub fn create_once(
        &self,
        sessions: &Sessions,
        order: &StartOnce,
        new: NewSession,
    ) -> Result<CreatedOnce, ClientError> {
        let mut turn = sessions.turn_to_start(&order.id)?;
        // The keeper of another session makes a copy of it, which takes some time.
        let past =
            if new.from.is_some() { EarlierAttempt::MayFinish } else { EarlierAttempt::Known };
        if let Some(metadata) = self.made(sessions, &turn, order, past)? {
            return Ok(CreatedOnce::Before(metadata));
        }
        let outcome = turn
            .record(&order.digest, None)
            .map_err(ClientError::from)
            .and_then(|()| self.create(sessions, NewSession { id: Some(order.id.clone()), ..new }));
        match outcome {
            Ok((directory, metadata)) => Ok(CreatedOnce::Now(directory, metadata)),
            // The keeper of an earlier attempt was starting, and was faster.
            Err(error) if error.has_keeper() => self
                .made(sessions, &turn, order, EarlierAttempt::MayFinish)?
                .map(CreatedOnce::Before)
                .ok_or(error),
            Err(error) => {
                let _ = turn.directory().remove();
                Err(error)
            }
        }
    }

    fn made(
        &self,
        sessions: &Sessions,
        turn: &StartTurn,
        order: &StartOnce,
        past: EarlierAttempt,
    ) -> Result<Option<Metadata>, ClientError> {
        let Some(digest) = turn.digest() else { return Ok(None) };
        if digest != order.digest {
            let message = "this key has started a session that was to be another one";
            return Err(Failure::new(Code::KeyReused, message).into());
        }
        if let Some(given) = turn.given() {
            let found = sessions.find(given).and_then(|directory| directory.metadata());
            // The process that was to give it away may have died before.
            return Ok(found.ok().filter(|metadata| metadata.owner == order.owner));
        }
        let deadline = Instant::now() + PATIENCE;
        loop {
            if let Ok(metadata) = turn.directory().metadata() {
                return Ok(Some(metadata));
            }
            let is_free = turn.directory().lock()?.is_some();
            let is_late = Instant::now() > deadline;
            match past {
                EarlierAttempt::Known if is_free => return Ok(None),
                EarlierAttempt::MayFinish if is_free && is_late => return Ok(None),
                EarlierAttempt::Known | EarlierAttempt::MayFinish if is_late => {
                    return Err(ClientError::Silent);
                }
                EarlierAttempt::Known | EarlierAttempt::MayFinish => {
                    std::thread::sleep(Duration::from_millis(5));
                }
            }
        }
    }
}

/// Whether an earlier attempt that is not visible may still succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EarlierAttempt {
    Known,
    MayFinish,
}
