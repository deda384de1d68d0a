//! One connection to a keeper.

use crate::Launcher;
use crate::ended::EndedSession;
use crate::stopped::{KeeperStopped, PROBE, SilenceTimer};
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};
use sessile_protocol::{
    Answer, Call, Code, Failure, FrameError, Reply, Request, RunNo, Shortage, Splitter, decode,
    encode,
};
use sessile_store::{Directory, Metadata, StoreError};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::time::{Duration, Instant};

#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error(transparent)]
    Refused(#[from] Failure),
    #[error(
        "the keeper went away before it answered; the session's directory has what it recorded"
    )]
    Gone,
    #[error("cannot talk to the keeper: {0}")]
    Io(#[from] io::Error),
    #[error(transparent)]
    Frame(#[from] FrameError),
    #[error(
        "the keeper sent an unexpected answer; it may be of another version: end the session and start a new one"
    )]
    Unexpected,
    /// Why and when the session ended, and how to continue.
    #[error("{0}")]
    Ended(Box<EndedSession>),
    #[error(
        "{0:?} is not a program that Sessile knows; use bash, sh, dash, zsh, python3 or node, or the path of one"
    )]
    UnknownProgram(String),
    #[error("cannot use {} as directory: {why}", path.display())]
    BadDirectory { path: PathBuf, why: String },
    #[error("cannot launch a keeper: {0}")]
    Launch(#[source] io::Error),
    #[error("the session's keeper ended while it was starting; try again")]
    Unstarted,
    #[error(transparent)]
    Stopped(#[from] KeeperStopped),
    #[error("the session's keeper does not answer; end the session")]
    Silent,
}

impl ClientError {
    /// Returns whether a launch was refused because the session already has a keeper.
    pub(crate) fn has_keeper(&self) -> bool {
        matches!(self, Self::Refused(failure) if failure.code == Code::Ending)
    }

    /// Returns the resource that the machine has run out of, if that is the cause.
    #[must_use]
    pub fn shortage(&self) -> Option<Shortage> {
        match self {
            Self::Store(error) => Shortage::behind(error),
            Self::Refused(failure) => failure.shortage,
            Self::Io(error) => Shortage::of(error),
            Self::Launch(error) => Shortage::of_start(error),
            Self::Gone
            | Self::Frame(_)
            | Self::Unexpected
            | Self::Ended(_)
            | Self::UnknownProgram(_)
            | Self::BadDirectory { .. }
            | Self::Unstarted
            | Self::Stopped(_)
            | Self::Silent => None,
        }
    }

    /// Returns the error for a session that has ended: why, when, and how to continue.
    #[must_use]
    pub fn ended(directory: &Directory, metadata: &Metadata) -> Self {
        Self::Ended(Box::new(EndedSession::of(directory, metadata)))
    }
}

/// What to do when a signal interrupts the wait for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Interruption {
    /// Keep waiting.
    None,
    /// Have the active run interrupted, and wait for its result.
    Interrupt,
    /// Stop waiting.
    Leave,
}

#[derive(Debug)]
pub struct Client {
    socket: OwnedFd,
    splitter: Splitter,
    last: u64,
    buffer: Vec<u8>,
    /// The first request, until it is answered.
    first: Vec<u8>,
    home: Option<Reconnect>,
    patience: SilenceTimer,
    revived: Option<Box<Metadata>>,
}

/// The session, for a connection to its next keeper.
#[derive(Debug)]
struct Reconnect {
    launcher: Launcher,
    directory: Directory,
    until: Instant,
}

/// How long the client tries to get its first request accepted. A killed keeper is gone
/// within milliseconds.
const PATIENCE: Duration = Duration::from_secs(4);

impl Client {
    #[must_use]
    pub fn new(socket: OwnedFd) -> Self {
        Self {
            socket,
            splitter: Splitter::default(),
            last: 0,
            buffer: vec![0; 64 << 10],
            first: Vec::new(),
            home: None,
            patience: SilenceTimer::default(),
            revived: None,
        }
    }

    /// Makes the client ask the session's next keeper if this one exits before it has
    /// accepted a request.
    pub(crate) fn at_home(mut self, launcher: &Launcher, directory: &Directory) -> Self {
        let until = Instant::now() + PATIENCE;
        let (launcher, directory) = (launcher.clone(), directory.clone());
        self.home = Some(Reconnect { launcher, directory, until });
        self
    }

