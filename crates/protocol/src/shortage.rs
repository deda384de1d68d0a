//! Resources that a machine can run out of, and the advice for each.
//!
//! The same failure (a kernel that cannot be started, a file that cannot be
//! written) has many causes, and the right advice depends on the cause.

use serde::{Deserialize, Serialize};
use std::error::Error;
use std::io;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Shortage {
    /// The limit of open files of a process is reached.
    Descriptors,
    /// The limit of open files of the machine is reached.
    MachineDescriptors,
    Processes,
    Memory,
    /// The file system in memory where kernels have their files.
    Scratch,
    Disk,
    Quota,
    ReadOnly,
    /// A shortage that only a newer keeper knows.
    #[serde(other)]
    Unknown,
}

// The numbers are the same on every Linux target of Rust.
const EAGAIN: i32 = 11;
const ENOMEM: i32 = 12;
const ENFILE: i32 = 23;
const EMFILE: i32 = 24;
const ENOSPC: i32 = 28;
const EROFS: i32 = 30;
const EDQUOT: i32 = 122;

impl Shortage {
    #[must_use]
    pub fn of(error: &io::Error) -> Option<Self> {
        match error.raw_os_error()? {
            ENOMEM => Some(Self::Memory),
            ENFILE => Some(Self::MachineDescriptors),
            EMFILE => Some(Self::Descriptors),
            ENOSPC => Some(Self::Disk),
            EROFS => Some(Self::ReadOnly),
            EDQUOT => Some(Self::Quota),
            _ => None,
        }
    }

    /// Returns the shortage behind an error in starting a process. Elsewhere, EAGAIN only
    /// means that there is nothing yet.
    #[must_use]
    pub fn of_start(error: &io::Error) -> Option<Self> {
        match error.raw_os_error() {
            Some(EAGAIN) => Some(Self::Processes),
            Some(_) | None => Self::of(error),
        }
    }

    /// Returns the shortage behind an error, at any depth of its sources.
    #[must_use]
    pub fn behind(error: &(dyn Error + 'static)) -> Option<Self> {
        let mut next = Some(error);
        while let Some(error) = next {
            let of_system = error.downcast_ref::<io::Error>();
            if let Some(shortage) = of_system.and_then(Self::of) {
                return Some(shortage);
            }
            // An I/O error does not have the error that it carries as its source.
            let carried = of_system.and_then(io::Error::get_ref);
            next = match carried {
                Some(carried) => Some(carried),
                None => error.source(),
            };
        }
        None
    }

    /// Returns the shortage that an interpreter's message names, in the system's words.
    #[must_use]
    pub fn in_words(text: &str) -> Option<Self> {
        let known = [
            ("Too many open files in system", Self::MachineDescriptors),
            ("Too many open files", Self::Descriptors),
            ("Resource temporarily unavailable", Self::Processes),
            ("Cannot allocate memory", Self::Memory),
            ("MemoryError", Self::Memory),
            ("No space left on device", Self::Disk),
            ("Disk quota exceeded", Self::Quota),
            ("Read-only file system", Self::ReadOnly),
        ];
        known.into_iter().find(|(words, _)| text.contains(words)).map(|(_, shortage)| shortage)
    }

    /// Returns the shortage for a kernel's files, which are in memory.
    #[must_use]
    pub fn in_scratch(self) -> Self {
        match self {
            Self::Disk => Self::Scratch,
            Self::Descriptors
            | Self::MachineDescriptors
            | Self::Processes
            | Self::Memory
            | Self::Scratch
            | Self::Quota
            | Self::ReadOnly
            | Self::Unknown => self,
        }
    }

    /// Returns the cause and what to do.
    #[must_use]
    pub fn advice(self) -> &'static str {
        match self {
            Self::Descriptors => {
                "out of file descriptors: raise the limit of open files (`ulimit -n`) where the \
                 session or server is started, or end sessions that are not needed"
            }
            Self::MachineDescriptors => {
                "the whole machine is out of file descriptors: end programs that hold many, or \
                 raise fs.file-max"
            }
            Self::Processes => {
                "no more processes can be started: end some, or raise the limit (`ulimit -u`, the \
                 container's limit of pids, or kernel.pid_max)"
            }
            Self::Memory => {
                "out of memory: end programs that use much of it, or give the machine or \
                 container more"
            }
            Self::Scratch => {
                "the file system for temporary files is full: remove files from /dev/shm, or make \
                 it larger"
            }
            Self::Disk => "the disk is full: remove files there, or use a larger one",
            Self::Quota => "the disk quota is used up: remove files, or ask for a larger quota",
            Self::ReadOnly => {
                "the file system is read-only: make it writable, or use a directory elsewhere"
            }
            Self::Unknown => "the machine has run out of something: see the message",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("cannot do it: {0}")]
    struct Outer(#[source] io::Error);

    #[test]
    fn a_shortage_is_found_at_any_depth() {
        for (number, expected) in [
            (EMFILE, Some(Shortage::Descriptors)),
            (ENFILE, Some(Shortage::MachineDescriptors)),
            (ENOMEM, Some(Shortage::Memory)),
            (ENOSPC, Some(Shortage::Disk)),
            (EROFS, Some(Shortage::ReadOnly)),
            (EDQUOT, Some(Shortage::Quota)),
            // Means a shortage only when a process is started.
            (EAGAIN, None),
            (2, None),
        ] {
            let plain = || io::Error::from_raw_os_error(number);
            assert_eq!(Shortage::of(&plain()), expected);
            assert_eq!(Shortage::behind(&Outer(plain())), expected);
            assert_eq!(Shortage::behind(&io::Error::other(Outer(plain()))), expected);
        }
        let start = io::Error::from_raw_os_error(EAGAIN);
        assert_eq!(Shortage::of_start(&start), Some(Shortage::Processes));
    }

    #[test]
    fn the_systems_own_words_are_understood() {
        for number in [EAGAIN, ENOMEM, ENFILE, EMFILE, ENOSPC, EROFS, EDQUOT] {
            let error = io::Error::from_raw_os_error(number);
            assert_eq!(Shortage::in_words(&error.to_string()), Shortage::of_start(&error));
        }
        assert_eq!(Shortage::in_words("SyntaxError: invalid syntax"), None);
    }

    #[test]
    fn only_a_full_disk_is_another_thing_in_memory() {
        assert_eq!(Shortage::Disk.in_scratch(), Shortage::Scratch);
        assert_eq!(Shortage::Memory.in_scratch(), Shortage::Memory);
    }
}
