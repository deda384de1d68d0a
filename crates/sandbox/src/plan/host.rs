//! What the host has that a sandbox shows: inspected once, before anything is decided.

use super::letter_case::LetterCase;
use super::programs::{Programs, programs};
use super::{Ids, Mapper, Others, Owners, etc, etc::PEOPLE};
use crate::check::Missing;
use crate::limits::LimitSupport;
use sessile_subids::SubIds;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Where systems keep programs and libraries.
const TOPS: &[&str] =
    &["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store"];

/// Top-level entries of another system tree that are not shown: a sandbox has its own, or
/// programs do not need them.
const NOT_SHOWN: &[&str] = &[
    "boot",
    "dev",
    "etc",
    "home",
    "lost+found",
    "media",
    "mnt",
    "proc",
    "root",
    "run",
    "srv",
    "sys",
    "tmp",
    "var",
    "workspace",
];

/// Where Debian and its relatives record installed packages and their sources.
const PACKAGES: &[&str] = &["/etc/apt", "/etc/dpkg", "/var/lib/apt", "/var/lib/dpkg"];

/// Where apt downloads package lists, as a user of its own.
const FETCHED: &str = "/var/lib/apt/lists/partial";

/// Parts of these that are not shown.
pub(super) const PASSWORDS: &[&str] = &["/etc/apt/auth.conf", "/etc/apt/auth.conf.d"];

/// The first id outside of the users inside, apart from the user that started the
/// sandbox. People, services and containers do not have ids from here on.
const FIRST_OUTSIDE: u32 = 0x7000_0000;
/// The number of all ids that a system has, except root.
const OTHERS: u32 = 65535;

/// Size limit of a file below /etc that is read, in case it has to be copied.
const MOST_TEXT: u64 = 1 << 20;

/// Where another system tree has its programs.
const SEARCH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

#[derive(Clone, Debug, Default)]
pub struct Host {
    /// The system tree: the host's own, or another.
    pub tree: PathBuf,
    /// By their paths inside.
    pub tops: Vec<(PathBuf, Top)>,
    /// The system's files belong to the caller, who may be root over them.
    pub is_owned: bool,
    pub etc: Vec<EtcEntry>,
    pub etc_of_root: Vec<EtcEntry>,
    /// Directories, by their paths inside and on the host.
    pub packages: Vec<(PathBuf, PathBuf)>,
    /// The system's `passwd` and `group`.
    pub users: String,
    pub groups: String,
    /// Ids that may be given to users inside.
    pub range: Option<Ids>,
    /// What is missing for that.
    pub range_missing: Option<Missing>,
    /// The owners of the workspace, if they are others than the caller.
    pub owners: Option<Owners>,
    pub resolution: Vec<EtcEntry>,
    /// The file of trusted certificates, by its path inside.
    pub certificates: Option<&'static str>,
    pub programs: Programs,
    /// Whether the workspace's file system tells upper and lower case apart.
    pub letter_case: LetterCase,
    /// What is missing for rules for single paths.
    pub guard_missing: Option<Missing>,
    /// What is missing to keep kernels closed to other processes.
    pub tracing_missing: Option<Missing>,
    /// What limits can be held with.
    pub limit_support: LimitSupport,
    /// The version of Landlock; 0 if there is none.
    pub landlock: i64,
    /// Paths of sockets of the host's programs.
    pub sockets: Vec<PathBuf>,
}

/// An entry at the top of the file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Top {
    Directory,
    /// Such as `/bin` to `usr/bin`.
    Link(PathBuf),
}

#[derive(Clone, Debug)]
pub struct EtcEntry {
    /// Below `/etc`.
    pub name: String,
    pub path: PathBuf,
    pub is_directory: bool,
    /// For a file that is not too large.
    pub text: Option<Vec<u8>>,
}

/// What to look for on the host.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// The search path of the session.
    pub search: &'a OsStr,
    /// The program that the session was started with: a name or a path.
    pub program: &'a str,
    pub home: Option<&'a Path>,
    /// The directory of rustup, if it is not in the home.
    pub rustup: Option<&'a Path>,
    pub workspace: &'a Path,
    /// Never shown, nor anything that contains it.
    pub hidden: &'a [PathBuf],
    /// A system tree other than the host's.
    pub rootfs: Option<&'a Path>,
}

