//! What a sandbox may use of the machine, and how that is enforced.
//!
//! `support` is what the system offers to this user, `plan` decides which of it
//! enforces which limit (pure), and `group` makes control groups and reads them.
//!
//! | limit | enforced by | without control groups |
//! |---|---|---|
//! | memory | `memory.max`, all programs together | `RLIMIT_DATA`, each program by itself |
//! | CPUs | `cpu.max` | refused |
//! | processes | `pids.max` | `RLIMIT_NPROC`, which counts within a user namespace; root has none |
//! | open files | `RLIMIT_NOFILE` | the same |
//! | layer | the guard counts writes; private directories are one file system of that size | the same |
//!
//! A layer without a limit leaves a part of the disk to others: `disk`.

mod disk;
mod group;
mod plan;
mod support;

pub use disk::{Disk, DiskCheck, SOONEST, Stop};
pub use group::{Counts, Group, GroupPlan, PartPlan, Setting, remove};
pub use plan::{DEFAULT_PROCESSES, EnforcedLimit, LimitPlan};
pub(crate) use support::kernel_is_at_least;
pub use support::{Hierarchy, LimitSupport, Version};

/// A mechanism that enforces a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mechanism {
    Groups(Version),
    /// A limit for each process.
    Rlimit,
    /// A limit for all processes of a user namespace together.
    UserRlimit,
    /// The size of a file system, or what the guard's file system counts.
    FileSystem,
}

impl Mechanism {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Groups(Version::One) => "cgroup v1",
            Self::Groups(Version::Two) => "cgroup v2",
            Self::Rlimit | Self::UserRlimit => "rlimit",
            Self::FileSystem => "file system",
        }
    }
}

/// Returns a size for people to read: `512 MiB`.
#[must_use]
pub fn size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let (mut value, mut unit) = (bytes as f64, 0);
    while value >= 1024.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let text = format!("{value:.1}");
    format!("{} {}", text.strip_suffix(".0").unwrap_or(&text), UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn sizes_are_told_in_the_unit_that_they_were_given_in() {
        assert_eq!(size(512 << 20), "512 MiB");
        assert_eq!(size(1 << 30), "1 GiB");
        assert_eq!(size((1 << 30) + (1 << 29)), "1.5 GiB");
        assert_eq!(size(100), "100 B");
    }
}
