//! The user's own server: a Unix socket that only its user's programs reach.
//!
//! The socket's mode and the directory around it keep others out, and the peer's
//! user is asked for on top of that. Nobody loses a call to a server that goes:
//! it takes its socket away first, and stays if somebody was faster.

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

/// How long one that is just going is waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// Between two looks at whether it has gone.
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

/// The user's one local server listens here.
#[derive(Debug)]
pub struct LocalListener {
    listener: UnixListener,
    socket: PathBuf,
    uid: u32,
    _lock: Lock,
}

impl LocalListener {
    /// Takes the place of the one server. What a killed one left is replaced.
    ///
    /// # Errors
    /// When there is one, or it cannot listen.
    pub async fn bind(place: &LocalPlace) -> Result<Self, LocalError> {
        let socket = place.socket();
        let deadline = Instant::now() + PATIENCE;
        let lock = loop {
            if let Some(lock) = place.hold()? {
                break lock;
            }
            // One that has let go of its socket is going.
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

    /// The next connection of the user's. Others are told that it is not theirs.
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
            refuse::turn_away(stream, &refusal);
        }
    }

    fn is_ours(&self, stream: &UnixStream) -> bool {
        stream.peer_cred().is_ok_and(|peer| peer.uid() == self.uid)
    }

    /// Takes the socket away, so that nobody new can come. If somebody has come
    /// before that and was not accepted yet, the socket is put back and the
    /// connection given.
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
    /// While the lock is held: the next server's socket is not there yet.
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.socket);
    }
}

/// Listens under another name first, so that whoever finds the socket can use
/// it. A socket's path has 108 bytes, and this one may be longer.
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
