//! The second wall: Landlock, which goes by paths and holds also where a mount
//! would not. Reading below the root of the sandbox, writing where the plan has
//! writable directories, and nothing that is not below that root.

use crate::plan::{Net, Plan};
use std::ffi::{CString, c_int, c_long};
use std::io;
use std::os::unix::ffi::OsStrExt;

const EXECUTE: u64 = 1;
const WRITE_FILE: u64 = 1 << 1;
const READ_FILE: u64 = 1 << 2;
const READ_DIR: u64 = 1 << 3;
/// Those that a file can have; the others are for directories.
const OF_FILES: u64 = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV;
const TRUNCATE: u64 = 1 << 14;
const IOCTL_DEV: u64 = 1 << 15;

const READING: u64 = EXECUTE | READ_FILE | READ_DIR;

/// Sockets with abstract names, of processes outside.
const SCOPE_ABSTRACT_SOCKETS: u64 = 1;
/// The first version that knows of them.
pub(crate) const KNOWS_ABSTRACT_SOCKETS: c_long = 6;

const CREATE_RULESET_VERSION: u32 = 1;
const RULE_PATH_BENEATH: u32 = 1;

#[repr(C)]
struct RulesetAttr {
    handled_fs: u64,
    handled_net: u64,
    scoped: u64,
}

#[repr(C, packed)]
struct PathBeneath {
    allowed: u64,
    parent: i32,
}

#[derive(Debug)]
pub(super) struct Paths {
    handled: u64,
    scoped: u64,
    allowed: Vec<(CString, u64)>,
}

/// What this system's Landlock knows; 0 if there is none.
#[must_use]
pub(crate) fn version() -> c_long {
    // SAFETY: asks for a number only.
    let version = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<u8>(),
            0,
            CREATE_RULESET_VERSION,
        )
    };
    version.max(0)
}

/// All rights to files of a version.
fn rights(version: c_long) -> u64 {
    let count = match version {
        ..=0 => 0,
        1 => 13,
        2 => 14,
        3 | 4 => 15,
        5.. => 16,
    };
    (1 << count) - 1
}

impl Paths {
    pub(super) fn new(plan: &Plan) -> io::Result<Self> {
        let version = version();
        let handled = rights(version);
        let mut allowed = vec![(CString::new("/")?, READING)];
        for path in &plan.writable {
            allowed.push((CString::new(path.as_os_str().as_bytes())?, handled));
        }
        // With the host's network there are the host's sockets, too. Without this
        // there is no such plan.
        let scoped = match plan.net {
            Net::Hosts => SCOPE_ABSTRACT_SOCKETS,
            Net::Own | Net::Proxied(_) => 0,
        };
        Ok(Self { handled, scoped, allowed })
    }

    /// A kernel may write what is for its keeper.
    pub(super) fn enforce(&self) -> io::Result<()> {
        if self.handled == 0 {
            return Ok(());
        }
        let attr = RulesetAttr { handled_fs: self.handled, handled_net: 0, scoped: self.scoped };
        // Older systems know a shorter structure only.
        let size = if self.scoped == 0 { 8 } else { size_of::<RulesetAttr>() };
        // SAFETY: the structure is ours, and as long as we say.
        let ruleset = checked(unsafe {
            libc::syscall(libc::SYS_landlock_create_ruleset, &raw const attr, size, 0)
        })?;
        for (path, rights) in &self.allowed {
            self.allow(ruleset, path, rights & self.handled)?;
        }
        // SAFETY: only numbers are passed.
        checked(unsafe { libc::syscall(libc::SYS_landlock_restrict_self, ruleset, 0) })?;
        // SAFETY: it is ours, and not used any more.
        unsafe { libc::close(ruleset as c_int) };
        Ok(())
    }

    fn allow(&self, ruleset: c_long, path: &CString, rights: u64) -> io::Result<()> {
        // SAFETY: the path ends with a zero and outlives the call.
        let parent = unsafe { libc::open(path.as_ptr(), libc::O_PATH | libc::O_CLOEXEC) };
        if parent < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the structure is ours; it is filled by the call.
        let is_directory = unsafe {
            let mut stat = std::mem::zeroed::<libc::stat>();
            libc::fstat(parent, &raw mut stat) == 0 && stat.st_mode & libc::S_IFMT == libc::S_IFDIR
        };
        let allowed = if is_directory { rights } else { rights & OF_FILES };
        let rule = PathBeneath { allowed, parent };
        // SAFETY: the structure is ours and outlives the call.
        let added = checked(unsafe {
            libc::syscall(
                libc::SYS_landlock_add_rule,
                ruleset,
                RULE_PATH_BENEATH,
                &raw const rule,
                0,
            )
        });
        // SAFETY: it is ours, and not used any more.
        unsafe { libc::close(parent) };
        added.map(drop)
    }
}

fn checked(result: c_long) -> io::Result<c_long> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
