//! The open stdin of an interactive run: a FIFO named `i`, which is fed as fast as it is
//! read.
//!
//! A FIFO differs from a pipe in two ways: opening it for reading blocks until it is open
//! for writing, and its contents are lost when nothing has it open. So, until the end of
//! the input, the keeper holds it open both ways. After that it is held open for reading
//! only: readers see the end, and unread data stays. A process that opens it only then
//! (for example through /dev/stdin, or a kernel that was slower than the input) would
//! wait for a writer for ever, and no event reports it. So a writer opens it for an
//! instant now and then, as long as the run is going.

use crate::kernels::Question;
use crate::processes::PipeId;
use crate::reactor::{Interest, Reactor};
use crate::scratch::{make_fifo, open_both_ways};
use crate::source::Source;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use sessile_protocol::RunNo;
use sessile_session::Tick;
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;

/// Longest wait of a process that opens stdin after the end of the input.
const LONGEST_PAUSE: Tick = 64;

#[derive(Debug)]
pub(crate) struct Stdin {
    /// Bytes for which the FIFO has no room yet.
    unsent: VecDeque<u8>,
    /// No more input will come.
    is_complete: bool,
    fifo: Fifo,
    run: RunNo,
    /// Whether it waits for room in the FIFO.
    is_full: bool,
    /// The last question to the kernel about the run.
    question: Question,
    inquiry: InputQuestion,
}

/// Whether the kernel has been asked if the run waits for input and has not answered yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum InputQuestion {
    None,
    Asked,
}

#[derive(Debug)]
enum Fifo {
    /// The run has not begun.
    None,
    /// Open both ways.
    Open(OwnedFd),
    /// Open for reading only; a writer opens it after `pause`.
    Ended { fd: OwnedFd, pause: Tick },
}

impl Stdin {
    pub(crate) fn new(run: RunNo, first: Vec<u8>) -> Self {
        Self {
            run,
            unsent: first.into(),
            is_complete: false,
            fifo: Fifo::None,
            is_full: false,
            inquiry: InputQuestion::None,
            question: Question::default(),
        }
    }

    /// Returns the next question to the kernel, unless one is pending.
    pub(crate) fn inquire(&mut self) -> Option<Question> {
        if self.inquiry == InputQuestion::Asked {
            return None;
        }
        self.inquiry = InputQuestion::Asked;
        self.question = self.question.next();
        Some(self.question)
    }

    /// Whether this answers the pending question. A question from before the last input
    /// is no longer pending.
    pub(crate) fn takes_answer(&mut self, question: Question) -> bool {
        let is_open = self.is_asked() && self.question == question;
        if is_open {
            self.inquiry = InputQuestion::None;
        }
        is_open
    }

