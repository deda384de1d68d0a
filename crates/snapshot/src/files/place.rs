//! An open directory and its direct entries.
//!
//! Every access to a workspace uses one name in an open directory and never follows a
//! symbolic link. So nothing outside of the root is reached, whatever a tree contains and
//! whatever is renamed meanwhile.

use rustix::fs::{AtFlags, CWD, Mode, OFlags, RawDir, Stat, Timespec, Timestamps, UTIME_OMIT};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

/// The bits of a mode that are kept: permissions, setuid, setgid, sticky.
pub(crate) const MODE_BITS: u32 = 0o7777;

/// Prefix of our temporary files in a workspace. A file that a killed process left is never
/// part of a snapshot, and a restore removes it.
pub(crate) const TEMPORARY: &str = ".sessile-restoring-";

/// Seconds and nanoseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Time {
    pub(crate) seconds: i64,
    pub(crate) nanoseconds: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    File,
    Directory,
    Symlink,
    Fifo,
    Socket,
    Device,
}

/// The metadata of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Facts {
    pub(crate) kind: Kind,
    pub(crate) mode: u32,
    pub(crate) size: u64,
    pub(crate) modified: Time,
    pub(crate) changed: Time,
    pub(crate) device: u64,
    pub(crate) inode: u64,
    pub(crate) names: u64,
}

impl Facts {
    #[expect(clippy::unnecessary_cast, reason = "the types of these fields differ by target")]
    fn of(stat: &Stat) -> Facts {
        use rustix::fs::FileType;
        let kind = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Kind::File,
            FileType::Directory => Kind::Directory,
            FileType::Symlink => Kind::Symlink,
            FileType::Fifo => Kind::Fifo,
            FileType::Socket => Kind::Socket,
            FileType::CharacterDevice | FileType::BlockDevice | FileType::Unknown => Kind::Device,
        };
        Facts {
            kind,
            mode: stat.st_mode & MODE_BITS,
            size: u64::try_from(stat.st_size).unwrap_or(0),
            modified: Time {
                seconds: stat.st_mtime as i64,
                nanoseconds: stat.st_mtime_nsec as u32,
            },
            changed: Time { seconds: stat.st_ctime as i64, nanoseconds: stat.st_ctime_nsec as u32 },
            device: stat.st_dev as u64,
            inode: stat.st_ino as u64,
            names: stat.st_nlink as u64,
        }
    }

    pub(crate) fn of_open(file: impl AsFd) -> io::Result<Facts> {
        Ok(Facts::of(&rustix::fs::fstat(file)?))
    }

    /// Identifies a file independently of its name.
    pub(crate) fn identity(&self) -> (u64, u64) {
        (self.device, self.inode)
    }
}

#[derive(Debug)]
pub(crate) struct Place(OwnedFd);

impl AsFd for Place {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

const DIRECTORY: OFlags = OFlags::DIRECTORY.union(OFlags::CLOEXEC).union(OFlags::RDONLY);

/// Returns the canonical path of a directory. A directory that is reached through a
/// process, like the root of a sandbox, has no other name here.
pub(crate) fn real(root: &Path) -> io::Result<PathBuf> {
    if root.starts_with("/proc") { Ok(root.to_owned()) } else { root.canonicalize() }
}

impl Place {
    /// Opens the directory at `path`. Links in it are followed: the caller named it.
    pub(crate) fn root(path: &Path) -> io::Result<Place> {
        Ok(Place(rustix::fs::openat(CWD, path, DIRECTORY, Mode::empty())?))
    }

    pub(crate) fn child(&self, name: &OsStr) -> io::Result<Place> {
        let flags = DIRECTORY | OFlags::NOFOLLOW;
        Ok(Place(rustix::fs::openat(&self.0, name, flags, Mode::empty())?))
    }

    /// Opens a directory below this one, one name at a time, without the need for read permission.
    pub(crate) fn below(&self, path: &Path) -> io::Result<Place> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let mut place = Place(rustix::fs::openat(&self.0, ".", flags, Mode::empty())?);
        for component in path.components() {
            let Component::Normal(name) = component else {
                return Err(io::ErrorKind::InvalidInput.into());
            };
            place = Place(rustix::fs::openat(&place.0, name, flags, Mode::empty())?);
        }
        Ok(place)
    }

    /// Returns all names, in the order of their bytes.
    pub(crate) fn names(&self) -> io::Result<Vec<OsString>> {
        let mut buffer = [MaybeUninit::uninit(); 16 * 1024];
        let mut entries = RawDir::new(&self.0, &mut buffer);
        let mut names = Vec::new();
        while let Some(entry) = entries.next() {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name != b"." && name != b".." {
                names.push(OsString::from_vec(name.to_vec()));
            }
        }
        names.sort_unstable_by(|a, b| a.as_bytes().cmp(b.as_bytes()));
        Ok(names)
    }

