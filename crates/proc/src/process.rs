//! A process and its files in /proc.

use crate::{Call, Descriptor, Limit, Memory, Scheduled, Signals, Socket, Stat, Transport, closed};
use rustix::fs::{Mode, OFlags};
use rustix::process::{Pid, PidfdFlags};
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;

/// A process by its pid. Each method reads /proc.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Process(Pid);

/// Returns the number of descriptors in a process's directory of them: its size, since Linux
/// 6.2. Zero before that.
#[must_use]
pub fn descriptor_count(directory: &OwnedFd) -> u64 {
    let stat = rustix::fs::fstat(directory);
    stat.map_or(0, |stat| u64::try_from(stat.st_size).unwrap_or(0))
}

/// The environment that a process was started with.
#[derive(Clone, Debug, Default)]
pub struct Environment(Vec<u8>);

impl Process {
    #[must_use]
    pub fn new(pid: Pid) -> Self {
        Self(pid)
    }

    /// Returns all visible processes of the machine.
    pub fn all() -> impl Iterator<Item = Self> {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        entries.filter_map(|entry| {
            let number = entry.file_name().to_str()?.parse().ok()?;
            Pid::from_raw(number).map(Self)
        })
    }

    #[must_use]
    pub fn pid(self) -> Pid {
        self.0
    }

    #[must_use]
    pub fn stat(self) -> Option<Stat> {
        let bytes = fs::read(self.file("stat")).ok()?;
        Stat::parse(&String::from_utf8_lossy(&bytes))
    }

    /// Returns the CPU time and time slices of its threads.
    #[must_use]
    pub fn scheduled(self) -> Scheduled {
        let read = |thread: PathBuf| fs::read_to_string(thread.join("schedstat")).ok();
        let threads = self.threads().filter_map(read);
        let each = threads.filter_map(|line| Scheduled::parse(&line));
        each.fold(Scheduled::default(), Scheduled::plus)
    }

    /// Returns a pidfd, which becomes readable when the process has ended; `None` if it has
    /// ended, or is not the one with this start time.
    #[must_use]
    pub fn held(self, started: u64) -> Option<OwnedFd> {
        let fd = rustix::process::pidfd_open(self.0, PidfdFlags::empty()).ok()?;
        // Another process may have got the pid before the pidfd was opened.
        let stat = self.stat()?;
        (stat.started == started && !stat.has_ended()).then_some(fd)
    }

    #[must_use]
    pub fn signals(self) -> Option<Signals> {
        let bytes = fs::read(self.file("status")).ok()?;
        Signals::parse(&String::from_utf8_lossy(&bytes))
    }

    /// Returns its pids, that of the outermost namespace first.
    #[must_use]
    pub fn namespace_numbers(self) -> Option<Vec<i32>> {
        let numbers = self.status("NSpid:")?;
        Some(numbers.split_ascii_whitespace().filter_map(|number| number.parse().ok()).collect())
    }

    /// Returns the value of a line of its status, for example of `VmRSS:`.
    #[must_use]
    pub fn status(self, name: &str) -> Option<String> {
        let status = fs::read(self.file("status")).ok()?;
        let status = String::from_utf8_lossy(&status);
        let value = status.lines().find_map(|line| line.strip_prefix(name))?;
        Some(value.trim().to_owned())
    }

    #[must_use]
    pub fn memory_use(self) -> Option<Memory> {
        Some(Memory::parse(&fs::read_to_string(self.file("smaps_rollup")).ok()?))
    }

    /// Returns the file that it executes.
    #[must_use]
    pub fn program(self) -> Option<PathBuf> {
        fs::read_link(self.file("exe")).ok()
    }

    /// Returns the limit of this name, for example `Max open files`.
    #[must_use]
    pub fn limit(self, name: &str) -> Option<Limit> {
        Limit::parse(&fs::read_to_string(self.file("limits")).ok()?, name)
    }

    /// Returns its current directory.
    #[must_use]
    pub fn directory(self) -> Option<PathBuf> {
        fs::read_link(self.file("cwd")).ok()
    }

    /// Returns its command line with spaces between the words, cut after this many bytes;
    /// for a process without one, its name in brackets.
    #[must_use]
    pub fn command_line(self, most: usize) -> Option<String> {
        let mut bytes = fs::read(self.file("cmdline")).ok()?;
        while bytes.last() == Some(&0) {
            bytes.pop();
        }
        if bytes.is_empty() {
            let name = fs::read(self.file("comm")).ok()?;
            return Some(format!("[{}]", String::from_utf8_lossy(&name).trim_end()));
        }
        bytes.truncate(most);
        let words: Vec<_> = bytes.split(|byte| *byte == 0).map(String::from_utf8_lossy).collect();
        Some(words.join(" "))
    }

