//! Processes as the kernel's file system shows them: who descends from whom,
//! and who belongs to a run's foreground.
//!
//! Nothing here but [`make_room`] is on the path of a run that ends by itself.

use rustix::process::{Pid, Resource, Rlimit, Signal, WaitOptions, getrlimit, setrlimit};
use std::fs;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::OnceLock;

/// All descendants of a process, parents before children.
pub(crate) fn descendants(of: Pid) -> Vec<Pid> {
    let mut found = children(of);
    let mut at = 0;
    while let Some(pid) = found.get(at).copied() {
        at += 1;
        found.extend(children(pid));
    }
    found
}

/// The directory that a process is in.
pub(crate) fn directory(pid: Pid) -> Option<PathBuf> {
    fs::read_link(format!("/proc/{}/cwd", pid.as_raw_nonzero())).ok()
}

/// What the limit of descriptors was before it was raised.
static USUAL_DESCRIPTORS: OnceLock<Rlimit> = OnceLock::new();

/// Each session has about a dozen descriptors, and a hundred of them more than
/// the usual limit allows.
pub(crate) fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    if limit.current < limit.maximum {
        let _ = USUAL_DESCRIPTORS.set(limit);
        let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
        let _ = setrlimit(Resource::Nofile, raised);
    }
}

/// In a process that is about to become a kernel: the limit that it would have
/// had. Only makes a system call.
pub(crate) fn lower_descriptor_limit() {
    if let Some(usual) = USUAL_DESCRIPTORS.get() {
        let _ = setrlimit(Resource::Nofile, *usual);
    }
}

/// Whether a process may open what a run takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    Enough,
    /// It may now.
    Raised {
        from: u64,
        to: u64,
    },
    /// That is as much as it may, and only the privileged can raise it.
    Lacking(u64),
}

/// Descriptors that a run takes, besides what its kernel has open.
const RUN_TAKES: u64 = 8;

/// Raises the limit of descriptors of a process that may not have `least`, or
/// has used them up. It takes two system calls, of 2 µs together.
pub(crate) fn make_room(pid: Pid, least: u64) -> Room {
    if least == 0 {
        return Room::Enough;
    }
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the pointer is to a structure of ours, which is written to.
    let result = unsafe {
        let pid = pid.as_raw_nonzero().get();
        libc::prlimit(pid, libc::RLIMIT_NOFILE, std::ptr::null(), &raw mut limit)
    };
    // How many are open is the size of this directory, since Linux 6.2.
    let open = fs::metadata(format!("/proc/{}/fd", pid.as_raw_nonzero())).map_or(0, |d| d.len());
    let from = limit.rlim_cur;
    if result != 0 || from >= least.max(open + RUN_TAKES) {
        return Room::Enough;
    }
    let to = least.max(open + 2 * RUN_TAKES);
    let raised = Rlimit { current: Some(to), maximum: Some(to.max(limit.rlim_max)) };
    match rustix::process::prlimit(Some(pid), Resource::Nofile, raised) {
        Ok(_) => Room::Raised { from, to },
        Err(_) => Room::Lacking(from),
    }
}

/// Whether a process descends from another.
pub(crate) fn is_below(pid: Pid, above: Pid) -> bool {
    // One in between may end while we look: then those below it have another
    // parent, and the next look finds that one.
    (0..LOOKS).any(|_| leads_to(pid, above))
}

const LOOKS: u32 = 5;

fn leads_to(pid: Pid, above: Pid) -> bool {
    let mut at = Some(pid);
    // Longer than any line of ancestors in practice; a reused number may make
    // a circle.
    for _ in 0..1000 {
        match at.and_then(|pid| Stat::of(pid)?.parent) {
            Some(parent) if parent == above => return true,
            Some(parent) => at = Some(parent),
            None => return false,
        }
    }
    false
}

/// The direct children, by any of the process's threads.
pub(crate) fn children(of: Pid) -> Vec<Pid> {
    let of = of.as_raw_nonzero();
    let mut found = Vec::new();
    for task in fs::read_dir(format!("/proc/{of}/task")).into_iter().flatten().flatten() {
        let list = fs::read_to_string(task.path().join("children")).unwrap_or_default();
        found.extend(
            list.split_ascii_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?)),
        );
    }
    found
}

