//! A run as a stream of numbered events. A reader that returns with its last number
//! continues right after it.
//!
//! The number says where the reader is in both streams, so nothing is kept for readers:
//! they may continue at another server. The keeper is asked for more only when the last
//! event was taken, so a slow reader costs nothing.

use super::{Caller, ErrorCode, Service, ServiceError};
use crate::keepers::{ConnectedSession, blocking};
use crate::metrics::Metrics;
use sessile_gateway::answer::whole_end;
use sessile_protocol::{
    Answer, Completed, OutputView, ReadOutput, Request, RunNo, RunPhase, SessionId,
};
use std::collections::VecDeque;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use tokio::sync::OwnedSemaphorePermit;

/// Size limit of one event.
const CHUNK: u64 = 64 << 10;

/// How long the keeper holds a request without an answer.
const PATIENCE_MS: u64 = 30_000;

#[derive(Debug)]
pub(crate) enum Event {
    Started,
    Stdout(Written),
    Stderr(Written),
    Exited(Box<Completed>),
    Closed,
}

/// A piece of a stream.
#[derive(Debug)]
pub(crate) struct Written {
    pub(crate) bytes: Vec<u8>,
    /// Bytes before these that are not kept.
    pub(crate) skipped: u64,
}

impl Written {
    fn length(&self) -> u64 {
        self.skipped + self.bytes.len() as u64
    }
}

impl Event {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Started => "started",
            Self::Stdout(_) => "stdout",
            Self::Stderr(_) => "stderr",
            Self::Exited(_) => "exited",
            Self::Closed => "closed",
        }
    }
}

/// A reader's position: after event `seq`, the offset in each stream, and the phase of the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cursor {
    pub(crate) seq: u64,
    stdout: u64,
    stderr: u64,
    phase: RunPhase,
}

impl Default for Cursor {
    fn default() -> Self {
        Self { seq: 0, stdout: 0, stderr: 0, phase: RunPhase::Queued }
    }
}

impl Cursor {
    /// Returns the position in a running run after this many bytes of its stdout.
    pub(super) fn within(stdout: u64) -> Self {
        Self { stdout, phase: RunPhase::Running, ..Self::default() }
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let phase = match self.phase {
            RunPhase::Queued => 'q',
            RunPhase::Running => 'r',
            RunPhase::Exited => 'x',
            RunPhase::Closed => 'c',
        };
        write!(f, "{}-{}-{}-{phase}", self.seq, self.stdout, self.stderr)
    }
}

impl FromStr for Cursor {
    type Err = ServiceError;

    fn from_str(text: &str) -> Result<Self, ServiceError> {
        let parse = || {
            let mut parts = text.split('-');
            let mut number = || {
                let digits = parts.next()?;
                let is_number = digits.len() <= 19 && digits.bytes().all(|b| b.is_ascii_digit());
                is_number.then(|| digits.parse().ok())?
            };
            let (seq, stdout, stderr) = (number()?, number()?, number()?);
            let phase = match parts.next()? {
                "q" => RunPhase::Queued,
                "r" => RunPhase::Running,
                "x" => RunPhase::Exited,
                "c" => RunPhase::Closed,
                _ => return None,
            };
            parts.next().is_none().then_some(Self { seq, stdout, stderr, phase })
        };
        parse().ok_or_else(|| {
            let message = format!("{text:?} is not the id of an event; use the `id` of one that you were sent, or leave it out");
            ServiceError::new(ErrorCode::BadRequest, message)
        })
    }
}

/// Counts an open stream while it exists.
#[derive(Debug)]
pub(crate) struct StreamGuard {
    service: Arc<Service>,
    _permit: OwnedSemaphorePermit,
}

impl Drop for StreamGuard {
    fn drop(&mut self) {
        self.service.metrics.streams.dec();
    }
}

/// Follows one run.
#[derive(Debug)]
pub(crate) struct Follower {
    source: Source,
    metrics: Arc<Metrics>,
    pub(crate) run: RunNo,
    cursor: Cursor,
    /// Bytes of stdout and stderr that were read but not yet returned.
    halves: [PartialText; 2],
    ready: VecDeque<Event>,
    max_output: u64,
    is_over: bool,
}

