//! Waiting for many descriptors at once.

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::time::Timespec;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Instant;

const DAY_MS: u64 = 24 * 3600 * 1000;

/// Names a registered descriptor; never used twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Token(u64);

pub(crate) struct Reactor {
    epoll: OwnedFd,
    last: u64,
    events: Vec<epoll::Event>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Interest {
    /// Told as long as there is something to read.
    Read,
    ReadWrite,
    /// Told as long as there is room to write.
    Write,
    /// Told once for each change: for FIFOs, which would otherwise report
    /// "no writer" without end between two runs.
    Edge,
    /// Told of the end alone, once.
    End,
}

impl Interest {
    fn flags(self) -> EventFlags {
        match self {
            Self::Read => EventFlags::IN,
            Self::Write => EventFlags::OUT,
            Self::ReadWrite => EventFlags::IN | EventFlags::OUT,
            Self::Edge => EventFlags::IN | EventFlags::ET,
            Self::End => EventFlags::ET,
        }
    }
}

impl AsFd for Reactor {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

impl Reactor {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            epoll: epoll::create(CreateFlags::CLOEXEC)?,
            last: 0,
            events: Vec::with_capacity(16),
        })
    }

    pub(crate) fn add(&mut self, fd: impl AsFd, interest: Interest) -> io::Result<Token> {
        self.last += 1;
        epoll::add(&self.epoll, fd, EventData::new_u64(self.last), interest.flags())?;
        Ok(Token(self.last))
    }

    pub(crate) fn change(&self, fd: impl AsFd, token: Token, interest: Interest) {
        let _ = epoll::modify(&self.epoll, fd, EventData::new_u64(token.0), interest.flags());
    }

    pub(crate) fn remove(&self, fd: impl AsFd) {
        let _ = epoll::delete(&self.epoll, fd);
    }

    /// Waits, at most `timeout_ms`, and gives the tokens that have news. Looks
    /// out for news without sleeping up to an instant, if one is given.
    pub(crate) fn wait(
        &mut self,
        timeout_ms: Option<u64>,
        awake_until: Option<Instant>,
        tokens: &mut Vec<Token>,
    ) -> io::Result<()> {
        if let Some(until) = awake_until.filter(|_| timeout_ms != Some(0)) {
            while Instant::now() < until {
                if self.poll(Some(0), tokens)? {
                    return Ok(());
                }
                // Whoever is to have news may be waiting for this very core.
                rustix::thread::sched_yield();
            }
        }
        self.poll(timeout_ms, tokens).map(drop)
    }

    fn poll(&mut self, timeout_ms: Option<u64>, tokens: &mut Vec<Token>) -> io::Result<bool> {
        // Longer times need a system call that older kernels do not have.
        let timeout = timeout_ms.map(|ms| ms.min(DAY_MS)).map(|ms| Timespec {
            tv_sec: i64::try_from(ms / 1000).unwrap_or(i64::MAX),
            tv_nsec: (ms % 1000) as i64 * 1_000_000,
        });
        self.events.clear();
        match epoll::wait(
            &self.epoll,
            rustix::buffer::spare_capacity(&mut self.events),
            timeout.as_ref(),
        ) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        tokens.extend(self.events.iter().map(|event| Token(event.data.u64())));
        Ok(!self.events.is_empty())
    }
}
