//! How long a server runs: until it is stopped, or as long as it is used.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::Duration;
use tokio::signal::unix::Signal;
use tokio::time::Instant;

/// How often a server that wants to end checks for streams that have outlived their
/// connection.
const SOON: Duration = Duration::from_secs(1);

/// When a server ends by itself.
#[derive(Debug)]
pub enum Lifetime {
    Always,
    /// Until no client has been connected for this long; at once when its program was
    /// replaced meanwhile, or a newer server asks for its place.
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

    /// Whether another file, or none, is in its place now.
    fn was_replaced(&self) -> bool {
        identity(&self.path) != self.identity
    }
}

fn identity(path: &PathBuf) -> Option<Identity> {
    let found = fs::metadata(path).ok()?;
    let modified = (found.mtime(), found.mtime_nsec());
    Some(Identity { device: found.dev(), inode: found.ino(), modified })
}

/// Decides when an unused server ends.
#[derive(Debug)]
pub(super) struct IdleTimer {
    lifetime: Lifetime,
    /// When it ends, if no client connects before.
    due: Option<Instant>,
    was_asked: bool,
}

impl IdleTimer {
    pub(super) fn new(lifetime: Lifetime) -> Self {
        let mut idle_timer = Self { lifetime, due: None, was_asked: false };
        idle_timer.became_idle();
        idle_timer
    }

    /// A client has connected.
    pub(super) fn connected(&mut self) {
        self.due = None;
    }

    /// No client is connected from now on.
    pub(super) fn became_idle(&mut self) {
        let Lifetime::WhileUsed { idle, program, .. } = &self.lifetime else { return };
        let wait = match self.was_asked || program.was_replaced() {
            true => Some(Duration::ZERO),
            false => Some(*idle).filter(|idle| !idle.is_zero()),
        };
        self.due = wait.map(|wait| Instant::now() + wait);
    }

    /// Delays the end: a client reads a stream, a program's end is awaited, or an agent's
    /// task is in progress.
    pub(super) fn postpone(&mut self) {
        self.became_idle();
        self.due = self.due.map(|due| due.max(Instant::now() + SOON));
    }

    /// Completes when it is time to end.
    pub(super) fn due(&self) -> impl Future<Output = ()> + use<> {
        let due = self.due;
        async move {
            match due {
                Some(due) => tokio::time::sleep_until(due).await,
                None => std::future::pending().await,
            }
        }
    }

    /// Completes when a newer server asks for its place.
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
