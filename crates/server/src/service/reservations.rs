//! Reserves places for sessions that are being made, so that concurrent requests do not
//! all see the same free places.

use crate::keepers::lock;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// Number of sessions that are being made, by the name of the token.
#[derive(Debug, Default)]
pub(super) struct Reservations(Mutex<HashMap<Option<String>, u64>>);

/// Places that are reserved while this exists.
#[derive(Debug)]
pub(super) struct Reservation {
    reservations: Arc<Reservations>,
    token: Option<String>,
    places: u64,
    /// How many are being made including these, in total and for this token.
    pub(super) all: u64,
    pub(super) own: u64,
}

impl Reservations {
    pub(super) fn reserve(self: &Arc<Self>, token: Option<&str>, places: u64) -> Reservation {
        let token = token.map(str::to_owned);
        let mut pending = lock(&self.0);
        let own = pending.entry(token.clone()).or_default();
        *own += places;
        let own = *own;
        Reservation { reservations: self.clone(), token, places, all: pending.values().sum(), own }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let mut pending = lock(&self.reservations.0);
        if let Some(count) = pending.get_mut(&self.token) {
            *count -= self.places;
            if *count == 0 {
                pending.remove(&self.token);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_taken_until_it_is_given_back() {
        let reservations = Arc::new(Reservations::default());
        let first = reservations.reserve(None, 1);
        let second = reservations.reserve(Some("ci"), 3);
        assert_eq!((first.all, first.own, second.all, second.own), (1, 1, 4, 3));
        drop(first);
        let third = reservations.reserve(Some("ci"), 1);
        assert_eq!((third.all, third.own), (4, 4));
        drop((second, third));
        assert!(lock(&reservations.0).is_empty());
    }
}
