//! Files of other owners, prepared by the keeper before the sandbox's first process is
//! there.
//!
//! - For root: mounts that show files with other owners, which only root outside may make.
//! - For an ordinary user: directories of a group that the user is also in. Overlayfs does
//!   not take over what has a group without an id inside, but it accepts a directory that
//!   is in the layer from the start. So they are made there.

use super::{BuildError, build};
use crate::plan::{Claim, Plan, Step, WORKSPACE};
use crate::sys;
use rustix::fs::{FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use std::ffi::{CStr, CString, OsStr};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The directories of a plan's steps, in their order. There is none where the owners are
/// those of the host, or where a file system cannot show others.
#[derive(Debug, Default)]
pub(super) struct Mapped(Vec<Option<OwnedFd>>);

impl Mapped {
    /// Makes the mounts. They are attached nowhere yet.
    pub(super) fn of(plan: &Plan, ids: (u32, u32)) -> Result<Self, BuildError> {
        let Some([users, groups]) = plan.shown_owners(ids) else { return Ok(Self::default()) };
        let users = sys::user_namespace(&users, &groups)?;
        let mapped = |step: &Step| match plan.shows_owners_of(step) {
            true => mapped(step, users.as_fd()),
            false => Ok(None),
        };
        plan.steps.iter().map(mapped).collect::<Result<_, _>>().map(Self)
    }

    pub(super) fn descriptors(&self) -> impl Iterator<Item = &OwnedFd> {
        self.0.iter().flatten()
    }

    /// Returns the directory of the step with this number.
    pub(super) fn take(&mut self, number: usize) -> Option<OwnedFd> {
        self.0.get_mut(number).and_then(Option::take)
    }
}

fn mapped(step: &Step, users: BorrowedFd<'_>) -> Result<Option<OwnedFd>, BuildError> {
    let (Step::Tree { host, .. } | Step::Layered { host, .. }) = step.inner() else {
        return Ok(None);
    };
    // In a layer, what is mounted there would be left out, and nobody told.
    if matches!(step.inner(), Step::Layered { .. })
        && let Some(mount) = build::mounted_below(host)
    {
        return Err(BuildError::Step(build::has_mount(host, &mount)));
    }
    let path = CString::new(host.as_os_str().as_bytes()).map_err(io::Error::from)?;
    let mapped = sys::clone_tree(&path).and_then(|tree| {
        sys::show_owners_of(tree.as_fd(), users)?;
        Ok(tree)
    });
    Ok(mapped.ok())
}

/// Limit for directories that are made in a layer.
const MOST_DIRECTORIES: usize = 50_000;

/// Makes the workspace's directories of other groups in its layer.
pub(super) fn make_directories(plan: &Plan, group: u32) -> io::Result<()> {
    match plan.claim {
        Claim::Own | Claim::All => return Ok(()),
        Claim::Groups => {}
    }
    let workspace = plan.steps.iter().map(Step::inner).find_map(|step| {
        let Step::Layered { host, upper, at, .. } = step else { return None };
        (at == Path::new(WORKSPACE)).then_some((host, upper))
    });
    let Some((host, upper)) = workspace else { return Ok(()) };
    std::fs::create_dir_all(upper)?;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let open = |path: &Path| rustix::fs::open(path, flags, Mode::empty());
    let (real, layer) = (open(host)?, open(upper)?);
    let mut below = vec![c".".to_owned()];
    let mut count = 0;
    while let Some(at) = below.pop() {
        let Ok(opened) = beneath(&real, &at, flags) else { continue };
        for entry in rustix::fs::Dir::new(opened)?.filter_map(Result::ok) {
            let name = entry.file_name().to_bytes();
            if entry.file_type() != FileType::Directory || matches!(name, b"." | b"..") {
                continue;
            }
            count += 1;
            let path = CString::new([at.to_bytes(), b"/", name].concat())?;
            if count <= MOST_DIRECTORIES && !is_hidden(plan, &path) && !is_replaced(&layer, &path) {
                below.push(path);
            }
        }
        let stat = beneath(&real, &at, flags).and_then(rustix::fs::fstat);
        if stat.is_ok_and(|stat| stat.st_gid != group) {
            make_like(&real, &layer, &at);
        }
    }
    Ok(())
}

/// Whether something of the workspace is never shown, such as this session's own layer.
fn is_hidden(plan: &Plan, path: &CStr) -> bool {
    let inside = Path::new(WORKSPACE).join(OsStr::from_bytes(path.to_bytes()));
    let inside: PathBuf = inside.components().collect();
    plan.steps.iter().any(|step| matches!(step, Step::Hidden { at } if *at == inside))
}

/// Programs of the session have written what is there: no link is followed.
fn beneath(root: &OwnedFd, path: &CStr, flags: OFlags) -> rustix::io::Result<OwnedFd> {
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_XDEV;
    rustix::fs::openat2(root, path, flags, Mode::empty(), resolve)
}

/// Whether the layer has something else in the place of a directory.
fn is_replaced(layer: &OwnedFd, path: &CStr) -> bool {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    match beneath(layer, path, flags) {
        Err(Errno::NOENT) => false,
        Err(_) => true,
        Ok(directory) => {
            let mut value = [0; 1];
            rustix::fs::fgetxattr(&directory, c"user.overlay.opaque", &mut value).is_ok()
        }
    }
}

/// Makes a directory and those above it, with the permissions of the real ones.
fn make_like(real: &OwnedFd, layer: &OwnedFd, path: &CStr) {
    let path = path.to_bytes();
    let slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
    for end in slashes.map(|(at, _)| at).skip(1).chain([path.len()]) {
        let Some(slash) = path[..end].iter().rposition(|byte| *byte == b'/') else { continue };
        let made = || -> io::Result<()> {
            let (above, name) =
                (CString::new(&path[..slash])?, CString::new(&path[slash + 1..end])?);
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let stat = rustix::fs::fstat(beneath(real, &CString::new(&path[..end])?, flags)?)?;
            let above = beneath(layer, &above, flags)?;
            rustix::fs::mkdirat(&above, &*name, Mode::RWXU)?;
            let made = beneath(&above, &name, flags)?;
            Ok(rustix::fs::fchmod(made, Mode::from_raw_mode(stat.st_mode))?)
        };
        // It may be there already. Where it cannot be made, it cannot be changed inside.
        let _ = made();
    }
}
