//! The pipes that runs write to.
//!
//! A kernel's `o` and `e` are FIFOs that each run opens anew. When a run ends and nothing
//! holds its FIFO any more, the next run uses it again. If something does (a background
//! process), the FIFO is left to that run and a new one takes its name. So one run's
//! output never appears in another's.
//!
//! A stream is watched only after its run has lasted some milliseconds (`keeper/patience.rs`):
//! most runs are over by then, and each opening and closing of a watched pipe would wake the keeper for
//! nothing.

use crate::processes::PipeId;
use crate::reactor::{Interest, Reactor};
use crate::scratch::{PipeAccess, allow_writing_only, hidden_name, make_fifo, name_again};
use crate::source::{Pipe, Source};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use sessile_store::StreamName;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// Size of one read, and the default capacity of a pipe.
pub(crate) const CHUNK: usize = 64 << 10;

/// Capacity for a run that writes much: fewer switches between it and the keeper.
const LARGE_PIPE: usize = 1 << 20;

#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) name: StreamName,
    /// The key under which it is watched, while it is.
    watched: Option<Pipe>,
    fd: OwnedFd,
    id: PipeId,
    is_large: bool,
    path: PathBuf,
    naming: Naming,
    at_path: Name,
}

/// What is at a stream's path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Name {
    Itself,
    /// A link to it: see [`name_again`].
    Link,
    /// Nothing, because its directory was removed.
    Gone,
}

/// Name of a stream in its kernel's directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Naming {
    /// `o` or `e`.
    Plain,
    /// A random name, which only the kernel learns, in its order.
    Hidden,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Drained {
    /// Nothing more for now, but something can still write.
    Empty,
    /// Nothing can write any more.
    Closed,
    /// There may be more, but others should have their turn first.
    More,
}

impl Stream {
    pub(crate) fn create(directory: &Path, name: StreamName) -> io::Result<Self> {
        Self::named(directory, name, Naming::Plain)
    }

    pub(crate) fn named(directory: &Path, name: StreamName, naming: Naming) -> io::Result<Self> {
        let path = match naming {
            Naming::Plain => path_of(directory, name),
            Naming::Hidden => hidden_name(directory)?,
        };
        make_fifo(&path)?;
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let fd = rustix::fs::open(&path, flags, Mode::empty())?;
        if naming == Naming::Hidden {
            allow_writing_only(&path)?;
        }
        let stat = rustix::fs::fstat(&fd)?;
        let id = PipeId { device: stat.st_dev, inode: stat.st_ino };
        Ok(Self {
            name,
            watched: None,
            fd,
            id,
            is_large: false,
            path,
            naming,
            at_path: Name::Itself,
        })
    }

    /// Creates a stream for the next runs, when something still holds this one.
    pub(crate) fn successor(&self, directory: &Path) -> io::Result<Self> {
        let fresh = Self::named(directory, self.name, self.naming)?;
        if fresh.path != self.path {
            let _ = std::fs::remove_file(&self.path);
        }
        Ok(fresh)
    }

    /// Replaces the stream with one under a secret name.
    pub(crate) fn hide(&mut self, directory: &Path) -> io::Result<()> {
        let fresh = Self::named(directory, self.name, Naming::Hidden)?;
        let _ = std::fs::remove_file(&self.path);
        *self = fresh;
        Ok(())
    }

    /// Gives the pipe its name again, in a directory that was created anew. In a sandbox
    /// no link leads to this process: a run that has the pipe goes on with it, and the next
    /// one gets another.
    pub(crate) fn name_again(&mut self, pipe_access: PipeAccess) -> io::Result<()> {
        match pipe_access {
            PipeAccess::Open => {
                name_again(&self.path, &self.fd)?;
                self.at_path = Name::Link;
            }
            PipeAccess::Closed => self.at_path = Name::Gone,
        }
        Ok(())
    }

    pub(crate) fn is_hidden(&self) -> bool {
        self.naming == Naming::Hidden
    }

    /// Makes another one if no run could find this one by its name.
    pub(crate) fn ensure_name(&mut self, directory: &Path) -> io::Result<()> {
        if self.at_path == Name::Gone {
            *self = self.successor(directory)?;
        }
        Ok(())
    }

    /// Whether something else has removed its name.
    pub(crate) fn was_removed(&self) -> bool {
        match self.at_path {
            Name::Itself => rustix::fs::fstat(&self.fd).is_ok_and(|own| own.st_nlink == 0),
            Name::Link => rustix::fs::readlink(&self.path, Vec::new()).is_err(),
            Name::Gone => false,
        }
    }

    /// Returns the path for the kernel.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Reports events of it from now on, under this name.
    pub(crate) fn watch(&mut self, name: Pipe, reactor: &Reactor<Source>) -> io::Result<()> {
        match self.watched {
            Some(known) if known == name => {}
            Some(_) => reactor.change(&self.fd, Source::Pipe(name), Interest::Edge),
            None => reactor.add(&self.fd, Source::Pipe(name), Interest::Edge)?,
        }
        self.watched = Some(name);
        Ok(())
    }

    pub(crate) fn is_watched(&self) -> bool {
        self.watched.is_some()
    }

    pub(crate) fn unwatch(&mut self, reactor: &Reactor<Source>) {
        if self.watched.take().is_some() {
            reactor.remove(&self.fd);
        }
    }

    /// Reports only its end, until reading resumes.
    pub(crate) fn pause(&self, reactor: &Reactor<Source>) {
        if let Some(name) = self.watched {
            reactor.change(&self.fd, Source::Pipe(name), Interest::End);
        }
    }

    /// Reports its events again, including data that is already there.
    pub(crate) fn resume(&self, reactor: &Reactor<Source>) {
        if let Some(name) = self.watched {
            reactor.change(&self.fd, Source::Pipe(name), Interest::Edge);
        }
    }

    /// Returns the number of bytes that are in the pipe now.
    pub(crate) fn waiting(&self) -> usize {
        rustix::io::ioctl_fionread(&self.fd).map_or(0, |n| usize::try_from(n).unwrap_or(0))
    }

    pub(crate) fn id(&self) -> PipeId {
        self.id
    }

    /// Reads what is there, at most `limit` bytes.
    pub(crate) fn drain(
        &mut self,
        buffer: &mut [u8],
        limit: usize,
        mut sink: impl FnMut(&[u8]),
    ) -> Drained {
        let mut taken = 0;
        while taken < limit {
            match rustix::io::read(&self.fd, &mut *buffer) {
                Ok(0) => return Drained::Closed,
                Ok(n) => {
                    sink(&buffer[..n]);
                    taken += n;
                    if taken >= CHUNK && !self.is_large {
                        self.is_large = true;
                        let _ = rustix::pipe::fcntl_setpipe_size(&self.fd, LARGE_PIPE);
                    }
                }
                Err(Errno::INTR) => {}
                Err(_) => return Drained::Empty,
            }
        }
        Drained::More
    }
}

fn path_of(directory: &Path, name: StreamName) -> PathBuf {
    directory.join(match name {
        StreamName::Stdout => "o",
        StreamName::Stderr => "e",
    })
}
