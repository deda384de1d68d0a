//! Notices of refusals for the keeper: one message each, limited in rate.

use rustix::net::{RecvFlags, SendFlags};
use serde::{Deserialize, Serialize};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// A refused connection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notice {
    /// The process that asked, by its pid outside, if it was found.
    pub pid: Option<i32>,
    /// The name of its program.
    pub program: Option<String>,
    /// The requested target.
    pub target: String,
    pub why: String,
    /// How many before it were not reported.
    pub untold: u32,
}

/// Limit of messages per time: a program that retries without end does not fill the log.
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

    /// Sends a notice, unless there were too many recently. The process is searched only then.
    pub(super) fn send(&self, notice: impl FnOnce() -> Notice) {
        let Some(untold) = self.turn() else { return };
        let notice = Notice { untold, ..notice() };
        let Ok(text) = serde_json::to_vec(&notice) else { return };
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        if text.len() > LONGEST || rustix::net::send(&self.socket, &text, flags).is_err() {
            self.missed(untold + 1);
        }
    }

    /// Returns the number of unreported refusals if a notice may be sent now.
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

/// Returns the notices since the last call.
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
