//! Processes of a session: the foreground of a run, room for descriptors, signals and
//! exits.
//!
//! Only [`make_room`] is on the path of a run that ends by itself.

use crate::scratch;
use rustix::process::{Pid, Resource, Rlimit, Signal, WaitOptions, getrlimit, setrlimit};
use sessile_proc::{Access, Process, SignalSet, Stat};
use sessile_protocol::SESSION_MARKER;
use std::fs::Metadata;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::OnceLock;

/// Returns all descendants of a process, parents before children.
pub(crate) fn descendants(of: Pid) -> Vec<Pid> {
    Process::new(of).descendants()
}

/// Returns the working directory of a process.
pub(crate) fn directory(pid: Pid) -> Option<PathBuf> {
    Process::new(pid).directory()
}

/// The limit of descriptors before it was raised.
static USUAL_DESCRIPTORS: OnceLock<Rlimit> = OnceLock::new();

/// Raises the limit of descriptors. Each session has about a dozen, so a hundred sessions
/// need more than the usual limit.
pub(crate) fn raise_descriptor_limit() {
    let limit = getrlimit(Resource::Nofile);
    if limit.current < limit.maximum {
        let _ = USUAL_DESCRIPTORS.set(limit);
        let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
        let _ = setrlimit(Resource::Nofile, raised);
    }
}

/// Restores the original limit in a process that is about to become a kernel. Only makes
/// a system call.
pub(crate) fn lower_descriptor_limit() {
    if let Some(usual) = USUAL_DESCRIPTORS.get() {
        let _ = setrlimit(Resource::Nofile, *usual);
    }
}

/// Returns the limit that kernels start with.
pub(crate) fn usual_descriptor_limit() -> Rlimit {
    USUAL_DESCRIPTORS.get().copied().unwrap_or_else(|| getrlimit(Resource::Nofile))
}

/// Whether a process may open the descriptors that a run takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    Enough,
    /// It can after the limit was raised.
    Raised {
        from: u64,
        to: u64,
    },
    /// The limit is at its maximum, which only a privileged process can raise.
    Lacking(u64),
}

/// Descriptors that a run takes, besides those its kernel has open.
const RUN_TAKES: u64 = 8;

/// Raises the descriptor limit of a process if it is below `least` or used up. `directory` is
/// that of its descriptors, opened at the first call: to find it takes longer than to look at
/// it. Takes two system calls, 1 µs together.
pub(crate) fn make_room(pid: Pid, directory: &mut Option<OwnedFd>, least: u64) -> Room {
    if least == 0 {
        return Room::Enough;
    }
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the pointer is to a structure of ours, which is written to.
    let result = unsafe {
        let pid = pid.as_raw_nonzero().get();
        libc::prlimit(pid, libc::RLIMIT_NOFILE, std::ptr::null(), &raw mut limit)
    };
    if directory.is_none() {
        *directory = Process::new(pid).descriptor_directory();
    }
    let open = directory.as_ref().map_or(0, sessile_proc::descriptor_count);
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
    // A process in between may end during the check: its children then have another
    // parent, which the next check finds.
    (0..LOOKS).any(|_| leads_to(pid, above))
}

/// How often the process tree is read: each reading may miss what changes meanwhile.
pub(crate) const LOOKS: u32 = 5;

fn leads_to(pid: Pid, above: Pid) -> bool {
    let mut at = Some(pid);
    // Longer than any line of ancestors in practice; a reused pid may form a circle.
    for _ in 0..1000 {
        match at.and_then(|pid| stat(pid)?.parent) {
            Some(parent) if parent == above => return true,
            Some(parent) => at = Some(parent),
            None => return false,
        }
    }
    false
}

/// Returns the direct children of any of the process's threads.
pub(crate) fn children(of: Pid) -> Vec<Pid> {
    Process::new(of).children()
}

/// Returns the foreground of a run: the trees below those children of its kernel that
/// this run started and waits for. A child that may have been started with `&` counts
/// only if there is no other.
pub(crate) fn foreground(kernel: Pid, begun: u64, pipes: [PipeId; 2]) -> Vec<Pid> {
    let mut started = children(kernel);
    started.retain(|child| !is_earlier(*child, begun, pipes) && !is_asynchronous(*child));
    let (doubtful, certain): (Vec<Pid>, Vec<Pid>) =
        started.into_iter().partition(|child| may_be_asynchronous(*child));
    let mut work = Vec::new();
    for child in if certain.is_empty() { doubtful } else { certain } {
        work.push(child);
        work.extend(descendants(child));
    }
    work
}

/// Returns the process group of a process.
pub(crate) fn group(pid: Pid) -> Option<Pid> {
    stat(pid)?.group
}

/// Returns the controlling terminal of a process: its major and minor number.
pub(crate) fn terminal(pid: Pid) -> Option<(u32, u32)> {
    stat(pid)?.terminal_device()
}

/// Whether a process has a file open under this path.
pub(crate) fn holds(pid: Pid, path: &std::path::Path) -> bool {
    Process::new(pid).descriptors().any(|fd| fd.link().is_some_and(|target| target == path))
}

/// Identity of a pipe, to tell the pipes of runs apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PipeId {
    pub(crate) device: u64,
    pub(crate) inode: u64,
}

impl PipeId {
    pub(crate) fn of(file: &Metadata) -> Self {
        Self { device: file.dev(), inode: file.ino() }
    }
}

/// Returns what the system says of a process in `/proc/PID/stat`.
pub(crate) fn stat(pid: Pid) -> Option<Stat> {
    Process::new(pid).stat()
}

