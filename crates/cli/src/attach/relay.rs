//! Connects the user's terminal with that of a run: keys go in, output comes out, and
//! size changes are passed on.
//!
//! The run goes on if the client leaves or is killed.

use super::console::{self, Mode};
use crate::output;
use anyhow::bail;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;
use sessile_client::{Client, ClientError};
use sessile_protocol::{
    Answer, Code, Completed, Failure, ReadOutput, ReadScreen, Reply, Request, RunNo, RunPhase,
    TerminalSize,
};
use std::collections::VecDeque;
use std::io;

/// How soon a new size of our terminal is noticed, and rejected input is tried again.
const LOOK_AFTER_MS: i64 = 100;

/// How much input is read and sent at once.
const CHUNK: usize = 64 << 10;

/// Switches off what a program may have left on when it is left or killed: application
/// keys, mouse and paste reports, a hidden cursor.
const RESET: &[u8] = b"\x1b[0m\x1b[?1l\x1b>\x1b[?1000;1002;1003;1004;1006;2004l\x1b[?25h";

/// How the relay of a run ended.
#[derive(Debug)]
pub(super) enum RelayEnd {
    /// `ahead` was typed for what comes next.
    Finished {
        done: Box<Completed>,
        ahead: Vec<u8>,
    },
    /// The run never began.
    Cancelled(Failure),
    Detached,
}

/// The subject of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallKind {
    Output,
    Input,
    Result,
    Other,
}

pub(super) struct Relay<'a> {
    client: &'a mut Client,
    run: RunNo,
    detach_key: u8,
    read: ReadOutput,
    calls: Vec<(u64, CallKind)>,
    unsent: VecDeque<u8>,
    /// How many bytes of it are on their way.
    sent: usize,
    size: TerminalSize,
    last: Option<u8>,
    /// All output is shown.
    is_shown: bool,
    done: Option<Box<Completed>>,
}

impl<'a> Relay<'a> {
    pub(super) fn new(client: &'a mut Client, run: RunNo, detach_key: u8) -> Self {
        let read = ReadOutput { known: Some(RunPhase::Queued), ..ReadOutput::waiting(run) };
        Self {
            client,
            run,
            detach_key,
            read,
            calls: Vec::new(),
            unsent: VecDeque::new(),
            sent: 0,
            size: console::size(),
            last: None,
            is_shown: false,
            done: None,
        }
    }

    /// Starts at this offset of stdout.
    pub(super) fn from(mut self, stdout: u64) -> Self {
        self.read.stdout_from = stdout;
        self
    }

    pub(super) fn run(mut self) -> anyhow::Result<RelayEnd> {
        let raw = Mode::raw()?;
        let parting = self.pass_on();
        let mut rest = RESET.to_vec();
        if self.is_alternate() {
            rest.extend(b"\x1b[?1049l");
        } else if self.last.is_some_and(|byte| byte != b'\n') {
            rest.extend(b"\r\n");
        }
        output::all(&mut io::stdout().lock(), &rest)?;
        drop(raw);
        parting
    }

    /// Whether the program is still on the alternate screen.
    fn is_alternate(&mut self) -> bool {
        let read = ReadScreen { run: self.run, known: None, patience_ms: None };
        match self.client.call(Request::Screen(read)) {
            Ok(Answer::Screen(view)) => view.screen.is_alternate,
            Ok(_) | Err(_) => false,
        }
    }

    fn pass_on(&mut self) -> anyhow::Result<RelayEnd> {
        let (run, max_output) = (self.run, 0);
        // Requested at the start: unread input is only known at the very end.
        let result = Request::Result { run, max_output, patience_ms: None, until_input: false };
        self.ask(result, CallKind::Result)?;
        self.ask(Request::Output(self.read), CallKind::Output)?;
        let mut keys = vec![0; CHUNK];
        loop {
            while let Some(reply) = self.client.next_reply()? {
                if let Some(parting) = self.take(reply)? {
                    return Ok(parting);
                }
            }
            let stdin = io::stdin();
            let mut fds =
                [PollFd::new(&stdin, PollFlags::IN), PollFd::new(&*self.client, PollFlags::IN)];
            let wait = Timespec { tv_sec: 0, tv_nsec: LOOK_AFTER_MS * 1_000_000 };
            match rustix::event::poll(&mut fds, Some(&wait)) {
                Ok(_) => {}
                Err(Errno::INTR) => continue,
                Err(error) => return Err(io::Error::from(error).into()),
            }
            let (has_keys, has_reply) =
                (!fds[0].revents().is_empty(), !fds[1].revents().is_empty());
            if has_keys {
                match rustix::io::read(&stdin, &mut keys) {
                    // The user is gone; the run goes on.
                    Ok(0) => return Ok(RelayEnd::Detached),
                    Ok(n) => {
                        if self.press(&keys[..n])? {
                            return Ok(RelayEnd::Detached);
                        }
                    }
                    Err(Errno::INTR | Errno::AGAIN) => {}
                    Err(_) => return Ok(RelayEnd::Detached),
                }
            }
            if has_reply {
                self.client.take_in()?;
            }
            self.send_keys()?;
            self.pass_on_size()?;
        }
    }

