//! What processes wait for, according to the system: the call that each thread is in, and
//! its descriptors.
//!
//! Nothing here guesses. If the system does not tell, the process does not count as
//! waiting. The system cannot tell for an interpreter with an event loop: it waits for
//! many things at once, and its next timer limits each wait, whether the run wants it or
//! not.

use crate::processes::PipeId;
use rustix::process::Pid;
use sessile_proc::{Call, Process};
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

/// Calls that only older architectures have; newer ones only have the variants with more
/// parameters.
#[cfg(target_arch = "x86_64")]
mod older {
    pub(super) const POLL: i64 = libc::SYS_poll;
    pub(super) const SELECT: i64 = libc::SYS_select;
    pub(super) const EPOLL_WAIT: i64 = libc::SYS_epoll_wait;
}
#[cfg(not(target_arch = "x86_64"))]
mod older {
    pub(super) const POLL: i64 = -2;
    pub(super) const SELECT: i64 = -3;
    pub(super) const EPOLL_WAIT: i64 = -4;
}

/// Number of descriptors of one wait that are checked. A process that waits for more is a
/// server, and does not ask a person.
const MOST: u64 = 1024;

/// What a process may wait to read from.
#[derive(Clone, Copy, Debug)]
pub(crate) enum InputSource {
    Pipe(PipeId),
    /// A terminal, which programs also open as /dev/tty.
    Terminal(PipeId),
}

impl InputSource {
    fn is(self, target: &Metadata) -> bool {
        let is_at = |id: PipeId| PipeId::of(target) == id;
        match self {
            Self::Pipe(id) => is_at(id),
            Self::Terminal(id) => is_at(id) || target.rdev() == rustix::fs::makedev(5, 0),
        }
    }
}

/// A way to wait for input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WaitKind {
    /// However long it takes. One that waits with a limit has something else to
    /// do, too.
    Endless,
    /// In a read of nothing else.
    Read,
}

/// Whether a process waits in this manner for something to read from there.
pub(crate) fn waits_to_read(pid: Pid, source: InputSource, manner: WaitKind) -> bool {
    let process = Process::new(pid);
    let is_source = |fd: u32| {
        let target = process.descriptor(fd).metadata();
        target.is_some_and(|target| source.is(&target))
    };
    let awaited = |call: &Call| match manner {
        WaitKind::Endless => awaited_endlessly(call, process),
        WaitKind::Read => read_from(call).into_iter().collect(),
    };
    process.calls().any(|call| awaited(&call).into_iter().any(is_source))
}

/// Returns the descriptor that a call reads from.
fn read_from(call: &Call) -> Option<u32> {
    let is_read = matches!(call.number, libc::SYS_read | libc::SYS_readv);
    u32::try_from(call.args[0]).ok().filter(|_| is_read)
}

/// Returns the descriptors that a call waits to read from without a timeout.
fn awaited_endlessly(call: &Call, process: Process) -> Vec<u32> {
    let [first, second, third, fourth, fifth, _] = call.args;
    // An int in a 64-bit register.
    let is_endless = |timeout: u64| timeout as u32 == u32::MAX;
    match call.number {
        older::POLL if is_endless(third) => polled(process, first, second),
        libc::SYS_ppoll if third == 0 => polled(process, first, second),
        older::SELECT | libc::SYS_pselect6 if fifth == 0 => selected(process, first, second),
        older::EPOLL_WAIT | libc::SYS_epoll_pwait if is_endless(fourth) => watched(process, first),
        libc::SYS_epoll_pwait2 if fourth == 0 => watched(process, first),
        _ => read_from(call).into_iter().collect(),
    }
}

/// Returns the descriptors that a `struct pollfd` array asks to read.
fn polled(process: Process, array: u64, count: u64) -> Vec<u32> {
    let bytes = process.memory(array, 8 * count.min(MOST) as usize).unwrap_or_default();
    let wanted = bytes.chunks_exact(8).filter_map(|one| {
        let fd = i32::from_ne_bytes(one.get(..4)?.try_into().ok()?);
        let events = i16::from_ne_bytes(one.get(4..6)?.try_into().ok()?);
        u32::try_from(fd).ok().filter(|_| events & libc::POLLIN != 0)
    });
    wanted.collect()
}