#[derive(Debug, Default)]
struct PartialText {
    /// The start of an incomplete character.
    bytes: Vec<u8>,
    /// Bytes before those that are not kept.
    skipped: u64,
}

#[derive(Debug)]
enum Source {
    Keeper(Box<ConnectedSession>),
    /// A session without a keeper: only what is on disk.
    Disk(sessile_store::Directory),
}

impl Service {
    pub(crate) fn open_stream(self: &Arc<Self>) -> Result<StreamGuard, ServiceError> {
        let Ok(permit) = self.streams.clone().try_acquire_owned() else {
            let message = format!(
                "{} streams are open, the most that this server allows",
                self.limits.streams
            );
            return Err(ServiceError::new(ErrorCode::TooManyStreams, message));
        };
        self.metrics.streams.inc();
        Ok(StreamGuard { service: self.clone(), _permit: permit })
    }

    /// Whether a stream is open. It may have outlived its connection, as a WebSocket does.
    pub(crate) fn has_streams(&self) -> bool {
        self.streams.available_permits() < self.limits.streams
    }

    pub(crate) async fn follow(
        &self,
        caller: &Caller,
        id: &SessionId,
        run: RunNo,
        cursor: Cursor,
    ) -> Result<Follower, ServiceError> {
        let place = self.place(caller, id).await?;
        let source = match self.reach_if_live(&place).await? {
            Some(reached) => Source::Keeper(Box::new(reached)),
            None => Source::Disk(place.directory.clone()),
        };
        let mut follower = Follower {
            source,
            metrics: self.metrics.clone(),
            run,
            cursor,
            halves: Default::default(),
            ready: VecDeque::new(),
            max_output: self.limits.output,
            is_over: cursor.phase == RunPhase::Closed,
        };
        // Checks that the run exists before anything is streamed.
        let probe = ReadOutput { max: 0, wait: false, ..ReadOutput::waiting(run) };
        if follower.read(probe).await?.is_none() {
            return Err(self.missing_run(&place.directory, run).await);
        }
        Ok(follower)
    }
}

impl Follower {
    /// Returns the next event and the position after it; `None` after the last.
    pub(crate) async fn next(&mut self) -> Result<Option<(Cursor, Event)>, ServiceError> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(Some((self.advance(&event), event)));
            }
            if self.is_over {
                return Ok(None);
            }
            let [out, err] = &self.halves;
            let read = ReadOutput {
                run: self.run,
                stdout_from: self.cursor.stdout + out.length(),
                stderr_from: self.cursor.stderr + err.length(),
                max: CHUNK,
                wait: true,
                known: Some(self.cursor.phase),
                patience_ms: Some(PATIENCE_MS),
                until_input: false,
            };
            let Some(view) = self.read(read).await? else { return Err(ServiceError::unexpected()) };
            self.take(view).await?;
        }
    }

    async fn read(&mut self, read: ReadOutput) -> Result<Option<OutputView>, ServiceError> {
        match &mut self.source {
            Source::Keeper(reached) => {
                let Answer::Output(view) = reached.call(Request::Output(read)).await? else {
                    return Err(ServiceError::unexpected());
                };
                Ok(Some(view))
            }
            Source::Disk(directory) => {
                let directory = directory.clone();
                blocking(move || Ok(directory.recorded_output(&read))).await
            }
        }
    }

    /// Converts the keeper's answer to events.
    async fn take(&mut self, view: OutputView) -> Result<(), ServiceError> {
        if view.phase >= RunPhase::Running && self.cursor.phase == RunPhase::Queued {
            self.ready.push_back(Event::Started);
        }
        // Nothing more will come that could complete a character.
        let is_last = view.phase >= RunPhase::Exited;
        let is_dry = view.stdout.is_empty() && view.stderr.is_empty();
        let flush = is_last && is_dry;
        let [out, err] = &mut self.halves;
        out.pass(view.stdout_next - view.stdout.len() as u64, self.cursor.stdout);
        if let Some(written) = out.whole(view.stdout, flush) {
            self.ready.push_back(Event::Stdout(written));
        }
        err.pass(view.stderr_next - view.stderr.len() as u64, self.cursor.stderr);
        if let Some(written) = err.whole(view.stderr, flush) {
            self.ready.push_back(Event::Stderr(written));
        }
        if is_last && is_dry {
            if self.cursor.phase < RunPhase::Exited {
                let done = self.result().await?;
                self.ready.push_back(Event::Exited(done));
            }
            if view.phase == RunPhase::Closed {
                self.ready.push_back(Event::Closed);
            }
        }
        Ok(())
    }

    async fn result(&mut self) -> Result<Box<Completed>, ServiceError> {
        let (run, max_output) = (self.run, self.max_output);
        match &mut self.source {
            Source::Keeper(reached) => {
                let request =
                    Request::Result { run, max_output, patience_ms: None, until_input: false };
                let Answer::Completed(done) = reached.call(request).await? else {
                    return Err(ServiceError::unexpected());
                };
                self.metrics.ended(&reached.place.id, &done);
                Ok(done)
            }
            Source::Disk(directory) => {
                let directory = directory.clone();
                let done = blocking(move || Ok(directory.recorded_run(run, max_output))).await?;
                done.map(Box::new).ok_or_else(ServiceError::unexpected)
            }
        }
    }

    fn advance(&mut self, event: &Event) -> Cursor {
        self.cursor.seq += 1;
        match event {
            Event::Started => self.cursor.phase = RunPhase::Running,
            Event::Stdout(written) => self.cursor.stdout += written.length(),
            Event::Stderr(written) => self.cursor.stderr += written.length(),
            Event::Exited(_) => self.cursor.phase = RunPhase::Exited,
            Event::Closed => {
                self.cursor.phase = RunPhase::Closed;
                self.is_over = true;
            }
        }
        self.cursor
    }
}

