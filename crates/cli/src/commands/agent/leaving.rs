//! Ctrl-C while a task is followed. The task is the server's: whoever waits for one leaves
//! it going, and is told how to come back to it, and how to stop it. Whoever chats
//! cancels it, and leaves with the second Ctrl-C.

use crate::interrupts;
use rustix::event::{PollFd, PollFlags, poll};
use std::os::fd::BorrowedFd;
use std::sync::{Mutex, Once, PoisonError};
use tokio::sync::Notify;

/// The exit code of a shell after an interrupt.
const INTERRUPTED: i32 = 130;

/// What Ctrl-C does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Interrupt {
    Leaves,
    Cancels,
}

/// The task that is followed.
struct Followed {
    agent: String,
    interrupt: Interrupt,
}

static FOLLOWED: Mutex<Option<Followed>> = Mutex::new(None);
static WATCHING: Once = Once::new();
static CANCELLED: Notify = Notify::const_new();

/// Marks the time in which a task is followed.
pub(super) struct Following;

impl Following {
    pub(super) fn of(agent: &str, interrupt: Interrupt) -> anyhow::Result<Self> {
        let signals = interrupts::watch()?;
        // A thread of its own, because a question at the terminal blocks.
        WATCHING.call_once(|| drop(std::thread::spawn(move || watch(signals))));
        set(Some(Followed { agent: agent.to_owned(), interrupt }));
        Ok(Self)
    }
}

impl Drop for Following {
    fn drop(&mut self) {
        set(None);
    }
}

fn set(followed: Option<Followed>) {
    *FOLLOWED.lock().unwrap_or_else(PoisonError::into_inner) = followed;
}

/// Waits until the task that is followed is to be cancelled.
pub(super) async fn cancelled() {
    loop {
        CANCELLED.notified().await;
        // That may have been for the task before, in its last moment.
        let followed = FOLLOWED.lock().unwrap_or_else(PoisonError::into_inner);
        if followed.as_ref().is_some_and(|it| it.interrupt == Interrupt::Leaves) {
            return;
        }
    }
}

/// It could not be: the next server is told.
pub(super) fn not_cancelled() {
    CANCELLED.notify_one();
}

fn watch(signals: BorrowedFd<'static>) {
    loop {
        let mut ready = [PollFd::new(&signals, PollFlags::IN)];
        if matches!(poll(&mut ready, None), Ok(1))
            && matches!(rustix::io::read(signals, &mut [0]), Ok(1))
        {
            interrupted();
        }
    }
}

/// Ctrl-C was pressed.
pub(super) fn interrupted() {
    let mut followed = FOLLOWED.lock().unwrap_or_else(PoisonError::into_inner);
    match &mut *followed {
        Some(Followed { interrupt: interrupt @ Interrupt::Cancels, .. }) => {
            *interrupt = Interrupt::Leaves;
            eprintln!("\n(cancelling the task; Ctrl-C again leaves at once)");
            CANCELLED.notify_one();
            return;
        }
        Some(Followed { agent, interrupt: Interrupt::Leaves }) => eprintln!(
            "\nthe task goes on; come back to it with: sessile agent resume {agent}; stop it with: \
             sessile agent cancel {agent}"
        ),
        None => {}
    }
    std::process::exit(INTERRUPTED);
}