    pub(crate) fn is_asked(&self) -> bool {
        self.inquiry == InputQuestion::Asked
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Creates the FIFO, with as much in it as it takes.
    pub(crate) fn open(&mut self, path: &Path, reactor: &Reactor<Source>) -> io::Result<()> {
        make_fifo(path)?;
        self.fifo = Fifo::Open(open_both_ways(path)?);
        self.feed(reactor);
        Ok(())
    }

    /// Returns the FIFO, if all input has been read and more may come.
    pub(crate) fn awaited(&self) -> Option<PipeId> {
        let Fifo::Open(fd) = &self.fifo else {
            return None;
        };
        if self.is_complete || self.unread() > 0 {
            return None;
        }
        let stat = rustix::fs::fstat(fd).ok()?;
        Some(PipeId { device: stat.st_dev, inode: stat.st_ino })
    }

    /// Returns the number of bytes given and not read.
    pub(crate) fn unread(&self) -> u64 {
        let inside = match &self.fifo {
            Fifo::None => 0,
            Fifo::Open(fd) | Fifo::Ended { fd, .. } => rustix::io::ioctl_fionread(fd).unwrap_or(0),
        };
        self.unsent.len() as u64 + inside
    }

    pub(crate) fn push(&mut self, bytes: Vec<u8>, is_last: bool) {
        self.inquiry = InputQuestion::None;
        if self.unsent.is_empty() {
            self.unsent = bytes.into();
        } else {
            self.unsent.extend(bytes);
        }
        self.is_complete |= is_last;
    }

    /// Puts as much into the FIFO as it takes.
    pub(crate) fn feed(&mut self, reactor: &Reactor<Source>) {
        let Fifo::Open(fd) = &self.fifo else {
            return;
        };
        while !self.unsent.is_empty() {
            match rustix::io::write(fd, self.unsent.as_slices().0) {
                Ok(n) => drop(self.unsent.drain(..n)),
                Err(Errno::INTR) => {}
                Err(_) => break,
            }
        }
        if self.unsent.is_empty() {
            self.unsent = VecDeque::new();
            if std::mem::take(&mut self.is_full) {
                reactor.remove(fd);
            }
        } else if !self.is_full {
            self.is_full = reactor.add(fd, Source::Stdin(self.run), Interest::Write).is_ok();
        }
    }

    /// Drops what was not read, and ends the input.
    pub(crate) fn cut(&mut self, reactor: &Reactor<Source>) {
        self.unsent = VecDeque::new();
        self.is_complete = true;
        self.feed(reactor);
        self.show_end();
    }

    /// Shows the end of the input to readers, once everything is in the FIFO, and
    /// unblocks processes that open it. Returns when to do so again, if needed.
    pub(crate) fn show_end(&mut self) -> Option<Tick> {
        if !self.is_complete || !self.unsent.is_empty() {
            return None;
        }
        match &mut self.fifo {
            Fifo::None => None,
            Fifo::Open(fd) => {
                let fd = reopen(fd, OFlags::RDONLY).ok()?;
                self.fifo = Fifo::Ended { fd, pause: 1 };
                Some(1)
            }
            Fifo::Ended { fd, pause } => {
                drop(reopen(fd, OFlags::WRONLY));
                *pause = (*pause * 2).min(LONGEST_PAUSE);
                Some(*pause)
            }
        }
    }
}

/// Opens the same FIFO in another mode, not by its name, which user code may have
/// removed.
fn reopen(fd: &OwnedFd, how: OFlags) -> rustix::io::Result<OwnedFd> {
    let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
    rustix::fs::open(path, how | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    fn stdin(first: &[u8]) -> (tempfile::TempDir, Reactor<Source>, Stdin) {
        let root = tempfile::tempdir().unwrap();
        let reactor = Reactor::new().unwrap();
        let mut stdin = Stdin::new(RunNo(1), first.to_vec());
        stdin.open(&root.path().join("i"), &reactor).unwrap();
        (root, reactor, stdin)
    }

    #[test]
    fn what_was_given_before_anybody_opened_it_is_not_lost() {
        let (root, _reactor, mut stdin) = stdin(b"early");
        stdin.push(Vec::new(), true);
        assert_eq!((stdin.unread(), stdin.show_end()), (5, Some(1)));
        let path = root.path().join("i");
        let reader = std::thread::spawn(move || std::fs::read_to_string(path).unwrap());
        while !reader.is_finished() {
            stdin.show_end();
            std::thread::yield_now();
        }
        assert_eq!(reader.join().unwrap(), "early");
        assert_eq!(stdin.unread(), 0);
    }

    #[test]
    fn a_reader_sees_the_end_after_the_last_byte() {
        let (root, mut reactor, mut stdin) = stdin(b"");
        let mut reader = std::fs::File::open(root.path().join("i")).unwrap();
        let sent: Vec<u8> = (0..300_000_u32).map(|i| i as u8).collect();
        stdin.push(sent.clone(), true);
        let reads = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            reader.read_to_end(&mut bytes).unwrap();
            bytes
        });
        let mut news = Vec::new();
        while stdin.show_end().is_none() {
            stdin.feed(&reactor);
            if stdin.is_full {
                reactor.wait(Some(10), None, &mut news).unwrap();
            }
        }
        assert_eq!(reads.join().unwrap(), sent);
    }
}