    pub(crate) fn after(mut self, revived: Metadata) -> Self {
        self.revived = Some(Box::new(revived));
        self
    }

    /// Returns the session's earlier metadata, if a new keeper had to be started.
    #[must_use]
    pub fn revived(&self) -> Option<&Metadata> {
        self.revived.as_deref()
    }

    /// Sends a request without waiting, and returns the number that the reply will have.
    /// Several calls may be open at once.
    ///
    /// # Errors
    /// When the keeper is gone.
    pub fn ask(&mut self, request: Request) -> Result<u64, ClientError> {
        self.send(request)
    }

    /// Receives data, waiting if there is none.
    ///
    /// # Errors
    /// When the keeper is gone.
    pub fn take_in(&mut self) -> Result<(), ClientError> {
        self.wait()?;
        self.receive()
    }

    /// Returns a received reply to any open call.
    ///
    /// # Errors
    /// When it is not a reply.
    pub fn next_reply(&mut self) -> Result<Option<Reply>, ClientError> {
        while let Some(body) = self.splitter.next_body()? {
            let reply: Reply = decode(body)?;
            if reply.id != PROBE {
                return Ok(Some(reply));
            }
        }
        Ok(None)
    }

    /// Returns the next reply to any open call. Returns `None` when the reading end of
    /// `listener` is closed, which is watched meanwhile.
    ///
    /// # Errors
    /// When the keeper is gone.
    pub fn reply(&mut self, listener: BorrowedFd<'_>) -> Result<Option<Reply>, ClientError> {
        loop {
            if let Some(reply) = self.next_reply()? {
                return Ok(Some(reply));
            }
            // For a descriptor that is only written to, poll reports nothing but errors.
            let mut fds = [
                PollFd::new(&self.socket, PollFlags::IN),
                PollFd::from_borrowed_fd(listener, PollFlags::empty()),
            ];
            self.patience.poll(&self.socket, &mut fds)?;
            if !fds[1].revents().is_empty() {
                return Ok(None);
            }
            if !fds[0].revents().is_empty() {
                self.receive()?;
            }
        }
    }

