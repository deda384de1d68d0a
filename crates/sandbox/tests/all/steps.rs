//! One random thing that a program may do with files, and what came of it.

use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, FallocateFlags, FileType, Mode, OFlags, RenameFlags, SeekFrom, Timespec,
    Timestamps, XattrFlags,
};
use rustix::io::Errno;
use sessile_testkit::Chance;

const NAMES: [&str; 5] = ["a", "b", "c", "dd", "e.txt"];

#[derive(Debug, Clone)]
pub(crate) enum Step {
    Open { path: String, flags: OFlags, mode: u32, slot: usize },
    Close { slot: usize },
    Write { slot: usize, at: Option<u64>, length: usize, byte: u8 },
    Read { slot: usize, at: u64, length: usize },
    SetLength { slot: usize, length: u64 },
    Allocate { slot: usize, mode: FallocateFlags, at: u64, length: u64 },
    Sync { slot: usize },
    FindData { slot: usize, at: u64 },
    CopyRange { from: usize, to: usize, length: usize },
    StatOpen { slot: usize },
    MkDir { path: String, mode: u32 },
    RmDir { path: String },
    Unlink { path: String },
    Rename { from: String, to: String, flags: RenameFlags },
    Link { from: String, to: String },
    SymLink { text: String, path: String },
    ReadLink { path: String },
    Fifo { path: String },
    Chmod { path: String, mode: u32 },
    Times { path: String, seconds: i64 },
    Truncate { path: String, length: u64 },
    Stat { path: String },
    List { path: String },
    SetXattr { path: String, value: u8, flags: XattrFlags },
    GetXattr { path: String },
    RemoveXattr { path: String },
}

fn path(chance: &mut Chance) -> String {
    let depth = 1 + chance.below(3);
    (0..depth).map(|_| chance.pick(&NAMES)).collect::<Vec<_>>().join("/")
}

impl Step {
    pub(crate) fn random(chance: &mut Chance) -> Self {
        let slot = chance.below(4) as usize;
        let path = path(chance);
        match chance.below(36) {
            0..=5 => {
                let access = chance.pick(&[OFlags::RDONLY, OFlags::WRONLY, OFlags::RDWR]);
                let mut flags = access;
                for (flag, odds) in [
                    (OFlags::CREATE, 2),
                    (OFlags::EXCL, 6),
                    (OFlags::TRUNC, 4),
                    (OFlags::APPEND, 4),
                    (OFlags::NOFOLLOW, 6),
                ] {
                    if chance.below(odds) == 0 {
                        flags |= flag;
                    }
                }
                // Without it the outcome is not defined.
                if !flags.contains(OFlags::CREATE) {
                    flags -= OFlags::EXCL;
                }
                let mode = chance.pick(&[0o644, 0o600, 0o755, 0o444]);
                Self::Open { path, flags, mode, slot }
            }
            6 => Self::Close { slot },
            7..=9 => {
                let at = (chance.below(2) == 0).then(|| chance.below(9000));
                let length = 1 + chance.below(5000) as usize;
                Self::Write { slot, at, length, byte: chance.below(250) as u8 }
            }
            10..=11 => Self::Read { slot, at: chance.below(9000), length: 6000 },
            12 => Self::SetLength { slot, length: chance.below(9000) },
            13 => {
                let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
                let mode = chance.pick(&[FallocateFlags::empty(), punch]);
                Self::Allocate {
                    slot,
                    mode,
                    at: chance.below(9000),
                    length: 1 + chance.below(5000),
                }
            }
            14 => Self::Sync { slot },
            15 => Self::FindData { slot, at: chance.below(5000) },
            16 => Self::CopyRange { from: slot, to: chance.below(4) as usize, length: 3000 },
            17 => Self::StatOpen { slot },
            18..=19 => Self::MkDir { path, mode: chance.pick(&[0o755, 0o700]) },
            20 => Self::RmDir { path },
            21 => Self::Unlink { path },
            22..=24 => {
                let none = RenameFlags::empty();
                let flags = [none, none, none, RenameFlags::NOREPLACE, RenameFlags::EXCHANGE];
                Self::Rename { from: path, to: self::path(chance), flags: chance.pick(&flags) }
            }
            25 => Self::Link { from: path, to: self::path(chance) },
            26 => Self::SymLink { text: self::path(chance), path },
            27 => Self::ReadLink { path },
            28 => Self::Fifo { path },
            29 => Self::Chmod { path, mode: chance.pick(&[0o644, 0o700, 0o4755, 0o000]) },
            30 => Self::Times { path, seconds: chance.below(2_000_000_000) as i64 },
            31 => Self::Truncate { path, length: chance.below(9000) },
            32 => Self::Stat { path },
            33 => Self::List { path },
            34 => Self::SetXattr {
                path,
                value: chance.below(250) as u8,
                flags: chance.pick(&[XattrFlags::empty(), XattrFlags::CREATE, XattrFlags::REPLACE]),
            },
            _ if chance.below(2) == 0 => Self::GetXattr { path },
            _ => Self::RemoveXattr { path },
        }
    }
}

