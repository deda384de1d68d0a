//! How strictly sessions are confined: by the server's configuration, and by the caller's
//! token. A caller's own request can only be stricter than that.
//!
//! A caller with a bound has only sessions that are confined at least as strictly. An
//! existing session that is not does not exist for the caller.

use super::{Caller, ErrorCode, Service, ServiceError, admission};
use crate::keepers::Place;
use sessile_client::NewSession;
use sessile_sandbox::{Draft, FileMode, Policy, PolicyError};
use sessile_store::Metadata;
use std::path::PathBuf;
use std::sync::Arc;

/// Whether a sandbox is at least as strict as a bound.
pub(super) fn is_within(bound: Option<&Policy>, sandbox: Option<&Policy>) -> bool {
    bound.is_none_or(|bound| sandbox.is_some_and(|own| own.is_within(bound)))
}

/// Returns the policy of a session, if this version understands it.
pub(crate) fn policy(metadata: &Metadata) -> Option<Policy> {
    metadata.sandbox.clone().and_then(|value| serde_json::from_value(value).ok())
}

impl Service {
    /// Returns the minimum sandbox of a caller's sessions.
    pub(super) fn bound(&self, caller: &Caller) -> Option<Arc<Policy>> {
        match (caller.own_bound()?, &self.defaults.sandbox) {
            (None, None) => None,
            (Some(one), None) | (None, Some(one)) => Some(Arc::clone(one)),
            (Some(token), Some(server)) => Some(Arc::new(Policy::clone(token).within(server))),
        }
    }

    /// Refuses a session that is less strict, as if it did not exist.
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

    /// Refuses an operation that would bypass the sandboxes of a caller's sessions.
    pub(super) fn refuse_if_bound(&self, caller: &Caller, what: &str) -> Result<(), ServiceError> {
        if self.bound(caller).is_none() {
            return Ok(());
        }
        let message = format!("sessions of this caller are in a sandbox, and {what}");
        let hint = "ask whoever runs the server, or has made the token";
        Err(ServiceError::new(ErrorCode::Forbidden, message).with_hint(hint))
    }

    /// Refuses to apply a layer if the caller's bound demands layers.
    pub(super) fn refuse_to_apply(&self, caller: &Caller) -> Result<(), ServiceError> {
        match self.bound(caller).map(|bound| bound.files) {
            Some(FileMode::Overlay) => {
                self.refuse_if_bound(caller, "what they write is not theirs to apply")
            }
            Some(FileMode::Direct) | None => Ok(()),
        }
    }

    /// Returns the policy of a sandbox that a caller asks for. It may show only those
    /// parts of the machine that the caller may use.
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

    /// Adds the caller's bound to a new session. Every new session of a caller must pass
    /// through this.
    pub(super) fn confined(&self, caller: &Caller, new: NewSession) -> NewSession {
        let Some(bound) = self.bound(caller) else { return new };
        let sandbox = match new.sandbox {
            Some(wanted) => wanted.within(&bound),
            None => Policy::clone(&bound),
        };
        NewSession { sandbox: Some(sandbox), ..new }
    }
}
