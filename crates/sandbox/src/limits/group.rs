//! Control groups: making them for a sandbox, entering, reading and removing them.
//!
//! ```text
//!  <a writable group>/sessile-<session>-<place>/1/   the processes of one sandbox
//!                                               2/   of the next one, if its init is killed
//! ```
//!
//! Processes are not trusted to leave a group by themselves: removing a group kills all
//! processes in it.

use super::support::{Hierarchy, Version};
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A group that is to be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupPlan {
    /// The name of the session and its place.
    pub name: String,
    /// One for each hierarchy.
    pub parts: Vec<PartPlan>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PartPlan {
    pub hierarchy: Hierarchy,
    pub controllers: Vec<&'static str>,
    /// Of the group of one sandbox.
    pub settings: Vec<Setting>,
    /// Of the group around it, which is the one that competes with others.
    pub outer: Vec<Setting>,
}

/// A file of the group and its new content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    pub file: &'static str,
    pub value: String,
    /// Not every system has it.
    is_optional: bool,
}

impl Setting {
    pub(super) fn must(file: &'static str, value: String) -> Self {
        Self { file, value, is_optional: false }
    }

    pub(super) fn may(file: &'static str, value: String) -> Self {
        Self { file, value, is_optional: true }
    }

    fn write_to(&self, group: &Path) -> io::Result<()> {
        match fs::write(group.join(self.file), &self.value) {
            Err(error) if !self.is_optional => Err(error),
            Ok(()) | Err(_) => Ok(()),
        }
    }
}

impl GroupPlan {
    /// Returns the directories that contain all groups of the session, one for each
    /// hierarchy: they must be gone when it has ended.
    #[must_use]
    pub fn tops(&self) -> Vec<PathBuf> {
        self.parts.iter().map(|part| self.top(part)).collect()
    }

    fn top(&self, part: &PartPlan) -> PathBuf {
        part.hierarchy.directory.join(format!("{PREFIX}{}", self.name))
    }
}

const PREFIX: &str = "sessile-";

/// Whether a path contains the groups of that session: nothing else is removed.
fn is_top_of(path: &Path, session: &str) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let place = name.strip_prefix(PREFIX).and_then(|name| name.strip_prefix(session));
    place.is_some_and(|place| place.is_empty() || place.starts_with('-'))
        && path.join("cgroup.procs").exists()
}

/// Whether it is a real control group, not a directory that looks like one.
fn is_group(path: &Path) -> bool {
    const MAGIC: [i64; 2] = [0x0027_e0eb, 0x6367_7270];
    rustix::fs::statfs(path).is_ok_and(|stat| MAGIC.contains(&stat.f_type))
}

/// A group that was made.
#[derive(Debug)]
pub struct Group {
    directories: Vec<PathBuf>,
    /// Files that a process writes to in order to enter.
    doors: Vec<File>,
    memory: Option<Memory>,
    pids: Option<Pids>,
}

/// What a group has counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Processes that were killed because memory was at its limit.
    pub kills: u64,
    /// Processes that could not be started because there were too many.
    pub refusals: u64,
}

#[derive(Debug)]
struct Memory {
    directory: PathBuf,
    version: Version,
    events: File,
}

#[derive(Debug)]
struct Pids {
    directory: PathBuf,
    events: Option<File>,
}

impl Group {
    /// Makes it.
    ///
    /// # Errors
    /// Of the system; nothing is left of the group then.
    pub fn make(plan: &GroupPlan) -> io::Result<Self> {
        let mut group =
            Self { directories: Vec::new(), doors: Vec::new(), memory: None, pids: None };
        for part in &plan.parts {
            let made = group.add(&plan.top(part), part);
            made.map_err(|error| {
                let place = part.hierarchy.directory.display();
                io::Error::new(error.kind(), format!("a control group in {place}: {error}"))
            })?;
        }
        Ok(group)
    }

