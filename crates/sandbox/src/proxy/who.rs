//! Finds the process inside that owns the other end of a connection.

use rustix::process::Pid;
use sessile_proc::{Process, Transport};
use std::net::SocketAddr;

/// How many processes and descriptors are searched: a session with thousands must not
/// block the proxy.
const MOST_PROCESSES: usize = 2048;
const MOST_DESCRIPTORS: usize = 256;
const MOST_LINES: usize = 10_000;

/// How many characters of a program's name are reported.
const NAME: usize = 40;

/// Where to search.
#[derive(Clone, Copy, Debug)]
pub(super) struct Session {
    pub(super) keeper: Pid,
    pub(super) init: Pid,
}

impl Session {
    /// Returns the process and its program's name. A client that waits for an answer
    /// still has the connection open.
    pub(super) fn find(self, peer: SocketAddr) -> Option<(Pid, String)> {
        let inode = self.inode(peer)?;
        let has_it = |pid: &Pid| {
            let descriptors = Process::new(*pid).descriptors().take(MOST_DESCRIPTORS);
            descriptors.filter_map(|descriptor| descriptor.socket()).any(|own| own == inode)
        };
        let all = Process::new(self.keeper).descendants().into_iter().take(MOST_PROCESSES);
        // The newest process that has it: its ancestors with it have only started it.
        let pid = all.rev().find(has_it)?;
        Some((pid, name(pid)?))
    }

    fn inode(self, peer: SocketAddr) -> Option<u64> {
        let tables = Process::new(self.init).sockets(Transport::Tcp);
        let mut sockets = tables.flat_map(|table| table.take(MOST_LINES));
        let is_it = |socket: &sessile_proc::Socket| {
            socket.port == peer.port() && socket.address.to_canonical() == peer.ip().to_canonical()
        };
        sockets.find(is_it).map(|socket| socket.inode)
    }
}

/// Returns the program's name, without control characters, which would harm a log.
fn name(pid: Pid) -> Option<String> {
    let name = std::fs::read(format!("/proc/{}/comm", pid.as_raw_nonzero())).ok()?;
    let name = String::from_utf8_lossy(&name);
    Some(name.trim_end().chars().filter(|c| !c.is_control()).take(NAME).collect())
}
