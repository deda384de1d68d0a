//! Server-sent events, which all models use for streams.

/// One event: its name, if it has one, and its data.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SseEvent {
    pub name: String,
    pub data: String,
}

/// Assembles events from bytes that come in any pieces.
#[derive(Debug, Default)]
pub struct Sse {
    line: Vec<u8>,
    event: SseEvent,
    has_data: bool,
}

/// Maximum size of an event; those of a model are much smaller.
const MAX_EVENT: usize = 16 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event of more than 16 MiB")]
pub struct TooLong;

impl Sse {
    pub fn push(&mut self, bytes: &[u8]) -> Result<Vec<SseEvent>, TooLong> {
        let mut events = Vec::new();
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(piece);
            if self.line.len() + self.event.data.len() > MAX_EVENT {
                return Err(TooLong);
            }
            if piece.ends_with(b"\n") {
                let line = std::mem::take(&mut self.line);
                let line = line.strip_suffix(b"\n").unwrap_or(&line);
                let line = line.strip_suffix(b"\r").unwrap_or(line);
                events.extend(self.take_line(&String::from_utf8_lossy(line)));
            }
        }
        Ok(events)
    }

    fn take_line(&mut self, line: &str) -> Option<SseEvent> {
        if line.is_empty() {
            let event = std::mem::take(&mut self.event);
            return std::mem::take(&mut self.has_data).then_some(event);
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.event.name),
            "data" => {
                if self.has_data {
                    self.event.data.push('\n');
                }
                self.event.data.push_str(value);
                self.has_data = true;
            }
            // Comments have an empty name; ids and retry times are not used.
            _ => {}
        }
        None
    }
}
