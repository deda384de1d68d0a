//! Ctrl-C in a waiting client interrupts the command, not the client; a second one leaves.
//!
//! The handler writes to a pipe, which the wait for an answer watches as well: a signal
//! that comes while the client is busy stays in the pipe.

use sessile_client::Interruption;
use std::os::fd::{AsFd, AsRawFd};
use std::os::fd::{BorrowedFd, OwnedFd, RawFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, Ordering};

static WRITE_END: AtomicI32 = AtomicI32::new(-1);
static PIPE: OnceLock<(OwnedFd, OwnedFd)> = OnceLock::new();

extern "C" fn tell(_: libc::c_int) {
    let fd: RawFd = WRITE_END.load(Ordering::Relaxed);
    // SAFETY: write is async-signal-safe, and the byte is a static.
    unsafe { libc::write(fd, c"i".as_ptr().cast(), 1) };
}

/// Watches for SIGINT from now on. Returns a pipe with one byte for each signal.
pub(crate) fn watch() -> anyhow::Result<BorrowedFd<'static>> {
    if PIPE.get().is_none() {
        let flags = rustix::pipe::PipeFlags::CLOEXEC | rustix::pipe::PipeFlags::NONBLOCK;
        let pipe = rustix::pipe::pipe_with(flags)?;
        WRITE_END.store(pipe.1.as_raw_fd(), Ordering::Relaxed);
        let _ = PIPE.set(pipe);
        // SAFETY: the handler only writes to a pipe that stays open for good; the struct
        // is zeroed, which is an empty mask and no flags.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = tell as extern "C" fn(libc::c_int) as usize;
            action.sa_flags = libc::SA_RESTART;
            libc::sigaction(libc::SIGINT, &raw const action, std::ptr::null_mut());
        }
    }
    match PIPE.get() {
        Some((read_end, _)) => Ok(read_end.as_fd()),
        None => anyhow::bail!("cannot watch for signals"),
    }
}

/// Counts signals: the first interrupts, the next leaves.
#[derive(Debug, Default)]
pub(crate) struct SignalCount(u32);

impl SignalCount {
    pub(crate) fn take(&mut self) -> Interruption {
        let mut byte = [0];
        let came = PIPE
            .get()
            .is_some_and(|(read_end, _)| matches!(rustix::io::read(read_end, &mut byte), Ok(1)));
        if !came {
            return Interruption::None;
        }
        self.0 += 1;
        if self.0 == 1 { Interruption::Interrupt } else { Interruption::Leave }
    }
}
