//! Sessions that end with the program that started them, however it ends.
//!
//! This is only for programs of the user on the same machine, whose processes the system
//! reports. The keeper watches the process as long as it can see it. So does the server,
//! for keepers of an older version or elsewhere. The process is recorded in the session's
//! directory, so that the next keeper and the next server go on watching; a new server
//! ends the sessions whose program is gone.

use super::{Caller, ErrorCode, Service, ServiceError};
use crate::keepers::{blocking, lock};
use rustix::process::Pid;
use sessile_proc::Process;
use sessile_protocol::{ForkedView, Program, Request, SessionId};
use sessile_store::SessionStatus;
use std::collections::{BTreeSet, HashMap};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

/// The watched programs, with the sessions that end with them.
#[derive(Debug, Default)]
pub(super) struct Callers(Mutex<HashMap<Program, BTreeSet<SessionId>>>);

/// Which program the forks of a session end with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ForksEnd {
    /// The one that the original ends with, if any.
    WithOriginals,
    With(Program),
    WithNone,
}

/// Returns the process with this number, if it is alive.
pub(crate) fn program_of(pid: i32) -> Option<Program> {
    let stat = Process::new(Pid::from_raw(pid)?).stat()?;
    (!stat.has_ended()).then_some(Program { pid, started: stat.started })
}

/// Returns a descriptor that becomes readable when the program ends; `None` if it has ended.
fn held(program: Program) -> Option<OwnedFd> {
    Process::new(Pid::from_raw(program.pid)?).held(program.started)
}

impl Service {
    /// Whether a program is watched whose end ends sessions.
    pub(crate) fn has_callers(&self) -> bool {
        lock(&self.callers.0).values().any(|sessions| !sessions.is_empty())
    }

    /// Makes a new session end with this program.
    pub(crate) async fn end_with(
        self: &Arc<Self>,
        program: Program,
        id: &SessionId,
    ) -> Result<(), ServiceError> {
        let place = self.place(&Caller::server(), id).await?;
        let directory = place.directory.clone();
        blocking(move || Ok(directory.write_caller(program)?)).await?;
        self.watch_caller(program, id.clone());
        // A keeper that is just ending, or does not know the request, is left to the server.
        if let Ok(Some(mut keeper)) = self.reach_if_live(&place).await
            && let Err(error) = keeper.call(Request::EndWith(program)).await
        {
            tracing::debug!(session_id = %id, %error, "a keeper does not watch its program");
        }
        Ok(())
    }

    /// Does the same for new forks.
    pub(crate) async fn end_forks(
        self: &Arc<Self>,
        original: &SessionId,
        forks: &ForkedView,
        end: ForksEnd,
    ) -> Result<(), ServiceError> {
        let program = match end {
            ForksEnd::WithNone => None,
            ForksEnd::With(program) => Some(program),
            ForksEnd::WithOriginals => {
                let place = self.place(&Caller::server(), original).await?;
                let directory = place.directory.clone();
                blocking(move || Ok(directory.caller())).await?
            }
        };
        let Some(program) = program else { return Ok(()) };
        for fork in &forks.forks {
            self.end_with(program, &fork.session).await?;
        }
        Ok(())
    }

    /// Stops watching for a session that is over.
    pub(super) fn forget_caller_of(&self, id: &SessionId) {
        for sessions in lock(&self.callers.0).values_mut() {
            sessions.remove(id);
        }
    }

    /// Goes on watching for sessions that another server has made, and ends those whose
    /// program is gone.
    ///
    /// # Errors
    /// When the sessions cannot be listed.
    pub async fn adopt_callers(self: &Arc<Self>) -> Result<(), ServiceError> {
        for (directory, metadata) in self.all().await? {
            if matches!(metadata.status, SessionStatus::Terminated) {
                continue;
            }
            let read = blocking(move || Ok(directory.caller())).await?;
            if let Some(program) = read {
                self.watch_caller(program, metadata.session_id);
            }
        }
        Ok(())
    }

    fn watch_caller(self: &Arc<Self>, program: Program, id: SessionId) {
        let mut callers = lock(&self.callers.0);
        let sessions = callers.entry(program).or_default();
        let is_watched = !sessions.is_empty();
        sessions.insert(id);
        drop(callers);
        if !is_watched {
            let service = Arc::clone(self);
            tokio::spawn(async move { service.await_caller(program).await });
        }
    }

    async fn await_caller(self: Arc<Self>, program: Program) {
        let fd = held(program).and_then(|fd| {
            // SAFETY: it owns the descriptor as long as it is registered.
            unsafe { AsyncFd::register_with_interest(fd, Interest::READABLE) }.ok()
        });
        if let Some(fd) = fd {
            let _ = fd.readable().await;
        }
        let sessions = lock(&self.callers.0).remove(&program).unwrap_or_default();
        if sessions.is_empty() {
            return;
        }
        tracing::info!(
            pid = program.pid,
            sessions = sessions.len(),
            "a program has gone with its sessions"
        );
        for id in sessions {
            match self.end(&Caller::server(), &id).await {
                Ok(_) => {}
                Err(error) if error.code == ErrorCode::SessionNotFound => {}
                Err(error) => {
                    tracing::warn!(session_id = %id, %error, "a session could not be ended");
                }
            }
        }
    }
}
