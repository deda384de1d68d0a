//! Decodes an answer that is streamed as events.

use super::{ApiFormat, Failure, Reply, Sse, SseEvent, Usage, anthropic, chat, responses};
use serde_json::Value;

/// Text that a piece of the stream adds to the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delta(pub String);

/// Takes the bytes of a stream, in any pieces, and returns the answer at its end.
#[derive(Debug)]
pub struct Decoder {
    sse: Sse,
    stream: Stream,
    is_done: bool,
}

#[derive(Debug)]
enum Stream {
    Chat(chat::Stream),
    Responses(responses::Stream),
    Messages(anthropic::Stream),
}

impl Decoder {
    pub(super) fn new(wire: ApiFormat) -> Self {
        let stream = match wire {
            ApiFormat::ChatCompletions => Stream::Chat(chat::Stream::default()),
            ApiFormat::Responses => Stream::Responses(responses::Stream::default()),
            ApiFormat::Messages => Stream::Messages(anthropic::Stream::default()),
        };
        Self { sse: Sse::default(), stream, is_done: false }
    }

    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<Delta>, Failure> {
        let outcome = self.take(bytes);
        outcome.map_err(|failure| failure.having_used(self.used()))
    }

    /// Returns the usage of the answer, as far as the server has reported it.
    #[must_use]
    pub fn used(&self) -> Usage {
        match &self.stream {
            Stream::Chat(stream) => stream.used(),
            Stream::Responses(stream) => stream.used(),
            Stream::Messages(stream) => stream.used(),
        }
    }

    fn take(&mut self, bytes: &[u8]) -> Result<Vec<Delta>, Failure> {
        let events =
            self.sse.push(bytes).map_err(|e| Failure::nonsense(e.to_string().as_bytes()))?;
        let mut deltas = Vec::new();
        for SseEvent { data, .. } in events {
            if data == "[DONE]" {
                self.is_done = true;
                continue;
            }
            let event: Value =
                serde_json::from_str(&data).map_err(|_| Failure::nonsense(data.as_bytes()))?;
            let text = match &mut self.stream {
                Stream::Chat(stream) => stream.push(&event)?,
                Stream::Responses(stream) => stream.push(&event)?,
                Stream::Messages(stream) => stream.push(&event)?,
            };
            deltas.extend(text.filter(|text| !text.is_empty()).map(Delta));
        }
        Ok(deltas)
    }

    /// Returns the reply at the end of the stream.
    pub fn finish(self) -> Result<Reply, Failure> {
        let used = self.used();
        let reply = match self.stream {
            Stream::Chat(stream) => stream.finish(self.is_done),
            Stream::Responses(stream) => stream.finish(),
            Stream::Messages(stream) => stream.finish(),
        };
        reply.map_err(|failure| failure.having_used(used))
    }
}
