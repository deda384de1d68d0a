//! One connection to a keeper.

use crate::socket::Socket;
use sessile_client::{KeeperStopped, LOOK, NoAnswer, PROBE, SilenceAction, SilenceTimer, probe};
use sessile_protocol::{
    Answer, Call, Failure, FrameError, Reply, Request, Splitter, decode, encode,
};
use sessile_store::{Directory, Liveness};
use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::time::{Duration, Instant};
use tokio::io::AsyncWriteExt;
use tokio::task::spawn_blocking;
use tokio::time::{Sleep, sleep, timeout};

/// A keeper is single-threaded and answers `Status` at once. If it does not within this
/// time, it is stopped or dying.
const PATIENCE: Duration = Duration::from_secs(3);

/// A keeper that reads nothing of a request for this long hangs.
const ROOM_WITHIN: Duration = Duration::from_secs(15);

/// Pause between two attempts to connect to a keeper whose queue is full.
const PAUSE: Duration = Duration::from_millis(20);

#[derive(Debug, thiserror::Error)]
pub(crate) enum LinkError {
    #[error(transparent)]
    Refused(#[from] Failure),
    #[error("the keeper went away before it answered; try again")]
    Gone,
    #[error("the session's keeper does not answer; end the session")]
    Silent,
    #[error(transparent)]
    Stopped(#[from] KeeperStopped),
    #[error("cannot talk to the keeper: {0}")]
    Io(#[from] io::Error),
    #[error(transparent)]
    Frame(#[from] FrameError),
}

impl From<NoAnswer> for LinkError {
    fn from(why: NoAnswer) -> Self {
        match why {
            NoAnswer::Stopped(stopped) => stopped.into(),
            NoAnswer::Silent => Self::Silent,
        }
    }
}

/// A connection, used by one caller at a time. A caller that goes away during a call
/// drops it, and with it what the keeper holds for the call.
#[derive(Debug)]
pub(crate) struct Link {
    stream: Socket,
    splitter: Splitter,
    last: u64,
    patience: SilenceTimer,
    look: LookTimer,
}

impl Link {
    /// Connects, and waits for the keeper's greeting.
    pub(crate) async fn open(directory: Directory) -> Result<Self, LinkError> {
        match timeout(PATIENCE, Self::greeted(&directory)).await {
            Ok(outcome) => outcome,
            Err(_) => {
                let stopped = spawn_blocking(move || KeeperStopped::of(&directory)).await;
                let stopped = stopped.ok().flatten();
                Err(stopped.map_or(LinkError::Silent, LinkError::from))
            }
        }
    }

    async fn greeted(directory: &Directory) -> Result<Self, LinkError> {
        let socket = connect(directory).await?;
        let mut link = Self {
            stream: Socket::new(socket.into())?,
            splitter: Splitter::default(),
            last: 0,
            patience: SilenceTimer::default(),
            look: LookTimer::default(),
        };
        link.call(Request::Status).await?;
        Ok(link)
    }

    /// Whether the keeper is still at the other end of an idle connection.
    pub(crate) fn is_alive(&self) -> bool {
        let mut byte = [0];
        match self.stream.try_read(&mut byte) {
            Err(error) => error.kind() == io::ErrorKind::WouldBlock,
            // End of file, or an answer without a question.
            Ok(_) => false,
        }
    }

    /// Sends a request and waits for the answer.
    pub(crate) async fn call(&mut self, request: Request) -> Result<Answer, LinkError> {
        let call = self.ask(request).await?;
        loop {
            let reply = self.reply().await?;
            if reply.id == call {
                return Ok(reply.outcome?);
            }
        }
    }

    /// Sends a request, and returns the number of the call.
    pub(crate) async fn ask(&mut self, request: Request) -> Result<u64, LinkError> {
        self.last += 1;
        let frame = encode(&Call::new(self.last, request));
        // There is room nearly always, and then no timer is needed.
        let mut rest = &frame[self.stream.try_write(&frame).unwrap_or(0)..];
        let begun = Instant::now();
        while !rest.is_empty() {
            // Cancel-safe, like the read below: nothing was written unless it returned.
            match timeout(LOOK, self.stream.write(rest)).await {
                Ok(Ok(n)) => rest = &rest[n..],
                Ok(Err(error)) => return Err(gone(error)),
                Err(_) if begun.elapsed() >= ROOM_WITHIN => return Err(LinkError::Silent),
                Err(_) => drop(self.look().await?),
            }
        }
        Ok(self.last)
    }

    /// Returns the next answer to any call.
    pub(crate) async fn reply(&mut self) -> Result<Reply, LinkError> {
        loop {
            if let Some(body) = self.splitter.next_body()? {
                let reply: Reply = decode(body)?;
                if reply.id == PROBE {
                    continue;
                }
                return Ok(reply);
            }
            let splitter = &mut self.splitter;
            let read = tokio::select! {
                biased;
                // Cancel-safe: what was read is in the splitter.
                read = self.stream.receive(|piece| splitter.push(piece)) => Some(read),
                () = self.look.wait() => None,
            };
            match read {
                Some(Ok(0)) => return Err(LinkError::Gone),
                Some(Ok(_)) => self.patience.heard(),
                Some(Err(error)) => return Err(gone(error)),
                None => {
                    if self.look().await? == SilenceAction::Ask {
                        // If there is no room for the probe, there is no answer either.
                        let _ = self.stream.try_write(&probe());
                    }
                }
            }
        }
    }

    /// Checks whether to go on waiting for a silent keeper.
    async fn look(&mut self) -> Result<SilenceAction, LinkError> {
        let keeper = sessile_client::process_at(&self.stream);
        let look = move || keeper.and_then(KeeperStopped::is_true_of);
        let stopped = spawn_blocking(look).await.ok().flatten();
        Ok(self.patience.assess(stopped)?)
    }
}

/// A timer for looks at a keeper, kept from call to call. A timer of its own for each call
/// would be the next one due in a quiet server, and wake a sleeping thread to tell it so.
#[derive(Debug, Default)]
struct LookTimer(Option<Pin<Box<Sleep>>>);

impl LookTimer {
    /// Waits for [`LOOK`].
    async fn wait(&mut self) {
        let due = tokio::time::Instant::now() + LOOK;
        let sleep = self.0.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(due)));
        if sleep.is_elapsed() {
            sleep.as_mut().reset(due);
        }
        // It may be set for an earlier time, by a call before this one.
        while sleep.deadline() < due {
            sleep.as_mut().await;
            sleep.as_mut().reset(due);
        }
        sleep.as_mut().await;
    }
}

/// Connects when the keeper accepts connections. The queue of a stopped keeper fills up,
/// and no thread must block on it.
async fn connect(directory: &Directory) -> Result<OwnedFd, LinkError> {
    loop {
        let here = directory.clone();
        match spawn_blocking(move || here.connect_at_once()).await {
            Ok(Some(Liveness::Live(socket))) => return Ok(socket),
            Ok(Some(Liveness::Gone)) | Err(_) => return Err(LinkError::Gone),
            Ok(None) => sleep(PAUSE).await,
        }
    }
}

fn gone(error: io::Error) -> LinkError {
    if matches!(error.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset) {
        return LinkError::Gone;
    }
    LinkError::Io(error)
}
