//! Connections without a valid token so far.
//!
//! Each takes a place and a descriptor, and anybody can open one. So they get only a part
//! of the places, and a token must come within a time. When that part is full, a new
//! connection waits until the oldest one is closed, which happens once that one has had a
//! moment for its request. So clients that send nothing and reconnect keep nobody out:
//! they wait in the same queue.

use crate::keepers::lock;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// An honest client has sent its request by then, even from the other side of the world
/// and with TLS. Others wait this long when all places are taken.
const MINIMUM: Duration = Duration::from_millis(400);

/// How long a connection may be without a token.
pub(super) const DEADLINE: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(super) struct Unauthenticated {
    open: Mutex<OpenConnections>,
    /// How many may be open.
    limit: usize,
    /// Notified when one was closed, or has sent a token.
    fewer: Notify,
}

#[derive(Debug, Default)]
struct OpenConnections {
    last: u64,
    /// By number: the oldest first.
    all: BTreeMap<u64, Connection>,
}

#[derive(Debug)]
struct Connection {
    since: Instant,
    close: Arc<Notify>,
}

/// Whether a valid token came on a connection. Every request on it has this.
#[derive(Clone, Debug)]
pub(crate) struct Authentication(Arc<Progress>);

#[derive(Debug)]
struct Progress {
    unauthenticated: Arc<Unauthenticated>,
    number: u64,
    is_done: AtomicBool,
    close: Arc<Notify>,
}

impl Unauthenticated {
    pub(super) fn new(limit: usize) -> Self {
        Self { open: Mutex::default(), limit: limit.max(1), fewer: Notify::new() }
    }

    pub(super) fn is_full(&self) -> bool {
        lock(&self.open).all.len() >= self.limit
    }

    /// Waits until there are fewer. Closes the oldest once it has had its moment. False:
    /// there are none.
    pub(super) async fn make_room(&self) -> bool {
        let Some(since) = lock(&self.open).all.values().next().map(|oldest| oldest.since) else {
            return false;
        };
        tokio::select! {
            () = tokio::time::sleep_until((since + MINIMUM).into()) => {
                self.close_oldest();
            }
            // A stored notification from before costs at worst one more check.
            () = self.fewer.notified() => {}
        }
        true
    }

    pub(super) fn add(self: &Arc<Self>) -> Authentication {
        let close = Arc::new(Notify::new());
        let mut open = lock(&self.open);
        open.last += 1;
        let number = open.last;
        open.all.insert(number, Connection { since: Instant::now(), close: close.clone() });
        Authentication(Arc::new(Progress {
            unauthenticated: self.clone(),
            number,
            is_done: AtomicBool::new(false),
            close,
        }))
    }

    /// Closes the oldest, unless it is too new. Returns whether one was closed.
    pub(super) fn close_oldest(&self) -> bool {
        let mut open = lock(&self.open);
        let Some(oldest) = open.all.first_entry() else { return false };
        if oldest.get().since.elapsed() < MINIMUM {
            return false;
        }
        oldest.remove().close.notify_one();
        true
    }

    fn remove(&self, number: u64) {
        if lock(&self.open).all.remove(&number).is_some() {
            self.fewer.notify_one();
        }
    }
}

impl Authentication {
    /// Notes that a request had a valid token.
    pub(crate) fn succeeded(&self) {
        if !self.0.is_done.swap(true, Ordering::Relaxed) {
            self.0.unauthenticated.remove(self.0.number);
        }
    }

    fn is_done(&self) -> bool {
        self.0.is_done.load(Ordering::Relaxed)
    }

    /// Completes when the connection has to make room for others.
    pub(super) async fn must_close(&self) {
        self.0.close.notified().await;
    }

    /// Completes when no token has come in time.
    pub(super) async fn overdue(&self) {
        tokio::time::sleep(DEADLINE).await;
        if self.is_done() {
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.unauthenticated.remove(self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(unauthenticated: &Unauthenticated) -> usize {
        lock(&unauthenticated.open).all.len()
    }

    #[tokio::test]
    async fn a_token_makes_room_at_once() {
        let unauthenticated = Arc::new(Unauthenticated::new(2));
        assert!(!unauthenticated.make_room().await, "there are none");
        let all: Vec<Authentication> = (0..2).map(|_| unauthenticated.add()).collect();
        assert!(unauthenticated.is_full());
        all[1].succeeded();
        assert!(unauthenticated.make_room().await);
        assert!(!unauthenticated.is_full());
        assert_eq!(count(&unauthenticated), 1, "the other has its moment");
        assert!(unauthenticated.make_room().await);
        all[0].must_close().await;
        assert_eq!(count(&unauthenticated), 0);
    }

    #[tokio::test]
    async fn the_oldest_is_closed_and_one_with_a_token_stays() {
        let unauthenticated = Arc::new(Unauthenticated::new(3));
        let all: Vec<Authentication> = (0..3).map(|_| unauthenticated.add()).collect();
        assert!(!unauthenticated.close_oldest(), "they are too new");
        all[0].succeeded();
        all[0].succeeded();
        assert_eq!(count(&unauthenticated), 2);
        for connection in lock(&unauthenticated.open).all.values_mut() {
            connection.since = Instant::now().checked_sub(MINIMUM).unwrap();
        }
        assert!(unauthenticated.close_oldest());
        all[1].must_close().await;
        drop(all);
        assert_eq!(count(&unauthenticated), 0);
        assert!(!unauthenticated.close_oldest());
    }
}
