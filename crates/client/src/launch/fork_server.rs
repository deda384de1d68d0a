//! A process that keepers are forked from: what a program costs to start is
//! paid once, and keepers share the memory that they begin with.
//!
//! ```text
//!  client ──boot, report pipe──► fork server ──forks──► guardian ──forks──► keeper
//! ```
//!
//! It is the client's child, knows nothing, and ends when its socket is closed.
//! Whoever cannot use it launches a keeper in the plain way.

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
    /// Taken when the process is let go of.
    socket: Option<OwnedFd>,
}

impl ForkServer {
    /// Has a keeper forked; what is read from the pipe is its report. `None`
    /// when that is not possible.
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
            // It was killed. The next launch starts another.
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
        // Without its socket it ends at once.
        self.socket = None;
        let _ = self.child.wait();
    }
}
