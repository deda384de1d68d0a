//! Thin wrappers of the system calls for building a sandbox. Except for user namespaces,
//! they do not allocate, because some are made in processes that share our memory.

use sessile_subids::Extent;
use std::ffi::{CStr, c_int, c_long, c_uint, c_ulong};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Mount attributes: read-only, without setuid programs, devices or execution.
pub(crate) const RDONLY: u64 = 0x1;
pub(crate) const NOSUID: u64 = 0x2;
pub(crate) const NODEV: u64 = 0x4;
pub(crate) const NOEXEC: u64 = 0x8;

const OPEN_TREE_CLONE: c_uint = 1;
const OPEN_TREE_CLOEXEC: c_uint = libc::O_CLOEXEC as c_uint;
const AT_RECURSIVE: c_uint = 0x8000;
const MOVE_MOUNT_F_EMPTY_PATH: c_uint = 0x4;
const MOVE_MOUNT_T_EMPTY_PATH: c_uint = 0x40;
const FSOPEN_CLOEXEC: c_uint = 1;
const FSMOUNT_CLOEXEC: c_uint = 1;
const FSCONFIG_SET_STRING: c_uint = 1;
const FSCONFIG_SET_FLAG: c_uint = 0;
const FSCONFIG_CMD_CREATE: c_uint = 6;

const RESOLVE_NO_MAGICLINKS: u64 = 0x2;
const RESOLVE_IN_ROOT: u64 = 0x10;

fn checked(result: c_long) -> io::Result<c_long> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

