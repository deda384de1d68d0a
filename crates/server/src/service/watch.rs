//! An awaited run, with the head and the tail of its output meanwhile.

use super::{Caller, Service, ServiceError};
use sessile_gateway::answer::whole_end;
use sessile_protocol::{Queued, ReadOutput, RunNo, SessionId, StreamView};

/// How many bytes of the head, and of the tail, are kept of each stream: together as much
/// as an answer shows.
const KEPT: usize = 512 << 10;

/// How many bytes of each stream are requested at once.
const CHUNK: u64 = 256 << 10;

/// How many chunks are read in one go: a run that writes faster than we read must not
/// keep us here.
const CHUNKS: usize = 64;

#[derive(Debug)]
pub(crate) struct Watch {
    pub(crate) session: SessionId,
    pub(crate) run: RunNo,
    stdout: Written,
    stderr: Written,
    /// The stream that was written to last.
    latest: Latest,
    /// It is blocked in a read of its stdin, and has read all of it.
    pub(crate) waiting_for_input: bool,
    /// It waits for its turn.
    pub(crate) queued: Option<Queued>,
}

#[derive(Clone, Copy, Debug)]
enum Latest {
    Stdout,
    Stderr,
}

/// The kept part of a stream.
#[derive(Debug, Default)]
struct Written {
    head: Vec<u8>,
    tail: Vec<u8>,
    /// The offset: all bytes that were read, kept or not.
    total: u64,
    /// The offset where reading began.
    first: u64,
}

impl Written {
    fn add(&mut self, bytes: &[u8], next: u64) {
        self.total = next;
        let room = (KEPT - self.head.len()).min(bytes.len());
        // Bytes after a gap do not belong to the head.
        let room = if self.tail.is_empty() { room } else { 0 };
        self.head.extend(&bytes[..room]);
        self.tail.extend(&bytes[room..]);
        self.tail.drain(..self.tail.len().saturating_sub(KEPT));
    }

    /// Returns it up to its last whole character: the rest of that may be on its way.
    fn view(&self) -> StreamView {
        let (mut head, mut tail) = (self.head.clone(), self.tail.clone());
        let end = if tail.is_empty() { &mut head } else { &mut tail };
        let half = end.split_off(whole_end(end));
        let total = self.total - self.first - half.len() as u64;
        StreamView { head, tail, total, stored: total }
    }

    fn end(&self) -> &[u8] {
        if self.tail.is_empty() { &self.head } else { &self.tail }
    }
}

impl Watch {
    pub(crate) fn new(session: SessionId, run: RunNo) -> Self {
        Self::since(session, run, [0, 0])
    }

    /// Returns a watch that sees only output after these offsets of stdout and stderr.
    pub(crate) fn since(session: SessionId, run: RunNo, cursors: [u64; 2]) -> Self {
        let [stdout, stderr] =
            cursors.map(|first| Written { total: first, first, ..Written::default() });
        Self {
            session,
            run,
            stdout,
            stderr,
            latest: Latest::Stdout,
            waiting_for_input: false,
            queued: None,
        }
    }

    /// Returns the offsets where reading began.
    pub(crate) fn first(&self) -> [u64; 2] {
        [self.stdout.first, self.stderr.first]
    }

    /// Returns the output on stdout and stderr since then.
    pub(crate) fn views(&self) -> (StreamView, StreamView) {
        (self.stdout.view(), self.stderr.view())
    }

    /// Returns the end of the stream that was written to last.
    pub(crate) fn end(&self) -> &[u8] {
        let end = match self.latest {
            Latest::Stdout => self.stdout.end(),
            Latest::Stderr => self.stderr.end(),
        };
        &end[end.len().saturating_sub(4096)..]
    }
}

impl Service {
    /// Reads the run's new output.
    pub(crate) async fn catch_up(
        &self,
        caller: &Caller,
        watch: &mut Watch,
    ) -> Result<(), ServiceError> {
        for _ in 0..CHUNKS {
            let read = ReadOutput {
                stdout_from: watch.stdout.total,
                stderr_from: watch.stderr.total,
                max: CHUNK,
                wait: false,
                ..ReadOutput::waiting(watch.run)
            };
            let view = self.output(caller, &watch.session, read).await?;
            watch.waiting_for_input = view.waiting_for_input;
            watch.queued = view.queued.map(|queued| *queued);
            if !view.stdout.is_empty() {
                watch.latest = Latest::Stdout;
                watch.stdout.add(&view.stdout, view.stdout_next);
            }
            if !view.stderr.is_empty() {
                watch.latest = Latest::Stderr;
                watch.stderr.add(&view.stderr, view.stderr_next);
            }
            if view.stdout.is_empty() && view.stderr.is_empty() {
                break;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::sync::LazyLock;

    /// More than any case writes: made once, because that takes longer than the cases do.
    static OUTPUT: LazyLock<Vec<u8>> =
        LazyLock::new(|| (0..=100).collect::<Vec<u8>>().repeat(12 * 300_000 / 101));

    proptest! {
        #![proptest_config(sessile_testkit::cases(256))]
        #[test]
        fn the_head_and_the_tail_are_kept(sizes in prop::collection::vec(1usize..300_000, 1..12)) {
            let all = &OUTPUT[..sizes.iter().sum()];
            let (mut written, mut at) = (Written::default(), 0);
            for size in sizes {
                at += size;
                written.add(&all[at - size..at], at as u64);
            }
            let view = written.view();
            prop_assert!(all.starts_with(&view.head) && all.ends_with(&view.tail));
            prop_assert_eq!(view.total, all.len() as u64);
            let kept = view.head.len() + view.tail.len();
            prop_assert_eq!(kept, all.len().min(2 * KEPT));
        }
    }
}
