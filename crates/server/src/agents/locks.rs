//! One lock per agent: work for one agent does not wait for another.

use crate::keepers::lock;
use sessile_protocol::SessionId;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};
use tokio::sync::OwnedMutexGuard;

#[derive(Debug, Default)]
pub(super) struct AgentLocks(Mutex<HashMap<SessionId, Weak<tokio::sync::Mutex<()>>>>);

impl AgentLocks {
    /// Waits for the agent's lock.
    pub(super) async fn lock(&self, id: &SessionId) -> OwnedMutexGuard<()> {
        let lock_of_agent = {
            let mut locks = lock(&self.0);
            // A lock that is held or awaited is kept alive by its users.
            locks.retain(|_, lock| lock.strong_count() > 0);
            match locks.get(id).and_then(Weak::upgrade) {
                Some(lock) => lock,
                None => {
                    let lock_of_agent = Arc::default();
                    locks.insert(id.clone(), Arc::downgrade(&lock_of_agent));
                    lock_of_agent
                }
            }
        };
        lock_of_agent.lock_owned().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[test]
    fn agents_do_not_wait_for_each_other() {
        let locks = AgentLocks::default();
        let [one, other] = ["sess_0123456789abcdef01234567", "sess_1123456789abcdef01234567"]
            .map(|id| id.parse::<SessionId>().unwrap());
        let first = locks.lock(&one).now_or_never().unwrap();
        let second = locks.lock(&other).now_or_never();
        assert!(second.is_some());
        assert!(locks.lock(&one).now_or_never().is_none());
        drop((first, second));
        let again = locks.lock(&one).now_or_never();
        assert!(again.is_some());
        assert_eq!(lock(&locks.0).len(), 1, "those of nobody go");
    }
}
