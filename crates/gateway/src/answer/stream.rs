//! A stream's bytes as JSON text, and other values of answers.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Serialize, Serializer};
use sessile_protocol::{RunNo, StreamView};
use utoipa::ToSchema;

/// A stream in an answer.
#[derive(Debug)]
pub struct Encoded {
    pub text: String,
    /// The encoding of the text, if it is not the stream itself.
    pub encoding: Option<Encoding>,
    /// What was left out, if anything.
    pub truncated: Option<Truncated>,
}

/// The encoding of bytes that are not text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = BytesEncoding)]
pub enum Encoding {
    Base64,
}

/// Streams that are not text, and how they are written
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct Encodings {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub stdout: Option<Encoding>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub stderr: Option<Encoding>,
}

impl Encodings {
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.stdout.is_none() && self.stderr.is_none()
    }
}

/// Parts of long streams that were left out
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct Truncations {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub stdout: Option<Truncated>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub stderr: Option<Truncated>,
}

impl Truncations {
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.stdout.is_none() && self.stderr.is_none()
    }
}

/// A stream whose middle was left out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct Truncated {
    pub dropped_bytes: u64,
    pub head_bytes: u64,
    pub tail_bytes: u64,
    pub total_bytes: u64,
    /// Bytes kept on disk
    pub stored_bytes: u64,
    /// The file with all of it, in the session's directory
    pub file: String,
}

/// Milliseconds, with a precision of microseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Milliseconds {
    pub microseconds: u64,
}

impl Serialize for Milliseconds {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let us = self.microseconds;
        if us.is_multiple_of(1000) {
            serializer.serialize_u64(us / 1000)
        } else {
            serializer.serialize_f64(us as f64 / 1000.0)
        }
    }
}

/// Encodes text as it is, anything else in base64. A line marks where the middle is left
/// out, and no character is cut in two.
#[must_use]
pub fn encode(view: &StreamView, run: RunNo, stream: &str) -> Encoded {
    if view.dropped() == 0 {
        let (text, encoding) = text(&[&view.head[..], &view.tail[..]].concat());
        return Encoded { text, encoding, truncated: None };
    }
    let head = &view.head[..whole_end(&view.head)];
    let tail = &view.tail[whole_start(&view.tail)..];
    let truncated = |head: &[u8], tail: &[u8]| Truncated {
        dropped_bytes: view.total - (head.len() + tail.len()) as u64,
        head_bytes: head.len() as u64,
        tail_bytes: tail.len() as u64,
        total_bytes: view.total,
        stored_bytes: view.stored,
        file: format!("runs/{run}.{stream}"),
    };
    if let (Ok(text), Ok(rest)) = (std::str::from_utf8(head), std::str::from_utf8(tail)) {
        let truncated = truncated(head, tail);
        let (dropped, total) = (truncated.dropped_bytes, view.total);
        let text = format!("{text}\n[… {dropped} of {total} bytes left out …]\n{rest}");
        return Encoded { text, encoding: None, truncated: Some(truncated) };
    }
    // Head and tail joined: the counts say where the head ends.
    let text = STANDARD.encode([&view.head[..], &view.tail[..]].concat());
    let truncated = Some(truncated(&view.head, &view.tail));
    Encoded { text, encoding: Some(Encoding::Base64), truncated }
}

/// Encodes bytes in base64.
pub(super) fn base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// Returns bytes as text, or encoded if they are not text.
#[must_use]
pub fn text(bytes: &[u8]) -> (String, Option<Encoding>) {
    match std::str::from_utf8(bytes) {
        Ok(text) => (text.to_owned(), None),
        Err(_) => (STANDARD.encode(bytes), Some(Encoding::Base64)),
    }
}

/// A part of a stream in an event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OutputText {
    data: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    encoding: Option<Encoding>,
    /// Bytes before these that are not kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    skipped: Option<u64>,
}

impl OutputText {
    #[must_use]
    pub fn new(bytes: &[u8], skipped: u64) -> Self {
        let (data, encoding) = text(bytes);
        Self { data, encoding, skipped: Some(skipped).filter(|skipped| *skipped > 0) }
    }
}

/// Returns where the last whole character ends.
#[must_use]
pub fn whole_end(bytes: &[u8]) -> usize {
    for back in 1..=bytes.len().min(4) {
        let at = bytes.len() - back;
        let length = match bytes[at] {
            0xc0..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf7 => 4,
            0x80..=0xbf => continue,
            _ => 1,
        };
        return if length > back { at } else { bytes.len() };
    }
    bytes.len()
}

/// Returns where the first whole character begins.
#[must_use]
pub fn whole_start(bytes: &[u8]) -> usize {
    // A character has at most three bytes after its first.
    bytes.iter().take(3).take_while(|b| (0x80..=0xbf).contains(*b)).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(text: &str, head: usize, tail: usize) -> StreamView {
        let bytes = text.as_bytes();
        StreamView {
            head: bytes[..head].to_vec(),
            tail: bytes[bytes.len() - tail..].to_vec(),
            total: bytes.len() as u64,
            stored: bytes.len() as u64,
        }
    }

    #[test]
    fn no_character_is_cut_in_two() {
        let text = "aé€😀".repeat(20);
        for head in 0..30 {
            for tail in 0..30 {
                let encoded = encode(&view(&text, head, tail), RunNo(1), "stdout");
                assert_eq!(encoded.encoding, None, "{head} {tail}");
                assert!(!encoded.text.contains('\u{fffd}'));
                let truncated = encoded.truncated.unwrap();
                let sum = truncated.dropped_bytes + truncated.head_bytes + truncated.tail_bytes;
                assert_eq!(sum, text.len() as u64);
            }
        }
    }

    #[test]
    fn bytes_that_are_no_text_come_in_base64() {
        let bytes: Vec<u8> = (0..=255).collect();
        let view = StreamView { head: bytes.clone(), tail: Vec::new(), total: 256, stored: 256 };
        let encoded = encode(&view, RunNo(1), "stdout");
        assert_eq!(encoded.encoding, Some(Encoding::Base64));
        assert_eq!(STANDARD.decode(encoded.text).unwrap(), bytes);
    }
}
