//! Copies an agent's record and thread to the store, if there is one.
//!
//! If the session is saved in the store, its thread is copied there before each call
//! (`secure`). Another machine that takes up the session then knows of each call that may
//! have been carried out, and does not repeat it; and this machine, once it has lost the
//! session, carries out nothing more. This holds because the writer writes the thread
//! before it reads who has the session, and the machine that takes it up claims the
//! session before it reads the thread.

use super::thread_file::{self, storage};
use super::{audit, digest::MAX_THREAD};
use crate::keepers::blocking;
use crate::service::{Service, ServiceError};
use sessile_agent::model::{Failure, FailureKind};
use sessile_client::{AgentFiles, AgentStored, StoredThread};
use sessile_protocol::SessionId;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};

/// Where a thread is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ThreadLocation {
    /// On this machine only.
    Here,
    /// In the store as well, with its session.
    Store,
}

/// What has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StoreChange {
    /// The record has changed.
    Record,
    /// Only the thread has grown.
    Thread,
}

/// Why something is not in the store.
#[derive(Clone, Debug)]
pub(super) enum NotStored {
    /// Another machine has the session.
    Moved(Failure),
    Failed(ServiceError),
}

/// Delays between attempts, for a store that is briefly unavailable.
const WAITS: [Duration; 3] =
    [Duration::from_millis(250), Duration::from_secs(1), Duration::from_secs(4)];

/// The waiting client, if any.
type Answer = Option<oneshot::Sender<Result<(), NotStored>>>;

/// Copies to the store, one upload at a time. Requests that arrive during an upload are
/// served together.
#[derive(Clone, Debug)]
pub(super) struct ThreadUploader {
    home: ThreadLocation,
    requests: Option<mpsc::UnboundedSender<Answer>>,
}

impl ThreadUploader {
    pub(super) fn of(service: &Arc<Service>, id: &SessionId, home: ThreadLocation) -> Self {
        if !service.has_store() {
            return Self { home: ThreadLocation::Here, requests: None };
        }
        let (requests, taken) = mpsc::unbounded_channel();
        tokio::spawn(upload(service.clone(), id.clone(), taken));
        Self { home, requests: Some(requests) }
    }

    /// Requests a copy without waiting for it.
    pub(super) fn keep(&self, change: StoreChange) {
        let is_wanted = match change {
            StoreChange::Record => true,
            StoreChange::Thread => self.home == ThreadLocation::Store,
        };
        if let Some(requests) = self.requests.as_ref().filter(|_| is_wanted) {
            let _ = requests.send(None);
        }
    }

    /// Waits until the store has the current thread. Returns at once if the thread is
    /// kept on this machine only.
    pub(super) async fn secure(&self) -> Result<(), NotStored> {
        let Some(requests) = self.requests.as_ref().filter(|_| self.home == ThreadLocation::Store)
        else {
            return Ok(());
        };
        let mut waits = WAITS.into_iter();
        loop {
            let (answer, answered) = oneshot::channel();
            let _ = requests.send(Some(answer));
            let kept = answered.await.unwrap_or(Err(NotStored::Failed(super::gone())));
            match (kept, waits.next()) {
                (Err(NotStored::Failed(_)), Some(wait)) => tokio::time::sleep(wait).await,
                (kept, _) => return kept,
            }
        }
    }
}

async fn upload(
    service: Arc<Service>,
    id: SessionId,
    mut requests: mpsc::UnboundedReceiver<Answer>,
) {
    while let Some(first) = requests.recv().await {
        let mut waiting: Vec<_> = first.into_iter().collect();
        // The file is read after these requests, so it has everything recorded before them.
        while let Ok(more) = requests.try_recv() {
            waiting.extend(more);
        }
        let kept = service.keep_agent(&id).await;
        if let Err(NotStored::Failed(error)) = &kept {
            tracing::warn!(session = %id, %error, "an agent's record is not in the store");
        }
        for waiting in waiting {
            let _ = waiting.send(kept.clone());
        }
    }
}

impl Service {
    /// Copies an agent's record to the store; with its thread, if its session is saved there.
    async fn keep_agent(self: &Arc<Self>, id: &SessionId) -> Result<(), NotStored> {
        let (sessions, launcher, of) = (self.sessions().clone(), self.launcher(), id.clone());
        let kept = blocking(move || {
            let record = std::fs::read_to_string(audit::path(&sessions, &of));
            let record = record.map_err(|e| storage("record", &e))?;
            let directory = sessions.find(&of)?;
            let durable = directory.metadata()?.durable;
            let thread = match durable {
                Some(durable) => {
                    let bytes = thread_file::bytes(&directory)?;
                    let text = String::from_utf8(bytes).map_err(|e| storage("thread", &e))?;
                    let epoch = durable.store.map_or(0, |store| store.epoch);
                    Some(StoredThread { epoch, text })
                }
                None => None,
            };
            launcher
                .store_agent(&of, AgentFiles { record, thread })
                .map_err(|e| storage("record in the store", &e))
        })
        .await;
        match kept {
            Ok(AgentStored::Stored) => Ok(()),
            Ok(AgentStored::Moved { host }) => {
                let message = format!(
                    "the agent goes on on {host}, which has taken it up from the store; give it \
                     its tasks there"
                );
                Err(NotStored::Moved(Failure::new(FailureKind::Moved, message)))
            }
            Err(error) => Err(NotStored::Failed(error)),
        }
    }
}

/// Returns the entries of a stored thread.
pub(super) fn entries(stored: &AgentFiles) -> Option<Vec<sessile_agent::thread::Entry>> {
    let thread = stored.thread.as_ref()?;
    let is_one = thread.text.len() as u64 <= MAX_THREAD;
    let contents = sessile_agent::thread::read(thread.text.as_bytes());
    Some(contents.ok().filter(|_| is_one)?.entries)
}
