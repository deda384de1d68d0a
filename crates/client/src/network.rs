//! Sockets in a session's own network namespace.
//!
//! A socket belongs to the network namespace that it was created in, whichever process uses
//! it later. To create one there, a process has to enter the namespace. A process with
//! threads may not enter a user namespace, so a child does it, which shares our memory and
//! descriptors and lives for a handful of system calls.

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};
use sessile_protocol::OwnNetwork;
use std::ffi::{c_int, c_void};
use std::fs::File;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::time::Duration;

/// A listener on the same machine accepts a connection at once, or its queue is full.
const PATIENCE: Duration = Duration::from_secs(5);

/// Stack size for the child's system calls.
const STACK: usize = 64 << 10;

/// Returns a non-blocking TCP socket, in this network or in ours.
pub(crate) fn socket(network: Option<OwnNetwork>, to: SocketAddr) -> io::Result<OwnedFd> {
    let family = if to.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let Some(network) = network else {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        return Ok(rustix::net::socket_with(family, SocketType::STREAM, flags, None)?);
    };
    let open = |name: &str| File::open(format!("/proc/{}/ns/{name}", network.pid));
    let (net, user) = (open("net")?, open("user")?);
    if net.metadata()?.ino() != network.inode {
        return Err(io::Error::new(io::ErrorKind::NotFound, "the session has ended"));
    }
    SocketRequest { net, user, family, made: -1, error: 0 }.run()
}

/// Connects, and makes the socket block from then on.
pub(crate) fn connect(socket: &OwnedFd, to: SocketAddr) -> io::Result<()> {
    match rustix::net::connect(socket, &to) {
        Ok(()) => {}
        Err(Errno::INPROGRESS) => {
            let mut fds = [rustix::event::PollFd::new(socket, rustix::event::PollFlags::OUT)];
            let patience = rustix::time::Timespec::try_from(PATIENCE).ok();
            if rustix::event::poll(&mut fds, patience.as_ref())? == 0 {
                return Err(io::ErrorKind::TimedOut.into());
            }
            sockopt::socket_error(socket)??;
        }
        Err(error) => return Err(error.into()),
    }
    rustix::io::ioctl_fionbio(socket.as_fd(), false)?;
    Ok(())
}

struct SocketRequest {
    net: File,
    user: File,
    family: AddressFamily,
    made: c_int,
    error: c_int,
}

impl SocketRequest {
    fn run(mut self) -> io::Result<OwnedFd> {
        let mut stack = Vec::<u128>::with_capacity(STACK / size_of::<u128>());
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::CLONE_FILES | libc::SIGCHLD;
        // SAFETY: with CLONE_VFORK this thread is suspended until the child has exited, so
        // the stack and `self` outlive the child's use of them. The child only makes system
        // calls, at the upper end of its own stack.
        let pid = unsafe {
            let top = stack.as_mut_ptr().add(stack.capacity());
            libc::clone(enter, top.cast(), flags, (&raw mut self).cast())
        };
        if pid < 0 {
            return Err(io::Error::last_os_error());
        }
        let mut status = 0;
        // SAFETY: our child, which nothing else waits for.
        unsafe { libc::waitpid(pid, &raw mut status, 0) };
        if self.made < 0 {
            return Err(io::Error::from_raw_os_error(self.error));
        }
        // SAFETY: the child has opened it in the descriptor table that we share.
        Ok(unsafe { OwnedFd::from_raw_fd(self.made) })
    }
}

/// Runs in the child: makes only system calls, and exits without running any cleanup of ours.
extern "C" fn enter(order: *mut c_void) -> c_int {
    // SAFETY: the caller's value, which it does not touch meanwhile.
    let order = unsafe { &mut *order.cast::<SocketRequest>() };
    // SAFETY: all are descriptors of this process; only this child enters the namespaces.
    unsafe {
        // The machine's root may enter at once; other users through the user namespace that
        // they have made.
        let is_in = libc::setns(order.net.as_raw_fd(), libc::CLONE_NEWNET) == 0
            || (libc::setns(order.user.as_raw_fd(), libc::CLONE_NEWUSER) == 0
                && libc::setns(order.net.as_raw_fd(), libc::CLONE_NEWNET) == 0);
        if is_in {
            let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
            order.made = libc::socket(c_int::from(order.family.as_raw()), kind, 0);
        }
        if order.made < 0 {
            order.error = *libc::__errno_location();
        }
        libc::_exit(0)
    }
}
