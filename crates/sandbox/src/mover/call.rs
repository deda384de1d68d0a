//! A rename whose caller waits: the notification, the paths in the caller's memory, and
//! the answer.

use rustix::io::Errno;
use std::ffi::{CString, c_int, c_long, c_ulong};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// From <linux/seccomp.h>.
const RECEIVE: c_ulong = 0xc050_2100;
const SEND: c_ulong = 0xc018_2101;
const IS_VALID: c_ulong = 0x4008_2102;
const SET_FLAGS: c_ulong = 0x4008_2104;
const SYNC_WAKE_UP: c_ulong = 1;
const CONTINUE: u32 = 1;

/// The longest path, with its terminating zero.
const PATH_BYTES: usize = libc::PATH_MAX as usize;
/// A read does not cross the end of a page.
const PAGE: usize = 4096;

/// `struct seccomp_notif`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
struct Notification {
    id: u64,
    pid: u32,
    flags: u32,
    number: i32,
    machine: u32,
    instruction: u64,
    arguments: [u64; 6],
}

/// `struct seccomp_notif_resp`.
#[repr(C)]
struct Response {
    id: u64,
    value: i64,
    error: i32,
    flags: u32,
}

/// A call that waits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
    id: u64,
    /// The thread that made it, by its pid here.
    pub(super) thread: u32,
    number: i32,
    arguments: [u64; 6],
}

/// The answer to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// The Linux kernel performs it as if there were no mover.
    GoOn,
    Done,
    Refused(Errno),
}

/// A path in a call: its base directory, which may be the current one, and the address of
/// the text in the caller's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) directory: c_int,
    address: u64,
}

/// The arguments of a rename.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Arguments {
    pub(super) from: Place,
    pub(super) to: Place,
    pub(super) flags: u32,
}

/// Takes the next call. Returns none if its caller is gone.
pub(super) fn receive(listener: BorrowedFd<'_>) -> io::Result<Option<Call>> {
    let mut notification = Notification::default();
    // SAFETY: the structure is ours, zeroed, and as long as the number says.
    let result = unsafe { libc::ioctl(listener.as_raw_fd(), RECEIVE as _, &raw mut notification) };
    if result < 0 {
        let error = io::Error::last_os_error();
        return match error.raw_os_error() {
            Some(libc::ENOENT | libc::EINTR) => Ok(None),
            _ => Err(error),
        };
    }
    let Notification { id, pid, number, arguments, .. } = notification;
    Ok(Some(Call { id, thread: pid, number, arguments }))
}

/// Makes the Linux kernel switch on the same processor, if it can: each side waits for
/// the other.
pub(super) fn wake_in_turn(listener: BorrowedFd<'_>) {
    // SAFETY: only numbers are passed.
    unsafe { libc::ioctl(listener.as_raw_fd(), SET_FLAGS as _, SYNC_WAKE_UP) };
}

impl Call {
    /// Whether its caller still waits: then its pid was not reused.
    pub(super) fn is_valid(&self, listener: BorrowedFd<'_>) -> bool {
        // SAFETY: the number is ours.
        unsafe { libc::ioctl(listener.as_raw_fd(), IS_VALID as _, &raw const self.id) == 0 }
    }

    /// Answers the call. Has no effect if the caller is gone.
    pub(super) fn answer(&self, listener: BorrowedFd<'_>, answer: Answer) {
        let (error, flags) = match answer {
            Answer::GoOn => (0, CONTINUE),
            Answer::Done => (0, 0),
            Answer::Refused(errno) => (-errno.raw_os_error(), 0),
        };
        let response = Response { id: self.id, value: 0, error, flags };
        // SAFETY: the structure is ours, and as long as the number says.
        unsafe { libc::ioctl(listener.as_raw_fd(), SEND as _, &raw const response) };
    }

    /// Returns the arguments; none if it is not a rename.
    pub(super) fn arguments(&self) -> Option<Arguments> {
        let at = |directory: u64, address: u64| Place {
            // The Linux kernel reads only the lower half, too.
            directory: directory as c_int,
            address,
        };
        #[cfg(target_arch = "x86_64")]
        let here = libc::AT_FDCWD as u64;
        let [a, b, c, d, e, _] = self.arguments;
        let (from, to, flags) = match c_long::from(self.number) {
            #[cfg(target_arch = "x86_64")]
            libc::SYS_rename => (at(here, a), at(here, b), 0),
            libc::SYS_renameat => (at(a, b), at(c, d), 0),
            libc::SYS_renameat2 => (at(a, b), at(c, d), e as u32),
            _ => return None,
        };
        Some(Arguments { from, to, flags })
    }

    /// Returns the text of a path; none if it cannot be read or is too long.
    pub(super) fn path(&self, place: Place) -> Option<CString> {
        let mut text = vec![0; PATH_BYTES];
        let mut length = 0;
        while length < PATH_BYTES {
            let from = usize::try_from(place.address).ok()?.checked_add(length)?;
            let most = (PAGE - from % PAGE).min(PATH_BYTES - length);
            let ours = libc::iovec { iov_base: text[length..].as_mut_ptr().cast(), iov_len: most };
            let theirs = libc::iovec { iov_base: from as *mut libc::c_void, iov_len: most };
            let pid = self.thread.cast_signed();
            // SAFETY: writes at most as much as there is room for behind `length`.
            let read =
                unsafe { libc::process_vm_readv(pid, &raw const ours, 1, &raw const theirs, 1, 0) };
            let read = usize::try_from(read).ok().filter(|read| *read > 0)?;
            let end = text[length..length + read].iter().position(|byte| *byte == 0);
            if let Some(end) = end {
                text.truncate(length + end);
                return CString::new(text).ok();
            }
            length += read;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(number: c_long, arguments: [u64; 6]) -> Call {
        Call { id: 1, thread: std::process::id(), number: number as i32, arguments }
    }

    #[test]
    fn the_three_calls_are_read_alike() {
        let here = libc::AT_FDCWD;
        let place = |directory, address| Place { directory, address };
        let read = call(libc::SYS_renameat2, [7, 1, 0xffff_ff9c, 2, 1, 0]).arguments();
        let expected = Arguments { from: place(7, 1), to: place(here, 2), flags: 1 };
        assert_eq!(read, Some(expected));
        let read = call(libc::SYS_renameat, [7, 1, 8, 2, 99, 0]).arguments();
        assert_eq!(read, Some(Arguments { from: place(7, 1), to: place(8, 2), flags: 0 }));
        #[cfg(target_arch = "x86_64")]
        {
            let read = call(libc::SYS_rename, [1, 2, 99, 99, 99, 0]).arguments();
            assert_eq!(
                read,
                Some(Arguments { from: place(here, 1), to: place(here, 2), flags: 0 })
            );
        }
        assert_eq!(call(libc::SYS_unlink, [1; 6]).arguments(), None);
    }

    #[test]
    fn a_path_is_read_to_its_zero_and_not_beyond_the_longest() {
        let read = |bytes: &[u8]| {
            let place = Place { directory: 0, address: bytes.as_ptr() as u64 };
            call(0, [0; 6]).path(place)
        };
        assert_eq!(read(b"a/b\0c"), Some(c"a/b".to_owned()));
        let mut long = vec![b'x'; PATH_BYTES + 10];
        assert_eq!(read(&long), None);
        long[PATH_BYTES - 1] = 0;
        assert_eq!(read(&long).map(|text| text.as_bytes().len()), Some(PATH_BYTES - 1));
        assert_eq!(call(0, [0; 6]).path(Place { directory: 0, address: 8 }), None);
    }
}
