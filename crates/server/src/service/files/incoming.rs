//! Bytes from a connection, for a thread that reads them.

use hyper::body::Bytes;
use std::io::{self, Read};
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// How many pieces may wait to be read: a connection delivers some kilobytes at a time.
const AHEAD: usize = 8;

/// A piece of a body; `Err` when the body is cut off.
pub(crate) type Piece = Result<Bytes, CutOff>;

#[derive(Clone, Copy, Debug)]
pub(crate) struct CutOff;

/// The reading end, for a thread for blocking work.
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
    /// Whether the body was cut off.
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
