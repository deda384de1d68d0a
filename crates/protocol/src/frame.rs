//! Frames: four bytes of length, little endian, then one MessagePack map.

use crate::{Answer, Failure, PROTOCOL, Request};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Larger than any command, stdin and output that is accepted together; a
/// peer that announces more is not one of ours.
pub const MAX_FRAME: usize = 256 << 20;

/// Lower than this a buffer is not worth giving back to the allocator.
const SPARE: usize = 64 << 10;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Call {
    pub v: u16,
    /// Chosen by the client, repeated in the reply. Calls of one connection
    /// are answered as they finish, not in order.
    pub id: u64,
    pub request: Request,
}

impl Call {
    #[must_use]
    pub fn new(id: u64, request: Request) -> Self {
        Self { v: PROTOCOL, id, request }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Reply {
    pub v: u16,
    pub id: u64,
    pub outcome: Result<Answer, Failure>,
}

impl Reply {
    #[must_use]
    pub fn new(id: u64, outcome: Result<Answer, Failure>) -> Self {
        Self { v: PROTOCOL, id, outcome }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    #[error("the peer announced a frame of {0} bytes, over the limit of {MAX_FRAME}")]
    TooLong(usize),
    #[error("the peer sent something that is not a message of ours: {0}")]
    Malformed(#[from] rmp_serde::decode::Error),
}

/// The message as a frame.
///
/// # Panics
/// Never for the types of this crate: they have no map keys or sequences that
/// MessagePack cannot carry.
#[must_use]
pub fn encode<T: Serialize>(message: &T) -> Vec<u8> {
    let mut frame = vec![0; 4];
    rmp_serde::encode::write_named(&mut frame, message).expect("our own types are serialisable");
    let length = u32::try_from(frame.len() - 4).expect("frames stay under MAX_FRAME");
    frame[..4].copy_from_slice(&length.to_le_bytes());
    frame
}

/// The message in a frame's body.
///
/// # Errors
/// When the body is not a message of that type.
pub fn decode<T: DeserializeOwned>(body: &[u8]) -> Result<T, FrameError> {
    Ok(rmp_serde::from_slice(body)?)
}

/// Cuts a byte stream into frame bodies.
#[derive(Debug, Default)]
pub struct Splitter {
    buffer: Vec<u8>,
    start: usize,
}

impl Splitter {
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole frame's body, if there is one.
    ///
    /// # Errors
    /// When the peer announces more than [`MAX_FRAME`].
    pub fn next_body(&mut self) -> Result<Option<&[u8]>, FrameError> {
        let rest = &self.buffer[self.start..];
        let Some((length, rest)) = rest.split_first_chunk::<4>() else {
            self.tidy();
            return Ok(None);
        };
        let length = u32::from_le_bytes(*length) as usize;
        if length > MAX_FRAME {
            return Err(FrameError::TooLong(length));
        }
        if rest.len() < length {
            self.tidy();
            return Ok(None);
        }
        let from = self.start + 4;
        self.start = from + length;
        Ok(Some(&self.buffer[from..self.start]))
    }

    /// Forgets what was handed out. An idle keeper must not hold on to the
    /// memory of one large command.
    fn tidy(&mut self) {
        self.buffer.drain(..self.start);
        self.start = 0;
        if self.buffer.is_empty() && self.buffer.capacity() > SPARE {
            self.buffer = Vec::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_field_of_a_newer_client_is_skipped() {
        #[derive(Serialize)]
        struct Newer {
            v: u16,
            id: u64,
            request: Request,
            priority: &'static str,
        }
        let frame = encode(&Newer { v: 2, id: 7, request: Request::Status, priority: "high" });
        let call: Call = decode(&frame[4..]).unwrap();
        assert_eq!((call.id, call.request), (7, Request::Status));
    }

    #[test]
    fn an_announcement_beyond_the_limit_is_refused() {
        let mut splitter = Splitter::default();
        splitter.push(&u32::MAX.to_le_bytes());
        assert!(matches!(splitter.next_body(), Err(FrameError::TooLong(_))));
    }

    proptest! {
        #[test]
        fn frames_survive_any_cutting(bodies in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 0..12),
                                      cuts in prop::collection::vec(1usize..64, 1..40)) {
            let mut wire = Vec::new();
            for body in &bodies {
                wire.extend_from_slice(&(body.len() as u32).to_le_bytes());
                wire.extend_from_slice(body);
            }
            let mut splitter = Splitter::default();
            let mut seen = Vec::new();
            let mut rest = &wire[..];
            let mut sizes = cuts.iter().cycle();
            while !rest.is_empty() {
                let (piece, after) = rest.split_at((*sizes.next().unwrap()).min(rest.len()));
                splitter.push(piece);
                rest = after;
                while let Some(body) = splitter.next_body().unwrap() {
                    seen.push(body.to_vec());
                }
            }
            prop_assert_eq!(seen, bodies);
        }

        #[test]
        fn garbage_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode::<Call>(&bytes);
            let _ = decode::<Reply>(&bytes);
        }
    }
}
