//! Monitors a client's stdin for lines that are not JSON, and for its end.

use super::calls::Calls;
use serde::de::IgnoredAny;
use serde_json::error::Category;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// How long calls have after the end of the input: the SDK waits for their answers for
/// five seconds.
const GRACE: Duration = Duration::from_secs(4);

/// A reader that passes on all that it reads.
#[derive(Debug)]
pub(super) struct InspectedInput<R> {
    inner: R,
    line: Line,
    calls: Arc<Calls>,
    complaints: UnboundedSender<String>,
    has_ended: bool,
}

impl<R> InspectedInput<R> {
    /// Returns it with the complaints about lines that are not JSON. Lines longer than
    /// `most` are refused elsewhere.
    pub(super) fn new(
        inner: R,
        calls: Arc<Calls>,
        most: usize,
    ) -> (Self, UnboundedReceiver<String>) {
        let (complaints, heard) = unbounded_channel();
        let line = Line { bytes: Vec::new(), most };
        (Self { inner, line, calls, complaints, has_ended: false }, heard)
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for InspectedInput<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(context, buffer))?;
        let read = &buffer.filled()[before..];
        if read.is_empty() && buffer.remaining() > 0 && !self.has_ended {
            self.has_ended = true;
            let calls = self.calls.clone();
            tokio::spawn(async move {
                tokio::time::sleep(GRACE).await;
                calls.client_is_leaving();
            });
        }
        for part in read.split_inclusive(|byte| *byte == b'\n') {
            if let Some(complaint) = self.line.add(part) {
                // Fails when the server ends: nobody listens any more.
                let _ = self.complaints.send(complaint);
            }
        }
        Poll::Ready(Ok(()))
    }
}

/// The line that is being read.
#[derive(Debug)]
struct Line {
    bytes: Vec<u8>,
    most: usize,
}

impl Line {
    /// Adds a part of the line. Returns a complaint if the line ends here and is not JSON.
    fn add(&mut self, part: &[u8]) -> Option<String> {
        if self.bytes.len() <= self.most {
            self.bytes.extend_from_slice(part);
        }
        if !part.ends_with(b"\n") {
            return None;
        }
        let line = std::mem::take(&mut self.bytes);
        if line.len() > self.most {
            return None;
        }
        complaint(&line)
    }
}

pub(super) fn complaint(message: &[u8]) -> Option<String> {
    let message = message.trim_ascii();
    let message = message.strip_prefix(b"\xef\xbb\xbf").unwrap_or(message);
    if message.is_empty() {
        return None;
    }
    let error = serde_json::from_slice::<IgnoredAny>(message).err()?;
    match error.classify() {
        Category::Syntax | Category::Eof => Some(format!("Parse error: {error}")),
        Category::Data | Category::Io => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_is_no_json_is_told_when_it_ends() {
        let mut line = Line { bytes: Vec::new(), most: 100 };
        assert_eq!(line.add(b"{\"a\": "), None);
        assert_eq!(line.add(b"1}\n"), None);
        assert_eq!(line.add(b"\n"), None);
        assert_eq!(line.add(b"{oo"), None);
        assert!(line.add(b"ps\n").unwrap().starts_with("Parse error: key must be a string"));
        assert_eq!(line.add(&[b'x'; 200]), None);
        assert_eq!(line.add(b"\n"), None);
        assert!(line.add(b"[1,\n").is_some());
    }
}