/// What a run is doing in the foreground: the trees below those children of
/// its kernel that this run started and waits for.
pub(crate) fn foreground(kernel: Pid, begun: u64, pipes: [PipeId; 2]) -> Vec<Pid> {
    let mut work = Vec::new();
    for child in children(kernel) {
        if is_earlier(child, begun, pipes) || is_asynchronous(child) {
            continue;
        }
        work.push(child);
        work.extend(descendants(child));
    }
    work
}

/// A process as the system names it: of one that is just ending, it says -1.
fn process(number: &str) -> Option<Pid> {
    number.parse().ok().filter(|number| *number > 0).and_then(Pid::from_raw)
}

/// The process group of a process.
pub(crate) fn group(pid: Pid) -> Option<Pid> {
    Stat::of(pid)?.group
}

/// The controlling terminal of a process: its major and minor number.
pub(crate) fn terminal(pid: Pid) -> Option<(u32, u32)> {
    let number = Stat::of(pid)?.terminal.cast_unsigned();
    (number != 0).then_some(((number >> 8) & 0xfff, (number & 0xff) | ((number >> 12) & 0xf_ff00)))
}

/// Whether a process has a file open by this path.
pub(crate) fn holds(pid: Pid, path: &std::path::Path) -> bool {
    let opened = fs::read_dir(format!("/proc/{}/fd", pid.as_raw_nonzero()));
    let mut opened = opened.into_iter().flatten().flatten();
    opened.any(|fd| fs::read_link(fd.path()).is_ok_and(|target| target == path))
}

/// What tells one run's pipe from another's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PipeId {
    pub(crate) device: u64,
    pub(crate) inode: u64,
}

/// Whether a process was started before the run. The system tells a process's
/// age in hundredths of a second; within the same hundredth, a process that
/// still writes to an earlier run's pipe is an earlier one.
fn is_earlier(pid: Pid, begun: u64, pipes: [PipeId; 2]) -> bool {
    use std::os::unix::fs::FileTypeExt;
    let Some(started) = started(pid) else {
        return true;
    };
    if started != begun {
        return started < begun;
    }
    let targets = [1, 2].map(|fd| {
        let target = fs::metadata(format!("/proc/{}/fd/{fd}", pid.as_raw_nonzero())).ok()?;
        let id = PipeId { device: target.dev(), inode: target.ino() };
        // Other pipes, such as those of a pipeline, are not on our device.
        (target.file_type().is_fifo() && id.device == pipes[0].device).then_some(id)
    });
    let mut ours = targets.into_iter().flatten().peekable();
    ours.peek().is_some() && ours.all(|id| !pipes.contains(&id))
}

/// A shell without job control starts `command &` with SIGINT ignored and
/// stdin from /dev/null, opened for reading. A run's own empty stdin is
/// /dev/null opened for reading *and* writing, which tells the two apart.
///
/// zsh opens it for both, too: see [`stands_back`].
fn is_asynchronous(pid: Pid) -> bool {
    let reads_nothing = || {
        let fd = pid.as_raw_nonzero();
        let target = fs::read_link(format!("/proc/{fd}/fd/0")).ok()?;
        let info = fs::read_to_string(format!("/proc/{fd}/fdinfo/0")).ok()?;
        let flags = info.lines().find_map(|line| line.strip_prefix("flags:"))?;
        let flags = i32::from_str_radix(flags.trim(), 8).ok()?;
        Some(target.as_os_str() == "/dev/null" && flags & libc::O_ACCMODE == libc::O_RDONLY)
    };
    ignores_interrupt(pid) && reads_nothing() == Some(true)
}

/// Whether a child of zsh was started with `&`: such a one stands back behind
/// others, unless the user does not want that.
pub(crate) fn stands_back(pid: Pid, kernel: Pid) -> bool {
    let niceness = |pid: Pid| Stat::of(pid).map(|stat| stat.nice);
    niceness(pid) > niceness(kernel) && ignores_interrupt(pid)
}

fn ignores_interrupt(pid: Pid) -> bool {
    signals(pid, "SigIgn:").is_some_and(|ignored| ignored & bit(libc::SIGINT) != 0)
}

/// The signals that a process has handlers for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Caught(u64);

