//! Connections on which nobody has shown a token yet.
//!
//! They cost a place and a descriptor each, and anybody can open them. So they
//! have a share of the places, which they never exceed, and a time by which a
//! token must have come. Who comes when the share is taken waits for the oldest
//! to go, which has a moment for its request and no more. So those who send
//! nothing, and come again when they are sent away, keep nobody out: they wait in
//! the same line.

use crate::keepers::lock;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// A client that means it has sent its request by then, also from the other side
/// of the world and with TLS. As long as that others wait, when the share is taken.
const YOUNG: Duration = Duration::from_millis(400);

/// How long one may be a stranger.
pub(super) const DEADLINE: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(super) struct Strangers {
    /// By number: the oldest first.
    here: Mutex<Here>,
    /// As many as may be here.
    share: usize,
    /// One has gone, or is none any more.
    fewer: Notify,
}

#[derive(Debug, Default)]
struct Here {
    last: u64,
    all: BTreeMap<u64, Stranger>,
}

#[derive(Debug)]
struct Stranger {
    since: Instant,
    go: Arc<Notify>,
}

/// How a connection stands with us; it goes with every request on it.
#[derive(Clone, Debug)]
pub(crate) struct Standing(Arc<Place>);

#[derive(Debug)]
struct Place {
    strangers: Arc<Strangers>,
    number: u64,
    is_known: AtomicBool,
    go: Arc<Notify>,
}

impl Strangers {
    pub(super) fn new(share: usize) -> Self {
        Self { here: Mutex::default(), share: share.max(1), fewer: Notify::new() }
    }

    /// Whether they have their share.
    pub(super) fn are_enough(&self) -> bool {
        lock(&self.here).all.len() >= self.share
    }

    /// Waits until there are fewer: the oldest goes as soon as it has had its
    /// moment. False: there are none.
    pub(super) async fn become_fewer(&self) -> bool {
        let Some(since) = lock(&self.here).all.values().next().map(|oldest| oldest.since) else {
            return false;
        };
        tokio::select! {
            () = tokio::time::sleep_until((since + YOUNG).into()) => {
                self.send_oldest_away();
            }
            // It is kept for us where it came before: at worst we look once more.
            () = self.fewer.notified() => {}
        }
        true
    }

    pub(super) fn welcome(self: &Arc<Self>) -> Standing {
        let go = Arc::new(Notify::new());
        let mut here = lock(&self.here);
        here.last += 1;
        let number = here.last;
        here.all.insert(number, Stranger { since: Instant::now(), go: go.clone() });
        Standing(Arc::new(Place {
            strangers: self.clone(),
            number,
            is_known: AtomicBool::new(false),
            go,
        }))
    }

    /// Has the oldest go, unless it has only just come. Whether there was one.
    pub(super) fn send_oldest_away(&self) -> bool {
        let mut here = lock(&self.here);
        let Some(oldest) = here.all.first_entry() else { return false };
        if oldest.get().since.elapsed() < YOUNG {
            return false;
        }
        oldest.remove().go.notify_one();
        true
    }

    fn forget(&self, number: u64) {
        if lock(&self.here).all.remove(&number).is_some() {
            self.fewer.notify_one();
        }
    }
}

impl Standing {
    /// Somebody with a token has called.
    pub(crate) fn is_known_now(&self) {
        if !self.0.is_known.swap(true, Ordering::Relaxed) {
            self.0.strangers.forget(self.0.number);
        }
    }

    fn is_known(&self) -> bool {
        self.0.is_known.load(Ordering::Relaxed)
    }

    /// Comes when the connection is to make room for others.
    pub(super) async fn sent_away(&self) {
        self.0.go.notified().await;
    }

    /// Comes when no token has come in time.
    pub(super) async fn overdue(&self) {
        tokio::time::sleep(DEADLINE).await;
        if self.is_known() {
            std::future::pending::<()>().await;
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.strangers.forget(self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(strangers: &Strangers) -> usize {
        lock(&strangers.here).all.len()
    }

    #[tokio::test]
    async fn whoever_is_known_makes_room_at_once() {
        let strangers = Arc::new(Strangers::new(2));
        assert!(!strangers.become_fewer().await, "there are none");
        let all: Vec<Standing> = (0..2).map(|_| strangers.welcome()).collect();
        assert!(strangers.are_enough());
        all[1].is_known_now();
        assert!(strangers.become_fewer().await);
        assert!(!strangers.are_enough());
        assert_eq!(count(&strangers), 1, "the other has its moment");
        assert!(strangers.become_fewer().await);
        all[0].sent_away().await;
        assert_eq!(count(&strangers), 0);
    }

    #[tokio::test]
    async fn the_oldest_stranger_goes_and_who_is_known_stays() {
        let strangers = Arc::new(Strangers::new(3));
        let all: Vec<Standing> = (0..3).map(|_| strangers.welcome()).collect();
        assert!(!strangers.send_oldest_away(), "they have only just come");
        all[0].is_known_now();
        all[0].is_known_now();
        assert_eq!(count(&strangers), 2);
        for stranger in lock(&strangers.here).all.values_mut() {
            stranger.since = Instant::now().checked_sub(YOUNG).unwrap();
        }
        assert!(strangers.send_oldest_away());
        all[1].sent_away().await;
        drop(all);
        assert_eq!(count(&strangers), 0);
        assert!(!strangers.send_oldest_away());
    }
}
