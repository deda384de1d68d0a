//! The process that shows a workspace according to the rules of a policy: a fork of the
//! keeper, outside the sandbox, which serves the file system that init has mounted. It
//! ends with the mount, or with the keeper.

use super::tally::Tally;
use crate::fuse::{Account, Caching, IdMap, IdRange, Server, Window};
use crate::mover::record::Records;
use crate::plan::{Claim, Guard, Plan, WORKSPACE};
use crate::rules::Rules;
use crate::sys;
use rustix::fs::{Mode, OFlags};
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use rustix::process::{Pid, Signal};
use sessile_subids::Extent;
use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// Returns the socket pair over which init sends what is needed: the keeper's end first.
pub(super) fn channel() -> io::Result<(OwnedFd, OwnedFd)> {
    let (kind, flags) = (SocketType::SEQPACKET, SocketFlags::CLOEXEC);
    Ok(rustix::net::socketpair(AddressFamily::UNIX, kind, flags, None)?)
}

/// Starts the guard once init has sent the directory and the device. Returns none if init
/// has ended before: init reports why.
pub(super) fn start(
    guard: &Guard,
    given: BorrowedFd<'_>,
    (uid, gid): (u32, u32),
    plan: &Plan,
    init: Pid,
    tally: Option<&Tally>,
) -> io::Result<Option<Pid>> {
    let Some([source, device]) = sys::receive_descriptors(given)? else { return Ok(None) };
    let ranges = |extents: Vec<Extent>| {
        let extents = extents.into_iter();
        extents.map(|(inside, outside, count)| IdRange { inside, outside, count }).collect()
    };
    let inside = plan.user.id();
    let own_groups = match plan.claim {
        Claim::Own | Claim::All => Vec::new(),
        Claim::Groups => {
            rustix::process::getgroups()?.into_iter().map(|group| group.as_raw()).collect()
        }
    };
    let mut ids = IdMap { user: inside, claims: plan.claim, own_groups, ..IdMap::default() };
    if !plan.ids.are_inside_only() {
        ids.users = ranges(plan.ids.users(inside, uid));
        ids.groups = ranges(plan.ids.groups(inside, gid));
    }
    let caching = if guard.is_alone { Caching::ALONE } else { Caching::SHARED };
    let account = match (&guard.account, tally) {
        (Some(account), Some(tally)) => {
            let Some([private, size]) = sys::receive_descriptors(given)? else { return Ok(None) };
            let upper = rustix::fs::open(
                &account.upper,
                OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
                Mode::empty(),
            )?;
            let limits = (account.limit, account.most_private);
            Some((limits, [upper, private, size], tally))
        }
        (Some(_) | None, _) => None,
    };
    let mut kept = vec![source.as_raw_fd(), device.as_raw_fd()];
    let counted = account.iter().flat_map(|(_, descriptors, _)| descriptors);
    kept.extend(counted.map(AsRawFd::as_raw_fd));
    // With a layer, moves are recorded beside it.
    let records = guard.is_alone.then(|| Records::of(&plan.base)).transpose()?;
    kept.extend(records.as_ref().map(|records| records.as_fd().as_raw_fd()));
    let rules = Rules::new(&guard.policy);
    // To give files to users inside, the guard must be in their user namespace.
    let namespace = plan.ids.are_inside_only().then(|| sys::pidfd_of(init.as_raw_nonzero().get()));
    let namespace = namespace.transpose()?;
    kept.extend(namespace.as_ref().map(AsRawFd::as_raw_fd));
    let window = window(init)?;
    kept.push(window.base.as_raw_fd());
    let keeper = rustix::process::getpid();
    // SAFETY: the caller has a single thread, so the child has a consistent heap.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            leave_keeper(&mut kept);
            if let Some(namespace) = &namespace {
                join_users(namespace.as_fd(), keeper);
            }
            let served = Server::new(&source, rules, ids, caching).and_then(|server| {
                let server = server.with_window(window);
                let server = match records {
                    Some(records) => server.with_records(&source, records),
                    None => server,
                };
                // Passthrough takes privileges over the machine.
                let server = match account {
                    // Bytes that bypass the guard cannot be counted.
                    Some((limits, descriptors, tally)) => {
                        let account = Account::new(limits, descriptors, tally.of_guard());
                        server.without_passthrough().with_account(account)
                    }
                    None if uid == 0 => server,
                    None => server.without_passthrough(),
                };
                server.serve(device)
            });
            // SAFETY: ends this process without running any of the keeper's code.
            unsafe { libc::_exit(i32::from(served.is_err())) }
        }
        pid => Ok(Pid::from_raw(pid)),
    }
}

/// The workspace, as it is seen inside.
fn window(init: Pid) -> io::Result<Window> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let process = format!("/proc/{}", init.as_raw_nonzero());
    let base = rustix::fs::open(process, flags, Mode::empty())?;
    Ok(Window { base, path: CString::new(format!("root{WORKSPACE}"))? })
}

/// Root of the sandbox's users, with none of its processes or mounts.
fn join_users(init: BorrowedFd<'_>, keeper: Pid) {
    let joined = sys::join(init, libc::CLONE_NEWUSER);
    // Joining may have cleared it.
    let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
    if joined.is_err() || rustix::process::getppid() != Some(keeper) {
        // SAFETY: ends this process without running any of the keeper's code.
        unsafe { libc::_exit(1) }
    }
}

/// Called in a fork: closes everything that belongs to the keeper except these
/// descriptors, and arranges to die with the keeper, whatever signals come.
pub(crate) fn leave_keeper(kept: &mut [i32]) {
    let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
    let _ = rustix::process::setsid();
    close_all_but(kept);
    // SAFETY: the mask is this process's own.
    unsafe {
        let mut all = std::mem::zeroed::<libc::sigset_t>();
        libc::sigfillset(&raw mut all);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const all, std::ptr::null_mut());
    }
}

/// Closes everything that belongs to the keeper except these descriptors.
pub(super) fn close_all_but(kept: &mut [i32]) {
    kept.sort_unstable();
    let mut first = 0;
    // SAFETY: these descriptors belong to values of the keeper that are never used or
    // dropped in this process.
    unsafe {
        for kept in kept.iter().map(|kept| kept.cast_unsigned()) {
            if first < kept {
                libc::syscall(libc::SYS_close_range, first, kept - 1, 0);
            }
            first = kept + 1;
        }
        libc::syscall(libc::SYS_close_range, first, u32::MAX, 0);
    }
}

pub(super) fn end(pid: Pid) {
    let _ = rustix::process::kill_process(pid, Signal::KILL);
    let _ = rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::empty());
}