impl Caught {
    pub(crate) fn by(pid: Pid) -> Self {
        Self(signals(pid, "SigCgt:").unwrap_or_default())
    }

    pub(crate) fn has(self, signal: i32) -> bool {
        self.0 & bit(signal) != 0
    }
}

/// A set of signals that the system lists of a process.
fn signals(pid: Pid, name: &str) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{}/status", pid.as_raw_nonzero())).ok()?;
    let set = status.lines().find_map(|line| line.strip_prefix(name))?;
    u64::from_str_radix(set.trim(), 16).ok()
}

fn bit(signal: i32) -> u64 {
    1 << (signal - 1)
}

/// Whether a process waits in a read of this very pipe. False also where the
/// system does not tell.
pub(crate) fn is_reading(pid: Pid, pipe: impl AsFd) -> bool {
    let pid = pid.as_raw_nonzero();
    let read_by = || {
        let call = fs::read_to_string(format!("/proc/{pid}/syscall")).ok()?;
        let mut words = call.split_ascii_whitespace();
        let is_read = words.next()?.parse() == Ok(libc::SYS_read);
        let fd = u32::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok()?;
        let target = fs::metadata(format!("/proc/{pid}/fd/{fd}")).ok().filter(|_| is_read)?;
        Some((target.dev(), target.ino()))
    };
    let wanted = rustix::fs::fstat(pipe).map(|stat| (stat.st_dev, stat.st_ino));
    wanted.is_ok_and(|wanted| read_by() == Some(wanted))
}

/// When a process was started, in clock ticks (1/100 s) after boot.
fn started(pid: Pid) -> Option<u64> {
    Stat::of(pid).map(|stat| stat.started)
}

/// A flag of the system's: it is set before anything of a process is let go.
const PF_EXITING: u64 = 4;

/// What the system says of a process in one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stat {
    /// `R`, `S`, `T`, …
    pub(crate) state: char,
    pub(crate) parent: Option<Pid>,
    pub(crate) group: Option<Pid>,
    /// Its controlling terminal, as the system encodes it; zero for none.
    pub(crate) terminal: i32,
    /// The process that it is in the session of.
    pub(crate) leader: Option<Pid>,
    /// Clock ticks that it has used, with its children that were waited for.
    pub(crate) cpu: u64,
    nice: i64,
    is_exiting: bool,
    pub(crate) threads: u64,
    pub(crate) started: u64,
    /// Pages of memory.
    pub(crate) resident: u64,
}

impl Stat {
    #[cfg(test)]
    pub(crate) fn example(leader: Pid, started: u64) -> Self {
        let leader = Some(leader);
        let (parent, group, terminal) = (None, None, 0);
        let (cpu, nice, is_exiting, threads, resident) = (0, 0, false, 1, 0);
        let state = 'S';
        Self {
            state,
            parent,
            group,
            terminal,
            leader,
            cpu,
            nice,
            is_exiting,
            threads,
            started,
            resident,
        }
    }

    pub(crate) fn of(pid: Pid) -> Option<Self> {
        let bytes = fs::read(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
        Self::parse(&String::from_utf8_lossy(&bytes))
    }

    fn parse(line: &str) -> Option<Self> {
        // The second field is the program's name in parentheses, and may contain
        // any character, parentheses and spaces included.
        let rest = &line[line.rfind(')')? + 1..];
        let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
        let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
        Some(Self {
            state: fields.first()?.chars().next()?,
            parent: process(fields.get(1)?),
            group: process(fields.get(2)?),
            leader: process(fields.get(3)?),
            terminal: fields.get(4)?.parse().ok()?,
            cpu: (11..15).map(number).sum::<Option<u64>>()?,
            is_exiting: number(6)? & PF_EXITING != 0,
            nice: fields.get(16)?.parse().ok()?,
            threads: number(17)?,
            started: number(19)?,
            resident: number(21)?,
        })
    }

    /// Whether it is ending, or has ended and only waits for somebody to take
    /// note: it has no memory and no descriptors any more.
    pub(crate) fn has_ended(&self) -> bool {
        // The first thread may have ended before the others.
        let is_over = matches!(self.state, 'Z' | 'X') || self.is_exiting;
        is_over && self.threads <= 1
    }
}

/// The present moment in the unit of a process's start.
pub(crate) fn start_clock() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
    let (seconds, nanos) = (now.tv_sec.cast_unsigned(), now.tv_nsec.cast_unsigned());
    seconds * 100 + nanos / 10_000_000
}

