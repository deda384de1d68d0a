//! Waiting, for a condition or in several places at once.

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

/// Checks all of them at the same time, each in a thread: for checks that mostly wait.
///
/// # Panics
/// When one of them does.
pub fn at_once<T: Send>(all: impl IntoIterator<Item = T>, check: impl Fn(T) + Sync) {
    let check = &check;
    std::thread::scope(|scope| {
        let threads: Vec<_> = all.into_iter().map(|one| scope.spawn(move || check(one))).collect();
        for thread in threads {
            if let Err(panic) = thread.join() {
                std::panic::resume_unwind(panic);
            }
        }
    });
}
