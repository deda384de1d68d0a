//! Waiting for a run on a client's behalf.

use super::calls::OpenCall;
use super::pictures::{self, Pictures};
use super::progress::{INTERVAL, Progress};
use super::turns::Turn;
use crate::service::{Awaited, Caller, ErrorCode, Service, ServiceError, Watch};
use sessile_gateway::tool::MAX_OUTPUT;
use sessile_protocol::{Completed, RunNo, SessionId};
use std::time::{Duration, Instant};

/// A call while it is being answered.
#[derive(Debug)]
pub(super) struct Waiter<'a> {
    pub(super) caller: &'a Caller,
    pub(super) call: OpenCall<'a>,
    /// To be passed on when a run has begun.
    pub(super) turn: Turn,
    pub(super) progress: Option<Progress>,
    /// When the client gets an answer, whatever the run does.
    pub(super) deadline: Instant,
}

/// What the wait for a run has come to.
#[derive(Debug)]
pub(super) enum Outcome {
    Finished(Box<Completed>),
    /// It goes on; what it has written.
    Running(Box<Watch>),
    /// The client does not want it any more.
    Cancelled(RunNo),
}

impl Outcome {
    /// What a model sees of its value.
    pub(super) async fn pictures(&self, service: &Service) -> Pictures {
        match self {
            Self::Finished(done) => pictures::of(done, service.program()).await,
            Self::Running(_) | Self::Cancelled(_) => Pictures::default(),
        }
    }
}

impl Waiter<'_> {
    /// Nothing is begun for a call that is not wanted any more.
    pub(super) fn check(&self) -> Result<(), ServiceError> {
        if self.call.is_cancelled() {
            return Err(cancelled("cancelled before it began"));
        }
        Ok(())
    }

    /// How long the client waits; no more when it is about to go.
    pub(super) fn left(&self) -> Duration {
        if self.call.is_hurried() {
            return Duration::ZERO;
        }
        self.deadline.saturating_duration_since(Instant::now())
    }

    pub(super) async fn wait(
        &self,
        service: &Service,
        session: SessionId,
        run: RunNo,
    ) -> Result<Outcome, ServiceError> {
        self.follow(service, Watch::new(session, run)).await
    }

    /// The same with a watch that sees only what is new. It ends, too, when the
    /// run waits for input.
    pub(super) async fn follow(
        &self,
        service: &Service,
        mut watch: Watch,
    ) -> Result<Outcome, ServiceError> {
        // Whatever is waited for has begun.
        self.turn.pass_on();
        let run = watch.run;
        loop {
            let patience = self.left().min(INTERVAL);
            let ms = u64::try_from(patience.as_millis()).unwrap_or(u64::MAX);
            // The wait can be given up at any time: with it goes a connection
            // to the keeper, and nothing else.
            let finished = tokio::select! {
                biased;
                () = self.call.cancelled() => {
                    service.interrupt(self.caller, &watch.session, Some(run)).await?;
                    return Ok(Outcome::Cancelled(run));
                }
                () = self.call.hurried() => None,
                finished = service.finished(self.caller, &watch.session, run, ms, MAX_OUTPUT, Awaited::ResultOrInput) => finished?,
            };
            if let Some(done) = finished {
                return Ok(Outcome::Finished(done));
            }
            service.catch_up(self.caller, &mut watch).await?;
            if self.left().is_zero() || watch.waiting_for_input {
                return Ok(Outcome::Running(Box::new(watch)));
            }
            if let Some(progress) = &self.progress {
                match &watch.queued {
                    Some(queued) => progress.tell(queued.to_string().as_bytes()).await,
                    None => progress.tell(watch.end()).await,
                }
            }
        }
    }
}

/// The client does not want it any more.
pub(super) fn cancelled(message: &str) -> ServiceError {
    ServiceError::new(ErrorCode::RunCancelled, message)
}
