//! The user's own server: a Unix socket that only programs of its user can reach.
//!
//! The socket's mode and its directory keep others out, and the peer's user is checked as
//! well. No call is lost to a server that ends: it removes its socket first, and stays if
//! a client was faster.

use super::refuse;
use crate::service::{ErrorCode, ServiceError};
use rustix::net::SocketFlags;
use sessile_store::{LocalPlace, Lock, StoreError};
use std::fs;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net as blocking;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tokio::net::{UnixListener, UnixStream};

/// How long to wait for a server that is just ending.
const PATIENCE: Duration = Duration::from_secs(5);

/// Pause between two checks whether it has ended.
const PAUSE: Duration = Duration::from_millis(5);

#[derive(Debug, thiserror::Error)]
pub enum LocalError {
    #[error("a local server is already running at {}; it serves all your programs", socket.display())]
    Taken { socket: PathBuf },
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("cannot listen on {}: {source}", socket.display())]
    Listen { socket: PathBuf, source: io::Error },
}

/// The listener of the user's only local server.
#[derive(Debug)]
pub struct LocalListener {
    listener: UnixListener,
    socket: PathBuf,
    uid: u32,
    _lock: Lock,
}

impl LocalListener {
    /// Takes the place of the only server. Replaces what a killed server left.
    ///
    /// # Errors
    /// When there is one already, or it cannot listen.
    pub async fn bind(place: &LocalPlace) -> Result<Self, LocalError> {
        let socket = place.socket();
        let deadline = Instant::now() + PATIENCE;
        let lock = loop {
            if let Some(lock) = place.hold()? {
                break lock;
            }
            // A server that has removed its socket is ending.
            if UnixStream::connect(&socket).await.is_ok() || Instant::now() > deadline {
                return Err(LocalError::Taken { socket });
            }
            tokio::time::sleep(PAUSE).await;
        };
        match listen(place) {
            Ok(listener) => {
                let uid = rustix::process::geteuid().as_raw();
                Ok(Self { listener, socket, uid, _lock: lock })
            }
            Err(source) => Err(LocalError::Listen { socket, source }),
        }
    }

    /// Returns the user's next connection. Connections of other users are refused.
    pub(super) async fn accept(&self) -> io::Result<UnixStream> {
        loop {
            let (stream, _) = self.listener.accept().await?;
            if self.is_ours(&stream) {
                return Ok(stream);
            }
            tracing::warn!("a program of another user was turned away");
            let message = "this server is for its own user's programs only";
            let refusal = ServiceError::new(ErrorCode::Forbidden, message)
                .with_hint("start one of your own with: sessile serve --local --background");
            refuse::refuse_client(stream, &refusal);
        }
    }

    fn is_ours(&self, stream: &UnixStream) -> bool {
        stream.peer_cred().is_ok_and(|peer| peer.uid() == self.uid)
    }

    /// Removes the socket, so that no new client can connect. If a client connected
    /// before that and was not accepted yet, puts the socket back and returns the
    /// connection.
    pub(super) fn withdraw(&self) -> Option<UnixStream> {
        let aside = self.socket.with_extension("sock.old");
        if fs::rename(&self.socket, &aside).is_err() {
            return None;
        }
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let waiting = rustix::net::accept_with(&self.listener, flags).ok();
        let stream = waiting.and_then(|fd| UnixStream::from_std(fd.into()).ok());
        let Some(stream) = stream.filter(|stream| self.is_ours(stream)) else {
            let _ = fs::remove_file(aside);
            return None;
        };
        let _ = fs::rename(aside, &self.socket);
        Some(stream)
    }
}

impl Drop for LocalListener {
    /// Runs while the lock is held: the next server's socket is not there yet.
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.socket);
    }
}

/// Listens under another name first, so that the socket is usable once it is found. A
/// socket's path is limited to 108 bytes, and this one may be longer.
fn listen(place: &LocalPlace) -> io::Result<UnixListener> {
    let socket = place.socket();
    let new = socket.with_extension("sock.new");
    let _ = fs::remove_file(&new);
    let folder = fs::File::open(place.folder())?;
    let short = format!("/proc/self/fd/{}/local.sock.new", folder.as_raw_fd());
    let listener = blocking::UnixListener::bind(short)?;
    listener.set_nonblocking(true)?;
    fs::set_permissions(&new, fs::Permissions::from_mode(0o600))?;
    fs::rename(&new, &socket)?;
    UnixListener::from_std(listener)
}
