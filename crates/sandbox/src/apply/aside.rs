//! Makes a few system calls in a separate process, which shares our memory and is waited
//! for: namespaces joined or made there are not joined here.

use std::ffi::{c_int, c_void};
use std::io;

/// Stack for a few system calls.
const STACK: usize = 64 << 10;

struct Work<F> {
    work: Option<F>,
    outcome: io::Result<()>,
}

/// Runs `work` in that process. It may only make system calls.
pub(super) fn run<F: FnOnce() -> io::Result<()>>(work: F) -> io::Result<()> {
    run_with(0, work)
}

/// Does the same in a user and a mount namespace of its own, where everything is mounted as
/// it is here and `work` may clone it. Descriptors that it opens are ours as well.
pub(super) fn run_with_own_mounts<F: FnOnce() -> io::Result<()>>(work: F) -> io::Result<()> {
    run_with(libc::CLONE_NEWUSER | libc::CLONE_NEWNS | libc::CLONE_FILES, work)
}

fn run_with<F: FnOnce() -> io::Result<()>>(flags: c_int, work: F) -> io::Result<()> {
    let mut work = Work { work: Some(work), outcome: Err(io::ErrorKind::Interrupted.into()) };
    let mut stack = Vec::<u128>::with_capacity(STACK / size_of::<u128>());
    let flags = flags | libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    // SAFETY: with CLONE_VFORK this thread, the only one, is suspended until the child
    // has ended, so stack and work live as long as the child uses them, and nothing else
    // uses them meanwhile. The child gets the upper end of the stack.
    let pid = unsafe {
        let top = stack.as_mut_ptr().add(stack.capacity());
        libc::clone(body::<F>, top.cast(), flags, (&raw mut work).cast())
    };
    if pid < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: no status is requested.
    while unsafe { libc::waitpid(pid, std::ptr::null_mut(), 0) } < 0
        && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
    {}
    work.outcome
}

extern "C" fn body<F: FnOnce() -> io::Result<()>>(work: *mut c_void) -> c_int {
    // SAFETY: it is the caller's, which does not touch it meanwhile.
    let work = unsafe { &mut *work.cast::<Work<F>>() };
    if let Some(todo) = work.work.take() {
        work.outcome = todo();
    }
    // SAFETY: ends this process, and nothing else.
    unsafe { libc::_exit(0) }
}
