//! A process's descriptors: /proc/PID/fd/N and /proc/PID/fdinfo/N.

use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags};
use std::fs::{self, File, Metadata};
use std::os::fd::AsRawFd;
use std::path::PathBuf;

/// A descriptor of a process. Each method reads /proc once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Descriptor {
    pub(crate) process: i32,
    pub(crate) number: u32,
}

/// How a file was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    Read,
    Write,
    Both,
}

/// A descriptor that an epoll instance watches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Watched {
    pub number: u32,
    /// `EPOLLIN` and similar bits.
    pub events: u32,
}

impl Descriptor {
    #[must_use]
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Returns what it refers to: a path, or `socket:[123]`, `pipe:[123]` and the like.
    #[must_use]
    pub fn link(&self) -> Option<PathBuf> {
        let of_taken = || {
            let own = self.taken()?;
            fs::read_link(format!("/proc/self/fd/{}", own.as_raw_fd())).ok()
        };
        fs::read_link(self.path()).ok().or_else(of_taken)
    }

    /// Returns the metadata of its file.
    #[must_use]
    pub fn metadata(&self) -> Option<Metadata> {
        fs::metadata(self.path()).ok().or_else(|| self.taken()?.metadata().ok())
    }

    /// Returns the inode of its socket.
    #[must_use]
    pub fn socket(&self) -> Option<u64> {
        parse_socket(self.link()?.to_str()?)
    }

    #[must_use]
    pub fn access(&self) -> Option<Access> {
        parse_access(&self.info()?)
    }

    /// Returns the descriptors that an epoll instance watches; empty for others.
    #[must_use]
    pub fn watched(&self) -> Vec<Watched> {
        self.info().map(|info| parse_watched(&info)).unwrap_or_default()
    }

    /// Returns a duplicate of the descriptor in this process. It works for non-dumpable processes.
    fn taken(&self) -> Option<File> {
        let process = Pid::from_raw(self.process)?;
        let process = rustix::process::pidfd_open(process, PidfdFlags::empty()).ok()?;
        let number = i32::try_from(self.number).ok()?;
        let flags = PidfdGetfdFlags::empty();
        let taken = rustix::process::pidfd_getfd(process, number, flags).ok()?;
        Some(File::from(taken))
    }

    fn path(&self) -> String {
        format!("/proc/{}/fd/{}", self.process, self.number)
    }

    fn info(&self) -> Option<String> {
        fs::read_to_string(format!("/proc/{}/fdinfo/{}", self.process, self.number)).ok()
    }
}

fn parse_socket(link: &str) -> Option<u64> {
    link.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

fn parse_access(info: &str) -> Option<Access> {
    let flags = info.lines().find_map(|line| line.strip_prefix("flags:"))?;
    // The lowest two bits, on every Linux.
    match u32::from_str_radix(flags.trim(), 8).ok()? & 3 {
        0 => Some(Access::Read),
        1 => Some(Access::Write),
        2 => Some(Access::Both),
        _ => None,
    }
}

fn parse_watched(info: &str) -> Vec<Watched> {
    let one = |line: &str| {
        let mut words = line.strip_prefix("tfd:")?.split_ascii_whitespace();
        let number = words.next()?.parse().ok()?;
        let events = words.skip_while(|word| *word != "events:").nth(1)?;
        Some(Watched { number, events: u32::from_str_radix(events, 16).ok()? })
    };
    info.lines().filter_map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_of_access_is_in_the_flags() {
        let info = |flags: &str| format!("pos:\t0\nflags:\t{flags}\nmnt_id:\t15\n");
        assert_eq!(parse_access(&info("0100000")), Some(Access::Read));
        assert_eq!(parse_access(&info("02100001")), Some(Access::Write));
        assert_eq!(parse_access(&info("0100002")), Some(Access::Both));
        assert_eq!(parse_access("pos:\t0\n"), None);
    }

    #[test]
    fn an_epoll_descriptor_lists_what_it_watches() {
        let info = "pos:\t0\nflags:\t02\ntfd:        5 events:       19 data: 5  pos:0 ino:1 \n\
                    tfd:       12 events: 4000001c data: c\n";
        let expected =
            [Watched { number: 5, events: 0x19 }, Watched { number: 12, events: 0x4000_001c }];
        assert_eq!(parse_watched(info), expected);
    }

    #[test]
    fn a_socket_is_known_by_its_inode() {
        assert_eq!(parse_socket("socket:[4242]"), Some(4242));
        assert_eq!(parse_socket("pipe:[4242]"), None);
        assert_eq!(parse_socket("/tmp/socket:[1]"), None);
    }
}