/// Returns the descriptors in a bit set.
fn selected(process: Process, limit: u64, set: u64) -> Vec<u32> {
    let limit = limit.min(MOST) as u32;
    let bytes = process.memory(set, limit.div_ceil(8) as usize).unwrap_or_default();
    let is_in = |fd: &u32| {
        let byte = bytes.get((fd / 8) as usize).copied().unwrap_or_default();
        byte & (1 << (fd % 8)) != 0
    };
    (0..limit).filter(is_in).collect()
}

/// Returns the descriptors that an epoll descriptor watches for reading.
fn watched(process: Process, epoll: u64) -> Vec<u32> {
    let Ok(epoll) = u32::try_from(epoll) else {
        return Vec::new();
    };
    let watched = process.descriptor(epoll).watched().into_iter();
    let is_read = |events: u32| events & libc::EPOLLIN.cast_unsigned() != 0;
    watched.filter(|one| is_read(one.events)).map(|one| one.number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::{make_fifo, open_both_ways};
    use std::os::fd::AsFd;
    use std::process::{Child, Command, Stdio};

    fn pipe_id(fd: impl AsFd) -> PipeId {
        let stat = rustix::fs::fstat(fd).unwrap();
        PipeId { device: stat.st_dev, inode: stat.st_ino }
    }

    fn python(text: &str, stdin: Stdio) -> Child {
        Command::new("python3").args(["-c", text]).stdin(stdin).spawn().unwrap()
    }

    #[test]
    fn every_way_to_wait_for_input_is_found() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("i");
        make_fifo(&path).unwrap();
        let fifo = open_both_ways(&path).unwrap();
        let id = pipe_id(&fifo);
        for text in [
            "input()",
            "import threading; threading.Thread(target=input).start()",
            "import select; select.select([0], [], [])",
            "import select; p = select.poll(); p.register(0, select.POLLIN); p.poll()",
            "import select; p = select.epoll(); p.register(0, select.EPOLLIN); p.poll()",
        ] {
            let mut child = python(text, std::fs::File::open(&path).unwrap().into());
            let pid = Pid::from_child(&child);
            while !waits_to_read(pid, InputSource::Pipe(id), WaitKind::Endless) {
                assert!(child.try_wait().unwrap().is_none(), "{text} has ended");
                std::thread::yield_now();
            }
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    #[test]
    fn who_waits_for_something_else_does_not_wait_for_input() {
        let (read_end, _write_end) = std::io::pipe().unwrap();
        let other = pipe_id(&read_end);
        for text in [
            "print(1, flush=True); import time; time.sleep(1000)",
            "import select; print(1, flush=True); select.select([0], [], [], 1000)",
            "import os; r, w = os.pipe(); print(1, flush=True); os.read(r, 1)",
        ] {
            let mut child = Command::new("python3")
                .args(["-c", text])
                .stdin(read_end.try_clone().unwrap())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let mut said = [0; 2];
            std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut said).unwrap();
            let pid = Pid::from_child(&child);
            let sleeps = || Process::new(pid).stat().is_some_and(|stat| stat.state == 'S');
            while !sleeps() {
                std::thread::yield_now();
            }
            assert!(!waits_to_read(pid, InputSource::Pipe(other), WaitKind::Endless), "{text}");
            child.kill().unwrap();
            child.wait().unwrap();
        }
    }

    #[test]
    fn a_wait_for_the_pipe_among_others_is_no_read() {
        let (read_end, _write_end) = std::io::pipe().unwrap();
        let id = pipe_id(&read_end);
        let text = "import select; p = select.epoll(); p.register(0, select.EPOLLIN); p.poll()";
        let mut child = python(text, read_end.into());
        let pid = Pid::from_child(&child);
        while !waits_to_read(pid, InputSource::Pipe(id), WaitKind::Endless) {
            assert!(child.try_wait().unwrap().is_none(), "it has ended");
            std::thread::yield_now();
        }
        assert!(!waits_to_read(pid, InputSource::Pipe(id), WaitKind::Read));
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
