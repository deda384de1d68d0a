//! A real terminal: the pair of devices, and the contents of its screen.
//!
//! The runs of a kernel with a terminal use it one after the other. If possible, it is
//! the kernel's controlling terminal: then the system itself turns Ctrl-C into a signal
//! and tells programs of a new size. Otherwise this module does that.
//!
//! The keeper holds the programs' side open as well: the kernel reports the end of
//! programs, never the device.

use crate::processes::{self, PipeId};
use crate::reactor::{Interest, Reactor};
use crate::source::Source;
use crate::streams::Drained;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::Pid;
use rustix::pty::OpenptFlags;
use rustix::termios::{self, LocalModes, OptionalActions, SpecialCodeIndex, Winsize};
use sessile_protocol::{Language, RunNo, Screen, TerminalSize};
use sessile_sandbox::apply::Sandbox;
use sessile_terminal::{Emulator, Modes};
use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// How much a device returns at once.
const PIECE: usize = 16 << 10;

/// Cells drawn before others have their turn: some 10 ms of work.
const TURN: u64 = 1 << 20;

/// Cells drawn at a run's end, when all its output should be on the screen: a fifth of a
/// second of work. Only malicious programs need that much.
const LAST_TURN: u64 = 20 << 20;

#[derive(Debug)]
pub(crate) struct Terminal {
    master: OwnedFd,
    slave: OwnedFd,
    path: PathBuf,
    id: PipeId,
    source: Source,
    /// Typed bytes for which the device has no room yet.
    unsent: VecDeque<u8>,
    emulator: Emulator,
    /// Output that is recorded and not drawn yet.
    undrawn: Vec<u8>,
    revision: u64,
    /// The run that has it, or had it last.
    pub(crate) run: RunNo,
}

