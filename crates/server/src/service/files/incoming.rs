//! Bytes that come from a connection, for a thread that reads them.

use hyper::body::Bytes;
use std::io::{self, Read};
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// Pieces that have come and were not read yet: a connection gives some kilobytes
/// at a time.
const AHEAD: usize = 8;

/// What comes of a body; `Err` when it is cut off.
pub(crate) type Piece = Result<Bytes, CutOff>;

#[derive(Clone, Copy, Debug)]
pub(crate) struct CutOff;

/// The end that is read from, on a thread for what may block.
#[derive(Debug)]
pub(crate) struct Incoming {
    pieces: Receiver<Piece>,
    piece: Bytes,
    is_cut_off: bool,
}

pub(crate) fn incoming() -> (Sender<Piece>, Incoming) {
    let (sender, pieces) = channel(AHEAD);
    (sender, Incoming { pieces, piece: Bytes::new(), is_cut_off: false })
}

impl Incoming {
    /// Whether it ended before its end.
    pub(super) fn is_cut_off(&self) -> bool {
        self.is_cut_off
    }
}

impl Read for Incoming {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while self.piece.is_empty() {
            match self.pieces.blocking_recv() {
                Some(Ok(piece)) => self.piece = piece,
                None => return Ok(0),
                Some(Err(CutOff)) => {
                    self.is_cut_off = true;
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
            }
        }
        let length = self.piece.len().min(into.len());
        into[..length].copy_from_slice(&self.piece.split_to(length));
        Ok(length)
    }
}
