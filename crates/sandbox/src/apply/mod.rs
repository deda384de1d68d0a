//! Builds a sandbox from a plan, and enters it.
//!
//! ```text
//!  keeper ──forks into new namespaces──► init (pid 1 inside; mounts; then waits)
//!    │                                     ▲ orphans of the session
//!    └─spawns─► helper ─joins them─► clones the kernel, with the keeper as its parent
//! ```
//!
//! The keeper stays outside. Everything in the sandbox depends on its init: when that ends,
//! the system kills every process inside, and the mounts go with the last of them. Init has
//! SIGKILL as its parent-death signal.
//!
//! Invariants: the builder has a single thread; the host's files are not changed, except
//! that directories are made in the session's own layer.

mod aside;
mod build;
mod changed;
pub mod command_line;
mod dumps;
mod guard;
mod init;
mod owners;
mod tally;

pub use changed::has_changed_system;
pub use tally::{Tallied, Tally};

pub(crate) use guard::leave_keeper;

use crate::confine::Confinement;
use crate::limits::Group;
use crate::mover::Mover;
use crate::plan::{Net, Plan, slate_bytes};
use crate::proxy::Proxy;
use crate::sys;
use owners::Mapped;
use rustix::process::{Pid, Signal};
use sessile_proc::Process;
use std::ffi::{CString, c_int};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Why a sandbox could not be built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    #[error("{0}")]
    Namespaces(crate::check::Missing),
    #[error("its limits cannot be held: {0}")]
    Limits(io::Error),
    #[error("the sandbox could not be built: {0}")]
    Step(String),
    #[error("the sandbox could not be built: {0}")]
    System(#[from] io::Error),
}

impl From<rustix::io::Errno> for BuildError {
    fn from(error: rustix::io::Errno) -> Self {
        Self::System(error.into())
    }
}

/// A sandbox that has been built.
#[derive(Debug)]
pub struct Sandbox {
    init: Pid,
    pidfd: OwnedFd,
    root: OwnedFd,
    ends: File,
    namespaces: c_int,
    confinement: Confinement,
    guard: Option<Pid>,
    mover: Option<Mover>,
    group: Option<Group>,
    tally: Option<Tally>,
    proxy: Option<Proxy>,
    /// Size of each directory that a kernel writes to for its keeper.
    slate_bytes: u64,
}

/// The end of an orphaned process inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// Its pid inside.
    pub pid: i32,
    /// As in a shell: 128 and more for signals.
    pub code: i32,
}

/// Size of init's message about an end: two numbers.
const END_BYTES: usize = 8;

