//! Ctrl-C in a waiting client interrupts the command, not the client; a second
//! one leaves.

use sessile_client::Interruption;
use std::sync::atomic::{AtomicU32, Ordering};

static COUNT: AtomicU32 = AtomicU32::new(0);

extern "C" fn count(_: libc::c_int) {
    COUNT.fetch_add(1, Ordering::Relaxed);
}

/// Counts SIGINT from now on; a wait is interrupted by it (no SA_RESTART).
pub(crate) fn watch() {
    // SAFETY: the handler only touches an atomic; the struct is zeroed, which
    // is a valid empty mask and no flags.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = count as extern "C" fn(libc::c_int) as usize;
        libc::sigaction(libc::SIGINT, &raw const action, std::ptr::null_mut());
    }
}

/// What the signals since the last look mean.
pub(crate) fn take() -> Interruption {
    match COUNT.load(Ordering::Relaxed) {
        0 => Interruption::None,
        1 => {
            COUNT.store(2, Ordering::Relaxed);
            Interruption::Interrupt
        }
        2 => Interruption::None,
        _ => Interruption::Leave,
    }
}
