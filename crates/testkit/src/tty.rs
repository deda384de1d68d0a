//! A program at a real terminal, and its screen.

use crate::{Process, until};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::termios::{Termios, Winsize, tcgetattr, tcsetwinsize};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

/// A terminal and the program that was started at it.
pub struct Tty {
    ours: OwnedFd,
    theirs: OwnedFd,
    child: Child,
    screen: avt::Terminal,
    /// Bytes of an incomplete character.
    half: Vec<u8>,
    /// All output so far.
    shown: Vec<u8>,
    before: Termios,
}

impl Tty {
    /// Starts it with the terminal as its stdin, stdout and stderr.
    ///
    /// # Panics
    /// When it cannot be started.
    #[must_use]
    pub fn spawn(mut command: Command, (columns, rows): (u16, u16)) -> Self {
        let (ours, theirs) = crate::terminal::open();
        let size = Winsize { ws_col: columns, ws_row: rows, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&ours, size).expect("a size");
        let side = || theirs.try_clone().expect("a terminal");
        command.stdin(side()).stdout(side()).stderr(side());
        if !command.get_envs().any(|(name, _)| name == "TERM") {
            command.env("TERM", "xterm-256color");
        }
        // SAFETY: both calls are async-signal-safe. The terminal becomes the
        // controlling one of the child's new session.
        unsafe {
            command.pre_exec(|| {
                libc::setsid();
                libc::ioctl(0, libc::TIOCSCTTY, 0);
                Ok(())
            });
        }
        let before = tcgetattr(&theirs).expect("a terminal");
        let child = command.spawn().expect("spawn");
        let screen = avt::Terminal::new(columns.into(), rows.into()).expect("a screen");
        Self { ours, theirs, child, screen, half: Vec::new(), shown: Vec::new(), before }
    }

    #[must_use]
    pub fn process(&self) -> Process {
        Process::of(self.child.id().cast_signed())
    }

    /// # Panics
    /// When the terminal does not take them.
    pub fn press(&mut self, keys: &str) {
        rustix::io::write(&self.ours, keys.as_bytes()).expect("keys");
    }

    /// # Panics
    /// When the terminal does not take the size.
    pub fn resize(&mut self, columns: u16, rows: u16) {
        self.read();
        self.screen.resize(columns.into(), rows.into());
        let size = Winsize { ws_col: columns, ws_row: rows, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&self.ours, size).expect("a size");
    }

    /// Returns the contents of the screen.
    pub fn screen(&mut self) -> Vec<String> {
        self.read();
        let lines = self.screen.screen().visible_lines();
        lines.map(|line| line.text().trim_end().to_owned()).collect()
    }

    /// Waits until the screen is as wanted.
    ///
    /// # Panics
    /// When that does not happen.
    #[track_caller]
    pub fn until(&mut self, what: &str, is_so: impl Fn(&[String]) -> bool) -> Vec<String> {
        let mut last = Vec::new();
        let look = || {
            last = self.screen();
            is_so(&last).then(|| last.clone())
        };
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| until(what, look)));
        outcome.unwrap_or_else(|_| {
            let shown =
                String::from_utf8_lossy(&self.shown[self.shown.len().saturating_sub(2000)..]);
            panic!("waited in vain for {what} at\n{}\n{shown:?}", last.join("\n"))
        })
    }

    /// Waits until a line of the screen contains this.
    ///
    /// # Panics
    /// When no line does.
    #[track_caller]
    pub fn shows(&mut self, text: &str) -> Vec<String> {
        self.until(text, |lines| lines.iter().any(|line| line.contains(text)))
    }

    /// Returns whether the modes of the terminal are as they were before.
    ///
    /// # Panics
    /// When the terminal is gone.
    #[must_use]
    pub fn is_restored(&self) -> bool {
        let now = tcgetattr(&self.theirs).expect("a terminal");
        now.local_modes == self.before.local_modes
            && now.input_modes == self.before.input_modes
            && now.output_modes == self.before.output_modes
            && self.screen.active_screen_kind() == avt::ScreenKind::Primary
            && self.screen.cursor().visible
    }

    /// Waits for the program's end, and returns its exit code and all its output.
    ///
    /// # Panics
    /// When it does not end.
    pub fn finish(&mut self) -> (Option<i32>, String) {
        let status = until("the end of a program at a terminal", || {
            self.read();
            self.child.try_wait().expect("a child")
        });
        self.read();
        (status.code(), String::from_utf8_lossy(&self.shown).into_owned())
    }

    /// Reads the program's output.
    fn read(&mut self) {
        let mut buffer = [0; 4096];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        loop {
            let mut fds = [PollFd::new(&self.ours, PollFlags::IN)];
            if !matches!(poll(&mut fds, Some(&now)), Ok(1)) {
                return;
            }
            let Ok(n @ 1..) = rustix::io::read(&self.ours, &mut buffer) else { return };
            self.shown.extend(&buffer[..n]);
            self.half.extend(&buffer[..n]);
            let whole = match std::str::from_utf8(&self.half) {
                Ok(_) => self.half.len(),
                Err(error) => error.valid_up_to(),
            };
            let rest = self.half.split_off(whole);
            let text = String::from_utf8_lossy(&self.half).into_owned();
            self.half = rest;
            self.screen.feed(text.as_str());
        }
    }
}

impl std::fmt::Debug for Tty {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tty").field("child", &self.child).finish_non_exhaustive()
    }
}

impl Drop for Tty {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
