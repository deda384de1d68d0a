//! What this machine can enforce, what it cannot, and what to do about it.

mod report;

pub use report::{Finding, Preset, Report, Status, report};

use std::fs;
use std::io;

/// What is missing for something to be enforced.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}; {remedy}")]
pub struct Missing {
    pub what: String,
    /// The one command that an administrator would run.
    pub remedy: String,
}

/// Returns why the host's network cannot be shared, if so: programs of the host listen on
/// abstract sockets, which no mount hides, and only Landlock keeps the sandbox from them.
#[must_use]
pub fn network_missing(landlock: i64) -> Option<Missing> {
    (landlock < crate::confine::KNOWS_ABSTRACT_SOCKETS).then(|| Missing {
        what: "--network full needs Landlock of version 6 or later, without which the sandbox \
               would reach sockets of this machine's programs by their abstract names"
            .to_owned(),
        remedy: "use Linux 6.12 or later, with `landlock` in its parameter `lsm=`, or name the \
                 hosts: --network api.example.com"
            .to_owned(),
    })
}

/// The beginning of messages about the guard.
pub(crate) const GUARDED: &str = "rules for single paths need";

/// Returns why rules for single paths cannot be enforced by this user, if so.
#[must_use]
pub fn guard_missing() -> Option<Missing> {
    let error = fs::File::options().read(true).write(true).open("/dev/fuse").err()?;
    let what = format!("{GUARDED} /dev/fuse, and it cannot be opened ({error})");
    let remedy = if error.kind() == io::ErrorKind::PermissionDenied {
        "chmod 666 /dev/fuse"
    } else {
        "modprobe fuse && chmod 666 /dev/fuse"
    };
    Some(Missing { what, remedy: format!("an administrator can allow it: `{remedy}`") })
}

/// Returns why the keeper may not stop a kernel and have it make system calls, if so:
/// without that, a program inside could read a kernel's orders.
#[must_use]
pub fn tracing_missing() -> Option<Missing> {
    let scope = fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").ok()?;
    tracing_refused(scope.trim(), rustix::process::geteuid().is_root())
}

/// Interprets Yama's setting: 1 lets a parent trace its child, 2 only root, 3 nobody
/// until the machine is restarted.
fn tracing_refused(scope: &str, is_root: bool) -> Option<Missing> {
    let remedy = match scope {
        "2" if !is_root => "sysctl -w kernel.yama.ptrace_scope=1",
        "3" => "echo kernel.yama.ptrace_scope=1 >/etc/sysctl.d/99-ptrace.conf && reboot",
        _ => return None,
    };
    Some(Missing {
        what: format!(
            "a sandbox needs ptrace of its own processes, which this system refuses \
             (kernel.yama.ptrace_scope is {scope})"
        ),
        remedy: format!("an administrator can allow it: `{remedy}`"),
    })
}

/// Returns why namespaces are not available.
#[must_use]
pub fn namespaces_missing(error: &io::Error) -> Missing {
    let setting = |path: &str| std::fs::read_to_string(path).unwrap_or_default().trim().to_owned();
    let refused = |remedy: &str| Missing {
        what: format!("this system gives ordinary users no user namespaces ({error})"),
        remedy: format!("an administrator can allow them: `{remedy}`"),
    };
    if setting("/proc/sys/kernel/unprivileged_userns_clone") == "0" {
        return refused("sysctl -w kernel.unprivileged_userns_clone=1");
    }
    if setting("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == "1" {
        return refused("sysctl -w kernel.apparmor_restrict_unprivileged_userns=0");
    }
    if setting("/proc/sys/user/max_user_namespaces") == "0"
        || error.raw_os_error() == Some(libc::ENOSPC)
    {
        return refused("sysctl -w user.max_user_namespaces=10000");
    }
    Missing {
        what: format!("namespaces cannot be made here ({error})"),
        remedy: "a container has to be started with `--security-opt seccomp=unconfined \
                 --cap-add SYS_ADMIN`, or the session without a sandbox"
            .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_system_on_which_nothing_is_traced_says_how_that_is_changed() {
        for allowed in [("", false), ("0", false), ("1", false), ("2", true)] {
            assert_eq!(tracing_refused(allowed.0, allowed.1), None);
        }
        let told = |scope: &str, is_root| tracing_refused(scope, is_root).unwrap().to_string();
        assert!(told("2", false).contains("`sysctl -w kernel.yama.ptrace_scope=1`"));
        assert!(told("3", true).contains("reboot"));
    }
}
