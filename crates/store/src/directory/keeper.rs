//! A session's keeper as other processes see it: its lock, its socket, and whether it is alive.

use super::{Directory, Result, StoreError};
use crate::atomic::PRIVATE_FILE;
use crate::metadata::{Metadata, SessionStatus, timestamp};
use rustix::event::{PollFd, PollFlags};
use rustix::fs::{FlockOperation, OFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketAddrUnix, SocketFlags, SocketType};
use sessile_protocol::{Call, Request, encode};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

const SOCKET: &str = "keeper.sock";

/// How long a keeper may take to answer. A live keeper that does not manage to answer
/// counts as alive; a dying one closes its connections.
pub(super) const ANSWER_PATIENCE: Duration = Duration::from_secs(1);

/// A keeper that was asked whether it is alive.
#[derive(Debug)]
pub(super) enum LivenessProbe {
    Waiting(OwnedFd),
    /// It accepts no further connections now.
    Full,
    Gone,
}

impl LivenessProbe {
    /// Returns whether the keeper is alive. A connection alone is not enough: a process
    /// that was killed a moment ago still accepts them. Only an answer shows that it is
    /// alive.
    pub(super) fn is_alive(&self, deadline: Instant) -> bool {
        let socket = match self {
            Self::Waiting(socket) => socket,
            // It counts as alive, like one that does not manage to answer.
            Self::Full => return true,
            Self::Gone => return false,
        };
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let left = rustix::time::Timespec::try_from(left).ok();
            let mut fds = [PollFd::new(socket, PollFlags::IN)];
            match rustix::event::poll(&mut fds, left.as_ref()) {
                Ok(0) => return true,
                Err(Errno::INTR) => {}
                Ok(_) | Err(_) => break,
            }
        }
        let mut first = [0; 1];
        let received = rustix::net::recv(socket, &mut first[..], RecvFlags::empty());
        received.is_ok_and(|(_, n)| n > 0)
    }
}

/// Whether a session's keeper is alive.
#[derive(Debug)]
pub enum Liveness {
    /// With a connection to it.
    Live(OwnedFd),
    Gone,
}

/// A lock that is held as long as a keeper lives.
#[derive(Debug)]
pub struct Lock {
    _file: OwnedFd,
}

impl Lock {
    /// Waits for a lock.
    pub(crate) fn wait(path: &Path) -> Result<Self> {
        let held = Self::take(path, FlockOperation::LockExclusive)?;
        held.ok_or_else(|| StoreError::io("lock", path)(io::ErrorKind::WouldBlock.into()))
    }

    /// Takes a lock, unless it is held.
    pub(crate) fn attempt(path: &Path) -> Result<Option<Self>> {
        Self::take(path, FlockOperation::NonBlockingLockExclusive)
    }

    /// Locks a directory itself, which saves a lock file. Returns `None` where a directory
    /// cannot be locked, as on NFS.
    fn take_directory(path: &Path, how: FlockOperation) -> Option<Option<Self>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let directory = rustix::fs::open(path, flags, rustix::fs::Mode::empty()).ok()?;
        loop {
            return match rustix::fs::flock(&directory, how) {
                Ok(()) => Some(Some(Self { _file: directory })),
                Err(Errno::INTR) => continue,
                Err(Errno::WOULDBLOCK) => Some(None),
                Err(_) => None,
            };
        }
    }

    fn take(path: &Path, how: FlockOperation) -> Result<Option<Self>> {
        let flags = OFlags::CREATE | OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let file = rustix::fs::open(path, flags, PRIVATE_FILE)
            .map_err(|e| StoreError::io("open", path)(e.into()))?;
        loop {
            return match rustix::fs::flock(&file, how) {
                Ok(()) => Ok(Some(Self { _file: file })),
                Err(rustix::io::Errno::INTR) => continue,
                Err(rustix::io::Errno::WOULDBLOCK) => Ok(None),
                Err(error) => Err(StoreError::io("lock", path)(error.into())),
            };
        }
    }
}

impl Directory {
    /// Returns the metadata. If the keeper has died, the session is marked as lost, also on disk.
    ///
    /// # Errors
    /// When there is none, or it is not in our format.
    pub fn observed_metadata(&self) -> Result<Metadata> {
        let metadata = self.metadata()?;
        if metadata.status != SessionStatus::Active {
            return Ok(metadata);
        }
        if self.is_alive() {
            return Ok(metadata);
        }
        self.mark_lost()
    }

