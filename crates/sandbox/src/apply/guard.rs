//! The process that shows a workspace as the rules of a policy have it: a fork of
//! the keeper, outside the sandbox, which serves the file system that init has
//! mounted there. It ends with the mount, or with the keeper.

use super::tally::Tally;
use crate::fuse::{Account, Caching, IdMap, IdRange, Server};
use crate::plan::{Guard, Plan};
use crate::rules::Rules;
use crate::sys;
use rustix::fs::{Mode, OFlags};
use rustix::net::{AddressFamily, SocketFlags, SocketType};
use rustix::process::{Pid, Signal};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

/// Over which init gives what is needed: the keeper's end first.
pub(super) fn channel() -> io::Result<(OwnedFd, OwnedFd)> {
    let (kind, flags) = (SocketType::SEQPACKET, SocketFlags::CLOEXEC);
    Ok(rustix::net::socketpair(AddressFamily::UNIX, kind, flags, None)?)
}

/// Starts it when init has given the directory and the device. None if init has
/// ended before: it says why itself.
pub(super) fn start(
    guard: &Guard,
    given: BorrowedFd<'_>,
    (uid, gid): (u32, u32),
    plan: &Plan,
    tally: Option<&Tally>,
) -> io::Result<Option<Pid>> {
    let Some([source, device]) = sys::receive_descriptors(given)? else { return Ok(None) };
    let ranges = |id| {
        let extents = plan.ids.extents(plan.user.id(), id).into_iter();
        extents.map(|(inside, outside, count)| IdRange { inside, outside, count }).collect()
    };
    let ids = IdMap { users: ranges(uid), groups: ranges(gid) };
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
    let rules = Rules::new(&guard.policy);
    // SAFETY: the caller has a single thread, so the child has a consistent heap.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            leave_keeper(&mut kept);
            let served = Server::new(source, rules, ids, caching).and_then(|server| {
                // It takes privileges over the machine.
                let server = match account {
                    // What passes by here cannot be counted.
                    Some((limits, descriptors, tally)) => {
                        let account = Account::new(limits, descriptors, tally.of_guard());
                        server.without_passthrough().with_account(account)
                    }
                    None if uid == 0 => server,
                    None => server.without_passthrough(),
                };
                server.serve(device)
            });
            // SAFETY: ends this process without running anything of the keeper's.
            unsafe { libc::_exit(i32::from(served.is_err())) }
        }
        pid => Ok(Pid::from_raw(pid)),
    }
}

/// In a fork: lets go of all that is the keeper's but these descriptors, and goes
/// when the keeper goes, whatever signals come.
pub(crate) fn leave_keeper(kept: &mut [i32]) {
    let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
    let _ = rustix::process::setsid();
    kept.sort_unstable();
    let mut first = 0;
    // SAFETY: these descriptors belong to values of the keeper's that are never
    // used or dropped in this process; the mask is its own.
    unsafe {
        for kept in kept.iter().map(|kept| kept.cast_unsigned()) {
            if first < kept {
                libc::syscall(libc::SYS_close_range, first, kept - 1, 0);
            }
            first = kept + 1;
        }
        libc::syscall(libc::SYS_close_range, first, u32::MAX, 0);
        let mut all = std::mem::zeroed::<libc::sigset_t>();
        libc::sigfillset(&raw mut all);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const all, std::ptr::null_mut());
    }
}

pub(super) fn end(pid: Pid) {
    let _ = rustix::process::kill_process(pid, Signal::KILL);
    let _ = rustix::process::waitpid(Some(pid), rustix::process::WaitOptions::empty());
}
