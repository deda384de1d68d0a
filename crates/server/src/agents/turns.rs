//! One lock per agent: work for one agent does not wait for another.

use crate::keepers::lock;
use sessile_protocol::SessionId;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, Weak};
use tokio::sync::OwnedMutexGuard;

#[derive(Debug, Default)]
pub(super) struct Turns(Mutex<HashMap<SessionId, Weak<tokio::sync::Mutex<()>>>>);

impl Turns {
    /// Waits for the agent's lock.
    pub(super) async fn turn(&self, id: &SessionId) -> OwnedMutexGuard<()> {
        let turn = {
            let mut turns = lock(&self.0);
            // A lock that is held or awaited is kept alive by its users.
            turns.retain(|_, turn| turn.strong_count() > 0);
            match turns.get(id).and_then(Weak::upgrade) {
                Some(turn) => turn,
                None => {
                    let turn = Arc::default();
                    turns.insert(id.clone(), Arc::downgrade(&turn));
                    turn
                }
            }
        };
        turn.lock_owned().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;

    #[test]
    fn agents_do_not_wait_for_each_other() {
        let turns = Turns::default();
        let [one, other] = ["sess_0123456789abcdef01234567", "sess_1123456789abcdef01234567"]
            .map(|id| id.parse::<SessionId>().unwrap());
        let first = turns.turn(&one).now_or_never().unwrap();
        let second = turns.turn(&other).now_or_never();
        assert!(second.is_some());
        assert!(turns.turn(&one).now_or_never().is_none());
        drop((first, second));
        let again = turns.turn(&one).now_or_never();
        assert!(again.is_some());
        assert_eq!(lock(&turns.0).len(), 1, "those of nobody go");
    }
}
