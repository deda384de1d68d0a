//! Commands in temporary sessions, which are removed afterwards.
//!
//! A command with a key runs once, however often it is requested: its session's id
//! follows from the key, and keeps the result until no client asks again.

use super::{Caller, ErrorCode, OrderKey, RunAnswer, RunOrder, Service, ServiceError};
use crate::keepers::{Place, blocking};
use sessile_client::{CreatedOnce, NewSession};
use sessile_protocol::{Completed, RunNo, SessionId};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// How long the result of a command with a key is kept: twice as long as our SDKs repeat
/// a request.
const KEPT: Duration = Duration::from_secs(60);

/// The key of the only run in such a session.
const ONLY: &str = "once";

impl Service {
    /// Runs a command, or finds the result of this caller's earlier request with this key.
    pub(crate) async fn once(
        &self,
        caller: &Caller,
        key: Option<OrderKey>,
        cwd: Option<&str>,
        mut order: RunOrder,
    ) -> Result<Box<Completed>, ServiceError> {
        order.exec.check()?;
        let new = self.for_once(caller, cwd, &order).await?;
        let (id, left) = match key {
            None => (self.create(caller, new).await?.session_id, Retention::Nothing),
            Some(key) => {
                order.exec.key = Some(ONLY.to_owned());
                (self.create_by_key(caller, key, new).await?, Retention::Result)
            }
        };
        let place = self.keepers.find(&id).await?;
        let _end = EndWhenDropped { service: self, place: place.clone(), left };
        let max_output = order.exec.max_output;
        let outcome = match self.keepers.reach(place.clone()).await {
            Ok(mut reached) => self.run(&mut reached, order).await,
            Err(error) => Err(error),
        };
        match outcome {
            Ok(RunAnswer::Finished(done)) => Ok(done),
            Ok(RunAnswer::Running { .. }) => Err(ServiceError::unexpected()),
            // It was carried out before, and its session is ending or has ended.
            Err(error) if is_over(&error) => {
                let directory = place.directory.clone();
                let done = blocking(move || {
                    drop(directory.await_lock()?);
                    Ok(directory.recorded_run(RunNo(1), max_output))
                });
                done.await?.map(Box::new).ok_or(error)
            }
            Err(error) => Err(error),
        }
    }

    async fn for_once(
        &self,
        caller: &Caller,
        cwd: Option<&str>,
        order: &RunOrder,
    ) -> Result<NewSession, ServiceError> {
        let cwd = self.directory(caller, cwd.map(str::to_owned)).await?;
        let program = match order.exec.language {
            Some(sessile_protocol::Language::Python) => "python3",
            Some(language) => language.as_str(),
            None => "bash",
        };
        Ok(NewSession {
            program: program.to_owned(),
            cwd: Some(cwd),
            // If this server is killed meanwhile, the session ends by itself.
            idle_timeout_ms: 5000,
            idle_without_runs: true,
            owner: caller.token.clone(),
            durable: None,
            ..self.defaults.session(NewSession::default())
        })
    }

    async fn create_by_key(
        &self,
        caller: &Caller,
        key: OrderKey,
        new: NewSession,
    ) -> Result<SessionId, ServiceError> {
        let order = self.start_order(caller, key).await?;
        let _reservation = self.admit_sessions(caller.token.as_deref(), 1).await?;
        let new = self.confined(caller, self.limited(new));
        let (sessions, launcher) =
            (self.keepers.sessions().clone(), self.keepers.launcher().clone());
        let made = blocking(move || Ok(launcher.create_once(&sessions, &order, new)?)).await?;
        Ok(match made {
            CreatedOnce::Before(metadata) => metadata.session_id,
            CreatedOnce::Now(directory, metadata) => {
                self.live.fetch_add(1, Ordering::Relaxed);
                let place = Place::new(self.keepers.sessions(), directory, &metadata);
                self.keepers.admit(&Arc::new(place));
                metadata.session_id
            }
        })
    }
}

fn is_over(error: &ServiceError) -> bool {
    matches!(error.code, ErrorCode::SessionEnded | ErrorCode::KeeperUnavailable)
}

/// What is left of a session when it has ended.
#[derive(Clone, Copy, Debug)]
enum Retention {
    Nothing,
    /// For a while.
    Result,
}

/// Ends a session even if the caller goes away.
struct EndWhenDropped<'a> {
    service: &'a Service,
    place: Arc<Place>,
    left: Retention,
}

impl Drop for EndWhenDropped<'_> {
    fn drop(&mut self) {
        self.service.keepers.forget(&self.place.id);
        let directory = self.place.directory.clone();
        let launcher = self.service.keepers.launcher().clone();
        let left = self.left;
        let end = {
            let directory = directory.clone();
            move || launcher.end(&directory).is_ok()
        };
        let remove = move || {
            let _ = directory.await_lock().map(|lock| lock.map(|_| directory.remove()));
        };
        tokio::spawn(async move {
            if !tokio::task::spawn_blocking(end).await.unwrap_or_default() {
                return;
            }
            match left {
                Retention::Nothing => {}
                Retention::Result => tokio::time::sleep(KEPT).await,
            }
            let _ = tokio::task::spawn_blocking(remove).await;
        });
    }
}