fn descriptor(result: c_long) -> io::Result<OwnedFd> {
    let number = c_int::try_from(checked(result)?).map_err(|_| io::ErrorKind::InvalidData)?;
    // SAFETY: the call has just made it, and nothing else knows of it.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Clones the mount at a path, with all that is mounted below it.
pub(crate) fn clone_tree(path: &CStr) -> io::Result<OwnedFd> {
    let flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE;
    // SAFETY: the path ends with a zero and outlives the call.
    descriptor(unsafe { libc::syscall(libc::SYS_open_tree, libc::AT_FDCWD, path.as_ptr(), flags) })
}

/// Clones the mount of an open directory or file.
pub(crate) fn clone_tree_of(fd: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | libc::AT_EMPTY_PATH as c_uint;
    // SAFETY: the empty path is a constant.
    descriptor(unsafe { libc::syscall(libc::SYS_open_tree, fd.as_raw_fd(), c"".as_ptr(), flags) })
}

/// Mounts something on top of an open directory or file.
pub(crate) fn attach(mount: BorrowedFd<'_>, onto: BorrowedFd<'_>) -> io::Result<()> {
    let flags = MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH;
    // SAFETY: the empty paths are constants.
    checked(unsafe {
        libc::syscall(
            libc::SYS_move_mount,
            mount.as_raw_fd(),
            c"".as_ptr(),
            onto.as_raw_fd(),
            c"".as_ptr(),
            flags,
        )
    })
    .map(drop)
}

#[repr(C)]
struct MountAttr {
    attr_set: u64,
    attr_clr: u64,
    propagation: u64,
    userns_fd: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Depth {
    This,
    AllBelow,
}

/// Adds attributes to a mount.
pub(crate) fn restrict(mount: BorrowedFd<'_>, attributes: u64, depth: Depth) -> io::Result<()> {
    let attr = MountAttr { attr_set: attributes, attr_clr: 0, propagation: 0, userns_fd: 0 };
    set_attributes(mount, &attr, depth)
}

fn set_attributes(mount: BorrowedFd<'_>, attr: &MountAttr, depth: Depth) -> io::Result<()> {
    let flags = libc::AT_EMPTY_PATH as c_uint
        | match depth {
            Depth::This => 0,
            Depth::AllBelow => AT_RECURSIVE,
        };
    // SAFETY: the structure is ours, and as long as we say.
    checked(unsafe {
        libc::syscall(
            libc::SYS_mount_setattr,
            mount.as_raw_fd(),
            c"".as_ptr(),
            flags,
            std::ptr::from_ref(attr),
            size_of::<MountAttr>(),
        )
    })
    .map(drop)
}

/// Shows the files of a mount that is not attached with the owners that a user namespace
/// maps their ids to. Takes privileges over their file system, which has to support it.
pub(crate) fn show_owners_of(mount: BorrowedFd<'_>, users: BorrowedFd<'_>) -> io::Result<()> {
    const IDMAP: u64 = 0x0010_0000;
    let userns_fd = users.as_raw_fd() as u64;
    let attr = MountAttr { attr_set: IDMAP, attr_clr: 0, propagation: 0, userns_fd };
    set_attributes(mount, &attr, Depth::AllBelow)
}

/// A file system that is about to be made.
pub(crate) struct NewFileSystem(OwnedFd);

impl NewFileSystem {
    pub(crate) fn of(kind: &CStr) -> io::Result<Self> {
        // SAFETY: the name ends with a zero and outlives the call.
        let fd = unsafe { libc::syscall(libc::SYS_fsopen, kind.as_ptr(), FSOPEN_CLOEXEC) };
        descriptor(fd).map(Self)
    }

    pub(crate) fn set(&self, key: &CStr, value: &CStr) -> io::Result<()> {
        // SAFETY: both texts end with a zero and outlive the call.
        checked(unsafe {
            libc::syscall(
                libc::SYS_fsconfig,
                self.0.as_raw_fd(),
                FSCONFIG_SET_STRING,
                key.as_ptr(),
                value.as_ptr(),
                0,
            )
        })
        .map(drop)
    }

    pub(crate) fn set_flag(&self, key: &CStr) -> io::Result<()> {
        // SAFETY: the text ends with a zero and outlives the call.
        checked(unsafe {
            libc::syscall(
                libc::SYS_fsconfig,
                self.0.as_raw_fd(),
                FSCONFIG_SET_FLAG,
                key.as_ptr(),
                std::ptr::null::<u8>(),
                0,
            )
        })
        .map(drop)
    }

    /// Makes it, as a mount that is not attached yet.
    pub(crate) fn mount(self, attributes: u64) -> io::Result<OwnedFd> {
        // SAFETY: this command takes no texts.
        checked(unsafe {
            libc::syscall(
                libc::SYS_fsconfig,
                self.0.as_raw_fd(),
                FSCONFIG_CMD_CREATE,
                std::ptr::null::<u8>(),
                std::ptr::null::<u8>(),
                0,
            )
        })?;
        let attributes = attributes as c_uint;
        // SAFETY: only numbers are passed.
        descriptor(unsafe {
            libc::syscall(libc::SYS_fsmount, self.0.as_raw_fd(), FSMOUNT_CLOEXEC, attributes)
        })
    }
}

#[repr(C)]
struct OpenHow {
    flags: u64,
    mode: u64,
    resolve: u64,
}

/// Opens a path as if `root` were the root directory: nothing outside of it can be
/// reached, whatever links say.
pub(crate) fn open_in(root: BorrowedFd<'_>, path: &CStr, flags: c_int) -> io::Result<OwnedFd> {
    let resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS;
    let how = OpenHow { flags: (flags | libc::O_CLOEXEC) as u64, mode: 0, resolve };
    // SAFETY: path and structure are ours and outlive the call.
    descriptor(unsafe {
        libc::syscall(
            libc::SYS_openat2,
            root.as_raw_fd(),
            path.as_ptr(),
            &raw const how,
            size_of::<OpenHow>(),
        )
    })
}

/// Calls the classic `mount`, without descriptors.
pub(crate) fn mount(
    source: Option<&CStr>,
    target: &CStr,
    kind: Option<&CStr>,
    flags: c_ulong,
    data: Option<&CStr>,
) -> io::Result<()> {
    let pointer = |text: Option<&CStr>| text.map_or(std::ptr::null(), CStr::as_ptr);
    // SAFETY: all texts end with a zero and outlive the call.
    let result = unsafe {
        libc::mount(pointer(source), target.as_ptr(), pointer(kind), flags, pointer(data).cast())
    };
    checked(c_long::from(result)).map(drop)
}

/// Unmounts what is mounted there, even if it is in use.
pub(crate) fn detach(target: &CStr) -> io::Result<()> {
    // SAFETY: the text ends with a zero and outlives the call.
    let result = unsafe { libc::umount2(target.as_ptr(), libc::MNT_DETACH) };
    checked(c_long::from(result)).map(drop)
}

/// Makes the current directory the root, with the old root on top of it.
pub(crate) fn pivot_here() -> io::Result<()> {
    // SAFETY: the texts are constants.
    checked(unsafe { libc::syscall(libc::SYS_pivot_root, c".".as_ptr(), c".".as_ptr()) }).map(drop)
}

/// Moves this process to new namespaces.
pub(crate) fn unshare(namespaces: c_int) -> io::Result<()> {
    // SAFETY: only numbers are passed.
    checked(c_long::from(unsafe { libc::unshare(namespaces) })).map(drop)
}

/// Returns a descriptor for reconfiguring a mounted file system.
pub(crate) fn pick(mount: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    const FSPICK_CLOEXEC: c_uint = 1;
    const FSPICK_EMPTY_PATH: c_uint = 8;
    let flags = FSPICK_CLOEXEC | FSPICK_EMPTY_PATH;
    // SAFETY: the empty path is a constant.
    descriptor(unsafe { libc::syscall(libc::SYS_fspick, mount.as_raw_fd(), c"".as_ptr(), flags) })
}

/// Changes the size of a picked file system. A size below the used one is refused.
pub(crate) fn resize(picked: BorrowedFd<'_>, bytes: &CStr) -> io::Result<()> {
    const FSCONFIG_CMD_RECONFIGURE: c_uint = 7;
    let call = |command: c_uint, key: *const libc::c_char, value: *const libc::c_char| {
        // SAFETY: both texts end with a zero and outlive the call, or are null
        // where the command takes none.
        checked(unsafe {
            libc::syscall(libc::SYS_fsconfig, picked.as_raw_fd(), command, key, value, 0)
        })
        .map(drop)
    };
    call(FSCONFIG_SET_STRING, c"size".as_ptr(), bytes.as_ptr())?;
    call(FSCONFIG_CMD_RECONFIGURE, std::ptr::null(), std::ptr::null())
}

/// Joins namespaces of a process.
pub(crate) fn join(process: BorrowedFd<'_>, namespaces: c_int) -> io::Result<()> {
    // SAFETY: only numbers are passed.
    checked(c_long::from(unsafe { libc::setns(process.as_raw_fd(), namespaces) })).map(drop)
}

/// One half of a thread's capabilities, a bit for each.
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct Capabilities {
    effective: u32,
    permitted: u32,
    pub(crate) inheritable: u32,
}

#[repr(C)]
struct CapabilityHeader {
    version: u32,
    pid: i32,
}

/// The version with two halves, and the calling thread.
const OWN_CAPABILITIES: CapabilityHeader = CapabilityHeader { version: 0x2008_0522, pid: 0 };

/// Returns the lower half, and the upper one.
pub(crate) fn capabilities() -> io::Result<[Capabilities; 2]> {
    let mut header = OWN_CAPABILITIES;
    let mut halves = [Capabilities::default(); 2];
    // SAFETY: both are ours, and what the system reads and writes there.
    checked(unsafe { libc::syscall(libc::SYS_capget, &raw mut header, halves.as_mut_ptr()) })?;
    Ok(halves)
}

pub(crate) fn set_capabilities(halves: &[Capabilities; 2]) -> io::Result<()> {
    let mut header = OWN_CAPABILITIES;
    // SAFETY: both are ours, and what the system reads there.
    checked(unsafe { libc::syscall(libc::SYS_capset, &raw mut header, halves.as_ptr()) }).map(drop)
}

/// Gives up all capabilities except these, a bit for each.
pub(crate) fn keep_capabilities(kept: u64) -> io::Result<()> {
    let half = |bits: u32| Capabilities { effective: bits, permitted: bits, inheritable: 0 };
    set_capabilities(&[half(kept as u32), half((kept >> 32) as u32)])
}

/// Leaves all supplementary groups, if permitted.
pub(crate) fn leave_groups() {
    // SAFETY: no group is given. This is the bare call: the library's wrapper would
    // notify other threads, of which there are none.
    unsafe { libc::syscall(libc::SYS_setgroups, 0, std::ptr::null::<libc::gid_t>()) };
}

/// Forks into new namespaces; returns the child's pid, or 0 in the child.
pub(crate) fn fork_into(namespaces: c_int) -> io::Result<i32> {
    let flags = c_ulong::from((namespaces | libc::SIGCHLD).cast_unsigned());
    // SAFETY: the caller has a single thread, so the child has a consistent heap. Without
    // a stack of its own the child continues where we are.
    let pid = checked(unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) })?;
    i32::try_from(pid).map_err(|_| io::ErrorKind::InvalidData.into())
}

