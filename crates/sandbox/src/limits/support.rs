//! What the system offers to enforce limits: where this user may make control groups, and
//! what else counts.

use rustix::fs::{Access, AtFlags, CWD};
use std::fs;
use std::path::{Path, PathBuf};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    One,
    Two,
}

/// A directory in which groups with a controller can be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hierarchy {
    pub version: Version,
    pub directory: PathBuf,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LimitSupport {
    pub memory: Option<Hierarchy>,
    pub cpu: Option<Hierarchy>,
    pub pids: Option<Hierarchy>,
    /// Whether `RLIMIT_NPROC` can be used: not for root, and not per sandbox before 5.14.
    pub counts_processes: bool,
    /// The machine's memory.
    pub total_memory: u64,
    /// Why there are no groups, and how an administrator can change that.
    pub groups_remedy: String,
}

impl LimitSupport {
    /// Looks at the system.
    #[must_use]
    pub fn detect() -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let (own, mounts) = (read("/proc/self/cgroup"), read("/proc/self/mountinfo"));
        let uid = rustix::process::geteuid().as_raw();
        let is_root = uid == 0;
        let one = |name| version_one(&own, &mounts, name, uid);
        let two = version_two(&own, &mounts);
        let or_two = |name| {
            let group = two.as_deref().filter(|group| offers(group, name))?;
            Some(Hierarchy { version: Version::Two, directory: group.to_owned() })
        };
        let find = |name| match one(name) {
            Place::Usable(directory) => Some(Hierarchy { version: Version::One, directory }),
            // A controller is in one of the two versions.
            Place::Closed => None,
            Place::Nowhere => or_two(name),
        };
        Self {
            memory: find("memory"),
            cpu: find("cpu"),
            pids: find("pids"),
            counts_processes: !is_root && kernel_is_at_least(5, 14),
            total_memory: total_memory(),
            groups_remedy: remedy(&mounts, uid),
        }
    }
}

fn total_memory() -> u64 {
    let info = rustix::system::sysinfo();
    info.totalram.saturating_mul(info.mem_unit.into())
}

/// Whether the running Linux kernel has at least this version.
pub(crate) fn kernel_is_at_least(major: u32, minor: u32) -> bool {
    let uname = rustix::system::uname();
    let release = uname.release().to_string_lossy().into_owned();
    let mut numbers = release.split(|c: char| !c.is_ascii_digit()).map(|n| n.parse().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= (major, minor)
}

/// Returns the command that an administrator would run.
fn remedy(mounts: &str, uid: u32) -> String {
    let is_one = |mount: &Mount<'_>| mount.kind == "cgroup" && mount.has("memory");
    match mounts.lines().filter_map(Mount::parse).find(is_one) {
        Some(mount) => {
            let above = Path::new(mount.at).parent().unwrap_or(Path::new("/sys/fs/cgroup"));
            let above = above.display();
            format!(
                "for c in memory cpu pids; do mkdir -p {above}/$c/sessile-{uid} && \
                 chown -R {uid} {above}/$c/sessile-{uid}; done"
            )
        }
        None => "mkdir -p /etc/systemd/system/user@.service.d && printf \
                 '[Service]\\nDelegate=cpu memory pids\\n' \
                 >/etc/systemd/system/user@.service.d/delegate.conf && systemctl daemon-reload` \
                 once, and sessions are started below `systemd-run --user --scope"
            .to_owned(),
    }
}

/// Where groups of a controller can be made.
#[derive(Debug, PartialEq, Eq)]
enum Place {
    Usable(PathBuf),
    /// There is such a hierarchy, but this user cannot write to it.
    Closed,
    Nowhere,
}

/// A line of `/proc/self/mountinfo`, as far as it is needed here.
struct Mount<'a> {
    /// The part of the file system that is mounted.
    root: &'a str,
    at: &'a str,
    kind: &'a str,
    options: &'a str,
}

impl<'a> Mount<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let (first, second) = line.split_once(" - ")?;
        let mut first = first.split(' ').skip(3);
        let (root, at) = (first.next()?, first.next()?);
        let mut second = second.split(' ');
        let (kind, options) = (second.next()?, second.nth(1)?);
        Some(Self { root, at, kind, options })
    }

    fn has(&self, option: &str) -> bool {
        self.options.split(',').any(|known| known == option)
    }

    /// Returns the path of a group that has this name in `/proc/self/cgroup`.
    fn path_of(&self, group: &str) -> Option<PathBuf> {
        let below = match group.strip_prefix(self.root) {
            _ if self.root == "/" => group,
            Some(below) => below,
            None => group,
        };
        let below = below.trim_start_matches('/');
        let is_beneath = !Path::new(below).components().any(|part| part.as_os_str() == "..");
        is_beneath.then(|| Path::new(self.at).join(below))
    }
}

