//! The permission file system: a directory, as the rules of a policy show it.
//!
//! ```text
//!  program in the sandbox ──open──► kernel ──/dev/fuse──► Server ──openat──► source directory
//!                                   caches               one thread          an overlay, or the directory itself
//! ```
//!
//! It runs as a process of its own, outside the sandbox: what it holds open
//! must be out of reach of those whom it restricts.
//!
//! - **One thread** answers. Every change that a program in the sandbox makes passes
//!   here, one after the other. So a check and what follows from it cannot be
//!   parted by a rename, and there is no race to win.
//! - **One name at a time.** Each directory is opened from its parent's
//!   descriptor, by name, without following links. No path is ever resolved.
//!   Links inside are followed by the kernel of the sandbox, which asks here
//!   for each name on the way.
//! - **A node is a path, not an inode.** Two links to one file may have two
//!   levels. A node keeps its level: a directory is moved only where everything
//!   in it has the same level as before.
//! - **Files are read and written by the kernel itself** (passthrough) where this
//!   process has privileges over the machine. Where it has not, and for small files
//!   that are only read, two names of one file have two caches: who has both open
//!   at once may see one change late.
//! - **Few round trips.** Each costs more than what it asks for. Names are told
//!   before they are asked for, and small files are given with their opening.
//! - **What is hidden does not exist**, and its name cannot be had: nothing can
//!   be moved, linked or made there. A *file* can be opened for creation, as if
//!   somebody removed it at once: it works until it is closed, and never had a
//!   name. Installers that unpack a `cacert.pem` go on, what may lie there is
//!   untouched, and nobody learns whether something does.
//! - **Why not the `fuser` crate**: it wants a thread, a buffer of 16 MiB and
//!   eleven crates, and does not tell what is needed here (clearing of setuid
//!   bits, caching per directory). The protocol is reading and writing numbers.

mod account;
mod ahead;
mod device;
mod directories;
mod entry;
mod guard;
mod handles;
mod ids;
mod lookout;
mod message;
mod nodes;
mod siblings;
mod tree;

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::io::Errno;

pub(crate) use account::Account;
pub(crate) use account::bytes_below;
pub use ahead::Window;
pub use ids::{IdMap, IdRange};

use crate::mover::record::Records;
use crate::rules::Rules;
use device::{Device, Received};
use message::{Operation, Reply, Request};
use tree::Tree;

/// How long the kernel may rely on what it was told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caching {
    pub names: Duration,
    pub attributes: Duration,
}

impl Caching {
    /// For a source that nobody else changes: an overlay of the session.
    pub const ALONE: Self =
        Self { names: Duration::from_secs(3600), attributes: Duration::from_secs(3600) };
    /// For a directory that people work in meanwhile.
    pub const SHARED: Self =
        Self { names: Duration::from_secs(1), attributes: Duration::from_secs(1) };
}

/// Serves one directory.
#[derive(Debug)]
pub struct Server {
    tree: Tree,
}

impl Server {
    /// `source` is the directory, opened in any way.
    ///
    /// # Errors
    /// When it is no directory.
    pub fn new(source: impl AsFd, rules: Rules, ids: IdMap, caching: Caching) -> io::Result<Self> {
        Ok(Self { tree: Tree::new(source.as_fd(), rules, ids, caching)? })
    }

    /// Reads and writes every file itself, as one must who has no privileges
    /// over the machine.
    #[must_use]
    pub fn without_passthrough(mut self) -> Self {
        self.tree.forbid_passthrough();
        self
    }

    /// Tells the kernel of names before they are asked for, through the mount.
    #[must_use]
    pub fn with_window(mut self, window: Window) -> Self {
        self.tree.look_ahead(window);
        self
    }

    /// Writes moves of directories down, so that none is left in the middle.
    #[must_use]
    pub(crate) fn with_records(mut self, source: impl AsFd, records: Records) -> Self {
        self.tree.keep_records(source.as_fd(), records);
        self
    }

    /// Counts what is written, and refuses what is too much.
    #[must_use]
    pub(crate) fn with_account(mut self, account: Account) -> Self {
        self.tree.keep_account(account);
        self
    }

    /// Answers until the file system is unmounted. The process should have no
    /// other duty: its umask is set to 0, and its limit of descriptors raised.
    ///
    /// # Errors
    /// When the kernel says what cannot be understood.
    pub fn serve(mut self, dev_fuse: OwnedFd) -> io::Result<()> {
        rustix::process::umask(rustix::fs::Mode::empty());
        raise_descriptors();
        let mut device = Device::new(dev_fuse)?;
        let mut reply = Reply::default();
        loop {
            match device.receive()? {
                Received::Unmounted => return Ok(()),
                Received::Request(length) => {
                    let Some(request) = Request::parse(device.request(length)) else {
                        return Err(io::Error::from(io::ErrorKind::InvalidData));
                    };
                    let (unique, operation) = (request.unique, request.operation);
                    if request.operation == Operation::Init {
                        let outcome = device::greet(&request, &mut reply);
                        if let Ok(abilities) = outcome {
                            self.tree.set_passthrough(abilities.passthrough, device.handle());
                        }
                        device.answer(unique, outcome.map(|_| ()), &mut reply)?;
                        continue;
                    }
                    reply.clear();
                    if let Some(outcome) = self.tree.perform(&request, &mut reply) {
                        let refused = device.answer(unique, outcome, &mut reply)?;
                        if refused {
                            self.tree.was_not_received();
                        }
                    }
                    device.is_done_with(operation);
                }
            }
        }
    }
}

/// Each file that is open inside is open here.
fn raise_descriptors() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    let _ = setrlimit(Resource::Nofile, limit);
}

/// What an operation comes to.
type Outcome = Result<(), Errno>;
