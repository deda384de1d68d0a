//! A connection from inside until its request is read: limited in size and time.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

/// How long a client has to send its request.
const PATIENCE: Duration = Duration::from_secs(30);

/// How much is read of a client that has been answered, so that it sees the answer: a
/// connection that is closed with unread bytes is reset.
const LEFT_BYTES: usize = 256 << 10;
const LEFT_TIME: Duration = Duration::from_millis(500);

#[derive(Debug)]
pub(super) struct Incoming {
    pub(super) stream: TcpStream,
    deadline: Instant,
    /// Bytes that were read and not taken yet.
    held: Vec<u8>,
}

impl Incoming {
    pub(super) fn new(stream: TcpStream) -> Self {
        Self { stream, deadline: Instant::now() + PATIENCE, held: Vec::new() }
    }

    /// Returns the bytes that were read so far.
    pub(super) fn held(&self) -> &[u8] {
        &self.held
    }

    /// Waits for more.
    pub(super) fn fill(&mut self) -> io::Result<()> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.stream.set_read_timeout(Some(left))?;
        let mut buffer = [0; 4 << 10];
        match self.stream.read(&mut buffer) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => {
                self.held.extend_from_slice(&buffer[..read]);
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Returns the next bytes, once they are there.
    pub(super) fn take(&mut self, count: usize) -> io::Result<Vec<u8>> {
        while self.held.len() < count {
            self.fill()?;
        }
        let rest = self.held.split_off(count);
        Ok(std::mem::replace(&mut self.held, rest))
    }

    /// Sends an answer and closes the connection.
    pub(super) fn finish(mut self, answer: &[u8]) {
        let _ = self.stream.set_write_timeout(Some(LEFT_TIME));
        if self.stream.write_all(answer).is_ok() {
            see_off(&self.stream);
        }
    }

    /// Returns the connection, and the bytes that were read and not taken.
    pub(super) fn into_parts(self) -> (TcpStream, Vec<u8>) {
        (self.stream, self.held)
    }
}

/// Lets a client read everything that it was sent.
pub(super) fn see_off(mut stream: &TcpStream) {
    let deadline = Instant::now() + LEFT_TIME;
    if stream.set_nonblocking(false).is_err() || stream.shutdown(Shutdown::Write).is_err() {
        return;
    }
    let mut buffer = [0; 4 << 10];
    let mut left = LEFT_BYTES;
    while left > 0 {
        let time = deadline.saturating_duration_since(Instant::now());
        if time.is_zero() || stream.set_read_timeout(Some(time)).is_err() {
            return;
        }
        match stream.read(&mut buffer) {
            Ok(0) | Err(_) => return,
            Ok(read) => left = left.saturating_sub(read),
        }
    }
}