impl Host {
    #[must_use]
    pub fn look(wanted: Wanted<'_>) -> Self {
        let tree = wanted.rootfs.unwrap_or(Path::new("/"));
        let (tops, programs) = match wanted.rootfs {
            None => {
                let tops: Vec<_> = TOPS.iter().filter_map(|path| top(tree, path)).collect();
                let programs = programs(wanted, &tops);
                (tops, programs)
            }
            Some(rootfs) => {
                let programs = Programs { search: SEARCH.into(), ..Programs::default() };
                (all_tops(rootfs), programs)
            }
        };
        let user = rustix::process::geteuid().as_raw();
        let group = rustix::process::getegid().as_raw();
        let range = range(user, tree).map_or_else(range_of_user, Ok);
        Self {
            programs,
            sockets: super::sockets::of_host(),
            etc: entries(tree, etc::SHOWN),
            etc_of_root: entries(tree, etc::SHOWN_TO_ROOT),
            packages: packages(tree),
            users: text_of(tree, "/etc/passwd"),
            groups: text_of(tree, "/etc/group"),
            range: range.as_ref().ok().cloned(),
            range_missing: range.err(),
            owners: Owners::look(wanted.workspace, wanted.hidden, (user, group)),
            // Names are resolved as on the host.
            resolution: entries(Path::new("/"), etc::RESOLUTION),
            certificates: certificates(tree),
            tops,
            is_owned: fs::metadata(tree.join("usr")).is_ok_and(|usr| usr.uid() == user),
            tree: tree.to_owned(),
            letter_case: LetterCase::of(wanted.workspace),
            guard_missing: crate::check::guard_missing(),
            tracing_missing: crate::check::tracing_missing(),
            limit_support: LimitSupport::detect(),
            landlock: crate::confine::landlock_version(),
        }
    }

    /// Returns the path on the host of a part of the system, given its path inside.
    #[must_use]
    pub fn of_system(&self, inside: &Path) -> PathBuf {
        self.tree.join(inside.strip_prefix("/").unwrap_or(inside))
    }
}

fn top(tree: &Path, inside: &str) -> Option<(PathBuf, Top)> {
    let path = tree.join(inside.trim_start_matches('/'));
    let kind = fs::symlink_metadata(&path).ok()?.file_type();
    let top = if kind.is_symlink() { Top::Link(fs::read_link(path).ok()?) } else { Top::Directory };
    Some((inside.into(), top))
}

/// Returns all top-level entries of another system tree that belong to a system.
fn all_tops(rootfs: &Path) -> Vec<(PathBuf, Top)> {
    let names = fs::read_dir(rootfs).into_iter().flatten().filter_map(Result::ok);
    let mut tops: Vec<(PathBuf, Top)> = names
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| !NOT_SHOWN.contains(&name.as_str()))
        .filter_map(|name| top(rootfs, &format!("/{name}")))
        .filter(|(inside, top)| match top {
            Top::Link(_) => true,
            Top::Directory => rootfs.join(inside.strip_prefix("/").unwrap_or(inside)).is_dir(),
        })
        .collect();
    tops.sort_by(|(a, _), (b, _)| a.cmp(b));
    tops
}

fn certificates(tree: &Path) -> Option<&'static str> {
    let mut files = etc::CERTIFICATES.iter().copied();
    files.find(|file| within(tree, Path::new(file)).is_some_and(|path| path.is_file()))
}

fn packages(tree: &Path) -> Vec<(PathBuf, PathBuf)> {
    let found = PACKAGES.iter().filter_map(|at| {
        let path = within(tree, Path::new(at))?;
        path.is_dir().then(|| (PathBuf::from(at), path))
    });
    found.collect()
}

fn text_of(tree: &Path, inside: &str) -> String {
    let path = within(tree, Path::new(inside));
    path.and_then(|path| fs::read_to_string(path).ok()).unwrap_or_default()
}

/// Returns unused ids for root, if they exist in its namespace.
fn range(user: u32, tree: &Path) -> Option<Ids> {
    const SETGID_AND_SETUID: u64 = 0b1100_0000;
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"))?;
    let effective = u64::from_str_radix(effective.trim(), 16).ok()?;
    let is_there = |map: &str| {
        fs::read_to_string(map).is_ok_and(|map| {
            map.lines().any(|line| {
                let mut numbers = line.split_whitespace().map(|n| n.parse::<u64>().unwrap_or(0));
                let (first, _, count) = (numbers.next(), numbers.next(), numbers.next());
                let (first, count) = (first.unwrap_or(0), count.unwrap_or(0));
                first <= FIRST_OUTSIDE.into()
                    && first + count >= u64::from(FIRST_OUTSIDE) + u64::from(OTHERS)
            })
        })
    };
    let can = user == 0
        && effective & SETGID_AND_SETUID == SETGID_AND_SETUID
        && is_there("/proc/self/uid_map")
        && is_there("/proc/self/gid_map");
    // The user that downloads packages keeps its id, to continue downloads that others began.
    let fetcher = within(tree, Path::new(FETCHED)).and_then(|path| fs::metadata(path).ok());
    let same = fetcher.map(|directory| directory.uid()).filter(|id| (1..PEOPLE).contains(id));
    let others = Others { outside: FIRST_OUTSIDE, count: OTHERS, same };
    can.then_some(Ids::Range { users: others, groups: others, by: Mapper::Keeper })
}

