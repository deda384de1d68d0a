//! The output of a run in pieces, each up to its last whole character.

use super::Detail;
use super::event::Event;
use crate::answer::whole_end;
use sessile_protocol::{OutputView, ReadOutput, RunNo, RunPhase};
use sessile_store::StreamName;

/// How many bytes of each stream are requested at once.
const CHUNK: u64 = 64 << 10;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pieces {
    /// The phase of the run that was reported.
    pub(super) phase: RunPhase,
    stdout: Stream,
    stderr: Stream,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Stream {
    /// The offset: all bytes that were read, kept or not.
    next: u64,
    /// The start of an incomplete character.
    half: Vec<u8>,
    /// Bytes before those that are not kept, and not yet reported.
    skipped: u64,
}

impl Default for Pieces {
    fn default() -> Self {
        Self::after(RunPhase::Queued, [0, 0])
    }
}

impl Pieces {
    /// Continues after these bytes of stdout and stderr.
    #[must_use]
    pub fn after(phase: RunPhase, [stdout, stderr]: [u64; 2]) -> Self {
        let stream = |next| Stream { next, ..Stream::default() };
        Self { phase, stdout: stream(stdout), stderr: stream(stderr) }
    }

    /// Returns the request for the next output.
    #[must_use]
    pub fn read(&self, run: RunNo, detail: Detail) -> ReadOutput {
        let [stdout_from, stderr_from] = match detail {
            Detail::Output => [self.stdout.next, self.stderr.next],
            // Beyond all bytes: no output is reported.
            Detail::Ends => [u64::MAX; 2],
        };
        let known = Some(self.phase);
        ReadOutput { stdout_from, stderr_from, max: CHUNK, known, ..ReadOutput::waiting(run) }
    }

    /// Converts an answer to events. With `is_last`, no more will come that could
    /// complete a character.
    pub fn take(&mut self, run: RunNo, view: OutputView, is_last: bool) -> Vec<Event> {
        let streams = [
            (&mut self.stdout, StreamName::Stdout, view.stdout, view.stdout_next),
            (&mut self.stderr, StreamName::Stderr, view.stderr, view.stderr_next),
        ];
        let mut events = Vec::new();
        for (stream, name, new, next) in streams {
            let (bytes, skipped) = stream.take(new, next, is_last);
            if !bytes.is_empty() {
                events.push(Event::Output { run, stream: name, bytes, skipped });
            }
        }
        events
    }
}

impl Stream {
    /// Returns the bytes that can be reported, and how many before them are not kept.
    fn take(&mut self, new: Vec<u8>, next: u64, is_last: bool) -> (Vec<u8>, u64) {
        let gap = next.saturating_sub(self.next).saturating_sub(new.len() as u64);
        self.next = next;
        let mut bytes = std::mem::take(&mut self.half);
        if gap > 0 {
            // The rest of the incomplete character is not kept.
            self.skipped += gap + bytes.len() as u64;
            bytes.clear();
        }
        bytes.extend(new);
        if !is_last {
            self.half = bytes.split_off(whole_end(&bytes));
        }
        let skipped = if bytes.is_empty() { 0 } else { std::mem::take(&mut self.skipped) };
        (bytes, skipped)
    }
}