impl PartialText {
    fn length(&self) -> u64 {
        self.skipped + self.bytes.len() as u64
    }

    /// Notes that the next bytes begin at `next`, while the reader has everything up to
    /// `told`. If bytes in between are not kept, the incomplete character before them is dropped.
    fn pass(&mut self, next: u64, told: u64) {
        let missing = next.saturating_sub(told);
        if missing > self.length() {
            *self = Self { bytes: Vec::new(), skipped: missing };
        }
    }

    /// Returns the part that can be sent now: up to its last whole character.
    fn whole(&mut self, new: Vec<u8>, flush: bool) -> Option<Written> {
        let mut bytes = std::mem::take(&mut self.bytes);
        bytes.extend(new);
        if !flush {
            self.bytes = bytes.split_off(whole_end(&bytes));
        }
        if bytes.is_empty() {
            return None;
        }
        Some(Written { bytes, skipped: std::mem::take(&mut self.skipped) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Ids are numbers of 19 digits at most, as the description says.
    fn number() -> impl Strategy<Value = u64> {
        0..10_000_000_000_000_000_000_u64
    }

    proptest! {
        #![proptest_config(sessile_testkit::cases(256))]
        #[test]
        fn a_cursor_survives_its_text(
            seq in number(),
            stdout in number(),
            stderr in number(),
            phase in 0..4,
        ) {
            let phases = [RunPhase::Queued, RunPhase::Running, RunPhase::Exited, RunPhase::Closed];
            let cursor = Cursor { seq, stdout, stderr, phase: phases[phase as usize] };
            prop_assert_eq!(cursor.to_string().parse::<Cursor>().unwrap(), cursor);
        }

        #[test]
        fn no_text_is_taken_for_a_cursor_by_mistake(text in "\\PC{0,20}") {
            if let Ok(cursor) = text.parse::<Cursor>() {
                prop_assert_eq!(cursor.to_string().parse::<Cursor>().unwrap(), cursor);
            }
        }

        #[test]
        fn text_is_never_split_within_a_character(text in "\\PC{0,60}", cuts in prop::collection::vec(1usize..5, 1..40)) {
            let mut half = PartialText::default();
            let mut seen = String::new();
            let mut rest = text.as_bytes();
            let mut sizes = cuts.iter().cycle();
            while !rest.is_empty() {
                let (piece, after) = rest.split_at((*sizes.next().unwrap()).min(rest.len()));
                rest = after;
                if let Some(written) = half.whole(piece.to_vec(), false) {
                    seen.push_str(std::str::from_utf8(&written.bytes).unwrap());
                }
            }
            prop_assert!(half.whole(Vec::new(), true).is_none());
            prop_assert_eq!(seen, text);
        }
    }
}
