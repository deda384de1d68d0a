//! Moves the output of runs from their pipes into their spools.
//!
//! Each pipe has its turn and then waits for the others. If something still holds the
//! pipe of a run that has ended, the run keeps that pipe and the kernel gets a new one.

use super::deadlines::{Deadline, Deadlines};
use super::live::{Kernels, Live};
use crate::reactor::Reactor;
use crate::runs::{Run, Runs, ticks};
use crate::source::{BackgroundPipeId, Pipe, Source};
use crate::streams::{CHUNK, Drained, Stream};
use sessile_protocol::{Language, RunNo};
use sessile_session::Tick;
use sessile_store::StreamName;
use std::collections::BTreeMap;
use std::time::Instant;

/// How much one stream may deliver before others have their turn.
pub(super) const TURN: usize = 8 * CHUNK;

/// The same for a stream that wrote more than is kept. Short turns with short pauses disturb
/// the runs of other sessions less than long ones at the same rate.
const EXCESS_TURN: usize = TURN / 2;

/// Minimum pause between two such turns.
const EXCESS_PAUSE: Tick = 1;

/// One millisecond of pause for this many excess bytes, up to the longest pause: 250 MB/s
/// for the first half gigabyte, 50 MB/s after a gigabyte and a quarter.
const EXCESS_PACE: u64 = 256 << 20;
const LONGEST_EXCESS_PAUSE: Tick = 5;

#[derive(Debug)]
pub(super) struct Output {
    /// Pipes of ended runs, held open by processes that they left behind.
    background: BTreeMap<BackgroundPipeId, BackgroundPipe>,
    last_background: u64,
    /// Pipes with more output than one turn takes.
    again: Vec<Source>,
    /// Pipes whose excess output is thrown away, until their next turn.
    excess: Vec<Pipe>,
    pub(super) buffer: Vec<u8>,
}

#[derive(Debug)]
pub(super) struct BackgroundPipe {
    pub(super) run: RunNo,
    pub(super) stream: Stream,
}

/// Shared parts that reading needs.
pub(super) struct Context<'a> {
    pub(super) reactor: &'a Reactor<Source>,
    pub(super) deadlines: &'a mut Deadlines,
    pub(super) clock: Instant,
}

impl Default for Output {
    fn default() -> Self {
        Self {
            background: BTreeMap::new(),
            last_background: 0,
            again: Vec::new(),
            excess: Vec::new(),
            buffer: vec![0; CHUNK],
        }
    }
}

impl Output {
    /// Whether a pipe is to be read further at once.
    pub(super) fn has_more(&self) -> bool {
        !self.again.is_empty()
    }

    /// Adds the pipes that are to be read further.
    pub(super) fn take_again(&mut self, news: &mut Vec<Source>) {
        news.append(&mut self.again);
    }

    pub(super) fn read_again(&mut self, source: Source) {
        self.again.push(source);
    }

    /// Returns the pipes that background processes hold.
    pub(super) fn background_pipes(&self) -> impl Iterator<Item = &BackgroundPipe> {
        self.background.values()
    }

    /// Watches the pipes of runs that take longer than a moment.
    pub(super) fn watch(&mut self, kernels: &mut Kernels, reactor: &Reactor<Source>) {
        let going = kernels.live.iter_mut().filter(|(_, live)| live.current.is_some());
        for (language, live) in going {
            for stream in [&mut live.stdout, &mut live.stderr] {
                let pipe = Pipe::Current(*language, stream.name);
                if stream.watch(pipe, reactor).is_ok() {
                    self.again.push(Source::Pipe(pipe));
                }
            }
        }
    }

    /// Takes what the current run of a kernel has written. Returns the run, if there may
    /// be news of it.
    pub(super) fn take_current(
        &mut self,
        (language, name): (Language, StreamName),
        kernels: &mut Kernels,
        runs: &mut Runs,
        context: &mut Context<'_>,
    ) -> Option<RunNo> {
        let live = kernels.live.get_mut(&language)?;
        let current = live.current;
        let stream = live.stream_mut(name);
        let run = current.and_then(|number| runs.get_mut(&number));
        let Some(run) = run else {
            // Between two runs only the kernel itself can write here.
            if stream.drain(&mut self.buffer, TURN, |_| {}) == Drained::More {
                self.again.push(Source::Pipe(Pipe::Current(language, name)));
            }
            return None;
        };
        let before = run.written();
        let turn = turn(run.spool(name).excess());
        let state = stream.drain(&mut self.buffer, turn, |bytes| run.take(name, bytes));
        run.note_sign(before, context.clock);
        if state == Drained::More {
            let pipe = Pipe::Current(language, name);
            let beyond = run.spool(name).excess();
            read_on(&mut self.again, &mut self.excess, pipe, (stream, beyond), context);
        }
        current
    }

    /// Takes output of an ended run, written by a process that it left behind. Returns
    /// the run, if there is news of it.
    pub(super) fn take_background(
        &mut self,
        id: BackgroundPipeId,
        runs: &mut Runs,
        context: &mut Context<'_>,
    ) -> Option<RunNo> {
        let BackgroundPipe { run: number, stream } = self.background.get_mut(&id)?;
        let (number, name) = (*number, stream.name);
        let mut run = runs.get_mut(&number);
        let mut has_news = false;
        let turn = turn(run.as_mut().map_or(u64::MAX, |run| run.spool(name).excess()));
        let state = stream.drain(&mut self.buffer, turn, |bytes| {
            if let Some(run) = &mut run {
                run.take(name, bytes);
                has_news = true;
            }
        });
        match state {
            Drained::More => {
                let beyond = run.map_or(u64::MAX, |run| run.spool(name).excess());
                let stream = (&*stream, beyond);
                read_on(&mut self.again, &mut self.excess, Pipe::Background(id), stream, context);
            }
            Drained::Empty => {}
            Drained::Closed => {
                if let Some(run) = run {
                    run.open_streams -= 1;
                }
                self.background.remove(&id);
                has_news = true;
            }
        }
        has_news.then_some(number)
    }