/// Returns a user namespace without processes, with these ids. Takes root.
pub(crate) fn user_namespace(users: &[Extent], groups: &[Extent]) -> io::Result<OwnedFd> {
    let (wait, go) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    let pid = fork_into(libc::CLONE_NEWUSER)?;
    if pid == 0 {
        drop(go);
        let _ = rustix::io::read(&wait, &mut [0; 1]);
        // SAFETY: ends this process without running any of its parent's code.
        unsafe { libc::_exit(0) }
    }
    drop(wait);
    let made = write_map(pid, "uid_map", users)
        .and_then(|()| write_map(pid, "gid_map", groups))
        .and_then(|()| std::fs::File::open(format!("/proc/{pid}/ns/user")));
    drop(go);
    let child = rustix::process::Pid::from_raw(pid);
    let wait = || rustix::process::waitpid(child, rustix::process::WaitOptions::empty());
    while matches!(wait(), Err(rustix::io::Errno::INTR)) {}
    made.map(OwnedFd::from)
}

/// Maps the ids of a child in a new user namespace.
pub(crate) fn write_map(pid: i32, file: &str, extents: &[Extent]) -> io::Result<()> {
    let lines = extents.iter();
    let map: String =
        lines.map(|(inside, outside, count)| format!("{inside} {outside} {count}\n")).collect();
    std::fs::write(format!("/proc/{pid}/{file}"), map)
}

