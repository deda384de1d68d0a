//! A process that keepers are forked from: the cost of starting a program is paid once, and
//! keepers share their initial memory.
//!
//! ```text
//!  client ──boot, report pipe──► fork server ──forks──► guardian ──forks──► keeper
//! ```
//!
//! It is the client's child, has no state, and exits when its socket is closed. A client
//! that cannot use it launches a keeper as a separate program.

use super::Launcher;
use rustix::net::{
    AddressFamily, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags, SocketType,
};
use sessile_protocol::{FORK_SERVER, MAX_FORKED_BOOT, SESSION_MARKER};
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;

#[derive(Debug, Default)]
pub(super) struct ForkServer {
    process: Mutex<Option<Process>>,
}

#[derive(Debug)]
struct Process {
    child: Child,
    /// Taken when the process is dropped.
    socket: Option<OwnedFd>,
}

impl ForkServer {
    /// Has a keeper forked, and returns the pipe of its report. Returns `None` if that is
    /// not possible.
    pub(super) fn launch(&self, launcher: &Launcher, boot: &[u8]) -> Option<OwnedFd> {
        if boot.len() > MAX_FORKED_BOOT {
            return None;
        }
        let mut process = self.process.lock().ok()?;
        if process.is_none() {
            *process = Some(Process::start(launcher).ok()?);
        }
        let sent = process.as_ref()?.send(boot);
        if sent.is_err() {
            // The fork server was killed. The next launch starts another.
            *process = None;
        }
        sent.ok()
    }
}

impl Process {
    fn start(launcher: &Launcher) -> io::Result<Self> {
        let (ours, theirs) = rustix::net::socketpair(
            AddressFamily::UNIX,
            SocketType::SEQPACKET,
            SocketFlags::CLOEXEC,
            None,
        )?;
        let mut command = Command::new(&launcher.program);
        for name in &launcher.hidden {
            command.env_remove(name);
        }
        let child = command
            .args(&launcher.arguments)
            .arg(FORK_SERVER)
            .env_remove(SESSION_MARKER)
            .stdin(Stdio::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Ok(Self { child, socket: Some(ours) })
    }

    fn send(&self, boot: &[u8]) -> io::Result<OwnedFd> {
        let socket = self.socket.as_ref().ok_or(io::ErrorKind::NotConnected)?;
        let (report, writer) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        let descriptors = [writer.as_fd()];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        control.push(SendAncillaryMessage::ScmRights(&descriptors));
        rustix::net::sendmsg(socket, &[IoSlice::new(boot)], &mut control, SendFlags::NOSIGNAL)?;
        Ok(report)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Without its socket it exits at once.
        self.socket = None;
        let _ = self.child.wait();
    }
}
