//! Starting a session once, however often it is requested.

use super::sessions::{self, Template};
use super::{Caller, Service, ServiceError, StartSession};
use crate::keepers::{Place, blocking};
use sessile_client::{CreatedOnce, NewSession, StartOnce};
use sessile_protocol::SessionId;
use sessile_store::Metadata;
use sha2::{Digest, Sha256};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A caller's key for a request, and a digest of the request.
#[derive(Clone, Debug)]
pub(crate) struct OrderKey {
    key: String,
    digest: String,
}

impl OrderKey {
    /// `order` must contain everything that distinguishes the request.
    pub(crate) fn new(key: String, order: &str) -> Self {
        Self { key, digest: hex(&Sha256::digest(order.as_bytes())) }
    }
}

/// The outcome of a request.
#[derive(Clone, Debug)]
pub(crate) enum StartedOnce {
    Now(Metadata),
    Before(Metadata),
}

impl StartedOnce {
    pub(crate) fn metadata(&self) -> &Metadata {
        match self {
            Self::Now(metadata) | Self::Before(metadata) => metadata,
        }
    }
}

impl Service {
    /// Starts a session, or finds the one that this caller's earlier request with this
    /// key has started.
    pub(crate) async fn start_once(
        &self,
        caller: &Caller,
        key: Option<OrderKey>,
        wanted: StartSession,
    ) -> Result<StartedOnce, ServiceError> {
        let Some(key) = key else {
            return Ok(StartedOnce::Now(self.start(caller, wanted).await?));
        };
        let order = self.start_order(caller, key).await?;
        let (sessions, launcher) =
            (self.keepers.sessions().clone(), self.keepers.launcher().clone());
        let asked = order.clone();
        // Checked before there must be room for one more.
        let before = blocking(move || Ok(launcher.made_before(&sessions, &asked)?)).await?;
        if let Some(metadata) = before {
            return Ok(StartedOnce::Before(metadata));
        }
        let template = self.template(caller, &wanted).await?;
        let new = wanted.resolve(self, caller).await?;
        match template {
            None => self.create_once(caller, &order, new).await,
            Some(Template::Session(id, its)) => {
                self.create_once(caller, &order, sessions::beginning_from(new, id, its)).await
            }
            Some(Template::Pool(name)) => self.start_pooled_once(caller, &name, &order, new).await,
        }
    }

    pub(super) async fn create_once(
        &self,
        caller: &Caller,
        order: &StartOnce,
        new: NewSession,
    ) -> Result<StartedOnce, ServiceError> {
        let _reservation = self.admit_sessions(caller.token.as_deref(), 1).await?;
        let new = self.confined(caller, self.limited(new));
        let (sessions, launcher) =
            (self.keepers.sessions().clone(), self.keepers.launcher().clone());
        let order = order.clone();
        let made = blocking(move || {
            Ok(match launcher.create_once(&sessions, &order, new)? {
                CreatedOnce::Before(metadata) => (None, metadata),
                CreatedOnce::Now(directory, metadata) => {
                    (Some(Place::new(&sessions, directory, &metadata)), metadata)
                }
            })
        });
        Ok(match made.await? {
            (None, metadata) => StartedOnce::Before(metadata),
            (Some(place), metadata) => {
                self.live.fetch_add(1, Ordering::Relaxed);
                self.keepers.admit(&Arc::new(place));
                StartedOnce::Now(metadata)
            }
        })
    }

    /// Derives the session's id from the key, the caller and a secret of this directory:
    /// keys of others, here or at another server, lead to other sessions.
    pub(super) async fn start_order(
        &self,
        caller: &Caller,
        key: OrderKey,
    ) -> Result<StartOnce, ServiceError> {
        let sessions = self.keepers.sessions().clone();
        let read = || blocking(move || Ok(sessions.secret()?));
        let secret = self.secret.get_or_try_init(read).await?;
        let name = caller.token.as_deref().unwrap_or_default();
        let mut hash = Sha256::new_with_prefix(b"a session by its key\0");
        for part in [&secret[..], name.as_bytes(), key.key.as_bytes()] {
            hash.update((part.len() as u64).to_le_bytes());
            hash.update(part);
        }
        let mut bytes = [0; 12];
        bytes.copy_from_slice(&hash.finalize()[..12]);
        let (id, owner) = (SessionId::from_random(bytes), caller.token.clone());
        Ok(StartOnce { id, digest: key.digest, owner })
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
