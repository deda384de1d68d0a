//! A stream's bytes as JSON text.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use sessile_protocol::{RunNo, StreamView};

/// A stream in an answer.
#[derive(Debug)]
pub struct Encoded {
    pub text: String,
    pub is_base64: bool,
    /// What was left out, if anything.
    pub truncated: Option<Value>,
}

/// Text as it is, anything else in base64. Where the middle is left out a line
/// says so, and no character is cut in two.
#[must_use]
pub fn encode(view: &StreamView, run: RunNo, stream: &str) -> Encoded {
    if view.dropped() == 0 {
        let (text, is_base64) = text(&[&view.head[..], &view.tail[..]].concat());
        return Encoded { text, is_base64, truncated: None };
    }
    let head = &view.head[..whole_end(&view.head)];
    let tail = &view.tail[whole_start(&view.tail)..];
    let dropped = view.total - (head.len() + tail.len()) as u64;
    let mut truncated = json!({
        "dropped_bytes": dropped,
        "head_bytes": head.len(),
        "tail_bytes": tail.len(),
        "total_bytes": view.total,
        "stored_bytes": view.stored,
        "file": format!("runs/{run}.{stream}"),
    });
    match (std::str::from_utf8(head), std::str::from_utf8(tail)) {
        (Ok(head), Ok(tail)) => {
            let note = format!("\n[… {dropped} of {} bytes left out …]\n", view.total);
            Encoded {
                text: format!("{head}{note}{tail}"),
                is_base64: false,
                truncated: Some(truncated),
            }
        }
        (_, _) => {
            // Head and tail joined: the counts tell where one ends.
            truncated["head_bytes"] = view.head.len().into();
            truncated["tail_bytes"] = view.tail.len().into();
            truncated["dropped_bytes"] = view.dropped().into();
            let bytes = [&view.head[..], &view.tail[..]].concat();
            Encoded { text: STANDARD.encode(bytes), is_base64: true, truncated: Some(truncated) }
        }
    }
}

/// Bytes as text, or in base64 (then the second is true).
#[must_use]
pub fn text(bytes: &[u8]) -> (String, bool) {
    match std::str::from_utf8(bytes) {
        Ok(text) => (text.to_owned(), false),
        Err(_) => (STANDARD.encode(bytes), true),
    }
}

/// Where the last whole character ends.
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

/// Where the first whole character begins.
fn whole_start(bytes: &[u8]) -> usize {
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
                assert!(!encoded.is_base64, "{head} {tail}");
                assert!(!encoded.text.contains('\u{fffd}'));
                let truncated = encoded.truncated.unwrap();
                let sum: u64 = ["dropped_bytes", "head_bytes", "tail_bytes"]
                    .iter()
                    .map(|key| truncated[*key].as_u64().unwrap())
                    .sum();
                assert_eq!(sum, text.len() as u64);
            }
        }
    }

    #[test]
    fn bytes_that_are_no_text_come_in_base64() {
        let bytes: Vec<u8> = (0..=255).collect();
        let view = StreamView { head: bytes.clone(), tail: Vec::new(), total: 256, stored: 256 };
        let encoded = encode(&view, RunNo(1), "stdout");
        assert!(encoded.is_base64);
        assert_eq!(STANDARD.decode(encoded.text).unwrap(), bytes);
    }
}