    /// Gives the pipes whose pause is over their next turn.
    pub(super) fn resume(&mut self, kernels: &Kernels, reactor: &Reactor<Source>) {
        for pipe in std::mem::take(&mut self.excess) {
            let stream = match pipe {
                Pipe::Current(language, name) => {
                    kernels.live.get(&language).map(|live| live.stream(name))
                }
                Pipe::Background(id) => self.background.get(&id).map(|pipe| &pipe.stream),
            };
            if let Some(stream) = stream {
                stream.resume(reactor);
            }
        }
    }

    /// Takes all that a run has written up to now.
    pub(super) fn catch_up(
        &mut self,
        live: &mut Live,
        (number, run): (RunNo, &mut Run),
        context: &Context<'_>,
    ) {
        let before = run.written();
        for stream in [&mut live.stdout, &mut live.stderr] {
            take_all(stream, &mut self.buffer, run);
        }
        if let Some(terminal) = live.terminal.as_mut().filter(|terminal| terminal.run == number) {
            let spool = |bytes: &[u8]| run.stdout.push(bytes);
            terminal.drain(&mut self.buffer, TURN, context.reactor, spool);
        }
        run.note_sign(before, context.clock);
    }

    /// Takes all that an ended run has written. If a process still holds its pipes, the
    /// run keeps them.
    pub(super) fn finish(
        &mut self,
        live: &mut Live,
        (number, run): (RunNo, &mut Run),
        reactor: &Reactor<Source>,
    ) {
        for stream in [&mut live.stdout, &mut live.stderr] {
            if take_all(stream, &mut self.buffer, run) == Drained::Closed {
                run.open_streams -= 1;
                stream.unwatch(reactor);
                // If that fails, it is tried again before the next run.
                let _ = stream.ensure_name(&live.directory);
                continue;
            }
            let id = BackgroundPipeId(self.last_background + 1);
            let watched = stream.watch(Pipe::Background(id), reactor);
            match (stream.successor(&live.directory), watched) {
                (Ok(fresh), Ok(())) => {
                    self.last_background += 1;
                    let stream = std::mem::replace(stream, fresh);
                    self.background.insert(id, BackgroundPipe { run: number, stream });
                    // Data that came after the last reported edge is not reported again.
                    self.again.push(Source::Pipe(Pipe::Background(id)));
                }
                // Without a new pipe the old one stays in use: mixed output is better
                // than lost output.
                (_, _) => run.open_streams -= 1,
            }
        }
    }

    /// Closes the pipes of earlier runs after reading what is in them: no process is left
    /// that could write more. Returns the runs that had them.
    pub(super) fn close_background(&mut self, runs: &mut Runs) -> Vec<RunNo> {
        let mut closed = Vec::new();
        for (_, mut pipe) in std::mem::take(&mut self.background) {
            let Some(run) = runs.get_mut(&pipe.run) else {
                continue;
            };
            take_all(&mut pipe.stream, &mut self.buffer, run);
            run.open_streams -= 1;
            closed.push(pipe.run);
        }
        closed
    }

    pub(super) fn forget(&mut self) {
        self.background.clear();
    }
}

/// Schedules the next read of a stream that has more: after the other streams, or, if the
/// stream is beyond what is kept, after a pause. A program that writes without end then
/// has to wait, and leaves the machine to other sessions.
fn read_on(
    again: &mut Vec<Source>,
    excess: &mut Vec<Pipe>,
    pipe: Pipe,
    (stream, beyond): (&Stream, u64),
    context: &mut Context<'_>,
) {
    if beyond == 0 {
        return again.push(Source::Pipe(pipe));
    }
    stream.pause(context.reactor);
    let due = ticks(context.clock) + excess_pause(beyond);
    context.deadlines.set_earlier(Deadline::Excess, due);
    excess.push(pipe);
}

/// Returns how much a stream that wrote this much beyond what is kept may deliver at once.
fn turn(beyond: u64) -> usize {
    if beyond == 0 { TURN } else { EXCESS_TURN }
}

/// Returns the pause of a stream that wrote this much beyond what is kept. Large output
/// is read quickly; endless output slows down.
fn excess_pause(beyond: u64) -> Tick {
    (beyond / EXCESS_PACE).clamp(EXCESS_PAUSE, LONGEST_EXCESS_PAUSE)
}

/// Takes everything that is in a pipe at this moment.
fn take_all(stream: &mut Stream, buffer: &mut [u8], run: &mut Run) -> Drained {
    let name: StreamName = stream.name;
    // Most runs have left little or nothing, and no process that could write more.
    match stream.drain(buffer, 1, |bytes| run.take(name, bytes)) {
        Drained::More => {}
        state @ (Drained::Closed | Drained::Empty) => return state,
    }
    let waiting = stream.waiting();
    // One byte more than there is: this shows whether the pipe is closed, without
    // following a program that writes without end.
    stream.drain(buffer, waiting + 1, |bytes| run.take(name, bytes))
}

#[cfg(test)]
mod tests;
