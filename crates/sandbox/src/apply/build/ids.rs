//! Maps the users inside to users outside.

use crate::plan::{Ids, Mapper, Plan};
use crate::sys;
use rustix::process::Pid;
use std::io;
use std::os::fd::BorrowedFd;

/// Maps the caller to the user inside, and nobody else; or waits for the keeper to map a
/// range, which is only possible from outside.
pub(super) fn map_ids(
    plan: &Plan,
    (uid, gid): (u32, u32),
    keeper: BorrowedFd<'_>,
) -> io::Result<()> {
    let inside = plan.user.id();
    match plan.ids {
        Ids::One => {}
        Ids::Range { .. } => {
            let mut said = [0; MOST_SAID];
            let read = rustix::io::read(keeper, &mut said)?;
            return match said.get(..read) {
                Some(MAPPED) => Ok(()),
                Some(why) if !why.is_empty() => Err(io::Error::other(String::from_utf8_lossy(why))),
                Some(_) | None => Err(io::ErrorKind::PermissionDenied.into()),
            };
        }
    }
    std::fs::write("/proc/self/setgroups", "deny")?;
    std::fs::write("/proc/self/gid_map", format!("{inside} {gid} 1\n"))?;
    std::fs::write("/proc/self/uid_map", format!("{inside} {uid} 1\n"))
}

/// The keeper's message when it is done; anything else says why it failed.
const MAPPED: &[u8] = b"1";
/// Size limit of that message.
const MOST_SAID: usize = 512;

/// Runs in the keeper: maps the users of the new sandbox, whose first process waits for
/// it, and sends the outcome.
pub(in crate::apply) fn map_range(
    pid: Pid,
    plan: &Plan,
    (uid, gid): (u32, u32),
    to: BorrowedFd<'_>,
) -> io::Result<()> {
    let Ids::Range { by, .. } = &plan.ids else { return Ok(()) };
    let inside = plan.user.id();
    let (users, groups) = (plan.ids.users(inside, uid), plan.ids.groups(inside, gid));
    let mapped = match by {
        Mapper::Keeper => {
            let pid = pid.as_raw_nonzero().get();
            sys::write_map(pid, "gid_map", &groups)
                .and_then(|()| sys::write_map(pid, "uid_map", &users))
        }
        Mapper::Programs(range) => range.map(pid, &users, &groups),
    };
    let why = mapped.err().map(|error| error.to_string());
    let said = why.as_ref().map_or(MAPPED, |why| why.as_bytes());
    rustix::io::write(to, &said[..said.len().min(MOST_SAID)]).map(drop)?;
    Ok(())
}
