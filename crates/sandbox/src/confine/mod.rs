//! What is taken from a process before it becomes a program of the user's:
//! privileges, system calls, and paths. Prepared by the keeper, and then put up
//! by a process that makes nothing but system calls.

mod landlock;
pub mod seccomp;

use crate::plan::{Plan, User};
use crate::sys;
use landlock::Paths;
pub(crate) use landlock::{KNOWS_ABSTRACT_SOCKETS, version as landlock_version};
use seccomp::{Exception, Filter, Notify};
use std::ffi::{c_int, c_ulong};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

/// Capabilities that root of a sandbox has, of those in its own namespaces:
/// what installing programs takes. Owners and modes of files, other users.
const ROOT_KEEPS: &[u32] = &[
    0,  // CAP_CHOWN
    1,  // CAP_DAC_OVERRIDE
    3,  // CAP_FOWNER
    4,  // CAP_FSETID
    5,  // CAP_KILL
    6,  // CAP_SETGID
    7,  // CAP_SETUID
    10, // CAP_NET_BIND_SERVICE
];

#[derive(Debug)]
pub(crate) struct Confinement {
    filter: Filter,
    paths: Paths,
    keeps: u64,
    /// By the system's numbers.
    rlimits: Vec<(u32, u64)>,
}

impl Confinement {
    pub(crate) fn new(plan: &Plan) -> io::Result<Self> {
        let keeps = match plan.user {
            User::Agent => 0,
            User::Root => ROOT_KEEPS.iter().fold(0, |all, one| all | 1 << one),
        };
        let rlimits = plan.limits.rlimits();
        let notify = if plan.has_mover() { Notify::Mover } else { Notify::Nobody };
        let exception = plan.is_root_in_layers().then_some(Exception::RootInLayers);
        let filter = Filter::compiled(notify, exception);
        Ok(Self { filter, paths: Paths::new(plan)?, keeps, rlimits })
    }

    /// Paths alone, for a process of ours that acts for a program.
    pub(crate) fn confine_paths(&self) -> io::Result<()> {
        prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0)?;
        self.paths.enforce()
    }

    /// Only makes system calls. Whoever is told of calls gets the end to be told
    /// at by the socket.
    pub(crate) fn enforce(&self, mover: Option<BorrowedFd<'_>>) -> io::Result<()> {
        join_new_keyring();
        self.rlimits.iter().try_for_each(|(resource, limit)| lower(*resource, *limit))?;
        self.bound_capabilities()?;
        prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0)?;
        self.paths.enforce()?;
        match (self.filter.enforce()?, mover) {
            (None, _) => Ok(()),
            (Some(listener), Some(mover)) => sys::send_descriptors(mover, [listener.as_fd()]),
            (Some(_), None) => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    /// Whatever program comes next has no capability but these.
    fn bound_capabilities(&self) -> io::Result<()> {
        const LAST: u32 = 63;
        prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_CLEAR_ALL as c_ulong, 0)?;
        if self.keeps == 0 {
            raise_token()?;
        }
        for capability in (0..=LAST).filter(|one| self.keeps & (1 << one) == 0) {
            match prctl(libc::PR_CAPBSET_DROP, c_ulong::from(capability), 0) {
                Ok(()) => {}
                // There are no more of them.
                Err(error) if error.raw_os_error() == Some(libc::EINVAL) => break,
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// A kernel has one capability until its keeper takes that away, before it gets
/// any order: those beside it who have none cannot look into it, nor trace it,
/// while it comes up. This one, `CAP_BLOCK_SUSPEND`, is of no use in a namespace.
const TOKEN: u32 = 36;

/// The program that comes next has it, and passes it on. Only makes system calls.
fn raise_token() -> io::Result<()> {
    let mut halves = crate::sys::capabilities()?;
    halves[1].inheritable |= 1 << (TOKEN - 32);
    crate::sys::set_capabilities(&halves)?;
    prctl(libc::PR_CAP_AMBIENT, libc::PR_CAP_AMBIENT_RAISE as c_ulong, c_ulong::from(TOKEN))
}

/// No more than that, and never more again.
fn lower(resource: u32, limit: u64) -> io::Result<()> {
    let mut known = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: both structures are ours.
    let result = unsafe {
        libc::getrlimit(resource, &raw mut known);
        let most = limit.min(known.rlim_max);
        let bounded = libc::rlimit { rlim_cur: most.min(known.rlim_cur), rlim_max: most };
        libc::setrlimit(resource, &raw const bounded)
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn prctl(option: c_int, first: c_ulong, second: c_ulong) -> io::Result<()> {
    // SAFETY: only numbers are passed.
    if unsafe { libc::prctl(option, first, second, 0, 0) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Whether the system has filters of system calls.
pub(crate) fn seccomp_is_there() -> bool {
    // SAFETY: a filter that is nowhere is refused as that, if filters are known.
    let result = unsafe {
        libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, std::ptr::null::<u8>(), 0, 0)
    };
    result < 0 && io::Error::last_os_error().raw_os_error() == Some(libc::EFAULT)
}

/// Keys of whoever started the session are not for its programs. Where the
/// system has no keys there are none to see.
fn join_new_keyring() {
    const JOIN_SESSION_KEYRING: c_int = 1;
    // SAFETY: a keyring without a name.
    unsafe { libc::syscall(libc::SYS_keyctl, JOIN_SESSION_KEYRING, std::ptr::null::<u8>()) };
}
