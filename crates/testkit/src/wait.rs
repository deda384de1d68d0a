//! Waiting for a condition.

use std::time::{Duration, Instant};

/// How long anything is waited for. Far beyond what a busy machine needs, so
/// that running out of it means that the event never comes.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Waits until `look` finds something.
///
/// # Panics
/// When it has not come within [`PATIENCE`].
#[track_caller]
pub fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        // Between two looks, for the sake of what is waited for.
        std::thread::sleep(Duration::from_millis(2));
    }
}