pub(crate) fn signal(pids: &[Pid], signal: Signal) {
    for pid in pids {
        // One that is gone already needs no signal.
        let _ = rustix::process::kill_process(*pid, signal);
    }
}

/// For signals that have no name. Whether there was somebody to get it.
pub(crate) fn signal_by_number(pid: Pid, number: i32) -> bool {
    // SAFETY: kill touches no memory.
    unsafe { libc::kill(pid.as_raw_nonzero().get(), number) == 0 }
}

/// Reaps one child that has ended, if there is one.
pub(crate) fn reap() -> Reaped {
    match rustix::process::wait(WaitOptions::NOHANG | WaitOptions::UNTRACED) {
        Ok(Some((pid, status))) if status.stopped() => Reaped::Stopped(pid),
        Ok(Some((pid, status))) => {
            let code = match (status.exit_status(), status.terminating_signal()) {
                (Some(code), _) => code,
                (None, Some(signal)) => 128 + signal,
                (None, None) => return Reaped::Other,
            };
            Reaped::Ended(pid, code)
        }
        Ok(None) => Reaped::NoneEnded,
        Err(rustix::io::Errno::INTR) => Reaped::Other,
        Err(_) => Reaped::NoneLeft,
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Reaped {
    Ended(Pid, i32),
    Stopped(Pid),
    /// Something that is not an end.
    Other,
    /// There are children, none has ended.
    NoneEnded,
    /// There are no children.
    NoneLeft,
}

/// Kills and reaps everything below this process until nothing is left. For
/// the guardian, whose keeper is dead, and for a keeper that goes.
pub(crate) fn exterminate() {
    let me = rustix::process::getpid();
    loop {
        signal(&descendants(me), Signal::KILL);
        // Blocks until one of them is gone: killed processes always come.
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return,
        }
    }
}

/// The value of a variable in the environment that a process was started with;
/// of one that has none, in that of the leader of its session.
pub(crate) fn variable(pid: Pid, name: &str) -> Option<String> {
    let of = |pid: Pid| {
        let environ = fs::read(format!("/proc/{}/environ", pid.as_raw_nonzero())).ok()?;
        let mut values = environ.split(|b| *b == 0).filter_map(|entry| {
            entry.strip_prefix(name.as_bytes())?.strip_prefix(b"=").map(<[u8]>::to_vec)
        });
        String::from_utf8(values.next()?).ok()
    };
    of(pid).or_else(|| of(Stat::of(pid)?.leader.filter(|leader| *leader != pid)?))
}

/// Kills what a lost keeper could not: processes that still carry the
/// session's id in their environment.
pub(crate) fn kill_strays(marker: &str) {
    let me = std::process::id().to_string();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let name = entry.file_name();
        let Some(pid) =
            name.to_str().filter(|n| *n != me).and_then(|n| Pid::from_raw(n.parse().ok()?))
        else {
            continue;
        };
        let environ = fs::read(entry.path().join("environ")).unwrap_or_default();
        if environ.split(|b| *b == 0).any(|variable| variable == marker.as_bytes()) {
            signal(&[pid], Signal::KILL);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn a_process_that_is_ending_is_in_no_group() {
        let line = "7 (a) b) X 0 -1 -1 0 -1 4 0 0 0 0 3 4 0 0 20 0 1 0 99 0 5 0";
        let stat = Stat::parse(line).unwrap();
        assert_eq!((stat.group, stat.leader, stat.started), (None, None, 99));
    }

    #[test]
    fn a_tree_is_found_whatever_its_processes_are_called() {
        let mut child = Command::new("sh")
            .args(["-c", "exec 3<&0; sh -c 'read x <&3; :' 'a) R 1 (b' & read x; wait"])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let pid = Pid::from_child(&child);
        let started = started(pid).unwrap();
        assert!(started <= start_clock() && started + 500 > start_clock());
        while descendants(pid).is_empty() {
            std::thread::yield_now();
        }
        drop(child.stdin.take());
        child.wait().unwrap();
    }
}
