//! One connection to a keeper.

use sessile_protocol::{
    Answer, Call, Failure, FrameError, Reply, Request, Splitter, decode, encode,
};
use sessile_store::{Directory, Liveness};
use std::io;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;

/// A keeper is single-threaded and answers `Status` at once; one that does not
/// within this is stopped or dying.
const PATIENCE: Duration = Duration::from_secs(3);

#[derive(Debug, thiserror::Error)]
pub(crate) enum LinkError {
    #[error(transparent)]
    Refused(#[from] Failure),
    #[error("the keeper went away before it answered")]
    Gone,
    #[error("the keeper does not answer")]
    Silent,
    #[error("cannot talk to the keeper: {0}")]
    Io(#[from] io::Error),
    #[error(transparent)]
    Frame(#[from] FrameError),
}

/// Used by one caller at a time. A caller that goes away in the middle of a
/// call drops it, and with it whatever the keeper kept for the call.
#[derive(Debug)]
pub(crate) struct Link {
    stream: UnixStream,
    splitter: Splitter,
    last: u64,
    buffer: Vec<u8>,
}

impl Link {
    /// Connects, and has the keeper say that it is there.
    pub(crate) async fn open(directory: Directory) -> Result<Self, LinkError> {
        // The connection itself can block when the keeper's queue is full.
        let connected = tokio::task::spawn_blocking(move || directory.connect());
        let socket = match tokio::time::timeout(PATIENCE, connected).await {
            Ok(Ok(Liveness::Live(socket))) => socket,
            Ok(Ok(Liveness::Gone) | Err(_)) => return Err(LinkError::Gone),
            Err(_) => return Err(LinkError::Silent),
        };
        let socket = std::os::unix::net::UnixStream::from(socket);
        socket.set_nonblocking(true)?;
        let mut link = Self {
            stream: UnixStream::from_std(socket)?,
            splitter: Splitter::default(),
            last: 0,
            buffer: vec![0; 16 << 10],
        };
        match tokio::time::timeout(PATIENCE, link.call(Request::Status)).await {
            Ok(Ok(_)) => Ok(link),
            Ok(Err(error)) => Err(error),
            Err(_) => Err(LinkError::Silent),
        }
    }

    /// Whether the keeper is still at the other end of an idle connection.
    pub(crate) fn is_alive(&self) -> bool {
        let mut byte = [0];
        match self.stream.try_read(&mut byte) {
            Err(error) => error.kind() == io::ErrorKind::WouldBlock,
            // The end, or an answer to nothing.
            Ok(_) => false,
        }
    }

    /// Asks and waits for the answer.
    pub(crate) async fn call(&mut self, request: Request) -> Result<Answer, LinkError> {
        let call = self.ask(request).await?;
        loop {
            let reply = self.reply().await?;
            if reply.id == call {
                return Ok(reply.outcome?);
            }
        }
    }

    /// Asks; the number of the call.
    pub(crate) async fn ask(&mut self, request: Request) -> Result<u64, LinkError> {
        self.last += 1;
        let frame = encode(&Call::new(self.last, request));
        self.stream.write_all(&frame).await.map_err(gone)?;
        Ok(self.last)
    }

    /// The next answer to any call.
    pub(crate) async fn reply(&mut self) -> Result<Reply, LinkError> {
        loop {
            if let Some(body) = self.splitter.next_body()? {
                return Ok(decode(body)?);
            }
            match self.stream.read(&mut self.buffer).await.map_err(gone)? {
                0 => return Err(LinkError::Gone),
                n => self.splitter.push(&self.buffer[..n]),
            }
        }
    }
}

fn gone(error: io::Error) -> LinkError {
    if matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset) {
        return LinkError::Gone;
    }
    LinkError::Io(error)
}
