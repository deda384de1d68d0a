//! How strictly sessions are confined: by whoever starts the server, and by the
//! token of who calls. What a caller asks for can only be stricter than that.
//!
//! A caller that is bound has no session that is not confined as strictly, by
//! whatever way: one that is there already and is not does not exist for it.

use super::{Caller, ErrorCode, Service, ServiceError, admission};
use crate::keepers::Place;
use sessile_client::NewSession;
use sessile_sandbox::{Draft, FileMode, Policy, PolicyError};
use sessile_store::Metadata;
use std::path::PathBuf;
use std::sync::Arc;

/// Whether a session is as strict as a bound.
pub(super) fn is_within(bound: Option<&Policy>, sandbox: Option<&Policy>) -> bool {
    bound.is_none_or(|bound| sandbox.is_some_and(|own| own.is_within(bound)))
}

/// The policy of a session, if it is one that is understood.
pub(crate) fn policy(metadata: &Metadata) -> Option<Policy> {
    metadata.sandbox.clone().and_then(|value| serde_json::from_value(value).ok())
}

impl Service {
    /// What every session of a caller's is confined by at least.
    pub(super) fn bound(&self, caller: &Caller) -> Option<Arc<Policy>> {
        match (caller.own_bound()?, &self.defaults.sandbox) {
            (None, None) => None,
            (Some(one), None) | (None, Some(one)) => Some(Arc::clone(one)),
            (Some(token), Some(server)) => Some(Arc::new(Policy::clone(token).within(server))),
        }
    }

    /// A session that is not as strict does not exist for the caller.
    pub(super) fn admit_confined(
        &self,
        caller: &Caller,
        place: &Place,
    ) -> Result<(), ServiceError> {
        if is_within(self.bound(caller).as_deref(), place.sandbox.as_ref()) {
            return Ok(());
        }
        let message = format!("Session {} not found", place.id);
        let hint =
            "sessions of this caller are in a sandbox, and that one is not in as strict a one";
        Err(ServiceError::new(ErrorCode::SessionNotFound, message).with_hint(hint))
    }

    /// Refuses what would pass by the sandboxes of a caller's sessions.
    pub(super) fn refuse_if_bound(&self, caller: &Caller, what: &str) -> Result<(), ServiceError> {
        if self.bound(caller).is_none() {
            return Ok(());
        }
        let message = format!("sessions of this caller are in a sandbox, and {what}");
        let hint = "ask whoever runs the server, or has made the token";
        Err(ServiceError::new(ErrorCode::Forbidden, message).with_hint(hint))
    }

    /// A layer that somebody else demands is not the caller's to apply.
    pub(super) fn refuse_to_apply(&self, caller: &Caller) -> Result<(), ServiceError> {
        match self.bound(caller).map(|bound| bound.files) {
            Some(FileMode::Overlay) => {
                self.refuse_if_bound(caller, "what they write is not theirs to apply")
            }
            Some(FileMode::Direct) | None => Ok(()),
        }
    }

    /// The policy of a sandbox that a caller asks for. What it shows of the machine has to be what the caller may use.
    pub(super) async fn confinement(
        &self,
        caller: &Caller,
        said: Option<serde_json::Value>,
    ) -> Result<Option<Policy>, ServiceError> {
        let wrong = |error: PolicyError| ServiceError::bad_request(error.to_string());
        let draft = said.as_ref().map(Draft::from_json).transpose().map_err(wrong)?.flatten();
        let Some(draft) = draft else { return Ok(None) };
        let policy = draft.resolve().map_err(wrong)?;
        let shown: Vec<PathBuf> = policy
            .binds
            .iter()
            .map(|bind| bind.host.clone())
            .chain(policy.rootfs.clone())
            .collect();
        self.admit(caller, move |roots, caller| {
            shown.iter().try_for_each(|path| {
                admission::directory(path.to_str().or(Some("")), roots, caller).map(drop)
            })
        })
        .await?;
        Ok(Some(policy))
    }

    /// A session that is confined as it has to be: whoever makes one for a caller
    /// passes it through this.
    pub(super) fn confined(&self, caller: &Caller, new: NewSession) -> NewSession {
        let Some(bound) = self.bound(caller) else { return new };
        let sandbox = match new.sandbox {
            Some(wanted) => wanted.within(&bound),
            None => Policy::clone(&bound),
        };
        NewSession { sandbox: Some(sandbox), ..new }
    }
}