    /// Marks a session as lost whose keeper does not answer, and returns its metadata.
    pub(super) fn mark_lost(&self) -> Result<Metadata> {
        // Under the keeper's lock, so that this never contradicts a keeper that is just
        // ending or just starting. A killed keeper's guardian holds the lock until
        // everything is cleaned up.
        let Some(_lock) = self.await_lock()? else {
            return self.metadata();
        };
        let mut metadata = self.metadata()?;
        if metadata.status == SessionStatus::Active {
            metadata.status = SessionStatus::Lost;
            metadata.ended_at = Some(timestamp());
            metadata.keeper_pid = None;
            self.write_metadata(&metadata)?;
            self.remove_groups(&metadata.session_id);
        }
        Ok(metadata)
    }

    /// Takes the lock that a keeper holds; `None` if it is held.
    ///
    /// # Errors
    /// When the lock file cannot be opened.
    pub fn lock(&self) -> Result<Option<Lock>> {
        let how = FlockOperation::NonBlockingLockExclusive;
        match Lock::take_directory(&self.path, how) {
            Some(taken) => Ok(taken),
            None => Lock::take(&self.path.join("keeper.lock"), how),
        }
    }

    /// Takes the lock, unless a keeper answers. Waits for a keeper that is starting or ending.
    ///
    /// # Errors
    /// When the lock file cannot be opened.
    pub fn await_lock(&self) -> Result<Option<Lock>> {
        let deadline = Instant::now() + Duration::from_secs(3);
        loop {
            if let Some(lock) = self.lock()? {
                return Ok(Some(lock));
            }
            if self.is_alive() || Instant::now() > deadline {
                return Ok(None);
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn is_alive(&self) -> bool {
        self.ask().is_alive(Instant::now() + ANSWER_PATIENCE)
    }

    /// Sends the keeper a request, if there is one.
    pub(super) fn ask(&self) -> LivenessProbe {
        let socket = match self.connect_at_once() {
            Some(Liveness::Live(socket)) => socket,
            Some(Liveness::Gone) => return LivenessProbe::Gone,
            None => return LivenessProbe::Full,
        };
        let question = encode(&Call::new(1, Request::Status));
        match rustix::net::send(&socket, &question, SendFlags::NOSIGNAL) {
            Ok(_) => LivenessProbe::Waiting(socket),
            Err(_) => LivenessProbe::Gone,
        }
    }

    /// Connects to the keeper, if there is one. It may be about to exit; the first request
    /// shows that.
    #[must_use]
    pub fn connect(&self) -> Liveness {
        let attempt = || -> rustix::io::Result<OwnedFd> {
            let (_directory, address) = self.socket_address()?;
            let socket = new_socket()?;
            rustix::net::connect(&socket, &address)?;
            Ok(socket)
        };
        attempt().map_or(Liveness::Gone, Liveness::Live)
    }

    /// Connects without waiting. Returns `None` if the keeper accepts no connections now:
    /// it is stopped, and too many wait already.
    #[must_use]
    pub fn connect_at_once(&self) -> Option<Liveness> {
        let attempt = || -> rustix::io::Result<OwnedFd> {
            let (_directory, address) = self.socket_address()?;
            let socket = new_socket()?;
            rustix::io::ioctl_fionbio(&socket, true)?;
            rustix::net::connect(&socket, &address)?;
            rustix::io::ioctl_fionbio(&socket, false)?;
            Ok(socket)
        };
        match attempt() {
            Ok(socket) => Some(Liveness::Live(socket)),
            Err(rustix::io::Errno::AGAIN) => None,
            Err(_) => Some(Liveness::Gone),
        }
    }

    /// Listens on the keeper's socket.
    ///
    /// # Errors
    /// When the socket cannot be made.
    pub fn listen(&self) -> io::Result<OwnedFd> {
        let _ = std::fs::remove_file(self.path.join(SOCKET));
        let (_directory, address) = self.socket_address()?;
        let socket = new_socket()?;
        rustix::net::bind(&socket, &address)?;
        rustix::fs::chmod(self.path.join(SOCKET), PRIVATE_FILE)?;
        rustix::net::listen(&socket, 128)?;
        Ok(socket)
    }

    /// Returns whether there is a socket. A session that has ended has none, even if its
    /// keeper has not exited yet.
    #[must_use]
    pub fn has_socket(&self) -> bool {
        self.path.join(SOCKET).symlink_metadata().is_ok()
    }

    pub fn remove_socket(&self) {
        let _ = std::fs::remove_file(self.path.join(SOCKET));
    }

    /// Returns the address of the socket. The path of a Unix socket is limited to 107
    /// bytes, and a session directory may have a longer one, so the address goes through a
    /// descriptor of the directory.
    fn socket_address(&self) -> rustix::io::Result<(OwnedFd, SocketAddrUnix)> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::open(&self.path, flags, rustix::fs::Mode::empty())?;
        let path = format!("/proc/self/fd/{}/{SOCKET}", directory.as_raw_fd());
        let address = SocketAddrUnix::new(path)?;
        Ok((directory, address))
    }
}

fn new_socket() -> rustix::io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC;
    rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)
}
