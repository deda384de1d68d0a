//! Bytes from a thread, for a connection that sends them.

use hyper::body::Bytes;
use sessile_files::FileError;
use std::io::{self, Write};
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// How many bytes are sent at once.
const PIECE: usize = 64 << 10;

/// How many pieces may wait to be sent.
const AHEAD: usize = 4;

/// The receiving end.
#[derive(Debug)]
pub(crate) struct Outgoing(Receiver<io::Result<Bytes>>);

impl Outgoing {
    /// Returns the next piece; an error when the content breaks off before its end.
    pub(crate) async fn next(&mut self) -> Option<io::Result<Bytes>> {
        self.0.recv().await
    }
}

/// Produces bytes on a thread, as fast as they are taken and only as long as there is a receiver.
pub(super) fn outgoing(
    make: impl FnOnce(&mut Pieces) -> Result<(), FileError> + Send + 'static,
) -> Outgoing {
    let (sender, receiver) = channel(AHEAD);
    tokio::task::spawn_blocking(move || {
        let mut pieces = Pieces { sender, piece: Vec::with_capacity(PIECE) };
        if let Err(error) = make(&mut pieces) {
            tracing::debug!(%error, "an archive was not made to its end");
            let _ = pieces.sender.blocking_send(Err(io::Error::other(error)));
        }
    });
    Outgoing(receiver)
}

#[derive(Debug)]
pub(super) struct Pieces {
    sender: Sender<io::Result<Bytes>>,
    piece: Vec<u8>,
}

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let length = bytes.len().min(PIECE - self.piece.len());
        self.piece.extend_from_slice(&bytes[..length]);
        if self.piece.len() == PIECE {
            self.flush()?;
        }
        Ok(length)
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.piece.is_empty() {
            return Ok(());
        }
        let piece = std::mem::replace(&mut self.piece, Vec::with_capacity(PIECE));
        self.sender.blocking_send(Ok(piece.into())).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }
}
