//! A Unix socket whose owner is woken only by what comes in.
//!
//! Each time the other end of a Unix socket reads something, the system reports that there
//! is room to write. tokio's own type listens to that all the time, so the server was woken
//! twice in each run: when the keeper had read the order, and when it answered. Here room
//! is only listened for while a write waits for it.

use std::cell::RefCell;
use std::io::{self, IoSlice, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};

/// What is read of a socket at once.
const PIECE_SIZE: usize = 16 << 10;

thread_local! {
    static PIECE: RefCell<Box<[u8]>> = RefCell::new(vec![0; PIECE_SIZE].into());
}

#[derive(Debug)]
pub(crate) struct Socket {
    stream: AsyncFd<UnixStream>,
    /// A copy of the descriptor that waits for room to write.
    room: Option<AsyncFd<UnixStream>>,
}

impl Socket {
    pub(crate) fn new(stream: UnixStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self { stream: watch(stream, Interest::READABLE)?, room: None })
    }

    /// Reads what is there, if anything.
    pub(crate) fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        // Asks the system only if something has come.
        self.stream.try_io(Interest::READABLE, |mut stream| stream.read(buffer))
    }

    /// Waits for data, and passes on what has come; nothing at the end. The data is in a
    /// buffer of the thread: one for each of a thousand idle connections would be most of
    /// the server's memory. Cancel-safe: what was read has been passed on.
    pub(crate) async fn receive(&self, mut take: impl FnMut(&[u8])) -> io::Result<usize> {
        std::future::poll_fn(|context| {
            PIECE.with_borrow_mut(|piece| {
                let length = ready!(self.poll_read_into(context, piece))?;
                take(&piece[..length]);
                Poll::Ready(Ok(length))
            })
        })
        .await
    }

    fn poll_read_into(
        &self,
        context: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        loop {
            let mut readiness = ready!(self.stream.poll_read_ready(context))?;
            let mut stream = self.stream.get_ref();
            match stream.read(buffer) {
                Ok(length) => {
                    // There is no more than this, so the next read has to wait.
                    if 0 < length && length < buffer.len() {
                        readiness.clear_ready();
                    }
                    return Poll::Ready(Ok(length));
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => readiness.clear_ready(),
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
    }

    /// Writes as much as there is room for.
    pub(crate) fn try_write(&self, data: &[u8]) -> io::Result<usize> {
        let mut stream = self.stream.get_ref();
        stream.write(data)
    }

    /// Writes `length` bytes, or as many as there is room for, but at least one.
    fn poll_write_with(
        &mut self,
        context: &mut Context<'_>,
        length: usize,
        mut write: impl FnMut(&UnixStream) -> io::Result<usize>,
    ) -> Poll<io::Result<usize>> {
        loop {
            let stream = self.stream.get_ref();
            match write(stream) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                outcome => {
                    // The rest of a long text has to wait for room again.
                    if !outcome.as_ref().is_ok_and(|written| *written < length) {
                        self.room = None;
                    }
                    return Poll::Ready(outcome);
                }
            }
            let room = match &mut self.room {
                Some(room) => room,
                none => none.insert(watch(stream.try_clone()?, Interest::WRITABLE)?),
            };
            // What was known of room is from before the write. If there is some again, it
            // is reported anew.
            ready!(room.poll_write_ready(context))?.clear_ready();
        }
    }
}

fn watch(stream: UnixStream, interest: Interest) -> io::Result<AsyncFd<UnixStream>> {
    // SAFETY: the stream owns its descriptor, and always returns the same one.
    Ok(unsafe { AsyncFd::register_with_interest(stream, interest) }?)
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let length = ready!(self.poll_read_into(context, buffer.initialize_unfilled()))?;
        buffer.advance(length);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_with(context, data.len(), |mut stream| stream.write(data))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let length = parts.iter().map(|part| part.len()).sum();
        self.poll_write_with(context, length, |mut stream| stream.write_vectored(parts))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.stream.get_ref().shutdown(Shutdown::Write))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    fn pair() -> (Socket, UnixStream) {
        let (ours, theirs) = UnixStream::pair().unwrap();
        (Socket::new(ours).unwrap(), theirs)
    }

    const OUT: u32 = rustix::event::epoll::EventFlags::OUT.bits();

    fn inode(socket: &Socket) -> u64 {
        rustix::fs::fstat(socket).unwrap().st_ino
    }

    /// Returns whether an epoll of this process watches the socket for room to write.
    fn is_room_awaited(inode: u64) -> bool {
        let infos = std::fs::read_dir("/proc/self/fdinfo").unwrap();
        let texts = infos.filter_map(|info| std::fs::read_to_string(info.unwrap().path()).ok());
        let text: String = texts.collect();
        // tfd: 12 events: 80002019 data: 0 pos:0 ino:24acd0 sdev:9
        let watched = text.lines().filter(|line| line.starts_with("tfd:"));
        let ours = watched.filter(|line| field(line, "ino:") == inode);
        let events: Vec<_> = ours.map(|line| field(line, "events:") as u32).collect();
        assert!(!events.is_empty(), "it is not watched at all");
        events.iter().any(|events| events & OUT != 0)
    }

    fn field(line: &str, name: &str) -> u64 {
        let value = line.split(name).nth(1).and_then(|rest| rest.split_whitespace().next());
        u64::from_str_radix(value.unwrap(), 16).unwrap()
    }

    #[tokio::test]
    async fn what_the_other_end_reads_wakes_nobody() {
        let (mut socket, theirs) = pair();
        socket.write_all(b"order").await.unwrap();
        assert!(!is_room_awaited(inode(&socket)));
        drop(theirs);
    }

    #[tokio::test]
    async fn a_long_text_arrives_whole_and_room_is_listened_for_no_longer() {
        let (mut socket, mut theirs) = pair();
        let text: Vec<u8> = (0..5_000_000_u32).map(|n| n as u8).collect();
        let expected = text.clone();
        let (blocked, may_read) = std::sync::mpsc::channel();
        let reader = std::thread::spawn(move || {
            let mut read = vec![0; expected.len()];
            may_read.recv().unwrap();
            theirs.read_exact(&mut read).unwrap();
            assert!(read == expected);
            theirs
        });
        let mut rest = &text[..];
        let first = socket.write(rest).await.unwrap();
        assert!(first < rest.len(), "it has room for everything");
        rest = &rest[first..];
        let inode = inode(&socket);
        let mut writing = Box::pin(async {
            socket.write_all(rest).await.unwrap();
            socket
        });
        // It waits for room.
        let waits = std::future::poll_fn(|context| {
            Poll::Ready(writing.as_mut().poll(context).is_pending())
        });
        assert!(waits.await);
        assert!(is_room_awaited(inode));
        blocked.send(()).unwrap();
        let socket = writing.await;
        let theirs = reader.join().unwrap();
        assert!(!is_room_awaited(inode));
        drop(socket);
        drop(theirs);
    }

    #[tokio::test]
    async fn parts_are_written_in_their_order() {
        let (mut socket, mut theirs) = pair();
        let parts = [IoSlice::new(b"head "), IoSlice::new(b"body")];
        assert_eq!(socket.write_vectored(&parts).await.unwrap(), 9);
        socket.shutdown().await.unwrap();
        let mut text = String::new();
        theirs.read_to_string(&mut text).unwrap();
        assert_eq!(text, "head body");
    }

    #[tokio::test]
    async fn everything_is_read_up_to_the_end() {
        let (mut socket, theirs) = pair();
        assert_eq!(
            socket.try_read(&mut [0]).unwrap_err().kind(),
            io::ErrorKind::WouldBlock,
            "nothing has come"
        );
        let writer = std::thread::spawn(move || {
            for n in 0..1000_u32 {
                (&theirs).write_all(&n.to_le_bytes()).unwrap();
            }
        });
        let mut read = Vec::new();
        socket.read_to_end(&mut read).await.unwrap();
        writer.join().unwrap();
        let expected: Vec<u8> = (0..1000_u32).flat_map(u32::to_le_bytes).collect();
        assert_eq!(read, expected);
        assert_eq!(socket.read(&mut [0; 8]).await.unwrap(), 0, "the end stays the end");
    }

    #[tokio::test]
    async fn a_gone_reader_is_an_error() {
        let (mut socket, theirs) = pair();
        drop(theirs);
        let error = socket.write_all(b"order").await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    }
}
