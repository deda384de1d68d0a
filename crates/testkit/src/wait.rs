//! Waits for a condition, or for several checks at once.

use std::time::{Duration, Instant};

/// The longest wait. It is far beyond what a busy machine needs, so a timeout means that
/// the event never comes.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Waits until `look` finds something.
///
/// # Panics
/// When that takes longer than [`PATIENCE`].
#[track_caller]
pub fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let deadline = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        // A pause between two looks, to leave the CPU to the awaited process.
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Runs a check on all of them at the same time, each in a thread: for checks that mostly wait.
///
/// # Panics
/// When one of them panics.
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
