//! `/proc` of a sandbox: which parts are shown, and which can be written to.

use super::{Outcome, Root};
use crate::limits::kernel_is_at_least;
use crate::sys::{self, Depth, NODEV, NOEXEC, NOSUID, NewFileSystem, RDONLY};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::path::Path;

/// Each program that watches files takes one. A user has 128 of them, shared by all of
/// its sandboxes and other programs.
const INOTIFY_INSTANCES: u64 = 32;
/// Enough for the directories of a large project.
const INOTIFY_WATCHES: u64 = 65536;

impl Root<'_> {
    /// Mounts `/proc`: the processes, and the listed files. The host's root owns these
    /// files, whoever is root inside.
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
        // No nested user namespace, in case the filter ever lets a call pass; without
        // one, no other namespaces can be made.
        let most = self.open(&at.join("sys/user/max_user_namespaces"), libc::O_WRONLY);
        let most = most.and_then(|file| File::from(file).write_all(b"0"));
        most.map_err(failed)?;
        self.bound_numbers(at);
        let names = std::fs::read_dir(format!("/proc/self/fd/{}", mounted.as_raw_fd()));
        for name in names.map_err(failed)?.filter_map(Result::ok).map(|entry| entry.file_name()) {
            let Some(name) = name.to_str() else { continue };
            let path = at.join(name);
            match visibility(name) {
                Visibility::Unchanged => {}
                Visibility::ReadOnly => self.make_read_only(&path).map_err(failed)?,
                Visibility::Hidden => self.hide(&path).map_err(failed)?,
            }
        }
        Ok(())
    }

    /// Sets limits that the system allows per namespace, on things that would run out for
    /// all programs of this user. It is not an error if the system does not allow it.
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

enum Visibility {
    Unchanged,
    /// A file beside the processes is the same in every /proc: a mode that is set here is
    /// set on the host.
    ReadOnly,
    Hidden,
}

/// Classifies the entries of /proc that are not processes. Unknown ones are not shown.
fn visibility(name: &str) -> Visibility {
    if name.bytes().all(|byte| byte.is_ascii_digit()) {
        return Visibility::Unchanged;
    }
    match name {
        "self" | "thread-self" | "net" | "mounts" => Visibility::Unchanged,
        "cpuinfo" | "meminfo" | "stat" | "loadavg" | "uptime" | "version" | "filesystems"
        | "vmstat" | "swaps" | "diskstats" | "partitions" | "devices" | "cgroups" | "misc"
        | "zoneinfo" | "buddyinfo" | "softirqs" | "locks" | "sys" => Visibility::ReadOnly,
        _ => Visibility::Hidden,
    }
}