    #[must_use]
    pub fn environment(self) -> Environment {
        Environment(fs::read(self.file("environ")).unwrap_or_default())
    }

    /// Returns the direct children of all its threads.
    #[must_use]
    pub fn children(self) -> Vec<Pid> {
        let lists =
            self.threads().filter_map(|thread| fs::read_to_string(thread.join("children")).ok());
        let mut found = Vec::new();
        for list in lists {
            let pids = list.split_ascii_whitespace().filter_map(|pid| pid.parse().ok());
            found.extend(pids.filter_map(Pid::from_raw));
        }
        found
    }

    /// Returns all descendants, parents before children.
    #[must_use]
    pub fn descendants(self) -> Vec<Pid> {
        let mut found = self.children();
        let mut at = 0;
        while let Some(pid) = found.get(at).copied() {
            at += 1;
            found.extend(Self(pid).children());
        }
        found
    }

    /// Returns the system calls that its threads are blocked in.
    pub fn calls(self) -> impl Iterator<Item = Call> {
        let own = std::path::Path::new(&self.raw().to_string()).to_owned();
        self.threads().filter_map(move |thread| {
            let text = fs::read_to_string(thread.join("syscall")).ok();
            let is_first = thread.file_name() == Some(own.as_os_str());
            let text = text.or_else(|| is_first.then(|| self.call_of_closed()).flatten());
            Call::parse(&text?)
        })
    }

    fn call_of_closed(self) -> Option<String> {
        closed::with_call(self.raw(), |file| {
            // At most nine numbers.
            let mut line = [0; 256];
            let length = file.read_at(&mut line, 0).ok()?;
            Some(String::from_utf8_lossy(&line[..length]).into_owned())
        })
    }

    /// Returns a part of its memory.
    #[must_use]
    pub fn memory(self, address: u64, length: usize) -> Option<Vec<u8>> {
        let mut bytes = vec![0; length];
        let mut read = |file: &File| file.read_exact_at(&mut bytes, address).ok();
        match File::open(self.file("mem")) {
            Ok(file) => read(&file)?,
            Err(_) => closed::with_memory(self.raw(), read)?,
        }
        Some(bytes)
    }

    /// Returns the directory of its open descriptors, for [`descriptor_count`]. It stays this
    /// process's, even if its pid is used again.
    #[must_use]
    pub fn descriptor_directory(self) -> Option<OwnedFd> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        rustix::fs::open(self.file("fd"), flags, Mode::empty()).ok()
    }

    #[must_use]
    pub fn descriptor(self, number: u32) -> Descriptor {
        Descriptor { process: self.raw(), number }
    }

    pub fn descriptors(self) -> impl Iterator<Item = Descriptor> {
        // The other list, `fd`, belongs to root if the process is not dumpable.
        let entries = fs::read_dir(self.file("fdinfo")).into_iter().flatten().flatten();
        entries.filter_map(move |entry| {
            Some(self.descriptor(entry.file_name().to_str()?.parse().ok()?))
        })
    }

    /// Returns the id of its network namespace.
    #[must_use]
    pub fn network_namespace(self) -> Option<u64> {
        fs::metadata(self.file("ns/net")).ok().map(|namespace| namespace.ino())
    }

    /// Returns the sockets of its network namespace, table by table, in the system's order:
    /// listening TCP sockets come before connections.
    pub fn sockets(
        self,
        transport: Transport,
    ) -> impl Iterator<Item = impl Iterator<Item = Socket>> {
        let tables = transport.tables().into_iter();
        tables.filter_map(move |name| {
            let table = BufReader::new(File::open(self.file(&format!("net/{name}"))).ok()?);
            // The first line has the names of the columns.
            let lines = table.lines().map_while(Result::ok).skip(1);
            Some(lines.filter_map(|line| Socket::parse(&line)))
        })
    }

    fn threads(self) -> impl Iterator<Item = PathBuf> {
        let threads = fs::read_dir(self.file("task")).into_iter().flatten().flatten();
        threads.map(|thread| thread.path())
    }

    fn raw(self) -> i32 {
        self.0.as_raw_nonzero().get()
    }

    fn file(self, name: &str) -> String {
        format!("/proc/{}/{name}", self.raw())
    }
}