    fn add(&mut self, top: &Path, part: &PartPlan) -> io::Result<()> {
        remove_deserted(&part.hierarchy.directory, DESERTED);
        make_directory(top)?;
        if part.hierarchy.version == Version::Two {
            // May be refused if they are enabled already, which does not matter.
            let _ = enable(&part.hierarchy.directory, &part.controllers);
            enable(top, &part.controllers)?;
        }
        let directory = make_numbered(top)?;
        self.directories.push(directory.clone());
        part.outer.iter().try_for_each(|setting| setting.write_to(top))?;
        part.settings.iter().try_for_each(|setting| setting.write_to(&directory))?;
        let version = part.hierarchy.version;
        for controller in &part.controllers {
            match *controller {
                "memory" => {
                    let events = match version {
                        Version::One => "memory.oom_control",
                        Version::Two => "memory.events",
                    };
                    let events = File::open(directory.join(events))?;
                    self.memory = Some(Memory { directory: directory.clone(), version, events });
                }
                "pids" => {
                    let events = File::open(directory.join("pids.events")).ok();
                    self.pids = Some(Pids { directory: directory.clone(), events });
                }
                _ => {}
            }
        }
        self.doors.push(File::options().write(true).open(directory.join("cgroup.procs"))?);
        Ok(())
    }

    /// Moves the calling process into the group. Only makes system calls.
    ///
    /// # Errors
    /// Of the system calls.
    pub fn enter(&self) -> io::Result<()> {
        self.doors.iter().try_for_each(|mut door| door.write_all(b"0"))
    }

    /// Returns the current counts: two small reads.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let of = |file: Option<&File>, key| file.and_then(|file| number_of(file, key)).unwrap_or(0);
        Counts {
            kills: of(self.memory.as_ref().map(|memory| &memory.events), "oom_kill"),
            refusals: of(self.pids.as_ref().and_then(|pids| pids.events.as_ref()), "max"),
        }
    }

    /// Returns the memory in use, without what the system would free at once.
    #[must_use]
    pub fn memory_used(&self) -> Option<u64> {
        let memory = self.memory.as_ref()?;
        let (file, cached) = match memory.version {
            Version::One => ("memory.usage_in_bytes", "total_inactive_file"),
            Version::Two => ("memory.current", "inactive_file"),
        };
        let used = number_in(&memory.directory.join(file))?;
        let stat = fs::read_to_string(memory.directory.join("memory.stat")).unwrap_or_default();
        Some(used.saturating_sub(number_after(&stat, cached).unwrap_or(0)))
    }

    /// Returns the highest memory use, if the system reports it.
    #[must_use]
    pub fn memory_peak(&self) -> Option<u64> {
        let memory = self.memory.as_ref()?;
        number_in(&memory.directory.join(match memory.version {
            Version::One => "memory.max_usage_in_bytes",
            Version::Two => "memory.peak",
        }))
    }

    /// Returns the number of processes and threads.
    #[must_use]
    pub fn processes(&self) -> Option<u64> {
        number_in(&self.pids.as_ref()?.directory.join("pids.current"))
    }
}

impl Drop for Group {
    /// Removes the groups whose processes are gone already; the guardian removes the others.
    fn drop(&mut self) {
        for directory in &self.directories {
            let _ = fs::remove_dir(directory);
        }
    }
}

/// A group without a process for this long is abandoned: a sandbox has its first process
/// in it within milliseconds, and until it ends.
const DESERTED: Duration = Duration::from_secs(60);

/// Removes the groups of sessions whose keeper and guardian were both killed, and that
/// were not used since. A group that is not empty cannot be removed.
fn remove_deserted(directory: &Path, age: Duration) {
    let is_old = |path: &Path| {
        let changed = fs::metadata(path).and_then(|metadata| metadata.modified());
        changed.is_ok_and(|at| at.elapsed().is_ok_and(|passed| passed >= age))
    };
    let below = |path: &Path| {
        let entries = fs::read_dir(path).into_iter().flatten().filter_map(Result::ok);
        entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
    };
    let is_ours = |name: &std::ffi::OsStr| {
        name.to_str().is_some_and(|name| name.starts_with("sessile-sess_"))
    };
    for top in below(directory).filter(|entry| is_ours(&entry.file_name())) {
        let groups: Vec<PathBuf> = below(&top.path()).map(|entry| entry.path()).collect();
        if is_old(&top.path()) && groups.iter().all(|group| is_old(group)) {
            groups.iter().chain([&top.path()]).for_each(|path| drop(fs::remove_dir(path)));
        }
    }
}