    pub(crate) fn facts(&self, name: &OsStr) -> io::Result<Facts> {
        Ok(Facts::of(&rustix::fs::statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW)?))
    }

    /// Like `facts`, but returns none if there is no such entry.
    pub(crate) fn find(&self, name: &OsStr) -> io::Result<Option<Facts>> {
        match self.facts(name) {
            Ok(facts) => Ok(Some(facts)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(crate) fn open(&self, name: &OsStr) -> io::Result<File> {
        // Non-blocking, in case a FIFO has taken the file's place.
        let flags =
            OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
        Ok(File::from(rustix::fs::openat(&self.0, name, flags, Mode::empty())?))
    }

    pub(crate) fn create(&self, name: &OsStr) -> io::Result<File> {
        let flags =
            OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let mode = Mode::RUSR | Mode::WUSR;
        Ok(File::from(rustix::fs::openat(&self.0, name, flags, mode)?))
    }

    pub(crate) fn target(&self, name: &OsStr) -> io::Result<OsString> {
        let target = rustix::fs::readlinkat(&self.0, name, Vec::new())?;
        Ok(OsString::from_vec(target.into_bytes()))
    }

    pub(crate) fn make_directory(&self, name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::mkdirat(&self.0, name, Mode::RWXU)?)
    }

    pub(crate) fn make_symlink(&self, name: &OsStr, target: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::symlinkat(target, &self.0, name)?)
    }

    /// Makes a hard link to `from` in another directory.
    pub(crate) fn link(&self, name: &OsStr, other: &Place, from: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::linkat(&other.0, from, &self.0, name, AtFlags::empty())?)
    }

    pub(crate) fn rename(&self, from: &OsStr, to: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.0, from, &self.0, to)?)
    }

    pub(crate) fn remove(&self, name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.0, name, AtFlags::empty())?)
    }

    pub(crate) fn remove_directory(&self, name: &OsStr) -> io::Result<()> {
        Ok(rustix::fs::unlinkat(&self.0, name, AtFlags::REMOVEDIR)?)
    }

    /// Sets the mode of a file or directory that may be unreadable.
    pub(crate) fn set_mode(&self, name: &OsStr, mode: u32) -> io::Result<()> {
        let flags = OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let handle = rustix::fs::openat(&self.0, name, flags, Mode::empty())?;
        match Facts::of_open(&handle)?.kind {
            Kind::File | Kind::Directory => {}
            Kind::Symlink | Kind::Fifo | Kind::Socket | Kind::Device => {
                return Err(io::ErrorKind::InvalidInput.into());
            }
        }
        // Before Linux 6.6 there is no chmod that refuses links; the path of a descriptor
        // in /proc leads to exactly what was looked at.
        let path = format!("/proc/self/fd/{}", handle.as_raw_fd());
        let mode = Mode::from_raw_mode(mode & MODE_BITS);
        match rustix::fs::chmodat(CWD, path.as_str(), mode, AtFlags::empty()) {
            Err(rustix::io::Errno::NOENT) => {
                let file = self.open(name)?;
                Ok(rustix::fs::fchmod(file, mode)?)
            }
            outcome => Ok(outcome?),
        }
    }

    pub(crate) fn set_modified(&self, name: &OsStr, time: Time) -> io::Result<()> {
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        Ok(rustix::fs::utimensat(&self.0, name, &timestamps(time), flags)?)
    }
}

/// Sets the mode and time of an open file, after its content: a change of content would
/// remove the setuid bit, and a change of mode does not touch the time.
pub(crate) fn dress(file: &File, mode: u32, modified: Time) -> io::Result<()> {
    rustix::fs::fchmod(file, Mode::from_raw_mode(mode & MODE_BITS))?;
    Ok(rustix::fs::futimens(file, &timestamps(modified))?)
}

fn timestamps(time: Time) -> Timestamps {
    Timestamps {
        last_access: Timespec { tv_sec: 0, tv_nsec: UTIME_OMIT },
        last_modification: Timespec { tv_sec: time.seconds, tv_nsec: i64::from(time.nanoseconds) },
    }
}

/// Returns a unique name.
pub(crate) fn unique(prefix: &str) -> io::Result<OsString> {
    let mut random = [0; 8];
    rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
    Ok(format!("{prefix}{:016x}", u64::from_le_bytes(random)).into())
}

pub(crate) fn is_temporary(name: &OsStr) -> bool {
    name.as_bytes().starts_with(TEMPORARY.as_bytes())
}
