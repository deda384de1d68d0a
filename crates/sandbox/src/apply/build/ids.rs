//! Who the users inside are outside.

use crate::plan::{Ids, Plan};
use rustix::process::Pid;
use std::io;
use std::os::fd::BorrowedFd;

/// The caller is the user inside, and nobody else is anybody; or others are,
/// which only those outside can do.
pub(super) fn map_ids(
    plan: &Plan,
    (uid, gid): (u32, u32),
    keeper: BorrowedFd<'_>,
) -> io::Result<()> {
    let inside = plan.user.id();
    match plan.ids {
        Ids::One => {}
        Ids::Range { .. } => {
            let read = rustix::io::read(keeper, &mut [0; 1])?;
            return if read == 1 { Ok(()) } else { Err(io::ErrorKind::PermissionDenied.into()) };
        }
    }
    std::fs::write("/proc/self/setgroups", "deny")?;
    std::fs::write("/proc/self/gid_map", format!("{inside} {gid} 1\n"))?;
    std::fs::write("/proc/self/uid_map", format!("{inside} {uid} 1\n"))
}

/// In the keeper: who is who in the new sandbox, whose first process waits for it.
pub(in crate::apply) fn map_range(
    pid: Pid,
    plan: &Plan,
    ids: (u32, u32),
    to: BorrowedFd<'_>,
) -> io::Result<()> {
    match plan.ids {
        Ids::One => return Ok(()),
        Ids::Range { .. } => {}
    }
    for (file, id) in [("gid_map", ids.1), ("uid_map", ids.0)] {
        let extents = plan.ids.extents(plan.user.id(), id).into_iter();
        let map: String = extents
            .map(|(inside, outside, count)| format!("{inside} {outside} {count}\n"))
            .collect();
        std::fs::write(format!("/proc/{}/{file}", pid.as_raw_nonzero()), map)?;
    }
    rustix::io::write(to, b"1").map(drop)?;
    Ok(())
}