fn make_directory(path: &Path) -> io::Result<()> {
    match fs::create_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        made => made,
    }
}

/// Makes a new directory: an earlier one may still have processes that are ending.
fn make_numbered(top: &Path) -> io::Result<PathBuf> {
    for n in 1_u32.. {
        let path = top.join(n.to_string());
        match fs::create_dir(&path) {
            Ok(()) => return Ok(path),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

fn enable(group: &Path, controllers: &[&str]) -> io::Result<()> {
    let words: Vec<String> = controllers.iter().map(|name| format!("+{name}")).collect();
    fs::write(group.join("cgroup.subtree_control"), words.join(" "))
}

fn number_in(path: &Path) -> Option<u64> {
    fs::read_to_string(path).ok()?.trim().parse().ok()
}

fn number_of(file: &File, key: &str) -> Option<u64> {
    let mut buffer = [0; 512];
    let read = file.read_at(&mut buffer, 0).ok()?;
    number_after(std::str::from_utf8(&buffer[..read]).ok()?, key)
}

/// Returns the number after the key at the beginning of a line.
fn number_after(text: &str, key: &str) -> Option<u64> {
    let is_it = |line: &&str| line.split(' ').next() == Some(key);
    text.lines().find(is_it)?.split(' ').nth(1)?.parse().ok()
}

/// How long to wait for killed processes. Their last work, such as freeing memory, takes
/// milliseconds.
const PATIENCE: Duration = Duration::from_secs(5);

/// Removes all groups of a session, and kills what is left in them. `tops` is from
/// [`GroupPlan::tops`], or recorded from it.
pub fn remove(tops: &[PathBuf], session: &str) {
    let deadline = Instant::now() + PATIENCE;
    for top in tops.iter().filter(|top| is_top_of(top, session) && is_group(top)) {
        while !try_to_remove(top) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

/// Tries to remove it; returns whether it is gone.
fn try_to_remove(top: &Path) -> bool {
    let below = fs::read_dir(top).into_iter().flatten().filter_map(Result::ok);
    for group in below.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        kill_all(&group.path());
        let _ = fs::remove_dir(group.path());
    }
    match fs::remove_dir(top) {
        Ok(()) => true,
        Err(error) => error.kind() == io::ErrorKind::NotFound,
    }
}

fn kill_all(group: &Path) {
    if fs::write(group.join("cgroup.kill"), "1").is_ok() {
        return;
    }
    let members = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    let numbers = members.lines().filter_map(|line| line.parse().ok());
    for pid in numbers.filter_map(rustix::process::Pid::from_raw) {
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_by_the_word_before_them() {
        let text = "oom_kill_disable 0\nunder_oom 0\noom_kill 3\n";
        assert_eq!(number_after(text, "oom_kill"), Some(3));
        assert_eq!(number_after(text, "oom"), None);
    }

    #[test]
    fn what_nobody_is_in_any_more_is_removed_after_a_while() {
        let place = tempfile::tempdir().unwrap();
        let make = |name: &str| {
            let path = place.path().join(name);
            fs::create_dir_all(path.join("1")).unwrap();
            path
        };
        let (left, other) = (make("sessile-sess_1"), make("others"));
        remove_deserted(place.path(), DESERTED);
        assert!(left.is_dir());
        remove_deserted(place.path(), Duration::ZERO);
        assert!(!left.exists() && other.join("1").is_dir());
    }

    #[test]
    fn only_groups_of_the_session_are_ever_removed() {
        let place = tempfile::tempdir().unwrap();
        let other = place.path().join("sessile-other");
        fs::create_dir_all(other.join("1")).unwrap();
        fs::write(other.join("cgroup.procs"), "").unwrap();
        remove(&[other.clone(), place.path().to_owned(), "/".into()], "mine");
        // Nor a directory that only looks like one.
        remove(std::slice::from_ref(&other), "other");
        assert!(other.join("1").is_dir() && !is_group(&other));
        assert!(is_top_of(&other, "other") && !is_top_of(&other, "mine"));
        let placed = place.path().join("sessile-other-1f");
        fs::create_dir_all(&placed).unwrap();
        fs::write(placed.join("cgroup.procs"), "").unwrap();
        assert!(is_top_of(&placed, "other") && !is_top_of(&placed, "oth"));
    }
}