/// Returns the range of another user, if an administrator has assigned one.
fn range_of_user() -> Result<Ids, Missing> {
    let range = SubIds::of_caller().map_err(|none| Missing {
        what: none.what,
        remedy: format!("an administrator can allow it: `{}`", none.command),
    })?;
    let others = |outside| Others { outside, count: sessile_subids::WANTED, same: None };
    Ok(Ids::Range {
        users: others(range.first_user),
        groups: others(range.first_group),
        by: Mapper::Programs(range),
    })
}

fn entries(tree: &Path, names: &[&str]) -> Vec<EtcEntry> {
    let names = names.iter().flat_map(|name| expanded(tree, name));
    names.filter_map(|name| entry(tree, &name)).collect()
}

/// Returns the names below `/etc` that a name with `*` stands for.
fn expanded(tree: &Path, name: &str) -> Vec<String> {
    let mut found = vec![String::new()];
    for part in name.split('/') {
        let below = |parent: &String| match part.split_once('*') {
            None => vec![join(parent, part)],
            Some((start, end)) => {
                let fits = |name: &String| {
                    name.len() >= start.len() + end.len()
                        && name.starts_with(start)
                        && name.ends_with(end)
                };
                let directory = within(tree, &Path::new("/etc").join(parent));
                let entries = directory.and_then(|path| fs::read_dir(path).ok());
                let entries = entries.into_iter().flatten().flatten();
                let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
                let mut names: Vec<_> = names.filter(fits).collect();
                names.sort();
                names.iter().map(|name| join(parent, name)).collect()
            }
        };
        found = found.iter().flat_map(below).collect();
    }
    found
}

fn join(parent: &str, name: &str) -> String {
    if parent.is_empty() { name.to_owned() } else { format!("{parent}/{name}") }
}

/// Resolves a path in a system tree. Links are followed as its own programs would, and do
/// not lead out of it.
fn within(tree: &Path, inside: &Path) -> Option<PathBuf> {
    use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
    use std::os::fd::AsRawFd;
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let root = rustix::fs::openat(CWD, tree, flags | OFlags::DIRECTORY, Mode::empty()).ok()?;
    let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    let found = rustix::fs::openat2(&root, inside, flags, Mode::empty(), resolve).ok()?;
    fs::read_link(format!("/proc/self/fd/{}", found.as_raw_fd())).ok()
}

fn entry(tree: &Path, name: &str) -> Option<EtcEntry> {
    let path = within(tree, &Path::new("/etc").join(name))?;
    let metadata = fs::metadata(&path).ok()?;
    // Root may read what others may not, but is not root inside.
    if metadata.permissions().mode() & 0o004 == 0 {
        return None;
    }
    let is_read = metadata.is_file() && metadata.size() <= MOST_TEXT;
    let text = if is_read { Some(fs::read(&path).ok()?) } else { None };
    Some(EtcEntry { name: name.to_owned(), path, is_directory: metadata.is_dir(), text })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_stars_stand_for_what_there_is_and_private_files_are_left_out() {
        let tree = tempfile::tempdir().unwrap();
        let files = [
            "java-17-openjdk/security/java.security",
            "java-21-openjdk/x",
            "javascript-common/x",
            "php/8.2/cli/php.ini",
            "php/8.2/fpm/pool.d/www.conf",
            "maven/settings.xml",
            "maven/m2.conf",
        ];
        for file in files {
            let path = tree.path().join("etc").join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        let closed = tree.path().join("etc/java-21-openjdk");
        fs::set_permissions(closed, fs::Permissions::from_mode(0o750)).unwrap();
        let shown = entries(tree.path(), etc::SHOWN);
        let names: Vec<&str> = shown.iter().map(|entry| &*entry.name).collect();
        let expected = ["java-17-openjdk", "javascript-common", "maven/m2.conf", "php/8.2/cli"];
        assert_eq!(names, expected);
    }
}
