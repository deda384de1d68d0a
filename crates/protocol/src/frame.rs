//! Frames: four bytes of length, little endian, then one MessagePack map.

use crate::{Answer, Code, Failure, OLDEST_PROTOCOL, PROTOCOL, Request};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// Larger than any command, stdin and output that is accepted together. A peer that
/// announces more is not one of ours.
pub const MAX_FRAME: usize = 256 << 20;

/// A smaller buffer is not returned to the allocator.
const SPARE: usize = 64 << 10;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Call {
    pub v: u16,
    /// Chosen by the client, repeated in the reply. The calls of one connection are
    /// answered as they finish, not in order.
    pub id: u64,
    pub request: Request,
}

impl Call {
    #[must_use]
    pub fn new(id: u64, request: Request) -> Self {
        Self { v: PROTOCOL, id, request }
    }

    /// Returns the call in a frame's body, or the refusal for its client. A call that
    /// cannot be read is answered, too, if its number can be read.
    ///
    /// # Errors
    /// When the body is not a call, or its version is not supported.
    pub fn read(body: &[u8]) -> Result<Self, Box<Reply>> {
        #[derive(Deserialize)]
        struct Envelope {
            #[serde(default)]
            v: u16,
            #[serde(default)]
            id: u64,
        }
        let refuse = |id, failure| Err(Box::new(Reply::new(id, Err(failure))));
        let why = match decode::<Self>(body) {
            Ok(call) => match check_version(call.v) {
                Err(failure) if !call.request.is_timeless() => return refuse(call.id, failure),
                Ok(()) | Err(_) => return Ok(call),
            },
            Err(why) => why,
        };
        let Ok(Envelope { v, id }) = decode(body) else {
            return refuse(0, Failure::new(Code::BadRequest, why.to_string()));
        };
        let failure = check_version(v).err().unwrap_or_else(|| {
            let message = format!(
                "this session's keeper does not know that request ({why}); it may be older than its client"
            );
            Failure::new(Code::BadRequest, message)
        });
        refuse(id, failure)
    }
}

fn check_version(version: u16) -> Result<(), Failure> {
    if (OLDEST_PROTOCOL..=PROTOCOL).contains(&version) {
        return Ok(());
    }
    let age = if version > PROTOCOL { "older" } else { "newer" };
    let message = format!(
        "this session's keeper is {age} than its client (it speaks version {PROTOCOL} of the protocol, the client {version}); end the session, which any version can, and start a new one"
    );
    Err(Failure::new(Code::VersionMismatch, message))
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

/// Encodes the message as a frame.
///
/// # Panics
/// Never for the types of this crate: they have no map keys or sequences that
/// MessagePack cannot carry.
#[must_use]
pub fn encode<T: Serialize>(message: &T) -> Vec<u8> {
    // Most messages fit, and a vector that grows is copied each time.
    let mut frame = Vec::with_capacity(512);
    frame.extend([0; 4]);
    rmp_serde::encode::write_named(&mut frame, message).expect("our own types are serialisable");
    let length = u32::try_from(frame.len() - 4).expect("frames stay under MAX_FRAME");
    frame[..4].copy_from_slice(&length.to_le_bytes());
    frame
}

/// Decodes the message in a frame's body.
///
/// # Errors
/// When the body is not a message of that type.
pub fn decode<T: DeserializeOwned>(body: &[u8]) -> Result<T, FrameError> {
    Ok(rmp_serde::from_slice(body)?)
}

/// Splits a byte stream into frame bodies.
#[derive(Debug, Default)]
pub struct Splitter {
    buffer: Vec<u8>,
    start: usize,
}

impl Splitter {
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// Returns the body of the next whole frame, if there is one.
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

    /// Drops the bodies that were returned. An idle keeper must not hold on to the memory
    /// of one large command.
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
        let frame =
            encode(&Newer { v: PROTOCOL, id: 7, request: Request::Status, priority: "high" });
        let call = Call::read(&frame[4..]).unwrap();
        assert_eq!((call.id, call.request), (7, Request::Status));
    }

    #[test]
    fn a_call_of_another_version_is_refused_unless_every_version_has_it() {
        let read = |v: u16, request: Request| {
            let frame = encode(&Call { v, id: 7, request });
            Call::read(&frame[4..]).map(|call| call.request)
        };
        let refusal = |v: u16, request: Request| {
            let reply = read(v, request).unwrap_err();
            assert_eq!((reply.v, reply.id), (PROTOCOL, 7));
            reply.outcome.unwrap_err()
        };
        assert_eq!(read(PROTOCOL, Request::State), Ok(Request::State));
        let newer = refusal(PROTOCOL + 1, Request::State);
        assert_eq!(newer.code, Code::VersionMismatch);
        assert!(newer.message.contains("keeper is older than its client"), "{newer}");
        let older = refusal(OLDEST_PROTOCOL - 1, Request::State);
        assert!(older.message.contains("keeper is newer than its client"), "{older}");
        for timeless in [Request::Status, Request::End] {
            assert_eq!(read(PROTOCOL + 1, timeless.clone()), Ok(timeless));
        }
    }

    #[test]
    fn a_request_that_is_not_known_is_answered_by_its_number() {
        #[derive(Serialize)]
        struct Unknown {
            v: u16,
            id: u64,
            request: &'static str,
        }
        let refusal = |v: u16| {
            let frame = encode(&Unknown { v, id: 9, request: "levitate" });
            let reply = Call::read(&frame[4..]).unwrap_err();
            assert_eq!(reply.id, 9);
            reply.outcome.unwrap_err()
        };
        let unknown = refusal(PROTOCOL);
        assert_eq!(unknown.code, Code::BadRequest);
        assert!(unknown.message.contains("does not know that request"), "{unknown}");
        assert_eq!(refusal(PROTOCOL + 1).code, Code::VersionMismatch);
        assert_eq!(Call::read(b"").unwrap_err().id, 0);
    }

    #[test]
    fn an_announcement_beyond_the_limit_is_refused() {
        let mut splitter = Splitter::default();
        splitter.push(&u32::MAX.to_le_bytes());
        assert!(matches!(splitter.next_body(), Err(FrameError::TooLong(_))));
    }

    proptest! {
        #![proptest_config(sessile_testkit::cases(256))]
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
            let _ = Call::read(&bytes);
            let _ = decode::<Reply>(&bytes);
        }
    }
}
