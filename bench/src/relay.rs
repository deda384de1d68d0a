//! The cost of any process in the middle: the bare bash loop, reached through a relay that
//! only passes bytes on. A keeper cannot be faster than this.

use crate::floor::Floor;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};

/// The first argument of this program as a relay.
pub(crate) const RELAY: &str = "relay";

/// Passes requests from stdin (a socket) to a bare bash loop, and answers back.
pub(crate) fn relay() -> anyhow::Result<()> {
    let mut bash = Floor::bash()?;
    let mut socket = std::io::stdin().lock();
    let mut out = UnixStream::from(rustix::io::dup(std::io::stdin())?);
    let mut line = [0; 256];
    loop {
        match socket.read(&mut line)? {
            0 => return Ok(()),
            n => bash.call(std::str::from_utf8(&line[..n])?.trim_end())?,
        }
        out.write_all(b"\n")?;
    }
}

pub(crate) struct Relay {
    child: Child,
    socket: UnixStream,
}

impl Relay {
    pub(crate) fn start() -> anyhow::Result<Self> {
        let (ours, theirs) = UnixStream::pair()?;
        let child = Command::new(std::env::current_exe()?)
            .arg(RELAY)
            .stdin(Stdio::from(std::os::fd::OwnedFd::from(theirs)))
            .spawn()?;
        Ok(Self { child, socket: ours })
    }

    pub(crate) fn call(&mut self, code: &str) -> anyhow::Result<()> {
        self.socket.write_all(format!("{code}\n").as_bytes())?;
        self.socket.read_exact(&mut [0])?;
        Ok(())
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
