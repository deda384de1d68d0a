//! The first process of a sandbox, once everything is built. It reaps orphans inside, and
//! reports them to the keeper.
//!
//! It is a fork of the keeper, with all capabilities inside: processes without
//! capabilities can neither inspect nor stop it.

use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;

/// Blocks SIGCHLD, so that none is missed.
fn block_child_signal() -> libc::sigset_t {
    // SAFETY: the set is initialised by sigemptyset before it is read.
    unsafe {
        let mut set = std::mem::zeroed::<libc::sigset_t>();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGCHLD);
        libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
        set
    }
}

pub(super) fn reap_for_ever(ends: OwnedFd) -> ! {
    let mut ends = File::from(ends);
    let awaited = block_child_signal();
    loop {
        let mut status = 0;
        // SAFETY: the pointer is to a number of ours.
        let pid = unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) };
        if pid <= 0 {
            let mut signal = 0;
            // SAFETY: both pointers are to values of ours.
            unsafe { libc::sigwait(&raw const awaited, &raw mut signal) };
            continue;
        }
        let code = if libc::WIFEXITED(status) {
            libc::WEXITSTATUS(status)
        } else {
            128 + libc::WTERMSIG(status)
        };
        let mut end = [0; super::END_BYTES];
        end[..4].copy_from_slice(&pid.to_ne_bytes());
        end[4..].copy_from_slice(&code.to_ne_bytes());
        // Blocks while the keeper does not read: nothing is lost.
        if ends.write_all(&end).is_err() {
            // SAFETY: ends this process, and with it the sandbox.
            unsafe { libc::_exit(0) }
        }
    }
}
