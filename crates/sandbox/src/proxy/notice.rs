//! What the keeper is told of refusals: one message each, and not more than it
//! can take note of.

use rustix::net::{RecvFlags, SendFlags};
use serde::{Deserialize, Serialize};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Somebody was not let out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    /// The process that asked, by its number outside, if it was found.
    pub pid: Option<i32>,
    /// Its program's name.
    pub program: Option<String>,
    /// Where it wanted to go.
    pub target: String,
    pub why: String,
    /// So many before it were not told of.
    pub untold: u32,
}

/// Messages in a time: a program that tries without end fills no log.
const TOLD: u32 = 50;
const TIME: Duration = Duration::from_secs(1);

/// The longest message.
const LONGEST: usize = 4 << 10;

#[derive(Debug)]
pub(super) struct NoticeSender {
    socket: OwnedFd,
    window: Mutex<Window>,
}

#[derive(Debug)]
struct Window {
    begun: Instant,
    told: u32,
    untold: u32,
}

impl NoticeSender {
    pub(super) fn new(socket: OwnedFd) -> Self {
        let window = Window { begun: Instant::now(), told: 0, untold: 0 };
        Self { socket, window: Mutex::new(window) }
    }

    /// Tells it, unless there were too many of late. Who asked is looked for only
    /// then.
    pub(super) fn send(&self, notice: impl FnOnce() -> Notice) {
        let Some(untold) = self.turn() else { return };
        let notice = Notice { untold, ..notice() };
        let Ok(text) = serde_json::to_vec(&notice) else { return };
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        if text.len() > LONGEST || rustix::net::send(&self.socket, &text, flags).is_err() {
            self.missed(untold + 1);
        }
    }

    /// Whether one may be told of: with how many were not.
    fn turn(&self) -> Option<u32> {
        let mut window = self.window.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if window.begun.elapsed() > TIME {
            (window.begun, window.told) = (Instant::now(), 0);
        }
        if window.told >= TOLD {
            window.untold = window.untold.saturating_add(1);
            return None;
        }
        window.told += 1;
        Some(std::mem::take(&mut window.untold))
    }

    fn missed(&self, count: u32) {
        let mut window = self.window.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        window.untold = window.untold.saturating_add(count);
    }
}

/// What has been told since the last look.
pub(super) fn take(socket: impl AsFd) -> Vec<Notice> {
    let mut notices = Vec::new();
    let mut buffer = vec![0; LONGEST];
    while let Ok((read @ 1.., _)) =
        rustix::net::recv(&socket, buffer.as_mut_slice(), RecvFlags::DONTWAIT)
    {
        notices.extend(serde_json::from_slice(&buffer[..read]).ok());
    }
    notices
}
