//! Waits for a run on a client's behalf.

use super::calls::OpenCall;
use super::pictures::{self, Pictures};
use super::progress::{INTERVAL, Progress};
use super::turns::Turn;
use crate::service::{Caller, ErrorCode, Service, ServiceError, WaitFor, Watch};
use sessile_gateway::tool::MAX_OUTPUT;
use sessile_protocol::{Completed, RunNo, SessionId};
use std::time::{Duration, Instant};

/// A call in progress.
#[derive(Debug)]
pub(super) struct Waiter<'a> {
    pub(super) caller: &'a Caller,
    pub(super) call: OpenCall<'a>,
    /// To be passed on when a run has begun.
    pub(super) turn: Turn,
    pub(super) progress: Option<Progress>,
    /// When the client gets an answer, even if the run goes on.
    pub(super) deadline: Instant,
}

/// The outcome of waiting for a run.
#[derive(Debug)]
pub(super) enum Outcome {
    Finished(Box<Completed>),
    /// The run goes on; this is its output so far.
    Running(Box<Watch>),
    /// The client has cancelled the call.
    Cancelled(RunNo),
}

impl Outcome {
    /// Returns the pictures of its value.
    pub(super) async fn pictures(&self, service: &Service) -> Pictures {
        match self {
            Self::Finished(done) => pictures::of(done, service.program()).await,
            Self::Running(_) | Self::Cancelled(_) => Pictures::default(),
        }
    }
}

impl Waiter<'_> {
    /// Fails if the call is cancelled, so that nothing is begun for it.
    pub(super) fn check(&self) -> Result<(), ServiceError> {
        if self.call.is_cancelled() {
            return Err(cancelled("cancelled before it began"));
        }
        Ok(())
    }

    /// Returns how long the client still waits; zero when it is about to disconnect.
    pub(super) fn left(&self) -> Duration {
        if self.call.is_client_leaving() {
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

    /// Waits with a watch that sees only new output. Also ends when the run waits for input.
    pub(super) async fn follow(
        &self,
        service: &Service,
        mut watch: Watch,
    ) -> Result<Outcome, ServiceError> {
        // The awaited run has begun.
        self.turn.pass_on();
        let run = watch.run;
        loop {
            let patience = self.left().min(INTERVAL);
            let ms = u64::try_from(patience.as_millis()).unwrap_or(u64::MAX);
            // Cancel-safe: dropping the wait drops a connection to the keeper, and
            // nothing else.
            let finished = tokio::select! {
                biased;
                () = self.call.cancelled() => {
                    service.interrupt(self.caller, &watch.session, Some(run)).await?;
                    return Ok(Outcome::Cancelled(run));
                }
                () = self.call.client_leaves() => None,
                finished = service.finished(self.caller, &watch.session, run, ms, MAX_OUTPUT, WaitFor::ResultOrInput) => finished?,
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
                    Some(queued) => progress.send(queued.to_string().as_bytes()).await,
                    None => progress.send(watch.end()).await,
                }
            }
        }
    }
}

/// Returns the error for a cancelled call.
pub(super) fn cancelled(message: &str) -> ServiceError {
    ServiceError::new(ErrorCode::RunCancelled, message)
}
