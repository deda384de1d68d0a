//! Takes over the terminal for a while, and restores it in any case: at the end, on a
//! signal, in a panic.

use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use std::io::{self, Write};
use std::os::fd::{FromRawFd, OwnedFd};
use std::sync::OnceLock;
use std::time::Instant;

/// The alternate screen, without cursor and without wrapping long lines.
const ENTER: &[u8] = b"\x1b[?1049h\x1b[?25l\x1b[?7l";
const LEAVE: &[u8] = b"\x1b[0m\x1b[?7h\x1b[?25h\x1b[?1049l";

/// The modes from before.
static BEFORE: OnceLock<Termios> = OnceLock::new();

#[derive(Debug)]
pub(crate) struct Terminal {
    signals: OwnedFd,
}

/// What ends a wait.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Wake {
    Time,
    Keys(Vec<u8>),
    Resized,
    /// A signal that ends the program.
    Signal(i32),
    /// The terminal is gone.
    Gone,
}

impl Terminal {
    pub(crate) fn take() -> io::Result<Self> {
        let signals = signals()?;
        let before = tcgetattr(rustix::stdio::stdin())?;
        let mut raw = before.clone();
        raw.make_raw();
        let _ = BEFORE.set(before);
        let hook = std::panic::take_hook();
        // Restored first, so that the message appears on the main screen.
        std::panic::set_hook(Box::new(move |panic| {
            restore();
            hook(panic);
        }));
        tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, &raw)?;
        let terminal = Self { signals };
        terminal.write(ENTER)?;
        Ok(terminal)
    }

    /// Returns columns and rows.
    pub(crate) fn size(&self) -> (usize, usize) {
        match tcgetwinsize(rustix::stdio::stdout()) {
            Ok(size) if size.ws_col > 0 && size.ws_row > 0 => {
                (size.ws_col.into(), size.ws_row.into())
            }
            Ok(_) | Err(_) => (80, 24),
        }
    }

    pub(crate) fn write(&self, bytes: &[u8]) -> io::Result<()> {
        let mut out = io::stdout().lock();
        out.write_all(bytes)?;
        out.flush()
    }

    pub(crate) fn wait(&self, until: Instant) -> Wake {
        loop {
            let left = until.saturating_duration_since(Instant::now());
            let left = rustix::time::Timespec::try_from(left).ok();
            let stdin = rustix::stdio::stdin();
            let mut fds = [
                PollFd::from_borrowed_fd(stdin, PollFlags::IN),
                PollFd::new(&self.signals, PollFlags::IN),
            ];
            match rustix::event::poll(&mut fds, left.as_ref()) {
                Ok(0) => return Wake::Time,
                Err(Errno::INTR) => continue,
                Err(_) => return Wake::Gone,
                Ok(_) => {}
            }
            if !fds[1].revents().is_empty() {
                match take_signal(&self.signals) {
                    Some(libc::SIGWINCH) => return Wake::Resized,
                    Some(signal) => return Wake::Signal(signal),
                    None => continue,
                }
            }
            let mut keys = [0; 16];
            return match rustix::io::read(stdin, &mut keys) {
                Ok(0) | Err(_) => Wake::Gone,
                Ok(n) => Wake::Keys(keys[..n].to_vec()),
            };
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        restore();
    }
}

fn restore() {
    let mut out = io::stdout().lock();
    let _ = out.write_all(LEAVE).and_then(|()| out.flush());
    if let Some(before) = BEFORE.get() {
        let _ = tcsetattr(rustix::stdio::stdin(), OptionalActions::Now, before);
    }
}

/// Returns a descriptor for the signals that end the program, and for SIGWINCH: nothing
/// is done in a handler.
fn signals() -> io::Result<OwnedFd> {
    // SAFETY: the set is initialised by sigemptyset before it is read, and nothing else
    // owns the new descriptor.
    unsafe {
        let mut set = std::mem::zeroed::<libc::sigset_t>();
        libc::sigemptyset(&raw mut set);
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGWINCH] {
            libc::sigaddset(&raw mut set, signal);
        }
        libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
        let fd = libc::signalfd(-1, &raw const set, libc::SFD_CLOEXEC | libc::SFD_NONBLOCK);
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

fn take_signal(fd: &OwnedFd) -> Option<i32> {
    let mut info = [0; std::mem::size_of::<libc::signalfd_siginfo>()];
    rustix::io::read(fd, &mut info).ok()?;
    // The number is the first field.
    Some(i32::from_ne_bytes(info[..4].try_into().ok()?))
}
