//! One line of progress for long work, at a terminal only.
//!
//! It is on stderr, appears after half a second, and is erased when the work is done. In
//! a pipe there never is one.

use crate::display::words::{cut, on_one_line};
use sessile_client::Client;
use sessile_protocol::{Answer, ReadOutput, Request, RunNo, RunPhase};
use sessile_store::{Directory, Liveness};
use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Delay before the line appears.
const SOON: Duration = Duration::from_millis(500);
/// How often the line changes.
const PACE: Duration = Duration::from_millis(250);

/// The line, for as long as this lives.
#[derive(Debug)]
pub(crate) struct Progress {
    drawing: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Progress {
    /// Shows `text` and the elapsed time.
    pub(crate) fn show(mut text: impl FnMut() -> String + Send + 'static) -> Self {
        if !is_wanted() {
            return Self { drawing: None };
        }
        let (done, is_done) = channel();
        let begun = Instant::now();
        let drawing = std::thread::spawn(move || {
            let mut pause = SOON;
            while is_done.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                pause = PACE;
                let line = format!("{}s {}", begun.elapsed().as_secs(), text());
                draw(&line);
            }
            if pause == PACE {
                clear();
            }
        });
        Self { drawing: Some((done, drawing)) }
    }

    /// Shows what is being done, without how far it is.
    pub(crate) fn of(doing: impl Into<String>) -> Self {
        let doing = doing.into();
        Self::show(move || doing.clone())
    }

    /// Shows the progress of a run: how much it has written, and its last line.
    pub(crate) fn of_run(directory: &Directory, run: RunNo) -> Self {
        // Checked first: most calls have no terminal.
        if !is_wanted() {
            return Self { drawing: None };
        }
        let mut poller = RunPoller::new(directory, run);
        Self::show(move || poller.text())
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some((done, drawing)) = self.drawing.take() {
            drop(done);
            let _ = drawing.join();
        }
    }
}

/// A shared count of what has been done.
#[derive(Clone, Debug, Default)]
pub(crate) struct Counter(Arc<AtomicU64>);

impl Counter {
    pub(crate) fn add(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }

    pub(crate) fn set(&self, n: u64) {
        self.0.store(n, Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl fmt::Display for Counter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}

/// Whether there is a terminal to show it on.
pub(crate) fn is_wanted() -> bool {
    io::stderr().is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

fn draw(line: &str) {
    // A terminal that does not know its size says zero.
    let size = rustix::termios::tcgetwinsize(rustix::stdio::stderr()).ok();
    let width = size.map(|size| usize::from(size.ws_col)).filter(|width| *width > 0);
    let width = width.unwrap_or(80).max(2);
    let shown = cut(&on_one_line(line), width - 1);
    let _ = write!(io::stderr().lock(), "\r{shown}\x1b[K");
}

fn clear() {
    let _ = write!(io::stderr().lock(), "\r\x1b[K");
}

/// Polls a run now and then, over its own connection.
#[derive(Debug)]
struct RunPoller {
    client: Option<Client>,
    read: ReadOutput,
    last: Vec<u8>,
    phase: RunPhase,
    is_open: bool,
}

/// Timeout of a poll: a busy keeper is not waited for.
const GLANCE: Duration = Duration::from_millis(100);
/// Length limit of the last line.
const LINE: usize = 400;

impl RunPoller {
    fn new(directory: &Directory, run: RunNo) -> Self {
        let client = match directory.connect() {
            Liveness::Live(socket) => Some(Client::new(socket)),
            Liveness::Gone => None,
        };
        let read = ReadOutput { wait: false, max: 64 << 10, ..ReadOutput::waiting(run) };
        Self { client, read, last: Vec::new(), phase: RunPhase::Running, is_open: false }
    }

    fn text(&mut self) -> String {
        if self.look().is_none() {
            self.client = None;
        }
        let run = self.read.run;
        if self.phase == RunPhase::Queued {
            return format!("run {run} waits for its turn");
        }
        let bytes = self.read.stdout_from + self.read.stderr_from;
        if bytes == 0 {
            return format!("run {run}, no output yet");
        }
        let last = String::from_utf8_lossy(&self.last);
        let line = last.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
        format!("run {run}, {} of output: {}", size(bytes), line.trim())
    }

    /// Reads on; `None` when the keeper is gone.
    fn look(&mut self) -> Option<()> {
        let client = self.client.as_mut()?;
        let deadline = Instant::now() + GLANCE;
        while Instant::now() < deadline {
            if !self.is_open {
                client.ask(Request::Output(self.read)).ok()?;
                self.is_open = true;
            }
            let Some(reply) = client.reply_by(deadline).ok()? else {
                return Some(());
            };
            self.is_open = false;
            let Ok(Answer::Output(view)) = reply.outcome else { return None };
            self.phase = view.phase;
            let is_dry = view.stdout.is_empty() && view.stderr.is_empty();
            (self.read.stdout_from, self.read.stderr_from) = (view.stdout_next, view.stderr_next);
            for new in [view.stdout, view.stderr] {
                self.last.extend(new);
            }
            self.last.drain(..self.last.len().saturating_sub(LINE));
            if is_dry {
                break;
            }
        }
        Some(())
    }
}

/// Returns a number of bytes for people.
pub(crate) fn size(bytes: u64) -> String {
    match bytes {
        0..1024 => format!("{bytes} B"),
        1024..1_048_576 => format!("{} KiB", bytes >> 10),
        _ => format!("{}.{} MiB", bytes >> 20, (bytes >> 10) % 1024 * 10 / 1024),
    }
}