    /// Returns the next reply to any open call, if it comes before the deadline.
    ///
    /// # Errors
    /// When the keeper is gone.
    pub fn reply_by(&mut self, deadline: Instant) -> Result<Option<Reply>, ClientError> {
        loop {
            if let Some(reply) = self.next_reply()? {
                return Ok(Some(reply));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            let left = rustix::time::Timespec::try_from(left).ok();
            let mut fds = [PollFd::new(&self.socket, PollFlags::IN)];
            match rustix::event::poll(&mut fds, left.as_ref()) {
                Ok(0) => return Ok(None),
                Ok(_) => self.receive()?,
                Err(Errno::INTR) => {}
                Err(error) => return Err(io::Error::from(error).into()),
            }
        }
    }

    /// Sends a request and waits for the answer.
    ///
    /// # Errors
    /// When the keeper refuses, or is gone.
    pub fn call(&mut self, request: Request) -> Result<Answer, ClientError> {
        let id = self.send(request)?;
        loop {
            if let Some(answer) = self.answer_to(id)? {
                return Ok(answer);
            }
            self.take_in()?;
        }
    }

    /// Sends a request and waits for the answer. `interruption` is called whenever
    /// `signals` is readable. An interrupt goes to `run`, or to the run that this call
    /// waits for.
    ///
    /// # Errors
    /// When the keeper refuses, or is gone.
    pub fn call_watching(
        &mut self,
        request: Request,
        run: Option<RunNo>,
        signals: BorrowedFd<'_>,
        mut interruption: impl FnMut() -> Interruption,
    ) -> Result<Answer, ClientError> {
        let id = self.send(request)?;
        loop {
            if let Some(answer) = self.answer_to(id)? {
                return Ok(answer);
            }
            let mut fds = [
                PollFd::new(&self.socket, PollFlags::IN),
                PollFd::from_borrowed_fd(signals, PollFlags::IN),
            ];
            self.patience.poll(&self.socket, &mut fds)?;
            let (is_answered, is_signalled) =
                (!fds[0].revents().is_empty(), !fds[1].revents().is_empty());
            if is_signalled {
                match interruption() {
                    Interruption::None => {}
                    Interruption::Interrupt => {
                        let call = run.is_none().then_some(id);
                        self.send(Request::Interrupt { run, call })?;
                    }
                    Interruption::Leave => {
                        return Err(io::Error::from(io::ErrorKind::Interrupted).into());
                    }
                }
            }
            if is_answered {
                self.receive()?;
            }
        }
    }

    /// Returns the answer to a call, if it has come. Other replies answer interrupts that
    /// were sent meanwhile.
    fn answer_to(&mut self, id: u64) -> Result<Option<Answer>, ClientError> {
        while let Some(reply) = self.next_reply()? {
            if reply.id == id {
                return Ok(Some(reply.outcome?));
            }
        }
        Ok(None)
    }

    /// Waits for something to read. A blocking read would wait as well, but wake up twice:
    /// the system also wakes it when the keeper has read the request, and on another core
    /// that takes as long as a short run.
    fn wait(&mut self) -> Result<(), ClientError> {
        let mut fds = [PollFd::new(&self.socket, PollFlags::IN)];
        self.patience.poll(&self.socket, &mut fds)
    }

    fn receive(&mut self) -> Result<(), ClientError> {
        match rustix::net::recv(&self.socket, &mut self.buffer[..], RecvFlags::empty()) {
            // The request was accepted; its outcome is unknown.
            Ok((_, 0)) => Err(ClientError::Gone),
            // The keeper may have left our probe unread, and accepted the request.
            Err(Errno::CONNRESET) if self.patience.has_asked() => Err(ClientError::Gone),
            // The keeper left data unread. If it was sent only one request, then this
            // request, or a part of it, is unread: it was not carried out.
            Err(Errno::CONNRESET) => self.ask_again(),
            Ok((_, n)) => {
                self.patience.heard();
                self.first = Vec::new();
                self.home = None;
                self.splitter.push(&self.buffer[..n]);
                Ok(())
            }
            Err(Errno::INTR) => Ok(()),
            Err(error) => Err(io::Error::from(error).into()),
        }
    }

    /// Sends the request that this keeper did not accept to the session's next keeper.
    fn ask_again(&mut self) -> Result<(), ClientError> {
        loop {
            let home =
                self.home.take().filter(|home| self.last == 1 && Instant::now() < home.until);
            let Some(home) = home else {
                return Err(ClientError::Gone);
            };
            // It is exiting: asking it a hundred more times is useless.
            std::thread::sleep(Duration::from_millis(1));
            let next = home.launcher.open(&home.directory)?;
            self.socket = next.socket;
            self.revived = next.revived.or(self.revived.take());
            self.home = Some(home);
            match write(&self.socket, &self.first, &mut self.patience) {
                Err(ClientError::Gone) => {}
                outcome @ (Ok(()) | Err(_)) => return outcome,
            }
        }
    }

    fn send(&mut self, request: Request) -> Result<u64, ClientError> {
        self.last += 1;
        let frame = encode(&Call::new(self.last, request));
        let sent = write(&self.socket, &frame, &mut self.patience);
        if self.last == 1 && self.home.is_some() {
            self.first = frame;
        }
        match sent {
            // A request that was not sent in full was not accepted.
            Err(ClientError::Gone) => self.ask_again()?,
            outcome @ (Ok(()) | Err(_)) => outcome?,
        }
        Ok(self.last)
    }
}

impl AsFd for Client {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Sends a whole frame.
fn write(socket: &OwnedFd, frame: &[u8], patience: &mut SilenceTimer) -> Result<(), ClientError> {
    let mut rest = frame;
    while !rest.is_empty() {
        match rustix::net::send(socket, rest, SendFlags::NOSIGNAL | SendFlags::DONTWAIT) {
            Ok(n) => rest = &rest[n..],
            Err(Errno::AGAIN) => patience.poll_room(socket)?,
            Err(Errno::INTR) => {}
            Err(Errno::PIPE | Errno::CONNRESET) => return Err(ClientError::Gone),
            Err(error) => return Err(io::Error::from(error).into()),
        }
    }
    Ok(())
}
