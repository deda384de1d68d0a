//! Copies bytes between a client and its server, in each direction until its end.

use super::body::Body;
use rustix::event::{PollFd, PollFlags};
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

/// A connection ends when nothing comes in either direction for this long.
const SILENCE: Duration = Duration::from_secs(10 * 60);

/// Buffer size of each direction.
const ROOM: usize = 16 << 10;

/// One direction of a connection.
struct Direction<'a> {
    from: &'a TcpStream,
    to: &'a TcpStream,
    /// Bytes that were read and not written yet.
    held: Vec<u8>,
    is_open: bool,
}

impl Direction<'_> {
    fn wants_to_read(&self) -> bool {
        self.is_open && self.held.is_empty()
    }

    fn is_over(&self) -> bool {
        !self.is_open && self.held.is_empty()
    }

    /// Reads what is there, and returns how much.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.from.read(buffer) {
            Ok(0) => {
                self.is_open = false;
                Ok(0)
            }
            Ok(read) => Ok(read),
            Err(error) if is_for_later(&error) => Ok(0),
            Err(error) => Err(error),
        }
    }

    fn write(&mut self) -> io::Result<()> {
        match self.to.write(&self.held) {
            Ok(written) => drop(self.held.drain(..written)),
            Err(error) if is_for_later(&error) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

fn is_for_later(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// Relays. `body` decides which of the client's bytes pass, and `held` has those that
/// were read already.
pub(super) fn relay(
    client: &TcpStream,
    server: &TcpStream,
    mut body: Body,
    mut held: Vec<u8>,
) -> io::Result<()> {
    client.set_nonblocking(true)?;
    server.set_nonblocking(true)?;
    let is_tunnel = body == Body::Endless;
    pass(&mut body, &mut held)?;
    let mut up = Direction { from: client, to: server, held, is_open: !body.is_over() };
    let mut down = Direction { from: server, to: client, held: Vec::new(), is_open: true };
    let mut buffer = [0; ROOM];
    loop {
        let is_done = if is_tunnel { up.is_over() && down.is_over() } else { down.is_over() };
        if is_done {
            return Ok(());
        }
        let [of_client, of_server] = wait(&up, &down)?;
        if of_client.contains(PollFlags::IN) {
            let read = up.read(&mut buffer)?;
            up.held.extend_from_slice(&buffer[..read]);
            pass(&mut body, &mut up.held)?;
            up.is_open &= !body.is_over();
        }
        if of_server.contains(PollFlags::IN) {
            let read = down.read(&mut buffer)?;
            down.held.extend_from_slice(&buffer[..read]);
        }
        if !up.held.is_empty() {
            up.write()?;
        }
        if !down.held.is_empty() {
            down.write()?;
        }
        for direction in [&up, &down] {
            // Passes on the end of a tunnel. The end of a request is known by its length.
            if direction.is_over() && is_tunnel {
                let _ = direction.to.shutdown(Shutdown::Write);
            }
        }
    }
}

/// Keeps the bytes that belong to the body.
fn pass(body: &mut Body, held: &mut Vec<u8>) -> io::Result<()> {
    let taken = body.take(held).map_err(|_| io::ErrorKind::InvalidData)?;
    held.truncate(taken);
    Ok(())
}

/// Returns what client and server are ready for, as far as wanted. An error or a hang-up
/// counts as both: the next read or write finds it.
fn wait(up: &Direction<'_>, down: &Direction<'_>) -> io::Result<[PollFlags; 2]> {
    let wanted = |reads: bool, writes: bool| {
        let mut flags = PollFlags::empty();
        flags.set(PollFlags::IN, reads);
        flags.set(PollFlags::OUT, writes);
        flags
    };
    let client = wanted(up.wants_to_read(), !down.held.is_empty());
    let server = wanted(down.wants_to_read(), !up.held.is_empty());
    let ends = [(up.from, client), (down.from, server)];
    // A stream with no wanted events would always be ready after a hang-up.
    let awaited = ends.iter().filter(|(_, wanted)| !wanted.is_empty());
    let mut fds: Vec<PollFd<'_>> =
        awaited.map(|(stream, wanted)| PollFd::new(*stream, *wanted)).collect();
    let silence = rustix::time::Timespec::try_from(SILENCE).ok();
    loop {
        match rustix::event::poll(&mut fds, silence.as_ref()) {
            Ok(0) => return Err(io::ErrorKind::TimedOut.into()),
            Ok(_) => break,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let mut ready = fds.iter().map(|fd| {
        let flags = fd.revents();
        let is_over = flags.intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL);
        if is_over { PollFlags::IN | PollFlags::OUT } else { flags }
    });
    let mut of = |wanted: PollFlags| match wanted.is_empty() {
        true => PollFlags::empty(),
        false => ready.next().unwrap_or(PollFlags::empty()) & wanted,
    };
    Ok([of(client), of(server)])
}
