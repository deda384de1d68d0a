//! Ctrl-C while a task is followed: the task belongs to the server, and goes on. A
//! message says how to return to it, and how to stop it.

use crate::interrupts;
use rustix::event::{PollFd, PollFlags, poll};
use std::os::fd::BorrowedFd;
use std::sync::{Mutex, Once, PoisonError};

/// The exit code of a shell after an interrupt.
const INTERRUPTED: i32 = 130;

/// The agent whose task is followed.
static FOLLOWED: Mutex<Option<String>> = Mutex::new(None);
static WATCHING: Once = Once::new();

/// Marks the time in which a task is followed.
pub(super) struct Following;

impl Following {
    pub(super) fn of(agent: &str) -> anyhow::Result<Self> {
        let signals = interrupts::watch()?;
        // A separate thread, because a question at the terminal blocks.
        WATCHING.call_once(|| drop(std::thread::spawn(move || leave(signals))));
        set(Some(agent.to_owned()));
        Ok(Self)
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        set(None);
    }
}

fn set(agent: Option<String>) {
    *FOLLOWED.lock().unwrap_or_else(PoisonError::into_inner) = agent;
}

fn leave(signals: BorrowedFd<'static>) {
    let mut ready = [PollFd::new(&signals, PollFlags::IN)];
    while !matches!(poll(&mut ready, None), Ok(1)) {}
    if let Some(agent) = &*FOLLOWED.lock().unwrap_or_else(PoisonError::into_inner) {
        eprintln!(
            "\nthe task goes on; come back to it with: sessile agent resume {agent}; stop it with: \
             sessile agent cancel {agent}"
        );
    }
    std::process::exit(INTERRUPTED);
}
