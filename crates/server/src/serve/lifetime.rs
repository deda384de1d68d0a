//! How long a server runs: until it is stopped, or as long as it is used.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::Duration;
use tokio::signal::unix::Signal;
use tokio::time::Instant;

/// A stream that has no connection of ours any more is looked for so often by
/// one that wants to end.
const SOON: Duration = Duration::from_secs(1);

/// When a server ends by itself.
#[derive(Debug)]
pub enum Lifetime {
    Always,
    /// Until nobody has been connected for this long; at once when its program
    /// was replaced meanwhile, or somebody asks it to make room for a newer one.
    WhileUsed {
        idle: Duration,
        program: Program,
        replaced: Signal,
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

/// When a server that nobody uses ends.
#[derive(Debug)]
pub(super) struct IdleTimer {
    lifetime: Lifetime,
    /// When it ends, if nobody connects before.
    due: Option<Instant>,
    was_asked: bool,
}

impl IdleTimer {
    pub(super) fn new(lifetime: Lifetime) -> Self {
        let mut idle_timer = Self { lifetime, due: None, was_asked: false };
        idle_timer.became_idle();
        idle_timer
    }

    /// Somebody has connected.
    pub(super) fn connected(&mut self) {
        self.due = None;
    }

    /// Nobody is connected from now on.
    pub(super) fn became_idle(&mut self) {
        let Lifetime::WhileUsed { idle, program, .. } = &self.lifetime else { return };
        let wait = match self.was_asked || program.was_replaced() {
            true => Some(Duration::ZERO),
            false => Some(*idle).filter(|idle| !idle.is_zero()),
        };
        self.due = wait.map(|wait| Instant::now() + wait);
    }

    /// It would end, but somebody reads a stream, it waits for a program's end, or a task of
    /// an agent is under way.
    pub(super) fn postpone(&mut self) {
        self.became_idle();
        self.due = self.due.map(|due| due.max(Instant::now() + SOON));
    }

    /// Returns when it is time to end.
    pub(super) fn due(&self) -> impl Future<Output = ()> + use<> {
        let due = self.due;
        async move {
            match due {
                Some(due) => tokio::time::sleep_until(due).await,
                None => std::future::pending().await,
            }
        }
    }

    /// Returns when a newer one wants its place.
    pub(super) async fn asked(&mut self) {
        match &mut self.lifetime {
            Lifetime::Always => std::future::pending().await,
            Lifetime::WhileUsed { replaced, .. } => {
                replaced.recv().await;
                self.was_asked = true;
            }
        }
    }
}
