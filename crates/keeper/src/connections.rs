//! Clients of the keeper's socket.

use crate::reactor::{Interest, Reactor};
use crate::source::{ClientId, Source};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, SocketFlags};
use sessile_protocol::{Call, Reply, Splitter, encode};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;

/// A client with this many unread bytes is not served until it reads.
const BACKLOG: usize = 4 << 20;

#[derive(Debug)]
struct Connection {
    socket: OwnedFd,
    splitter: Splitter,
    unsent: Vec<u8>,
    interest: Interest,
}

#[derive(Debug, Default)]
pub(crate) struct Connections {
    /// None until clients can connect.
    listener: Option<OwnedFd>,
    open: BTreeMap<ClientId, Connection>,
    last: u64,
    /// Clients that have gone since `take_gone` was last called.
    gone: Vec<ClientId>,
}

impl Connections {
    pub(crate) fn listen(
        &mut self,
        listener: OwnedFd,
        reactor: &Reactor<Source>,
    ) -> io::Result<()> {
        rustix::io::ioctl_fionbio(&listener, true)?;
        reactor.add(&listener, Source::Listener, Interest::Read)?;
        self.listener = Some(listener);
        Ok(())
    }

    pub(crate) fn is_listening(&self) -> bool {
        self.listener.is_some()
    }

    /// Returns the clients that have gone since the last call.
    pub(crate) fn take_gone(&mut self) -> Vec<ClientId> {
        std::mem::take(&mut self.gone)
    }

    fn close(&mut self, client: ClientId) {
        self.open.remove(&client);
        self.gone.push(client);
    }

    pub(crate) fn accept(&mut self, reactor: &Reactor<Source>) {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let Some(listener) = &self.listener else {
            return;
        };
        while let Ok(socket) = rustix::net::accept_with(listener, flags) {
            // The directory's mode keeps other users out; this check does so even if the
            // directory is opened up.
            let peer = rustix::net::sockopt::socket_peercred(&socket);
            let me = rustix::process::geteuid();
            if !peer.is_ok_and(|peer| peer.uid == me || peer.uid.is_root()) {
                continue;
            }
            self.last += 1;
            let client = ClientId(self.last);
            if reactor.add(&socket, Source::Client(client), Interest::Read).is_ok() {
                let connection = Connection {
                    socket,
                    splitter: Splitter::default(),
                    unsent: Vec::new(),
                    interest: Interest::Read,
                };
                self.open.insert(client, connection);
            }
        }
    }

    /// Reads what a client has sent. Returns the calls in it. A client that is gone, or
    /// that sends something else, is dropped.
    pub(crate) fn receive(
        &mut self,
        client: ClientId,
        buffer: &mut [u8],
        reactor: &Reactor<Source>,
    ) -> Vec<Call> {
        self.flush(client, reactor);
        let Some(connection) = self.open.get_mut(&client) else {
            return Vec::new();
        };
        if connection.unsent.len() > BACKLOG {
            return Vec::new();
        }
        let mut calls = Vec::new();
        match rustix::net::recv(&connection.socket, &mut *buffer, RecvFlags::empty()) {
            Ok((_, 0)) => {
                self.close(client);
                return calls;
            }
            Ok((_, n)) => connection.splitter.push(&buffer[..n]),
            Err(Errno::AGAIN | Errno::INTR) => return calls,
            Err(_) => {
                self.close(client);
                return calls;
            }
        }
        let mut refusals = Vec::new();
        loop {
            match connection.splitter.next_body() {
                Ok(Some(body)) => match Call::read(body) {
                    Ok(call) => calls.push(call),
                    Err(refusal) => refusals.push(refusal),
                },
                Ok(None) => break,
                Err(_) => {
                    self.close(client);
                    return Vec::new();
                }
            }
        }
        for refusal in refusals {
            self.send(client, &refusal, reactor);
        }
        calls
    }

    /// Sends an answer. A client that does not read never blocks the keeper: its unread
    /// answers wait in memory, and no more requests are accepted from it.
    pub(crate) fn send(&mut self, client: ClientId, reply: &Reply, reactor: &Reactor<Source>) {
        if let Some(connection) = self.open.get_mut(&client) {
            let frame = encode(reply);
            if connection.unsent.is_empty() {
                connection.unsent = frame;
            } else {
                connection.unsent.extend_from_slice(&frame);
            }
            self.flush(client, reactor);
        }
    }

    fn flush(&mut self, client: ClientId, reactor: &Reactor<Source>) {
        let Some(connection) = self.open.get_mut(&client) else {
            return;
        };
        let mut sent = 0;
        while sent < connection.unsent.len() {
            match rustix::net::send(
                &connection.socket,
                &connection.unsent[sent..],
                SendFlags::NOSIGNAL,
            ) {
                Ok(n) => sent += n,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => break,
                Err(_) => {
                    self.close(client);
                    return;
                }
            }
        }
        if sent == connection.unsent.len() {
            connection.unsent = Vec::new();
        } else {
            connection.unsent.drain(..sent);
        }
        let wanted = match connection.unsent.len() {
            0 => Interest::Read,
            1..=BACKLOG => Interest::ReadWrite,
            // Requests stay unread, and must not wake us for nothing.
            _ => Interest::Write,
        };
        if std::mem::discriminant(&wanted) != std::mem::discriminant(&connection.interest) {
            connection.interest = wanted;
            reactor.change(&connection.socket, Source::Client(client), wanted);
        }
    }
}
