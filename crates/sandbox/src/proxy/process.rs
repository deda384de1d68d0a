//! The proxy's process, managed by the keeper: started, restarted if it ends, and ended
//! with the sandbox.

use super::admission::Admission;
use super::connection::{ProxyContext, answer};
use super::incoming::Incoming;
use super::notice::{self, Notice, NoticeSender};
use super::who::Session;
use crate::policy::HostRule;
use crate::sys;
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use rustix::process::{Pid, Resource, Rlimit, Signal};
use std::cell::Cell;
use std::io;
use std::net::TcpListener;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Limit of concurrent connections. Package installers use some dozens.
const CONNECTIONS: usize = 128;

/// How many connections beyond that are refused with an answer at a time.
const TURNED_AWAY: usize = 32;

/// Limit of descriptors: two for each connection, and some for name resolution.
const DESCRIPTORS: u64 = 1024;

/// Stack of a thread: for name resolution, and some buffers.
const STACK: usize = 512 << 10;

/// After this many starts the proxy is not restarted: then nothing gets out.
const STARTS: u32 = 100;

#[derive(Debug)]
pub struct Proxy {
    hosts: Vec<HostRule>,
    /// In the sandbox's network.
    listener: OwnedFd,
    init: Pid,
    /// The keeper's end, and the proxy's.
    notices: OwnedFd,
    sender: OwnedFd,
    pid: Cell<Option<Pid>>,
    starts: Cell<u32>,
}

impl Proxy {
    /// Starts it. The caller must have a single thread.
    pub(crate) fn start(hosts: &[HostRule], listener: OwnedFd, init: Pid) -> io::Result<Self> {
        let (kind, flags) = (SocketType::SEQPACKET, SocketFlags::CLOEXEC);
        let (notices, sender) = rustix::net::socketpair(AddressFamily::UNIX, kind, flags, None)?;
        let hosts = hosts.to_vec();
        let (pid, starts) = (Cell::new(None), Cell::new(0));
        let proxy = Self { hosts, listener, init, notices, sender, pid, starts };
        proxy.fork()?;
        Ok(proxy)
    }

    /// Returns a descriptor that is readable when there are notices.
    #[must_use]
    pub fn notices(&self) -> BorrowedFd<'_> {
        self.notices.as_fd()
    }

    /// Returns the refusals since the last call.
    #[must_use]
    pub fn take_notices(&self) -> Vec<Notice> {
        notice::take(&self.notices)
    }

    #[must_use]
    pub fn pid(&self) -> Option<Pid> {
        self.pid.get()
    }

    /// Restarts the proxy if the ended child was this one. Its connections are broken off.
    pub fn has_ended(&self, pid: Pid) {
        if self.pid.get() == Some(pid) {
            self.pid.set(None);
            if self.starts.get() < STARTS {
                let _ = self.fork();
            }
        }
    }

    pub(crate) fn end(&self) {
        if let Some(pid) = self.pid.get() {
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        }
        self.starts.set(STARTS);
    }

    fn fork(&self) -> io::Result<()> {
        let keeper = rustix::process::getpid();
        self.starts.set(self.starts.get() + 1);
        // SAFETY: the caller has a single thread, so the child has a consistent heap.
        match unsafe { libc::fork() } {
            -1 => return Err(io::Error::last_os_error()),
            0 => {
                let work = || self.become_proxy(keeper);
                let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
                // SAFETY: ends this process without running any of the keeper's code.
                unsafe { libc::_exit(1) }
            }
            pid => self.pid.set(Pid::from_raw(pid)),
        }
        Ok(())
    }

    fn become_proxy(&self, keeper: Pid) -> io::Result<()> {
        crate::apply::leave_keeper(&mut [self.listener.as_raw_fd(), self.sender.as_raw_fd()]);
        if rustix::process::getppid() != Some(keeper) {
            return Ok(());
        }
        sys::occupy_standard_streams()?;
        let limit = Rlimit { current: Some(DESCRIPTORS), maximum: Some(DESCRIPTORS) };
        let _ = rustix::process::setrlimit(Resource::Nofile, limit);
        // SAFETY: only numbers are passed.
        unsafe {
            libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
            // A heap for each thread would be too large for what they do.
            #[cfg(target_env = "gnu")]
            libc::mallopt(libc::M_ARENA_MAX, 1);
        }
        let listener = TcpListener::from(self.listener.try_clone()?);
        let context = Arc::new(ProxyContext {
            admission: Admission::new(self.hosts.clone()),
            notices: NoticeSender::new(self.sender.try_clone()?),
            session: Session { keeper, init: self.init },
        });
        serve(&listener, &context)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.end();
    }
}

/// One of a limited number of places.
struct Place(Arc<AtomicUsize>);

impl Place {
    fn take(taken: &Arc<AtomicUsize>, most: usize) -> Option<Self> {
        if taken.fetch_add(1, Ordering::Relaxed) < most {
            return Some(Self(Arc::clone(taken)));
        }
        taken.fetch_sub(1, Ordering::Relaxed);
        None
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn serve(listener: &TcpListener, context: &Arc<ProxyContext>) -> io::Result<()> {
    let (places, turned_away) = (Arc::default(), Arc::default());
    loop {
        let stream = match listener.accept() {
            Ok((stream, _)) => stream,
            Err(error) if is_lasting(&error) => return Err(error),
            Err(_) => {
                // No descriptor or no memory: wait until a connection ends.
                std::thread::sleep(Duration::from_millis(20));
                continue;
            }
        };
        let thread = std::thread::Builder::new().stack_size(STACK);
        // Without a thread, or a place for a refusal, the connection is closed.
        let _ = if let Some(place) = Place::take(&places, CONNECTIONS) {
            let context = Arc::clone(context);
            thread.spawn(move || {
                context.serve(stream);
                drop(place);
            })
        } else if let Some(place) = Place::take(&turned_away, TURNED_AWAY) {
            thread.spawn(move || {
                Incoming::new(stream).finish(&too_many());
                drop(place);
            })
        } else {
            continue;
        };
    }
}

fn is_lasting(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EBADF | libc::EINVAL | libc::ENOTSOCK))
}

fn too_many() -> Vec<u8> {
    let why = format!("there are {CONNECTIONS} connections through the proxy already");
    answer("503 Too many connections", &why)
}
