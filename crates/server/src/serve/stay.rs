//! How long a server stays: until it is stopped, or as long as it is used.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::Duration;
use tokio::signal::unix::Signal;
use tokio::time::Instant;

/// A stream that has no connection of ours any more is looked for so often by
/// one that wants to go.
const SOON: Duration = Duration::from_secs(1);

/// When a server goes by itself.
#[derive(Debug)]
pub enum Stay {
    Always,
    /// Until nobody has been connected for this long; at once when its program
    /// was replaced meanwhile, or somebody asks it to make room for a newer one.
    WhileUsed {
        idle: Duration,
        program: Program,
        asked_to_go: Signal,
    },
}

/// The file that a process was started from, as it was then.
#[derive(Debug)]
pub struct Program {
    path: PathBuf,
    identity: Option<Identity>,
}

#[derive(Debug, PartialEq, Eq)]
struct Identity {
    device: u64,
    inode: u64,
    modified: (i64, i64),
}

impl Program {
    #[must_use]
    pub fn at(path: PathBuf) -> Self {
        let identity = identity(&path);
        Self { path, identity }
    }

    /// Whether another one is in its place by now, or none.
    fn was_replaced(&self) -> bool {
        identity(&self.path) != self.identity
    }
}

fn identity(path: &PathBuf) -> Option<Identity> {
    let found = fs::metadata(path).ok()?;
    let modified = (found.mtime(), found.mtime_nsec());
    Some(Identity { device: found.dev(), inode: found.ino(), modified })
}

/// How things stand with a server's stay.
#[derive(Debug)]
pub(super) struct Departure {
    stay: Stay,
    /// When it goes, if nobody comes before.
    due: Option<Instant>,
    was_asked: bool,
}

impl Departure {
    pub(super) fn new(stay: Stay) -> Self {
        let mut departure = Self { stay, due: None, was_asked: false };
        departure.nobody_is_here();
        departure
    }

    /// Somebody has come.
    pub(super) fn somebody_is_here(&mut self) {
        self.due = None;
    }

    /// Nobody is connected from now on.
    pub(super) fn nobody_is_here(&mut self) {
        let Stay::WhileUsed { idle, program, .. } = &self.stay else { return };
        let wait = match self.was_asked || program.was_replaced() {
            true => Some(Duration::ZERO),
            false => Some(*idle).filter(|idle| !idle.is_zero()),
        };
        self.due = wait.map(|wait| Instant::now() + wait);
    }

    /// It would go, but somebody reads a stream, it waits for a program's end, or a task of
    /// an agent is under way.
    pub(super) fn is_put_off(&mut self) {
        self.nobody_is_here();
        self.due = self.due.map(|due| due.max(Instant::now() + SOON));
    }

    /// Comes when it is time to go.
    pub(super) fn is_due(&self) -> impl Future<Output = ()> + use<> {
        let due = self.due;
        async move {
            match due {
                Some(due) => tokio::time::sleep_until(due).await,
                None => std::future::pending().await,
            }
        }
    }

    /// Comes when a newer one wants its place.
    pub(super) async fn is_asked(&mut self) {
        match &mut self.stay {
            Stay::Always => std::future::pending().await,
            Stay::WhileUsed { asked_to_go, .. } => {
                asked_to_go.recv().await;
                self.was_asked = true;
            }
        }
    }
}
