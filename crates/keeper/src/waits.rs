//! What processes wait for, as the system tells it: the call that each thread
//! is in, and the descriptors that it is about.
//!
//! Nothing here guesses. Where the system does not tell, nobody waits. It does
//! not tell of an interpreter with an event loop, which waits for many things at
//! once, and whose next timer bounds each wait, wanted by the run or not.

use crate::processes::PipeId;
use rustix::process::Pid;
use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

/// Calls that only older machines have; newer ones have one for each that
/// takes more.
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

/// Descriptors of one wait that are looked at. Who waits for more than this is
/// a server, and does not ask a person.
const MOST: u64 = 1024;

/// What a process may wait to read from.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Source {
    Pipe(PipeId),
    /// A terminal, which programs also open by the name of /dev/tty.
    Terminal(PipeId),
}

impl Source {
    fn is(self, target: &fs::Metadata) -> bool {
        let is_at = |id: PipeId| PipeId { device: target.dev(), inode: target.ino() } == id;
        match self {
            Self::Pipe(id) => is_at(id),
            Self::Terminal(id) => is_at(id) || target.rdev() == rustix::fs::makedev(5, 0),
        }
    }
}

/// A way to wait for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Manner {
    /// However long it takes. One that waits with a limit has something else to
    /// do, too.
    Endless,
    /// In a read of nothing else.
    Read,
}

/// Whether a process waits in this manner for something to read from there.
pub(crate) fn waits_to_read(pid: Pid, source: Source, manner: Manner) -> bool {
    let process = format!("/proc/{}", pid.as_raw_nonzero());
    let process = Path::new(&process);
    let is_source = |fd: u64| {
        let target = fs::metadata(process.join("fd").join(fd.to_string()));
        target.is_ok_and(|target| source.is(&target))
    };
    let threads = fs::read_dir(process.join("task")).into_iter().flatten().flatten();
    let mut calls = threads.filter_map(|thread| Call::of(&thread.path()));
    calls
        .any(|call| call.awaited(process, manner).is_some_and(|fds| fds.into_iter().any(is_source)))
}

/// A system call that a thread is blocked in.
#[derive(Debug, PartialEq, Eq)]
struct Call {
    number: i64,
    args: [u64; 6],
}

impl Call {
    fn of(thread: &Path) -> Option<Self> {
        Self::parse(&fs::read_to_string(thread.join("syscall")).ok()?)
    }

    /// `0 0x0 0x7f… …`: the number, then the arguments. A thread that runs has
    /// another form.
    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split_ascii_whitespace();
        let number = words.next()?.parse().ok()?;
        let mut args = [0; 6];
        for arg in &mut args {
            *arg = u64::from_str_radix(words.next()?.strip_prefix("0x")?, 16).ok()?;
        }
        Some(Self { number, args })
    }

    /// The descriptors that the thread waits to read from.
    fn awaited(&self, process: &Path, manner: Manner) -> Option<Vec<u64>> {
        match manner {
            Manner::Endless => self.awaited_endlessly(process),
            Manner::Read => self.read().map(|fd| vec![fd]),
        }
    }

    fn read(&self) -> Option<u64> {
        matches!(self.number, libc::SYS_read | libc::SYS_readv).then_some(self.args[0])
    }

    fn awaited_endlessly(&self, process: &Path) -> Option<Vec<u64>> {
        let [first, second, third, fourth, fifth, _] = self.args;
        // An int in a register of 64 bits.
        let is_endless = |timeout: u64| timeout as u32 == u32::MAX;
        match self.number {
            older::POLL if is_endless(third) => polled(process, first, second),
            libc::SYS_ppoll if third == 0 => polled(process, first, second),
            older::SELECT | libc::SYS_pselect6 if fifth == 0 => selected(process, first, second),
            older::EPOLL_WAIT | libc::SYS_epoll_pwait if is_endless(fourth) => {
                watched(process, first)
            }
            libc::SYS_epoll_pwait2 if fourth == 0 => watched(process, first),
            _ => self.read().map(|fd| vec![fd]),
        }
    }
}

/// Those that a `struct pollfd` array asks to read.
fn polled(process: &Path, array: u64, count: u64) -> Option<Vec<u64>> {
    let bytes = memory(process, array, 8 * count.min(MOST))?;
    let wanted = bytes.chunks_exact(8).filter_map(|one| {
        let fd = i32::from_ne_bytes(one.get(..4)?.try_into().ok()?);
        let events = i16::from_ne_bytes(one.get(4..6)?.try_into().ok()?);
        u64::try_from(fd).ok().filter(|_| events & libc::POLLIN != 0)
    });
    Some(wanted.collect())
}

/// Those in a set of bits.
fn selected(process: &Path, limit: u64, set: u64) -> Option<Vec<u64>> {
    let limit = limit.min(MOST);
    let bytes = memory(process, set, limit.div_ceil(8))?;
    let is_in = |fd: &u64| bytes[(fd / 8) as usize] & (1 << (fd % 8)) != 0;
    Some((0..limit).filter(is_in).collect())
}

/// Those that an epoll descriptor watches for something to read.
fn watched(process: &Path, epoll: u64) -> Option<Vec<u64>> {
    let info = fs::read_to_string(process.join("fdinfo").join(epoll.to_string())).ok()?;
    let one = |line: &str| {
        let mut words = line.strip_prefix("tfd:")?.split_ascii_whitespace();
        let fd = words.next()?.parse().ok()?;
        let events = words.skip_while(|word| *word != "events:").nth(1)?;
        let events = u32::from_str_radix(events, 16).ok()?;
        (events & libc::EPOLLIN.cast_unsigned() != 0).then_some(fd)
    };
    Some(info.lines().filter_map(one).collect())
}

fn memory(process: &Path, address: u64, length: u64) -> Option<Vec<u8>> {
    let mut bytes = vec![0; usize::try_from(length).ok()?];
    File::open(process.join("mem")).ok()?.read_exact_at(&mut bytes, address).ok()?;
    Some(bytes)
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
            while !waits_to_read(pid, Source::Pipe(id), Manner::Endless) {
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
            let sleeps = || {
                let status = fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
                status.contains(") S ")
            };
            while !sleeps() {
                std::thread::yield_now();
            }
            assert!(!waits_to_read(pid, Source::Pipe(other), Manner::Endless), "{text}");
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
        while !waits_to_read(pid, Source::Pipe(id), Manner::Endless) {
            assert!(child.try_wait().unwrap().is_none(), "it has ended");
            std::thread::yield_now();
        }
        assert!(!waits_to_read(pid, Source::Pipe(id), Manner::Read));
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn threads_that_run_are_in_no_call() {
        assert_eq!(Call::parse("running\n"), None);
        assert_eq!(Call::parse("-1 0x7ffd 0x7f00\n"), None);
        let call = Call::parse("0 0x3 0x1 0x2 0x3 0x4 0x5 0x7ffd 0x7f00\n").unwrap();
        assert_eq!((call.number, call.args), (0, [3, 1, 2, 3, 4, 5]));
    }
}
