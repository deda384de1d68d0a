//! Names of sessions.

use super::{Caller, ErrorCode, Service, ServiceError};
use crate::keepers::{HomeIndex, blocking, lock};
use sessile_protocol::SessionId;
use sessile_store::Metadata;

impl Service {
    /// Finds a session by its id, the beginning of an id, its name, or `@last`. Sessions
    /// that the caller may not use are not found. A durable session of another machine is
    /// taken up by its id.
    pub(crate) async fn resolve(
        &self,
        caller: &Caller,
        text: &str,
    ) -> Result<SessionId, ServiceError> {
        match self.resolve_here(caller, text).await {
            Err(error) if error.code == ErrorCode::SessionNotFound => {
                match text.parse::<SessionId>() {
                    Ok(id) if self.take_up(caller, &id).await? => Ok(id),
                    Ok(_) | Err(_) => Err(error),
                }
            }
            outcome => outcome,
        }
    }

    async fn resolve_here(&self, caller: &Caller, text: &str) -> Result<SessionId, ServiceError> {
        let id = text.parse::<SessionId>().ok();
        if let Some(id) = id.as_ref().filter(|id| self.keepers.knows(id)) {
            return Ok(id.clone());
        }
        let key = (caller.token.clone(), text.to_owned());
        let before = lock(&self.names).get(&key).cloned();
        let (sessions, asking, name) =
            (self.keepers.sessions().clone(), caller.clone(), key.1.clone());
        let (found, is_by_name) = blocking(move || {
            let owner = asking.token.as_deref();
            if let Some(id) = id.filter(|id| sessions.find(id).is_ok()) {
                return Ok((id, false));
            }
            // No other session of this owner can have got the name meanwhile.
            if let Some(id) = before
                && let Ok(metadata) = sessions.find(&id).and_then(|found| found.metadata())
                && metadata.is_called(&name, owner)
            {
                return Ok((id, true));
            }
            let mut all = sessions.candidates(&name)?;
            if asking.workspaces.is_some() {
                let homes = HomeIndex::of(all.iter());
                all.retain(|metadata| asking.may_use(&homes.home(metadata)));
            }
            let chosen = sessile_store::choose(&name, &all, owner)?;
            let is_by_name =
                all.iter().any(|m| m.session_id == chosen && m.is_called(&name, owner));
            Ok((chosen, is_by_name))
        })
        .await?;
        if is_by_name {
            let mut names = lock(&self.names);
            // Names of sessions that are long gone are not kept for ever.
            if names.len() >= MOST_NAMES {
                names.clear();
            }
            names.insert(key, found.clone());
        }
        Ok(found)
    }

    /// Gives a session another name, or none.
    pub(crate) async fn rename(
        &self,
        caller: &Caller,
        id: &SessionId,
        name: Option<String>,
    ) -> Result<Metadata, ServiceError> {
        let place = self.place(caller, id).await?;
        let (sessions, launcher) =
            (self.keepers.sessions().clone(), self.keepers.launcher().clone());
        blocking(move || Ok(launcher.rename(&sessions, &place.directory, name.as_deref())?)).await
    }
}

/// Size of the cache that saves reading all sessions' files: about four times the default
/// limit of live sessions.
const MOST_NAMES: usize = 4096;
