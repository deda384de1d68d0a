//! Waits for many descriptors at once.

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::time::Timespec;
use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

/// Thresholds for how long a yielded core stays away. It comes back within `ALONE` if no
/// other process wants it. A client that has just been answered, or the kernel itself,
/// keeps it for a moment (`IN_A_MOMENT`); a process that keeps it for longer is
/// unrelated. If an event has come meanwhile, its sender may have had the core, for up to
/// a whole run (`FOR_A_RUN`).
const ALONE: Duration = Duration::from_micros(5);
const IN_A_MOMENT: Duration = Duration::from_micros(60);
const FOR_A_RUN: Duration = Duration::from_micros(250);

const DAY_MS: u64 = 24 * 3600 * 1000;

/// Identifies a watched descriptor, in the bits that the system keeps with it.
pub(crate) trait Key: Copy {
    fn to_bits(self) -> u64;
    fn from_bits(bits: u64) -> Option<Self>;
}

/// How the core was used while polling for events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CoreUse {
    /// Not known: it slept, or an event was there at once.
    Unknown,
    /// No other process wanted this core.
    Undisturbed,
    /// Others want this core.
    Crowded,
}

pub(crate) struct Reactor<K> {
    epoll: OwnedFd,
    events: Vec<epoll::Event>,
    keys: PhantomData<K>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Interest {
    /// Reported as long as there is something to read.
    Read,
    ReadWrite,
    /// Reported as long as there is room to write.
    Write,
    /// Reported once for each change: for FIFOs, which would otherwise report "no writer"
    /// without end between two runs.
    Edge,
    /// Reports only the end, once.
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

impl<K> AsFd for Reactor<K> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

impl<K: Key> Reactor<K> {
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            epoll: epoll::create(CreateFlags::CLOEXEC)?,
            events: Vec::with_capacity(16),
            keys: PhantomData,
        })
    }

    pub(crate) fn add(&self, fd: impl AsFd, key: K, interest: Interest) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, fd, EventData::new_u64(key.to_bits()), interest.flags())?)
    }

    /// Changes the key and the interest of a watched descriptor.
    pub(crate) fn change(&self, fd: impl AsFd, key: K, interest: Interest) {
        let data = EventData::new_u64(key.to_bits());
        let _ = epoll::modify(&self.epoll, fd, data, interest.flags());
    }

    pub(crate) fn remove(&self, fd: impl AsFd) {
        let _ = epoll::delete(&self.epoll, fd);
    }

    /// Waits, at most `timeout_ms`, and returns the keys of descriptors with events.
    /// Polls without sleeping until `awake_until`, if given and no other process wants
    /// this core.
    pub(crate) fn wait(
        &mut self,
        timeout_ms: Option<u64>,
        poll_until: Option<Instant>,
        news: &mut Vec<K>,
    ) -> io::Result<CoreUse> {
        let mut lookout = CoreUse::Unknown;
        if let Some(until) = poll_until.filter(|_| timeout_ms != Some(0)) {
            let mut before = Instant::now();
            let mut lent = Duration::ZERO;
            while before < until {
                if self.poll(Some(0), news)? {
                    return Ok(lookout);
                }
                // The process that is to cause the event may be waiting for this very
                // core.
                rustix::thread::sched_yield();
                let after = Instant::now();
                let away = after.duration_since(before);
                if away > ALONE {
                    if self.poll(Some(0), news)? {
                        let is_crowded = away > FOR_A_RUN;
                        return Ok(if is_crowded { CoreUse::Crowded } else { lookout });
                    }
                    lent += away;
                } else {
                    lookout = CoreUse::Undisturbed;
                }
                if lent > IN_A_MOMENT {
                    lookout = CoreUse::Crowded;
                    break;
                }
                before = after;
            }
        }
        self.poll(timeout_ms, news)?;
        Ok(lookout)
    }

    fn poll(&mut self, timeout_ms: Option<u64>, news: &mut Vec<K>) -> io::Result<bool> {
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
        news.extend(self.events.iter().filter_map(|event| K::from_bits(event.data.u64())));
        Ok(!self.events.is_empty())
    }
}