impl Environment {
    #[must_use]
    pub fn variable(&self, name: &str) -> Option<String> {
        let value = self.entries().find_map(|entry| {
            entry.strip_prefix(name.as_bytes())?.strip_prefix(b"=").map(<[u8]>::to_vec)
        });
        String::from_utf8(value?).ok()
    }

    /// Returns whether it has this `NAME=VALUE`.
    #[must_use]
    pub fn has(&self, entry: &str) -> bool {
        self.entries().any(|found| found == entry.as_bytes())
    }

    fn entries(&self) -> impl Iterator<Item = &[u8]> {
        self.0.split(|byte| *byte == 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{SocketState, ticks_since_boot};
    use rustix::event::{PollFd, PollFlags, poll};
    use std::io::Read;
    use std::net::TcpListener;
    use std::process::{Child, Command, Stdio};

    /// Waits for a line on its stdin. It reports that it runs: before that, its environment
    /// may not be in place.
    fn child(name: &str, value: &str) -> Child {
        let mut command = Command::new("sh");
        let script = "echo; exec 3<&0; sh -c 'read x <&3; :' 'a) R 1 (b' & read x; wait";
        let command = command.args(["-c", script]).env(name, value);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        child
    }

    #[test]
    fn a_process_is_held_unless_it_is_over_or_another_one() {
        let mut child = child("PROC_TEST", "held");
        let process = Process::new(Pid::from_child(&child));
        let started = process.stat().unwrap().started;
        assert!(process.held(started + 1).is_none(), "another one of the same number");
        let held = process.held(started).unwrap();
        drop(child.stdin.take());
        let mut fds = [PollFd::new(&held, PollFlags::IN)];
        assert_eq!(poll(&mut fds, None), Ok(1), "its end is told");
        assert!(process.held(started).is_none(), "nobody has reaped it");
        child.wait().unwrap();
        assert!(process.held(started).is_none());
    }

    #[test]
    fn a_tree_is_found_whatever_its_processes_are_called() {
        let mut child = child("PROC_TEST", "tree");
        let process = Process::new(Pid::from_child(&child));
        let started = process.stat().unwrap().started;
        assert!(started <= ticks_since_boot() && started + 500 > ticks_since_boot());
        let grandchild = loop {
            if let Some(pid) = process.descendants().first() {
                break Process::new(*pid);
            }
            std::thread::yield_now();
        };
        assert_eq!(grandchild.stat().unwrap().parent, Some(process.pid()));
        assert!(Process::all().any(|other| other == grandchild));
        drop(child.stdin.take());
        child.wait().unwrap();
        assert_eq!((process.stat(), process.children()), (None, Vec::new()));
        assert_eq!((process.command_line(100), process.directory()), (None, None));
    }

    #[test]
    fn an_environment_is_the_one_of_the_start() {
        let mut child = child("PROC_TEST", "a=b");
        let process = Process::new(Pid::from_child(&child));
        let environment = process.environment();
        assert_eq!(environment.variable("PROC_TEST").as_deref(), Some("a=b"));
        assert!(environment.has("PROC_TEST=a=b") && !environment.has("PROC_TEST=a"));
        assert_eq!(environment.variable("PROC"), None);
        drop(child.stdin.take());
        child.wait().unwrap();
    }

    #[test]
    fn our_own_files_say_what_we_know() {
        let own = Process::new(rustix::process::getpid());
        assert_eq!(own.directory(), std::env::current_dir().ok());
        assert!(own.limit("Max open files").is_some() && own.signals().is_some());
        assert!(own.command_line(4096).unwrap().contains("sessile_proc"));
        let bytes = *b"some bytes";
        assert_eq!(own.memory(bytes.as_ptr() as u64, 4).as_deref(), Some(&b"some"[..]));
    }

    #[test]
    fn a_listening_socket_is_found_among_our_descriptors() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let own = Process::new(rustix::process::getpid());
        let is_ours = |inode: u64| own.descriptors().any(|fd| fd.socket() == Some(inode));
        let mut sockets = own.sockets(Transport::Tcp).flatten();
        let found = sockets.find(|socket| socket.port == address.port()).unwrap();
        assert_eq!((found.address, found.state), (address.ip(), SocketState::Listening));
        assert!(is_ours(found.inode));
        assert!(own.network_namespace().is_some());
    }
}
