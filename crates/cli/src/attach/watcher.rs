//! Shows what other clients run in the session to a user at the prompt.
//!
//! A thread follows the session. Its output is printed above the prompt; while the user
//! is in a program, it is kept until the prompt is back, up to a limit.

use crate::following::{Event, ExistingRuns, Following, Next};
use crate::reader::Reader;
use crate::transcript::{Form, Transcript};
use sessile_protocol::{RunNo, RunPhase};
use std::collections::BTreeSet;
use std::io;
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Limit for what is kept while the user is in a program.
const KEPT: usize = 256 << 10;

/// The state that both threads share.
#[derive(Default)]
pub(super) struct SharedView {
    /// The runs that this user started or joined.
    ours: BTreeSet<RunNo>,
    place: UserPlace,
}

#[derive(Default)]
enum UserPlace {
    /// In a program, with nothing to show later.
    #[default]
    Away,
    /// The same, with this to show when the prompt is back.
    AwayWithText(String),
    Prompt,
}

pub(super) type Shared = Arc<Mutex<SharedView>>;

pub(super) fn lock(board: &Shared) -> MutexGuard<'_, SharedView> {
    board.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SharedView {
    pub(super) fn own(&mut self, run: RunNo) {
        self.ours.insert(run);
    }

    /// Marks that the prompt is shown, and returns what came meanwhile.
    pub(super) fn come_back(&mut self) -> Option<String> {
        match std::mem::replace(&mut self.place, UserPlace::Prompt) {
            UserPlace::AwayWithText(text) => Some(text),
            UserPlace::Away | UserPlace::Prompt => None,
        }
    }

    pub(super) fn go_away(&mut self) {
        self.place = UserPlace::Away;
    }

    /// Returns what is to be printed now, or keeps it.
    fn tell(&mut self, text: String) -> Option<String> {
        match &mut self.place {
            UserPlace::Prompt => Some(text),
            UserPlace::Away => {
                self.place = UserPlace::AwayWithText(text);
                None
            }
            UserPlace::AwayWithText(kept) if kept.len() < KEPT => {
                kept.push_str(&text);
                None
            }
            UserPlace::AwayWithText(_) => None,
        }
    }
}

/// Follows the session until it is over, or its output is no longer read.
pub(super) fn follow(
    mut reader: Reader,
    board: &Shared,
    mut print: impl FnMut(String),
) -> anyhow::Result<()> {
    let past = ExistingRuns::read(&mut reader, 0)?;
    let mut hidden: BTreeSet<RunNo> =
        past.open.iter().filter(|run| run.terminal).map(|run| run.run).collect();
    // Only their background processes are still running.
    let over = past.open.iter().filter(|run| run.phase >= RunPhase::Exited).map(|run| run.run);
    lock(board).ours.extend(over);
    let Some(mut following) = Following::after(&past, reader)? else {
        return Ok(());
    };
    let mut transcript = Transcript::new(Vec::new(), Form::Coloured);
    let stdout = io::stdout();
    loop {
        let event = match following.next(stdout.as_fd())? {
            Next::Event(event) => event,
            Next::Unread => return Ok(()),
            Next::Over(status) => {
                print(format!("the session is {}\n", status.as_str()));
                return Ok(());
            }
        };
        let mut board = lock(board);
        let run = event.run();
        if let Event::Began(began) = &event
            && began.has_terminal
        {
            hidden.insert(run);
        }
        let is_drawn = matches!(event, Event::Output { .. }) && hidden.contains(&run);
        if board.ours.contains(&run) || is_drawn {
            continue;
        }
        transcript.show(&event)?;
        if matches!(&event, Event::Began(began) if began.has_terminal) {
            transcript.note("", &format!("(it has a terminal: attach with --run {run})"))?;
        }
        let text = String::from_utf8_lossy(&transcript.take()).into_owned();
        let now = if text.is_empty() { None } else { board.tell(text) };
        drop(board);
        if let Some(text) = now {
            print(text);
        }
    }
}