impl Terminal {
    pub(crate) fn open(
        language: Language,
        run: RunNo,
        size: TerminalSize,
        sandbox: Option<&Sandbox>,
        reactor: &Reactor<Source>,
    ) -> io::Result<Self> {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let master = match sandbox {
            // The sandbox has terminals of its own.
            Some(sandbox) => {
                sandbox.open(Path::new("/dev/pts/ptmx"), libc::O_RDWR | libc::O_NOCTTY)?
            }
            None => rustix::pty::openpt(flags)?,
        };
        rustix::pty::grantpt(&master)?;
        rustix::pty::unlockpt(&master)?;
        let name = rustix::pty::ptsname(&master, Vec::new())?;
        let path = PathBuf::from(name.to_str().map_err(|_| io::ErrorKind::InvalidData)?);
        // Never the keeper's own: a keeper has no controlling terminal.
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let slave = match sandbox {
            Some(sandbox) => sandbox.open(&path, flags.bits().cast_signed())?,
            None => rustix::fs::open(&path, flags, Mode::empty())?,
        };
        let mut modes = termios::tcgetattr(&slave)?;
        // Makes erase remove multi-byte characters as a whole.
        modes.input_modes |= termios::InputModes::IUTF8;
        termios::tcsetattr(&slave, OptionalActions::Now, &modes)?;
        termios::tcsetwinsize(&slave, winsize(size))?;
        rustix::io::ioctl_fionbio(&master, true)?;
        let stat = rustix::fs::fstat(&slave)?;
        let source = Source::Terminal(language);
        reactor.add(&master, source, Interest::Read)?;
        Ok(Self {
            master,
            slave,
            path,
            id: PipeId { device: stat.st_dev, inode: stat.st_ino },
            source,
            unsent: VecDeque::new(),
            emulator: Emulator::new(size),
            undrawn: Vec::new(),
            revision: 0,
            run,
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    pub(crate) fn screen(&self) -> Screen {
        self.emulator.screen()
    }

    pub(crate) fn modes(&self) -> Modes {
        self.emulator.modes()
    }

    /// Hands it to another run, with an empty screen.
    pub(crate) fn pass_on(&mut self, run: RunNo, size: TerminalSize) {
        self.run = run;
        self.unsent = VecDeque::new();
        self.emulator = Emulator::new(size);
        self.undrawn = Vec::new();
        self.revision = 0;
        let _ = termios::tcsetwinsize(&self.slave, winsize(size));
    }

    /// Takes what was written on it, at most `limit` bytes.
    pub(crate) fn drain(
        &mut self,
        buffer: &mut [u8],
        limit: usize,
        reactor: &Reactor<Source>,
        mut sink: impl FnMut(&[u8]),
    ) -> Drained {
        let mut taken = 0;
        while taken < limit {
            self.draw(TURN, reactor);
            if !self.undrawn.is_empty() {
                // A program that floods the screen waits until it has been drawn.
                return Drained::More;
            }
            match self.record(buffer, &mut sink) {
                Some(n) => taken += n,
                None => return Drained::Empty,
            }
        }
        Drained::More
    }

    /// Takes all that is left of a run, at most `limit` bytes, and draws it on the
    /// screen.
    pub(crate) fn finish(
        &mut self,
        buffer: &mut [u8],
        limit: usize,
        reactor: &Reactor<Source>,
        mut sink: impl FnMut(&[u8]),
    ) {
        let mut taken = 0;
        while taken < limit {
            match self.record(buffer, &mut sink) {
                Some(n) => taken += n,
                None => break,
            }
        }
        self.draw(LAST_TURN, reactor);
        self.undrawn = Vec::new();
    }

    /// Reads one piece of output; none if there is nothing for now.
    fn record(&mut self, buffer: &mut [u8], sink: &mut impl FnMut(&[u8])) -> Option<usize> {
        let piece = PIECE.min(buffer.len());
        loop {
            match rustix::io::read(&self.master, &mut buffer[..piece]) {
                Ok(0) => return None,
                Ok(n) => {
                    sink(&buffer[..n]);
                    self.undrawn.extend_from_slice(&buffer[..n]);
                    return Some(n);
                }
                Err(Errno::INTR) => {}
                Err(_) => return None,
            }
        }
    }

    fn draw(&mut self, work: u64, reactor: &Reactor<Source>) {
        if self.undrawn.is_empty() {
            return;
        }
        let fed = self.emulator.feed_within(&self.undrawn, work);
        self.undrawn.drain(..fed.taken);
        self.revision += 1;
        if !fed.replies.is_empty() {
            self.push(&fed.replies, reactor);
        }
    }

    /// Returns the number of bytes typed and not read.
    pub(crate) fn unread(&self) -> u64 {
        let inside = rustix::io::ioctl_fionread(&self.slave).unwrap_or(0);
        self.unsent.len() as u64 + inside
    }

    pub(crate) fn push(&mut self, bytes: &[u8], reactor: &Reactor<Source>) {
        self.unsent.extend(bytes);
        self.feed(reactor);
    }

    /// Types as much as the device takes.
    pub(crate) fn feed(&mut self, reactor: &Reactor<Source>) {
        while !self.unsent.is_empty() {
            match rustix::io::write(&self.master, self.unsent.as_slices().0) {
                Ok(0) => break,
                Ok(n) => drop(self.unsent.drain(..n)),
                Err(Errno::INTR) => {}
                Err(_) => break,
            }
        }
        let interest = if self.unsent.is_empty() {
            self.unsent = VecDeque::new();
            Interest::Read
        } else {
            Interest::ReadWrite
        };
        reactor.change(&self.master, self.source, interest);
    }

    /// Takes back what was typed and not read, including an unfinished line.
    pub(crate) fn take_unread(&mut self) -> Vec<u8> {
        let mut unread = Vec::new();
        let Ok(before) = termios::tcgetattr(&self.slave) else {
            return unread;
        };
        let mut modes = before.clone();
        modes.local_modes -= LocalModes::ICANON;
        modes.special_codes[SpecialCodeIndex::VMIN] = 0;
        modes.special_codes[SpecialCodeIndex::VTIME] = 0;
        let _ = termios::tcsetattr(&self.slave, OptionalActions::Now, &modes);
        let mut piece = [0; 4096];
        // With these modes a read never blocks.
        while let Ok(n @ 1..) = rustix::io::read(&self.slave, &mut piece) {
            unread.extend_from_slice(&piece[..n]);
        }
        let _ = termios::tcsetattr(&self.slave, OptionalActions::Now, &before);
        unread.extend(std::mem::take(&mut self.unsent));
        unread
    }

    /// Returns the device, if everything that was typed has been read.
    pub(crate) fn awaited(&self) -> Option<PipeId> {
        (self.unread() == 0).then_some(self.id)
    }

    /// Returns the key that ends the input in the program's current mode.
    pub(crate) fn end_key(&self) -> Option<u8> {
        let modes = termios::tcgetattr(&self.slave).ok()?;
        let key = modes.special_codes[SpecialCodeIndex::VEOF];
        (modes.local_modes.contains(LocalModes::ICANON) && key != 0).then_some(key)
    }

    /// Returns the keys that currently send signals. The suspend key is not one of them:
    /// without job control, nothing could resume a stopped program.
    pub(crate) fn signal_keys(&self) -> Vec<(u8, i32)> {
        let Ok(modes) = termios::tcgetattr(&self.slave) else {
            return Vec::new();
        };
        let is_on = modes.local_modes.contains(LocalModes::ISIG);
        [(SpecialCodeIndex::VINTR, libc::SIGINT), (SpecialCodeIndex::VQUIT, libc::SIGQUIT)]
            .into_iter()
            .map(|(code, signal)| (modes.special_codes[code], signal))
            .filter(|(key, _)| is_on && *key != 0)
            .collect()
    }

    /// Disables the suspend key for a kernel without job control, which would be stopped
    /// together with its program.
    pub(crate) fn forbid_suspending(&self) {
        if let Ok(mut modes) = termios::tcgetattr(&self.slave) {
            modes.special_codes[SpecialCodeIndex::VSUSP] = 0;
            let _ = termios::tcsetattr(&self.slave, OptionalActions::Now, &modes);
        }
    }

    pub(crate) fn resize(&mut self, size: TerminalSize) {
        let _ = termios::tcsetwinsize(&self.slave, winsize(size));
        self.emulator.resize(size);
        self.revision += 1;
    }

    /// Returns the foreground process group, which gets the keys.
    pub(crate) fn foreground_group(&self) -> Option<Pid> {
        termios::tcgetpgrp(&self.master).ok()
    }

    /// Whether it is the controlling terminal of a process.
    pub(crate) fn controls(&self, pid: Pid) -> bool {
        let Ok(stat) = rustix::fs::fstat(&self.slave) else {
            return false;
        };
        let device = stat.st_rdev;
        processes::terminal(pid) == Some((rustix::fs::major(device), rustix::fs::minor(device)))
    }

    /// Hangs up: processes that have it open now read its end.
    pub(crate) fn close(self, reactor: &Reactor<Source>) {
        reactor.remove(&self.master);
    }
}

fn winsize(size: TerminalSize) -> Winsize {
    Winsize { ws_col: size.cols, ws_row: size.rows, ws_xpixel: 0, ws_ypixel: 0 }
}