pub(crate) fn pidfd_of(pid: i32) -> io::Result<OwnedFd> {
    // SAFETY: only numbers are passed.
    descriptor(unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) })
}

/// Sends descriptors over a socket.
pub(crate) fn send_descriptors<const N: usize>(
    socket: BorrowedFd<'_>,
    descriptors: [BorrowedFd<'_>; N],
) -> io::Result<()> {
    use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags};
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !control.push(SendAncillaryMessage::ScmRights(&descriptors)) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    rustix::net::sendmsg(socket, &[io::IoSlice::new(b"2")], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Receives descriptors; none if the other end was closed.
pub(crate) fn receive_descriptors<const N: usize>(
    socket: BorrowedFd<'_>,
) -> io::Result<Option<[OwnedFd; N]>> {
    use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags};
    let mut space = [std::mem::MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let mut parts = [io::IoSliceMut::new(&mut byte)];
    loop {
        let flags = RecvFlags::CMSG_CLOEXEC;
        match rustix::net::recvmsg(socket, &mut parts, &mut control, flags) {
            Ok(_) => break,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let mut given = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(descriptors) = message {
            given.extend(descriptors);
        }
    }
    Ok(given.try_into().ok())
}

/// Opens /dev/null as the standard streams, so that no message of a library goes to a
/// connection that happens to have such a number.
pub(crate) fn occupy_standard_streams() -> io::Result<()> {
    let nothing = std::fs::File::options().read(true).write(true).open("/dev/null")?;
    for number in 0..3 {
        // SAFETY: only numbers are passed; nothing here owns what had these numbers.
        if nothing.as_raw_fd() != number && unsafe { libc::dup2(nothing.as_raw_fd(), number) } < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    if nothing.as_raw_fd() < 3 {
        std::mem::forget(nothing);
    }
    Ok(())
}
