//! `/proc` of a sandbox: what of it is shown, and what can be written to.

use super::{Outcome, Root};
use crate::limits::kernel_is_at_least;
use crate::sys::{self, Depth, NODEV, NOEXEC, NOSUID, NewFileSystem, RDONLY};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;

/// Programs that watch files have one each. A user has 128 of them, and all of
/// its sandboxes and other programs share these.
const INOTIFY_INSTANCES: u64 = 32;
/// Directories of a large project.
const INOTIFY_WATCHES: u64 = 65536;

impl Root<'_> {
    /// What the kernel tells and lets itself be told: processes, and what is on
    /// a list. Root of the host is root of these files, whatever it is inside.
    pub(super) fn processes(&self, at: &Path) -> Outcome<()> {
        let failed = |error: io::Error| {
            format!(
                "{}: {error}; the host's own /proc is covered in places, as containers have it",
                at.display()
            )
        };
        let mounted = NewFileSystem::of(c"proc").and_then(|new| new.mount(NOSUID | NODEV | NOEXEC));
        let mounted = mounted.map_err(failed)?;
        self.place(at, mounted.as_fd()).map_err(failed)?;
        // No user namespace within this one, should the filter ever let a call
        // pass; without one there are no others.
        let most = self.open(&at.join("sys/user/max_user_namespaces"), libc::O_WRONLY);
        let most = most.and_then(|file| File::from(file).write_all(b"0"));
        most.map_err(failed)?;
        self.bound_numbers(at);
        let names = std::fs::read_dir(format!("/proc/self/fd/{}", mounted.as_raw_fd()));
        for name in names.map_err(failed)?.filter_map(Result::ok).map(|entry| entry.file_name()) {
            let Some(name) = name.to_str() else { continue };
            let path = at.join(name);
            match shown(name) {
                Shown::AsItIs => {}
                Shown::ReadOnly => self.make_read_only(&path).map_err(failed)?,
                Shown::Not => self.hide(&path).map_err(failed)?,
            }
        }
        Ok(())
    }

    /// What the system lets a namespace bound for itself, and what would run out
    /// for everybody of this user. Where it does not, that is no reason to fail.
    fn bound_numbers(&self, at: &Path) {
        let write = |name: &str, value: u64| {
            let file = self.open(&at.join("sys").join(name), libc::O_WRONLY);
            let _ = file.and_then(|file| File::from(file).write_all(value.to_string().as_bytes()));
        };
        write("user/max_inotify_instances", INOTIFY_INSTANCES);
        write("user/max_inotify_watches", INOTIFY_WATCHES);
        // Before that version it is the whole machine's.
        if let Some(most) = self.plan.limits.numbers.filter(|_| kernel_is_at_least(6, 14)) {
            write("kernel/pid_max", most);
        }
    }

    fn make_read_only(&self, at: &Path) -> io::Result<()> {
        let there = self.open(at, libc::O_PATH)?;
        let again = sys::clone_tree_of(there.as_fd())?;
        sys::restrict(again.as_fd(), RDONLY | NOSUID | NODEV | NOEXEC, Depth::This)?;
        sys::attach(again.as_fd(), there.as_fd())
    }
}

enum Shown {
    AsItIs,
    /// A file beside the processes is one and the same in every /proc: a mode that
    /// it is given here, it has on the host.
    ReadOnly,
    Not,
}

/// What there is in /proc beside processes. What is not known is not shown.
fn shown(name: &str) -> Shown {
    if name.bytes().all(|byte| byte.is_ascii_digit()) {
        return Shown::AsItIs;
    }
    match name {
        "self" | "thread-self" | "net" | "mounts" => Shown::AsItIs,
        "cpuinfo" | "meminfo" | "stat" | "loadavg" | "uptime" | "version" | "filesystems"
        | "vmstat" | "swaps" | "diskstats" | "partitions" | "devices" | "cgroups" | "misc"
        | "zoneinfo" | "buddyinfo" | "softirqs" | "locks" | "sys" => Shown::ReadOnly,
        _ => Shown::Not,
    }
}