/// Whether a process was started before the run. The system gives a process's age in
/// hundredths of a second; within the same hundredth, a process that still writes to an
/// earlier run's pipe is an earlier one.
fn is_earlier(pid: Pid, begun: u64, pipes: [PipeId; 2]) -> bool {
    use std::os::unix::fs::FileTypeExt;
    let Some(started) = stat(pid).map(|stat| stat.started) else {
        return true;
    };
    if started != begun {
        return started < begun;
    }
    let targets = [1, 2].map(|fd| {
        let target = Process::new(pid).descriptor(fd).metadata()?;
        let id = PipeId::of(&target);
        // Other pipes, such as those of a pipeline, are not on our device.
        (target.file_type().is_fifo() && id.device == pipes[0].device).then_some(id)
    });
    let mut ours = targets.into_iter().flatten().peekable();
    ours.peek().is_some() && ours.all(|id| !pipes.contains(&id))
}

/// Whether a process was started with `&`. A shell without job control starts `command &`
/// with SIGINT ignored and stdin from /dev/null, opened for reading. A run's own empty
/// stdin is /dev/null opened for reading *and* writing, which tells the two apart.
///
/// A shell that opens it for both as well is recognized by [`has_lower_priority`].
fn is_asynchronous(pid: Pid) -> bool {
    let stdin = Process::new(pid).descriptor(0);
    let is_empty = || stdin.link().is_some_and(|target| target.as_os_str() == "/dev/null");
    ignores_interrupt(pid) && is_empty() && stdin.access() == Some(Access::Read)
}

/// Whether a process ignores both keyboard signals, as one started with `&` does. In
/// `a & b & c`, bash gives the second one the run's stdin, so that nothing else
/// distinguishes it from a program that ignores these signals of its own accord.
pub(crate) fn may_be_asynchronous(pid: Pid) -> bool {
    let signals = Process::new(pid).signals();
    signals.is_some_and(|s| s.ignored.has(libc::SIGINT) && s.ignored.has(libc::SIGQUIT))
}

/// Whether a process has a lower priority than the kernel and ignores SIGINT, as one that
/// was started with `&` does in a shell with the option `bgnice`.
pub(crate) fn has_lower_priority(pid: Pid, kernel: Pid) -> bool {
    let niceness = |pid: Pid| stat(pid).map(|stat| stat.nice);
    niceness(pid) > niceness(kernel) && ignores_interrupt(pid)
}

fn ignores_interrupt(pid: Pid) -> bool {
    Process::new(pid).signals().is_some_and(|signals| signals.ignored.has(libc::SIGINT))
}

/// The signals for which a process has handlers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Caught(SignalSet);

impl Caught {
    pub(crate) fn by(pid: Pid) -> Self {
        Self(Process::new(pid).signals().map(|signals| signals.caught).unwrap_or_default())
    }

    pub(crate) fn has(self, signal: i32) -> bool {
        self.0.has(signal)
    }
}

/// Whether a process is blocked in a read of this very pipe. Returns false also if the
/// system does not tell.
pub(crate) fn is_reading(pid: Pid, pipe: impl AsFd) -> bool {
    let Ok(wanted) = rustix::fs::fstat(pipe) else {
        return false;
    };
    let wanted = PipeId { device: wanted.st_dev, inode: wanted.st_ino };
    let process = Process::new(pid);
    process.calls().any(|call| {
        let fd = (call.number == libc::SYS_read).then_some(call.args[0]);
        let fd = fd.and_then(|fd| u32::try_from(fd).ok());
        let target = fd.and_then(|fd| process.descriptor(fd).metadata());
        target.is_some_and(|target| PipeId::of(&target) == wanted)
    })
}

pub(crate) fn signal(pids: &[Pid], signal: Signal) {
    for pid in pids {
        // A process that is gone already needs no signal.
        let _ = rustix::process::kill_process(*pid, signal);
    }
}

/// Sends a signal by its number. Returns whether a process got it.
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
    /// A status change that is not an exit.
    Other,
    /// There are children, but none has ended.
    NoneEnded,
    /// There are no children.
    NoneLeft,
}

/// Kills and reaps everything below this process until nothing is left. For
/// the guardian, whose keeper is dead, and for a keeper that goes.
pub(crate) fn kill_all_descendants() {
    let me = rustix::process::getpid();
    loop {
        signal(&descendants(me), Signal::KILL);
        // Blocks until one of them is gone: a killed process always ends.
        match rustix::process::wait(WaitOptions::empty()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return,
        }
    }
}

/// Returns a variable of the environment that a process was started with, or else of the
/// environment of its session leader.
pub(crate) fn variable(pid: Pid, name: &str) -> Option<String> {
    let of = |pid: Pid| Process::new(pid).environment().variable(name);
    of(pid).or_else(|| of(stat(pid)?.leader.filter(|leader| *leader != pid)?))
}

/// Kills processes that a lost keeper has left: those that still have the session's id in
/// their environment. Processes with a keeper are not lost: the session may live under
/// another state directory until it learns that it has moved.
pub(crate) fn kill_strays(session: &str) {
    let me = rustix::process::getpid();
    let marker = format!("{SESSION_MARKER}={session}");
    for process in Process::all().filter(|process| process.pid() != me) {
        if process.environment().has(&marker) && !has_keeper(process, session) {
            signal(&[process.pid()], Signal::KILL);
        }
    }
}

/// Whether a process is below a keeper of this session or its guardian. Both are
/// subreapers, so nothing that they have started leaves their subtree.
fn has_keeper(process: Process, session: &str) -> bool {
    let parent = |process: Process| process.stat()?.parent.map(Process::new);
    std::iter::successors(parent(process), |above| parent(*above))
        .any(|above| scratch::is_kept_by(above, session))
}
