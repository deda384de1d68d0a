//! Calls that are being answered, for whoever cancels one.
//!
//! A call's own token, which the SDK gives, also fires when the client is just
//! gone. A run is interrupted only when the client says so, which is why calls
//! are found here by their names.

use crate::keepers::lock;
use rmcp::model::RequestId;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use tokio::sync::watch;

/// A call by its names: request numbers are the client's own, so they mean
/// something only together with the client.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct CallName {
    pub(super) token: Option<String>,
    pub(super) client: Option<String>,
    pub(super) request: RequestId,
}

#[derive(Debug, Default)]
pub(super) struct Calls {
    /// Each turns true when it is cancelled.
    open: Mutex<HashMap<CallName, Arc<watch::Sender<bool>>>>,
    /// Turns true when the client is about to go.
    hurried: watch::Sender<bool>,
}

/// A call that is being answered; it cannot be cancelled any more when this is
/// dropped.
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

    /// All calls are answered now, with what there is: the client asks for
    /// nothing more, and goes when it has its answers.
    pub(super) fn hurry(&self) {
        self.hurried.send_replace(true);
    }

    /// A call that has been answered already is left alone.
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

    /// Comes when the client cancels the call.
    pub(super) async fn cancelled(&self) {
        // It does not fail: we hold the other end.
        let _ = self.cancelled.subscribe().wait_for(|cancelled| *cancelled).await;
    }

    pub(super) fn is_hurried(&self) -> bool {
        *self.calls.hurried.borrow()
    }

    /// Comes when the client is about to go.
    pub(super) async fn hurried(&self) {
        // It does not fail: we hold the other end.
        let _ = self.calls.hurried.subscribe().wait_for(|hurried| *hurried).await;
    }

    /// The client has cancelled it before it could be found by its name.
    pub(super) fn cancel(&self) {
        self.cancelled.send_replace(true);
    }
}

impl Drop for OpenCall<'_> {
    fn drop(&mut self) {
        let mut open = lock(&self.calls.open);
        // A client that uses a number twice has replaced it.
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
