//! Calls in progress, so that a client can cancel one.
//!
//! The SDK's cancellation token of a call also fires when the client just disconnects. A
//! run is interrupted only when the client asks for it, which is why calls are found here
//! by their names.

use crate::keepers::lock;
use rmcp::model::RequestId;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use tokio::sync::watch;

/// The name of a call. Request numbers are chosen by the client, so they are unique only
/// together with the client.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct CallName {
    pub(super) token: Option<String>,
    pub(super) client: Option<String>,
    pub(super) request: RequestId,
}

#[derive(Debug, Default)]
pub(super) struct Calls {
    /// Each becomes true when its call is cancelled.
    open: Mutex<HashMap<CallName, Arc<watch::Sender<bool>>>>,
    /// Becomes true when the client is about to disconnect.
    is_leaving: watch::Sender<bool>,
}

/// A call in progress. Once dropped, it can no longer be cancelled.
#[derive(Debug)]
pub(super) struct OpenCall<'a> {
    calls: &'a Calls,
    name: CallName,
    cancelled: Arc<watch::Sender<bool>>,
}

impl Calls {
    pub(super) fn open(&self, name: CallName) -> OpenCall<'_> {
        let cancelled = Arc::new(watch::Sender::new(false));
        lock(&self.open).insert(name.clone(), cancelled.clone());
        OpenCall { calls: self, name, cancelled }
    }

    /// Has all calls answered now, with what there is: the client sends no more requests,
    /// and disconnects when it has its answers.
    pub(super) fn client_is_leaving(&self) {
        self.is_leaving.send_replace(true);
    }

    /// Cancels a call, unless it has been answered already.
    pub(super) fn cancel(&self, name: &CallName) {
        if let Some(call) = lock(&self.open).get(name) {
            call.send_replace(true);
        }
    }
}

impl OpenCall<'_> {
    pub(super) fn is_cancelled(&self) -> bool {
        *self.cancelled.borrow()
    }

    /// Completes when the client cancels the call.
    pub(super) async fn cancelled(&self) {
        // Cannot fail: we hold the other end.
        let _ = self.cancelled.subscribe().wait_for(|cancelled| *cancelled).await;
    }

    pub(super) fn is_client_leaving(&self) -> bool {
        *self.calls.is_leaving.borrow()
    }

    /// Completes when the client is about to disconnect.
    pub(super) async fn client_leaves(&self) {
        // Cannot fail: we hold the other end.
        let _ = self.calls.is_leaving.subscribe().wait_for(|is_leaving| *is_leaving).await;
    }

    /// Marks it as cancelled, for a cancellation that came before it could be found by name.
    pub(super) fn cancel(&self) {
        self.cancelled.send_replace(true);
    }
}

impl Drop for OpenCall<'_> {
    fn drop(&mut self) {
        let mut open = lock(&self.calls.open);
        // A client that reuses a number has replaced the entry.
        if open.get(&self.name).is_some_and(|call| Arc::ptr_eq(call, &self.cancelled)) {
            open.remove(&self.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(client: &str, request: i64) -> CallName {
        let request = RequestId::Number(request);
        CallName { token: None, client: Some(client.to_owned()), request }
    }

    #[tokio::test]
    async fn a_call_is_cancelled_by_its_own_client() {
        let calls = Calls::default();
        let (mine, theirs) = (calls.open(name("a", 1)), calls.open(name("b", 1)));
        calls.cancel(&name("a", 1));
        calls.cancel(&name("a", 2));
        mine.cancelled().await;
        tokio::select! {
            biased;
            () = theirs.cancelled() => panic!("another client's call was cancelled"),
            () = std::future::ready(()) => {}
        }
        drop((mine, theirs));
        assert!(lock(&calls.open).is_empty());
    }
}