/// A program with its open files.
#[derive(Debug)]
pub(crate) struct Program {
    root: PathBuf,
    open: [Option<OwnedFd>; 4],
    /// Whether files get second names.
    links: bool,
}

impl Program {
    pub(crate) fn new(root: &Path, links: bool) -> Self {
        Self { root: root.to_owned(), open: [const { None }; 4], links }
    }

    /// Does it, and says what came of it.
    pub(crate) fn take(&mut self, step: &Step) -> Result<String, Errno> {
        let at = |path: &String| self.root.join(path);
        let slot = |n: &usize| self.open[*n].as_ref().map(AsFd::as_fd).ok_or(Errno::BADF);
        match step {
            Step::Open { path, flags, mode, slot } => {
                let flags = *flags | OFlags::CLOEXEC | OFlags::NONBLOCK;
                let fd = rustix::fs::open(at(path), flags, Mode::from_raw_mode(*mode))?;
                self.open[*slot] = Some(fd);
                Ok(String::new())
            }
            Step::Close { slot } => {
                self.open[*slot] = None;
                Ok(String::new())
            }
            Step::Write { slot: n, at, length, byte } => {
                let data = vec![*byte; *length];
                let written = match at {
                    Some(at) => rustix::io::pwrite(slot(n)?, &data, *at)?,
                    None => rustix::io::write(slot(n)?, &data)?,
                };
                Ok(written.to_string())
            }
            Step::Read { slot: n, at, length } => {
                let mut data = vec![0; *length];
                let read = rustix::io::pread(slot(n)?, &mut data, *at)?;
                let sum =
                    data[..read].iter().fold(0_u64, |s, b| s.wrapping_mul(31) + u64::from(*b));
                Ok(format!("{read} {sum}"))
            }
            Step::SetLength { slot: n, length } => done(rustix::fs::ftruncate(slot(n)?, *length)),
            Step::Allocate { slot: n, mode, at, length } => {
                done(rustix::fs::fallocate(slot(n)?, *mode, *at, *length))
            }
            Step::Sync { slot: n } => done(rustix::fs::fsync(slot(n)?)),
            Step::FindData { slot: n, at } => {
                // In a directory that is a matter of the file system.
                let kind = FileType::from_raw_mode(rustix::fs::fstat(slot(n)?)?.st_mode);
                if kind != FileType::RegularFile {
                    return Ok(String::new());
                }
                // Where holes are depends on what is on the disk already.
                rustix::fs::seek(slot(n)?, SeekFrom::Hole(*at)).map(|_| String::new())
            }
            Step::CopyRange { from, to, length } => {
                let (mut a, mut b) = (0, 10_000);
                let copied = rustix::fs::copy_file_range(
                    slot(from)?,
                    Some(&mut a),
                    slot(to)?,
                    Some(&mut b),
                    *length,
                )?;
                Ok(copied.to_string())
            }
            Step::StatOpen { slot: n } => Ok(told(&rustix::fs::fstat(slot(n)?)?)),
            Step::MkDir { path, mode } => {
                done(rustix::fs::mkdir(at(path), Mode::from_raw_mode(*mode)))
            }
            Step::RmDir { path } => done(rustix::fs::rmdir(at(path))),
            Step::Unlink { path } => done(rustix::fs::unlink(at(path))),
            Step::Rename { from, to, flags } => {
                done(rustix::fs::renameat_with(CWD, at(from), CWD, at(to), *flags))
            }
            Step::Link { from, to } => {
                // Two names of a FIFO are two FIFOs, and who has a file open sees
                // late what is written by a name that it gets meanwhile.
                let stat = rustix::fs::lstat(at(from))?;
                let is_open =
                    self.open.iter().flatten().any(|fd| {
                        rustix::fs::fstat(fd).is_ok_and(|open| open.st_ino == stat.st_ino)
                    });
                if !self.links || is_open || FileType::from_raw_mode(stat.st_mode) == FileType::Fifo
                {
                    return Ok(String::new());
                }
                done(rustix::fs::link(at(from), at(to)))
            }
            Step::SymLink { text, path } => done(rustix::fs::symlink(text, at(path))),
            Step::ReadLink { path } => {
                let text = rustix::fs::readlink(at(path), Vec::new())?;
                Ok(text.to_string_lossy().into_owned())
            }
            Step::Fifo { path } => {
                done(rustix::fs::mknodat(CWD, at(path), FileType::Fifo, Mode::RUSR, 0))
            }
            Step::Chmod { path, mode } => {
                done(rustix::fs::chmod(at(path), Mode::from_raw_mode(*mode)))
            }
            Step::Times { path, seconds } => {
                let time = Timespec { tv_sec: *seconds, tv_nsec: 5 };
                let times = Timestamps { last_access: time, last_modification: time };
                done(rustix::fs::utimensat(CWD, at(path), &times, AtFlags::SYMLINK_NOFOLLOW))?;
                let stat = rustix::fs::lstat(at(path))?;
                Ok(format!("{} {}", stat.st_mtime, stat.st_mtime_nsec))
            }
            Step::Truncate { path, length } => {
                let fd = rustix::fs::open(
                    at(path),
                    OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NONBLOCK,
                    Mode::empty(),
                )?;
                done(rustix::fs::ftruncate(fd, *length))
            }
            Step::Stat { path } => Ok(told(&rustix::fs::lstat(at(path))?)),
            Step::List { path } => {
                let entries =
                    std::fs::read_dir(at(path)).map_err(|e| Errno::from_io_error(&e).unwrap())?;
                let mut names: Vec<_> = entries
                    .map(|entry| {
                        let entry = entry.unwrap();
                        format!("{:?} {:?}", entry.file_name(), entry.file_type().unwrap().is_dir())
                    })
                    .collect();
                names.sort();
                Ok(names.join(","))
            }
            Step::SetXattr { path, value, flags } => {
                done(rustix::fs::lsetxattr(at(path), "user.test", &[*value; 9], *flags))
            }
            Step::GetXattr { path } => {
                let mut value = [0; 64];
                let length = rustix::fs::lgetxattr(at(path), "user.test", &mut value[..])?;
                Ok(format!("{:?}", &value[..length]))
            }
            Step::RemoveXattr { path } => done(rustix::fs::lremovexattr(at(path), "user.test")),
        }
    }
}

fn done(outcome: Result<(), Errno>) -> Result<String, Errno> {
    outcome.map(|()| String::new())
}

/// What must be the same on any file system.
fn told(stat: &rustix::fs::Stat) -> String {
    if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
        return format!("{:o}", stat.st_mode);
    }
    format!("{:o} {} {}", stat.st_mode, stat.st_nlink, stat.st_size)
}