/// Returns the group of this process in the hierarchy of a controller.
fn own_group(own: &str, is_it: impl Fn(&str) -> bool) -> Option<&str> {
    own.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':');
        let (_, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
        is_it(controllers).then_some(path)
    })
}

fn version_one(own: &str, mounts: &str, name: &str, uid: u32) -> Place {
    let is_it = |mount: &Mount<'_>| mount.kind == "cgroup" && mount.has(name);
    let Some(mount) = mounts.lines().filter_map(Mount::parse).find(is_it) else {
        return Place::Nowhere;
    };
    let group = own_group(own, |controllers| controllers.split(',').any(|known| known == name));
    let own = group.and_then(|group| mount.path_of(group));
    // A group that an administrator has made for this user.
    let given = Path::new(mount.at).join(format!("sessile-{uid}"));
    let usable = own.into_iter().chain([given]).find(|path| is_writable(path));
    usable.map_or(Place::Closed, Place::Usable)
}

/// Returns the group in which others can be made: from our own upwards, the first that is
/// ours, and that has no process in it or is the topmost.
fn version_two(own: &str, mounts: &str) -> Option<PathBuf> {
    let mount = mounts.lines().filter_map(Mount::parse).find(|mount| mount.kind == "cgroup2")?;
    let path = mount.path_of(own_group(own, str::is_empty)?)?;
    let top = Path::new(mount.at);
    let mut candidates = path.ancestors().take_while(|path| path.starts_with(top));
    candidates.find(|path| offers(path, "memory")).map(Path::to_owned)
}

/// Whether groups below may have a controller, and processes can be moved there.
fn offers(group: &Path, controller: &str) -> bool {
    let text = |name: &str| fs::read_to_string(group.join(name)).unwrap_or_default();
    let has = |name: &str| text(name).split_whitespace().any(|known| known == controller);
    let can_enable = || {
        is_writable(&group.join("cgroup.subtree_control"))
            && (!group.join("cgroup.type").exists() || text("cgroup.procs").is_empty())
    };
    has("cgroup.controllers")
        && is_writable(group)
        && is_writable(&group.join("cgroup.procs"))
        && (has("cgroup.subtree_control") || can_enable())
}

fn is_writable(path: &Path) -> bool {
    rustix::fs::accessat(CWD, path, Access::WRITE_OK, AtFlags::EACCESS).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: &str = "8:pids:/\n4:memory:/a/b\n1:cpu,cpuacct:/\n0::/user.slice/x.scope\n";
    const MOUNTS: &str = "31 30 0:26 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n\
        32 31 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
        33 31 0:28 /a /cg/cpu rw shared:4 - cgroup cgroup rw,cpu,cpuacct\n\
        34 31 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";

    fn mount(name: &str) -> Mount<'static> {
        MOUNTS.lines().filter_map(Mount::parse).find(|mount| mount.has(name)).unwrap()
    }

    #[test]
    fn a_group_is_found_below_where_its_hierarchy_is_mounted() {
        let memory = mount("memory");
        assert_eq!(memory.path_of("/a/b").unwrap(), Path::new("/sys/fs/cgroup/memory/a/b"));
        assert_eq!(memory.path_of("/../b"), None);
        assert_eq!(mount("cpu").path_of("/a/b").unwrap(), Path::new("/cg/cpu/b"));
        assert_eq!(own_group(OWN, |names| names.split(',').any(|n| n == "cpu")), Some("/"));
        assert_eq!(own_group(OWN, str::is_empty), Some("/user.slice/x.scope"));
    }

    /// Uses a tree that looks like one of version two: the rules are about its files.
    #[test]
    fn groups_are_made_in_the_nearest_one_that_is_ours_and_has_no_process() {
        let top = tempfile::tempdir().unwrap();
        let make = |path: &str, procs: &str, subtree: &str| {
            let group = top.path().join(path);
            fs::create_dir_all(&group).unwrap();
            fs::write(group.join("cgroup.controllers"), "cpu memory pids\n").unwrap();
            fs::write(group.join("cgroup.subtree_control"), subtree).unwrap();
            fs::write(group.join("cgroup.procs"), procs).unwrap();
            fs::write(group.join("cgroup.type"), "domain\n").unwrap();
            group
        };
        make("", "", "memory pids\n");
        let slice = make("slice", "", "memory\n");
        make("slice/scope", "17\n", "");
        let mounts = format!("1 1 0:1 / {} rw - cgroup2 cgroup2 rw\n", top.path().display());
        assert_eq!(version_two("0::/slice/scope\n", &mounts), Some(slice.clone()));
        assert!(offers(&slice, "cpu") && !offers(&slice, "io"));
        // A group with processes keeps its controllers.
        assert!(!offers(&slice.join("scope"), "memory"));
        assert_eq!(version_two("0::/slice/scope\n", ""), None);
    }

    #[test]
    fn kernels_are_as_new_as_they_say() {
        assert!(kernel_is_at_least(3, 0) && !kernel_is_at_least(99, 0));
    }
}
