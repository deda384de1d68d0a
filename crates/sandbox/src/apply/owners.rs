//! Mounts that show files with other owners. Only root outside may make them, so the
//! keeper does, before the sandbox's first process is there.

use super::{BuildError, build};
use crate::plan::{Plan, Step};
use crate::sys;
use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

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
    let host = match step.inner() {
        Step::Tree { host, .. } => host,
        Step::Layered { host, .. } => {
            // What is mounted there would be left out, and nobody told.
            if let Some(mount) = build::mounted_below(host) {
                return Err(BuildError::Step(build::has_mount(host, &mount)));
            }
            host
        }
        _ => return Ok(None),
    };
    let path = CString::new(host.as_os_str().as_bytes()).map_err(io::Error::from)?;
    let mapped = sys::clone_tree(&path).and_then(|tree| {
        sys::show_owners_of(tree.as_fd(), users)?;
        Ok(tree)
    });
    Ok(mapped.ok())
}
