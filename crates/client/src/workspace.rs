//! A session's files, as the session itself sees them.
//!
//! A session in a sandbox has its own view: a layer over its directory, and paths that it
//! may not see or change. Its files are accessed through the root of one of its processes,
//! so that the same mounts apply to requests on its behalf.

use rustix::process::Pid;
use sessile_proc::Process;
use sessile_store::Metadata;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

/// Path of the workspace in a sandbox.
const INSIDE: &str = "/workspace";

/// A directory, and its path as the session sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workspace {
    pub path: PathBuf,
    pub called: PathBuf,
}

#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error(
    "the session's sandbox has no process that its files could be seen through; run a command in it first"
)]
pub struct NoView;

impl Workspace {
    /// Returns the live view of a session in a sandbox, or the directory of any other session.
    ///
    /// # Errors
    /// When the session is in a sandbox without processes.
    pub fn of(metadata: &Metadata) -> Result<Self, NoView> {
        if metadata.sandbox.is_none() {
            let path = metadata.files_root();
            return Ok(Self { called: path.clone(), path });
        }
        let keeper = metadata.keeper_pid.and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
        let keeper = keeper.ok_or(NoView)?;
        let hosts = mounts(keeper).ok_or(NoView)?;
        // A keeper has one sandbox, in which nobody can make other mounts. The environment
        // of a kernel cannot be read by an ordinary user, so it does not tell.
        let inside = Process::new(keeper).descendants().into_iter().find_map(|pid| {
            let path = PathBuf::from(format!("/proc/{}/root{INSIDE}", pid.as_raw_nonzero()));
            (mounts(pid)? != hosts && path.is_dir()).then_some(path)
        });
        Ok(Self { path: inside.ok_or(NoView)?, called: INSIDE.into() })
    }
}

/// Returns the number of a process's mount namespace.
fn mounts(pid: Pid) -> Option<u64> {
    fs::metadata(format!("/proc/{}/ns/mnt", pid.as_raw_nonzero())).ok().map(|found| found.ino())
}
