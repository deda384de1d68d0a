//! Runs a program as the owner of all files that belong to a user's range.

use crate::SubIds;
use rustix::process::Pid;
use std::ffi::OsStr;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// The shell waits until its ids are mapped: without a mapping it is nobody, and only a
/// program that root inside executes has capabilities.
const WAITING: &str = r#"read -r _ && exec "$0" "$@""#;

/// Runs programs that may handle the files of the caller and of the caller's range.
#[derive(Debug)]
pub struct Owner(SubIds);

impl Owner {
    /// Returns the owner, if this user has a range. Root needs none.
    #[must_use]
    pub fn of_range() -> Option<Self> {
        if rustix::process::geteuid().is_root() {
            return None;
        }
        SubIds::of_caller().ok().map(Self)
    }

    /// Checks whether this works.
    ///
    /// # Errors
    /// With the reason why it does not.
    pub fn try_it() -> io::Result<()> {
        let Some(owner) = Self::of_range() else { return Ok(()) };
        let output = owner.run(Path::new("/bin/sh"), &["-c", ":"].map(OsStr::new))?;
        if output.status.success() { Ok(()) } else { Err(io::ErrorKind::PermissionDenied.into()) }
    }

    /// Runs a program, and waits for it. The caller may have threads.
    ///
    /// # Errors
    /// When it could not be run as the owner. Its own failure is in its status.
    pub fn run(&self, program: &Path, arguments: &[&OsStr]) -> io::Result<Output> {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", WAITING]).arg(program).args(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        // SAFETY: between fork and exec it only makes a system call.
        unsafe {
            command.pre_exec(|| match libc::unshare(libc::CLONE_NEWUSER) {
                0 => Ok(()),
                _ => Err(io::Error::last_os_error()),
            });
        }
        let mut child = command.spawn()?;
        let [users, groups] = self.0.extents();
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        let mapped = pid
            .ok_or_else(|| io::ErrorKind::InvalidData.into())
            .and_then(|pid| self.0.map(pid, &users, &groups));
        // Without a line on stdin, the shell exits by itself.
        let said = match (&mapped, child.stdin.take()) {
            (Ok(()), Some(mut stdin)) => stdin.write_all(b"\n"),
            (Ok(()) | Err(_), _) => Ok(()),
        };
        let output = child.wait_with_output();
        mapped?;
        said?;
        output
    }
}

/// Like [`std::fs::remove_dir_all`], but also removes files of users in the caller's range:
/// programs in a sandbox with several users leave such files.
///
/// # Errors
/// When a part of it cannot be removed.
pub fn remove_dir_all(path: &Path) -> io::Result<()> {
    let refused = match std::fs::remove_dir_all(path) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => error,
        outcome => return outcome,
    };
    let Some(owner) = Owner::of_range() else { return Err(refused) };
    let path = std::path::absolute(path)?;
    let options = ["-r", "-f", "--"].map(OsStr::new);
    let output = owner.run(Path::new("/bin/rm"), &[&options[..], &[path.as_os_str()]].concat())?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(said.lines().next().unwrap_or("rm failed").to_owned()))
}