impl Sandbox {
    /// Builds it. The caller must have a single thread.
    ///
    /// # Errors
    /// With what could not be done; nothing is left of the sandbox then.
    pub fn build(plan: &Plan) -> Result<Self, BuildError> {
        let confinement = Confinement::new(plan)?;
        let group = plan.limits.group.as_ref().map(Group::make).transpose();
        let group = group.map_err(BuildError::Limits)?;
        let account = plan.guard.as_ref().and_then(|guard| guard.account.as_ref());
        let tally = account.map(|_| Tally::new()).transpose()?;
        let (ends, ends_in) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        let (outcome, outcome_in) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
        let (given, giving) = guard::channel()?;
        let namespaces = namespaces(&plan.net);
        let ids = (rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw());
        let mapped = Mapped::of(plan, ids)?;
        owners::make_directories(plan, ids.1)?;
        // The cgroup namespace is made once init is in its group.
        let pid = match sys::fork_into(namespaces & !libc::CLONE_NEWCGROUP) {
            Ok(0) => {
                drop((ends, outcome, given));
                let group = group.as_ref();
                build::become_init(plan, ids, group, mapped, (ends_in, outcome_in, giving))
            }
            Ok(pid) => Pid::from_raw(pid).ok_or(rustix::io::Errno::SRCH)?,
            Err(error) => {
                return Err(BuildError::Namespaces(crate::check::namespaces_missing(&error)));
            }
        };
        drop((ends_in, outcome_in, giving, mapped));
        // Init reports why it has ended.
        let _ = build::map_range(pid, plan, ids, given.as_fd());
        // Init waits for answers before it is done.
        let guard = match &plan.guard {
            Some(guard) => guard::start(guard, given.as_fd(), ids, plan, pid, tally.as_ref())?,
            None => None,
        };
        let proxy = match &plan.net {
            Net::Proxied(hosts) => match sys::receive_descriptors(given.as_fd())? {
                Some([listener]) => Some(Proxy::start(hosts, listener, pid)?),
                // Init has ended before, and reports why.
                None => None,
            },
            Net::Own | Net::Hosts => None,
        };
        let mut said = String::new();
        let read = File::from(outcome).read_to_string(&mut said);
        if read.is_err() || said != build::DONE {
            let _ = rustix::process::kill_process(pid, Signal::KILL);
            let _ = rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::empty());
            guard.iter().for_each(|pid| guard::end(*pid));
            let why = if said.is_empty() { "its first process ended".to_owned() } else { said };
            return Err(BuildError::Step(why));
        }
        rustix::io::ioctl_fionbio(&ends, true)?;
        let pidfd = sys::pidfd_of(pid.as_raw_nonzero().get())?;
        let root = Self::root_of(pid)?;
        let ends = File::from(ends);
        let mover = plan
            .has_mover()
            .then(|| Mover::start(pidfd.as_fd(), &plan.base, &confinement))
            .transpose();
        let mover = mover.inspect_err(|_| {
            let _ = rustix::process::kill_process(pid, Signal::KILL);
        })?;
        Ok(Self {
            init: pid,
            pidfd,
            root,
            ends,
            namespaces,
            confinement,
            guard,
            mover,
            group,
            tally,
            proxy,
            slate_bytes: slate_bytes(plan.limits.private_bytes),
        })
    }

    fn root_of(pid: Pid) -> io::Result<OwnedFd> {
        let path = format!("/proc/{}/root", pid.as_raw_nonzero());
        let flags =
            rustix::fs::OFlags::PATH | rustix::fs::OFlags::DIRECTORY | rustix::fs::OFlags::CLOEXEC;
        Ok(rustix::fs::open(path, flags, rustix::fs::Mode::empty())?)
    }

    #[must_use]
    pub fn init(&self) -> Pid {
        self.init
    }

    /// Returns the processes outside that it depends on: the guard, which shows the
    /// workspace, and the mover, which programs that rename wait for.
    pub fn attendants(&self) -> impl Iterator<Item = Pid> {
        self.guard.into_iter().chain(self.mover.as_ref().map(Mover::pid))
    }

    /// Returns the control group that counts what its processes use, if there is one.
    #[must_use]
    pub fn group(&self) -> Option<&Group> {
        self.group.as_ref()
    }

    /// Returns what has been written to its layer, if that is limited.
    #[must_use]
    pub fn tallied(&self) -> Option<Tallied> {
        self.tally.as_ref().map(Tally::read)
    }

    /// Returns the bytes that the private directories use, and their limit.
    #[must_use]
    pub fn private_bytes(&self) -> Option<(u64, u64)> {
        let directory = self.open(Path::new("/tmp"), libc::O_PATH | libc::O_DIRECTORY).ok()?;
        let stat = rustix::fs::fstatfs(&directory).ok()?;
        let block = u64::try_from(stat.f_bsize).ok()?;
        Some((stat.f_blocks.saturating_sub(stat.f_bfree) * block, stat.f_blocks * block))
    }

    /// Returns the proxy, if its network is a list of hosts.
    #[must_use]
    pub fn proxy(&self) -> Option<&Proxy> {
        self.proxy.as_ref()
    }

    /// Whether a process outside works for it.
    #[must_use]
    pub fn is_served_by(&self, pid: Pid) -> bool {
        self.attendants().any(|one| one == pid)
            || self.proxy.as_ref().and_then(Proxy::pid) == Some(pid)
    }

    /// Returns the path outside for a path inside. Only for paths that cannot be changed
    /// from inside: links are not followed as they would be there.
    #[must_use]
    pub fn outside(&self, path: &Path) -> PathBuf {
        let below = path.strip_prefix("/").unwrap_or(path);
        Path::new("/proc").join(self.init.as_raw_nonzero().to_string()).join("root").join(below)
    }

    /// Opens what a path refers to inside. Links do not lead out.
    ///
    /// # Errors
    /// When it does not exist, or may not be opened in this way.
    pub fn open(&self, path: &Path, flags: c_int) -> io::Result<OwnedFd> {
        let path = CString::new(path.as_os_str().as_bytes())?;
        sys::open_in(self.root.as_fd(), &path, flags)
    }

    /// Whether there is a program at this path inside.
    #[must_use]
    pub fn has_program(&self, path: &Path) -> bool {
        let Ok(file) = self.open(path, libc::O_PATH) else { return false };
        rustix::fs::fstat(&file).is_ok_and(|stat| {
            rustix::fs::FileType::from_raw_mode(stat.st_mode) == rustix::fs::FileType::RegularFile
                && stat.st_mode & 0o111 != 0
        })
    }

    /// Whether there is a directory at this path inside.
    #[must_use]
    pub fn has_directory(&self, path: &Path) -> bool {
        self.open(path, libc::O_PATH | libc::O_DIRECTORY).is_ok()
    }

    /// Returns a descriptor that is readable when an orphaned process has ended.
    #[must_use]
    pub fn ends(&self) -> BorrowedFd<'_> {
        self.ends.as_fd()
    }

    /// Returns the ends since the last call.
    pub fn take_ends(&self) -> Vec<End> {
        let mut buffer = [0; 64 * END_BYTES];
        let mut ends = Vec::new();
        while let Ok(read) = (&self.ends).read(&mut buffer) {
            let number = |bytes: &[u8]| bytes.try_into().map(i32::from_ne_bytes).unwrap_or(0);
            ends.extend(
                buffer[..read]
                    .chunks_exact(END_BYTES)
                    .map(|end| End { pid: number(&end[..4]), code: number(&end[4..]) }),
            );
            if read < buffer.len() {
                break;
            }
        }
        ends
    }

    /// Whether its init is alive: without it there is no sandbox any more.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        let mut poll = [rustix::event::PollFd::new(&self.pidfd, rustix::event::PollFlags::IN)];
        let now = rustix::time::Timespec { tv_sec: 0, tv_nsec: 0 };
        // An init that ends waits until everything inside has ended and is reaped. Nothing can
        // be started there any more.
        let is_ending = || Process::new(self.init).stat().is_none_or(|stat| stat.has_ended());
        rustix::event::poll(&mut poll, Some(&now)) == Ok(0) && !is_ending()
    }

    /// Kills everything inside. The builder has to reap its init, and its own children inside.
    pub fn kill(&self) {
        self.proxy.iter().for_each(Proxy::end);
        self.mover.iter().for_each(Mover::end);
        let _ = rustix::process::pidfd_send_signal(&self.pidfd, Signal::KILL);
    }

    /// Joins the namespaces. Children cloned after this are inside; the caller itself is,
    /// except for its pid. Only makes system calls.
    ///
    /// # Errors
    /// Of the system calls.
    pub fn enter(&self) -> io::Result<()> {
        sys::leave_groups();
        sys::join(self.pidfd.as_fd(), self.namespaces)
    }

    /// Mounts an empty directory in memory over a path inside, for what a kernel writes
    /// for its keeper.
    ///
    /// # Errors
    /// Of the system calls.
    pub fn mount_slate(&self, path: &Path) -> io::Result<()> {
        let path = CString::new(path.as_os_str().as_bytes())?;
        let options = format!("mode=0700,size={},nr_inodes={SLATE_FILES}", self.slate_bytes);
        let options = CString::new(options)?;
        aside::run(|| {
            self.enter()?;
            let _ = sys::detach(&path);
            let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
            sys::mount(Some(c"slate"), &path, Some(c"tmpfs"), flags, Some(&options))
        })
    }

    /// Shows a directory of the host at its path inside, read-only, in place of one that was
    /// there before and that the host has removed.
    ///
    /// # Errors
    /// Of the system calls. The earlier one is shown then, or nothing.
    pub fn show_again(&self, path: &Path) -> io::Result<()> {
        let path = CString::new(path.as_os_str().as_bytes())?;
        let mut tree = None;
        aside::run_with_own_mounts(|| {
            let clone = sys::clone_tree(&path)?;
            sys::restrict(clone.as_fd(), SHOWN, sys::Depth::AllBelow)?;
            tree = Some(clone);
            Ok(())
        })?;
        let tree = tree.ok_or(io::ErrorKind::NotFound)?;
        aside::run(|| {
            self.enter()?;
            // Nothing can be mounted on a directory that was removed.
            let _ = sys::detach(&path);
            let flags = rustix::fs::OFlags::PATH | rustix::fs::OFlags::CLOEXEC;
            let onto = rustix::fs::open(&*path, flags, rustix::fs::Mode::empty())?;
            sys::attach(tree.as_fd(), onto.as_fd())
        })
    }

    /// Takes away all rights of a process inside before it executes a program of the
    /// user. Only makes system calls.
    ///
    /// Capabilities stay until the program is executed, which then has none: until then
    /// this process has the keeper's memory, and no process inside may inspect one with
    /// more capabilities.
    ///
    /// # Errors
    /// Of the system calls.
    pub fn confine(&self) -> io::Result<()> {
        // It was made outside of the group: even a full group accepts it.
        if let Some(group) = &self.group {
            group.enter()?;
        }
        self.confinement.enforce(self.mover.as_ref().map(Mover::socket))
    }
}

/// Returns the namespaces that the sandbox has for itself.
fn namespaces(net: &Net) -> c_int {
    let own_net = match net {
        Net::Own | Net::Proxied(_) => libc::CLONE_NEWNET,
        Net::Hosts => 0,
    };
    own_net
        | libc::CLONE_NEWUSER
        | libc::CLONE_NEWNS
        | libc::CLONE_NEWPID
        | libc::CLONE_NEWIPC
        | libc::CLONE_NEWUTS
        | libc::CLONE_NEWCGROUP
}

/// Attributes of directories of the host that are only to be read.
const SHOWN: u64 = sys::RDONLY | sys::NOSUID | sys::NODEV;

/// Limit for the files that a kernel writes for its keeper: a handful.
const SLATE_FILES: u32 = 128;
