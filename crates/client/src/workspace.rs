//! A session's files, as the session itself sees them.
//!
//! A session in a sandbox has its own view: a layer over its directory, and paths that it
//! may not see or change. Its files are accessed through the root of one of its processes,
//! so that the same mounts apply to requests on its behalf.

use rustix::process::Pid;
use sessile_proc::Process;
use sessile_protocol::SESSION_MARKER;
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
        let mark = format!("{SESSION_MARKER}={}", metadata.session_id);
        let ours = mounts(std::process::id().cast_signed()).ok_or(NoView)?;
        let is_inside = |pid: &Pid| {
            let process = Process::new(*pid);
            process.environment().has(&mark)
                && mounts(pid.as_raw_nonzero().get()).is_some_and(|theirs| theirs != ours)
        };
        let inside = Process::new(keeper).descendants().into_iter().find(is_inside);
        let pid = inside.ok_or(NoView)?.as_raw_nonzero();
        Ok(Self { path: format!("/proc/{pid}/root{INSIDE}").into(), called: INSIDE.into() })
    }
}

/// Returns the number of a process's mount namespace.
fn mounts(pid: i32) -> Option<u64> {
    fs::metadata(format!("/proc/{pid}/ns/mnt")).ok().map(|found| found.ino())
}