    fn ask(&mut self, request: Request, asked: CallKind) -> anyhow::Result<()> {
        let call = self.client.ask(request)?;
        self.calls.push((call, asked));
        Ok(())
    }

    /// Handles keys; returns whether the user wants to leave.
    fn press(&mut self, keys: &[u8]) -> anyhow::Result<bool> {
        let end = keys.iter().position(|key| *key == self.detach_key);
        let keys = &keys[..end.unwrap_or(keys.len())];
        // A run that has not begun has no terminal to turn Ctrl-C into a signal.
        if self.read.known == Some(RunPhase::Queued) && keys.contains(&3) {
            self.ask(Request::Interrupt { run: Some(self.run), call: None }, CallKind::Other)?;
        } else {
            self.unsent.extend(keys);
        }
        self.send_keys()?;
        Ok(end.is_some())
    }

    fn send_keys(&mut self) -> anyhow::Result<()> {
        if self.sent > 0 || self.unsent.is_empty() {
            return Ok(());
        }
        let bytes: Vec<u8> = self.unsent.iter().copied().take(CHUNK).collect();
        self.sent = bytes.len();
        self.ask(Request::Input { run: self.run, bytes, eof: false }, CallKind::Input)
    }

    fn pass_on_size(&mut self) -> anyhow::Result<()> {
        let size = console::size();
        if size != self.size {
            self.size = size;
            self.ask(Request::Resize { run: self.run, size }, CallKind::Other)?;
        }
        Ok(())
    }

    /// Returns the end, once the result and all output are there.
    fn finished(&mut self) -> Option<RelayEnd> {
        let mut done = self.done.take_if(|_| self.is_shown)?;
        let mut ahead = std::mem::take(&mut done.unread);
        ahead.extend(self.unsent.drain(..));
        Some(RelayEnd::Finished { done, ahead })
    }

    fn take(&mut self, reply: Reply) -> anyhow::Result<Option<RelayEnd>> {
        let Some(at) = self.calls.iter().position(|(call, _)| *call == reply.id) else {
            return Ok(None);
        };
        let (_, asked) = self.calls.remove(at);
        match (asked, reply.outcome) {
            (CallKind::Output, Ok(Answer::Output(view))) => {
                let bytes = view.stdout;
                output::all(&mut io::stdout().lock(), &bytes)?;
                self.last = bytes.last().copied().or(self.last);
                self.read.stdout_from = view.stdout_next;
                self.read.stderr_from = view.stderr_next;
                // At most `Running`, so that the end is still reported as news.
                self.read.known = Some(view.phase.min(RunPhase::Running));
                self.is_shown = view.phase >= RunPhase::Exited && bytes.is_empty();
                if !self.is_shown {
                    self.ask(Request::Output(self.read), CallKind::Output)?;
                }
                Ok(self.finished())
            }
            (CallKind::Input, outcome) => {
                let sent = std::mem::take(&mut self.sent);
                let is_taken = match outcome {
                    Ok(_) => true,
                    // The queue is full, or it comes too late for this run.
                    Err(failure) => !matches!(failure.code, Code::QueueFull | Code::InputClosed),
                };
                if is_taken {
                    self.unsent.drain(..sent);
                }
                Ok(None)
            }
            (CallKind::Result, Ok(Answer::Completed(done))) => {
                self.done = Some(done);
                Ok(self.finished())
            }
            (CallKind::Output | CallKind::Result, Err(failure)) => {
                Ok(Some(RelayEnd::Cancelled(failure)))
            }
            (CallKind::Other, _) => Ok(None),
            (CallKind::Output | CallKind::Result, Ok(_)) => bail!(ClientError::Unexpected),
        }
    }
}
