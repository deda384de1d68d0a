//! Handles one call in a worker process: the rename itself, or, where that is impossible,
//! moving the entries of the directory.

use super::call::Answer;
use super::carrying::{self, Paths};
use super::record::Record;
use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags, ResolveFlags, StatxFlags};
use rustix::io::Errno;
use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// A rename as requested by its caller.
#[derive(Debug)]
pub(super) struct Rename {
    pub(super) from: Named,
    pub(super) to: Named,
    pub(super) flags: RenameFlags,
}

/// A directory, and a path from there.
#[derive(Debug)]
pub(super) struct Named {
    pub(super) directory: OwnedFd,
    pub(super) path: CString,
}

impl Rename {
    /// Performs it, without any capability.
    pub(super) fn perform(&self, record: &mut Record, processes: BorrowedFd<'_>) -> Answer {
        if self.flags.intersects(RenameFlags::EXCHANGE | RenameFlags::WHITEOUT) {
            return Answer::GoOn;
        }
        let (Some((from, name)), Some((to, new_name))) = (self.from.open(), self.to.open()) else {
            return Answer::GoOn;
        };
        // This also checks the caller's permissions: the Linux kernel does so first.
        match rustix::fs::renameat_with(&from, &name, &to, &new_name, self.flags) {
            Ok(()) => return Answer::Done,
            Err(Errno::XDEV) if is_same_mount(&from, &to) => {}
            // The original call returns the proper error.
            Err(_) => return Answer::GoOn,
        }
        let (Some(old), Some(new)) = (path_of(&from, processes), path_of(&to, processes)) else {
            return Answer::GoOn;
        };
        let paths = Paths { from: old, to: new };
        let (from, to) = ((from.as_fd(), &*name), (to.as_fd(), &*new_name));
        let carried = carrying::extent(from)
            .and_then(|_| carrying::carry(from, to, self.flags, (record, &paths)));
        match carried {
            Ok(()) => Answer::Done,
            Err(
                errno @ (Errno::NOTEMPTY
                | Errno::EXIST
                | Errno::NOTDIR
                | Errno::NOSPC
                | Errno::DQUOT),
            ) => Answer::Refused(errno),
            // The caller may copy, as `mv` does.
            Err(_) => Answer::GoOn,
        }
    }
}

impl Named {
    /// Returns the directory of the path's last name, and that name.
    fn open(&self) -> Option<(OwnedFd, CString)> {
        let (above, name) = split(&self.path)?;
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        // Such a link in /proc means something else for another process.
        let resolve = ResolveFlags::NO_MAGICLINKS;
        let above = rustix::fs::openat2(&self.directory, above, flags, Mode::empty(), resolve);
        Some((above.ok()?, name))
    }
}

/// Splits off the last name of a path. Returns none if the last name cannot be renamed.
fn split(path: &CStr) -> Option<(CString, CString)> {
    let bytes = path.to_bytes();
    let end = bytes.iter().rposition(|byte| *byte != b'/')? + 1;
    let start = bytes[..end].iter().rposition(|byte| *byte == b'/').map_or(0, |slash| slash + 1);
    let (above, name) = (&bytes[..start], &bytes[start..end]);
    if matches!(name, b"." | b"..") {
        return None;
    }
    let above = if above.is_empty() { b"." } else { above };
    Some((CString::new(above).ok()?, CString::new(name).ok()?))
}

/// Returns the path of a directory in the sandbox, without a slash at the end.
fn path_of(directory: &OwnedFd, processes: BorrowedFd<'_>) -> Option<Vec<u8>> {
    let link = format!("self/fd/{}", directory.as_raw_fd());
    let path = rustix::fs::readlinkat(processes, link, Vec::new()).ok()?.into_bytes();
    // A removed directory has a suffix here, and is not found again.
    path.starts_with(b"/").then(|| if path == b"/" { Vec::new() } else { path })
}

fn is_same_mount(one: &OwnedFd, other: &OwnedFd) -> bool {
    let mount = |fd: &OwnedFd| {
        let stat = rustix::fs::statx(fd, c"", AtFlags::EMPTY_PATH, StatxFlags::MNT_ID).ok()?;
        (stat.stx_mask & StatxFlags::MNT_ID.bits() != 0).then_some(stat.stx_mnt_id)
    };
    mount(one).is_some_and(|one| mount(other) == Some(one))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_a_name_in_a_directory() {
        let parts = |path: &CStr| {
            let text = |part: CString| part.into_string().unwrap();
            split(path).map(|(above, name)| (text(above), text(name)))
        };
        let is = |above: &str, name: &str| Some((above.to_owned(), name.to_owned()));
        assert_eq!(parts(c"a"), is(".", "a"));
        assert_eq!(parts(c"a//"), is(".", "a"));
        assert_eq!(parts(c"/a"), is("/", "a"));
        assert_eq!(parts(c"../a/b/"), is("../a/", "b"));
        assert_eq!(parts(c"a/."), None);
        assert_eq!(parts(c"a/../"), None);
        assert_eq!(parts(c"///"), None);
        assert_eq!(parts(c""), None);
    }
}
