//! Moves a directory that existed before the session. Overlayfs in a user namespace
//! refuses that (EXDEV), because it cannot record where the directory comes from. So a
//! new directory is made, and the entries of the old one are moved there one by one,
//! which overlayfs can do.
//!
//! A failed move is undone, so that the old directory is complete. Under rules for paths,
//! no other process interferes. Elsewhere one can: a new file in the old directory
//! meanwhile makes the move fail.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{
    AtFlags, Dir, FileType, Gid, Mode, OFlags, RenameFlags, Stat, Timespec, Timestamps, Uid,
    XattrFlags,
};
use rustix::io::Errno;

use super::record::Record;

type Outcome = Result<(), Errno>;

/// Limits, because others wait meanwhile. Beyond them a program has to copy by itself, as
/// `mv` does.
const MOST_ENTRIES: u64 = 20_000;
const MOST_BYTES: u64 = 1 << 30;

/// How many files are copied up to the layer concurrently. The disk takes as long for
/// that many as for one.
const AT_ONCE: usize = 16;
/// Below this a thread is not worth it.
const LEAST_SHARE: usize = 4;
const STACK: usize = 64 << 10;

/// Name of the new directory until it is complete. It may be taken, so a number is added.
const STAGING: &str = ".sessile-moving-";
const MOST_STAGINGS: u32 = 100;

/// Size limit of an attribute, and of all attribute names.
const MOST_ATTRIBUTES: usize = 64 << 10;

/// A name in a directory.
pub(crate) type Named<'a> = (BorrowedFd<'a>, &'a CStr);

/// How much there is to move.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Extent {
    pub(crate) entries: u64,
    pub(crate) bytes: u64,
}

/// Measures a directory.
///
/// # Errors
/// `EXDEV` if it is too much to be moved here.
pub(crate) fn extent((directory, name): Named<'_>) -> Result<Extent, Errno> {
    let root = open(directory, name).map_err(|_| Errno::XDEV)?;
    let mut extent = Extent::default();
    let mut unseen = vec![CString::default()];
    while let Some(at) = unseen.pop() {
        for (path, kind) in entries(&root, &at)? {
            extent.entries += 1;
            if kind == FileType::RegularFile {
                let stat = rustix::fs::statat(&root, &path, AtFlags::SYMLINK_NOFOLLOW)?;
                extent.bytes += u64::try_from(stat.st_size).unwrap_or(0);
            } else if kind == FileType::Directory {
                unseen.push(path);
            }
            if extent.entries > MOST_ENTRIES || extent.bytes > MOST_BYTES {
                return Err(Errno::XDEV);
            }
        }
    }
    Ok(extent)
}

/// The paths of the source and target directories, for the record.
#[derive(Debug)]
pub(crate) struct Paths {
    pub(crate) from: Vec<u8>,
    pub(crate) to: Vec<u8>,
}

/// Moves a directory; `flags` are empty, or forbid replacing. Its progress is in the
/// record, which is not needed any more when this returns.
pub(crate) fn carry(
    from: Named<'_>,
    to: Named<'_>,
    flags: RenameFlags,
    (record, paths): (&mut Record, &Paths),
) -> Outcome {
    check_target(to, flags)?;
    let old = open(from.0, from.1)?;
    bring_up(&old)?;
    let staging = free_staging(to.0)?;
    let path = |above: &[u8], name: &CStr| [above, b"/", name.to_bytes()].concat();
    record.say([&path(&paths.from, from.1), &path(&paths.to, &staging), &path(&paths.to, to.1)])?;
    rustix::fs::mkdirat(to.0, &staging, Mode::RWXU)?;
    let new = open(to.0, &staging)?;
    let mut carried = Carried { old, new, moved: Vec::new(), made: Vec::new(), gone: 0 };
    let outcome = carried
        .all()
        .and_then(|()| record.mark_whole())
        .and_then(|()| rustix::fs::renameat_with(to.0, &staging, to.0, to.1, flags));
    if let Err(errno) = outcome {
        carried.take_back();
        let _ = rustix::fs::unlinkat(to.0, &staging, AtFlags::REMOVEDIR);
        return Err(errno);
    }
    let outcome = carried
        .remove_old()
        .and_then(|()| rustix::fs::unlinkat(from.0, from.1, AtFlags::REMOVEDIR));
    if let Err(errno) = outcome {
        carried.take_back();
        let _ = rustix::fs::unlinkat(to.0, to.1, AtFlags::REMOVEDIR);
        return Err(errno);
    }
    Ok(())
}

/// Returns a free name. If it is taken meanwhile, the move fails.
fn free_staging(directory: BorrowedFd<'_>) -> Result<CString, Errno> {
    for number in 0..MOST_STAGINGS {
        let name = CString::new(format!("{STAGING}{number}")).map_err(|_| Errno::INVAL)?;
        match rustix::fs::statat(directory, &name, AtFlags::SYMLINK_NOFOLLOW) {
            Err(Errno::NOENT) => return Ok(name),
            found => found.map(drop)?,
        }
    }
    Err(Errno::XDEV)
}

/// Moves the entries of a new directory back to the partly emptied old one. Nothing is replaced.
pub(super) fn take_whole(new: &OwnedFd, old: &OwnedFd) -> Outcome {
    // A directory without write permission could not be emptied.
    rustix::fs::fchmod(new, Mode::RWXU)?;
    for (name, kind) in entries(new, c"")? {
        if kind == FileType::Directory
            && let Ok(old) = open(old.as_fd(), &name)
        {
            take_whole(&open(new.as_fd(), &name)?, &old)?;
            rustix::fs::unlinkat(new, &name, AtFlags::REMOVEDIR)?;
        } else {
            rustix::fs::renameat_with(new, &name, old, &name, RenameFlags::NOREPLACE)?;
        }
    }
    Ok(())
}

/// Checks the target as rename(2) does: only an empty directory is replaced.
fn check_target((directory, name): Named<'_>, flags: RenameFlags) -> Outcome {
    let stat = match rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => return Ok(()),
        found => found?,
    };
    if flags.contains(RenameFlags::NOREPLACE) {
        return Err(Errno::EXIST);
    }
    if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
        return Err(Errno::NOTDIR);
    }
    let is_empty = entries(&open(directory, name)?, c"")?.is_empty();
    if is_empty { Ok(()) } else { Err(Errno::NOTEMPTY) }
}

/// Copies the existing files up to the layer, several at a time. A rename does that as
/// well, but the system writes each file to the disk, one after the other. What fails
/// here is left to the rename.
fn bring_up(old: &OwnedFd) -> Outcome {
    let mut files = Vec::new();
    let mut unseen = vec![CString::default()];
    while let Some(at) = unseen.pop() {
        for (path, kind) in entries(old, &at)? {
            if kind == FileType::RegularFile {
                files.push(path);
            } else if kind == FileType::Directory {
                unseen.push(path);
            }
        }
    }
    let share = files.len().div_ceil(AT_ONCE).max(LEAST_SHARE);
    std::thread::scope(|scope| {
        for files in files.chunks(share) {
            let bring = move || files.iter().for_each(|file| bring_one_up(old, file));
            // Without a thread, the rename does it.
            let _ = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, bring);
        }
    });
    Ok(())
}

/// Copies a file up by setting its mode, even to the same mode.
fn bring_one_up(old: &OwnedFd, file: &CStr) {
    let Ok(stat) = rustix::fs::statat(old, file, AtFlags::SYMLINK_NOFOLLOW) else { return };
    let mode = Mode::from_raw_mode(stat.st_mode);
    if !mode.intersects(Mode::SUID | Mode::SGID) {
        let _ = rustix::fs::chmodat(old, file, mode, AtFlags::empty());
    }
}

/// The progress so far. Paths are relative to the two directories.
struct Carried {
    old: OwnedFd,
    new: OwnedFd,
    moved: Vec<CString>,
    /// New directories, each before those in it, with the attributes of the old ones.
    made: Vec<(CString, Stat)>,
    /// How many of them are removed from the old place, the last first.
    gone: usize,
}

impl Carried {
    fn all(&mut self) -> Outcome {
        self.made.push((CString::default(), rustix::fs::fstat(&self.old)?));
        let mut unseen = vec![CString::default()];
        while let Some(at) = unseen.pop() {
            for (path, kind) in entries(&self.old, &at)? {
                let flags = RenameFlags::NOREPLACE;
                match rustix::fs::renameat_with(&self.old, &path, &self.new, &path, flags) {
                    Ok(()) => self.moved.push(path),
                    Err(Errno::XDEV) if kind == FileType::Directory => {
                        let look = AtFlags::SYMLINK_NOFOLLOW;
                        let stat = rustix::fs::statat(&self.old, &path, look)?;
                        rustix::fs::mkdirat(&self.new, &path, Mode::RWXU)?;
                        self.made.push((path.clone(), stat));
                        unseen.push(path);
                    }
                    Err(errno) => return Err(errno),
                }
            }
        }
        // Last, because adding entries changes a directory's date.
        self.made.iter().rev().try_for_each(|(path, stat)| self.make_like_old(path, stat))
    }

    fn make_like_old(&self, path: &CStr, stat: &Stat) -> Outcome {
        let (old, new) = (open(self.old.as_fd(), path)?, open(self.new.as_fd(), path)?);
        let made = rustix::fs::fstat(&new)?;
        if (made.st_uid, made.st_gid) != (stat.st_uid, stat.st_gid) {
            let (uid, gid) = (Uid::from_raw(stat.st_uid), Gid::from_raw(stat.st_gid));
            rustix::fs::fchown(&new, Some(uid), Some(gid))?;
        }
        copy_attributes(&old, &new)?;
        dress(&new, stat)
    }

    fn remove_old(&mut self) -> Outcome {
        for (path, _) in self.made.iter().skip(1).rev() {
            rustix::fs::unlinkat(&self.old, path, AtFlags::REMOVEDIR)?;
            self.gone += 1;
        }
        Ok(())
    }

    /// Restores the old directory. Each step has just succeeded in the other direction.
    fn take_back(&self) {
        let first_gone = self.made.len() - self.gone;
        for (path, _) in &self.made[first_gone..] {
            let _ = rustix::fs::mkdirat(&self.old, path, Mode::RWXU);
        }
        // A directory without write permission could not be emptied.
        for (path, _) in &self.made {
            if let Ok(new) = open(self.new.as_fd(), path) {
                let _ = rustix::fs::fchmod(&new, Mode::RWXU);
            }
        }
        for path in self.moved.iter().rev() {
            let _ = rustix::fs::renameat(&self.new, path, &self.old, path);
        }
        for (path, stat) in self.made.iter().rev() {
            if !path.is_empty() {
                let _ = rustix::fs::unlinkat(&self.new, path, AtFlags::REMOVEDIR);
            }
            if let Ok(old) = open(self.old.as_fd(), path) {
                let _ = dress(&old, stat);
            }
        }
    }
}

fn dress(directory: &OwnedFd, stat: &Stat) -> Outcome {
    rustix::fs::fchmod(directory, Mode::from_raw_mode(stat.st_mode))?;
    let time = |seconds: i64, nanos| Timespec { tv_sec: seconds, tv_nsec: nanos };
    let times = Timestamps {
        last_access: time(stat.st_atime, stat.st_atime_nsec.cast_signed()),
        last_modification: time(stat.st_mtime, stat.st_mtime_nsec.cast_signed()),
    };
    rustix::fs::futimens(directory, &times)
}

fn copy_attributes(from: &OwnedFd, to: &OwnedFd) -> Outcome {
    let mut names = vec![0; MOST_ATTRIBUTES];
    let length = match rustix::fs::flistxattr(from, &mut names[..]) {
        Err(Errno::NOTSUP) => return Ok(()),
        length => length?,
    };
    let names = names[..length].split_inclusive(|byte| *byte == 0);
    for name in names.filter_map(|name| CStr::from_bytes_with_nul(name).ok()) {
        if !name.to_bytes().starts_with(b"user.") {
            continue;
        }
        let mut value = vec![0; MOST_ATTRIBUTES];
        let length = rustix::fs::fgetxattr(from, name, &mut value[..])?;
        rustix::fs::fsetxattr(to, name, &value[..length], XattrFlags::empty())?;
    }
    Ok(())
}

pub(super) fn open(directory: BorrowedFd<'_>, path: &CStr) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let path = if path.is_empty() { c"." } else { path };
    rustix::fs::openat(directory, path, flags, Mode::empty())
}

/// Lists a directory, as paths from the root.
pub(super) fn entries(root: &OwnedFd, at: &CStr) -> Result<Vec<(CString, FileType)>, Errno> {
    let mut all = Vec::new();
    for entry in Dir::read_from(open(root.as_fd(), at)?)? {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if matches!(name, b"." | b"..") {
            continue;
        }
        let path = match at.to_bytes() {
            b"" => name.to_vec(),
            above => [above, name].join(&b'/'),
        };
        let path = CString::new(path).map_err(|_| Errno::INVAL)?;
        let mut kind = entry.file_type();
        if kind == FileType::Unknown {
            let stat = rustix::fs::statat(root, &path, AtFlags::SYMLINK_NOFOLLOW)?;
            kind = FileType::from_raw_mode(stat.st_mode);
        }
        all.push((path, kind));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mover::record::Records;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_directory_is_there_whole_or_not_at_all() {
        let place = tempfile::tempdir().unwrap();
        let at = |path: &str| place.path().join(path);
        fs::create_dir_all(at("old/deep/deeper")).unwrap();
        fs::write(at("old/deep/file"), "text").unwrap();
        fs::set_permissions(at("old/deep"), fs::Permissions::from_mode(0o750)).unwrap();
        let top = fs::File::open(place.path()).unwrap();
        let (old, new) = ((top.as_fd(), c"old"), (top.as_fd(), c"new"));
        let layer = tempfile::tempdir().unwrap();
        let mut records = Records::of(layer.path()).unwrap();
        let mut carry = |old, new, flags| {
            let mut record = records.begin().unwrap();
            let paths = Paths { from: b"/w".to_vec(), to: b"/w".to_vec() };
            super::carry(old, new, flags, (&mut record, &paths))
        };
        assert_eq!(extent(old), Ok(Extent { entries: 3, bytes: 4 }));

        fs::write(at("new"), "").unwrap();
        assert_eq!(carry(old, new, RenameFlags::empty()), Err(Errno::NOTDIR));
        assert_eq!(carry(old, new, RenameFlags::NOREPLACE), Err(Errno::EXIST));
        fs::remove_file(at("new")).unwrap();
        fs::create_dir_all(at("new/x")).unwrap();
        assert_eq!(carry(old, new, RenameFlags::empty()), Err(Errno::NOTEMPTY));
        assert_eq!(fs::read(at("old/deep/file")).unwrap(), b"text");

        fs::remove_dir(at("new/x")).unwrap();
        assert_eq!(carry(old, new, RenameFlags::empty()), Ok(()));
        assert_eq!(fs::read(at("new/deep/file")).unwrap(), b"text");
        let mode = fs::metadata(at("new/deep")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o750);
        assert!(at("new/deep/deeper").is_dir());
        let left: Vec<_> = fs::read_dir(place.path()).unwrap().map(|e| e.unwrap()).collect();
        assert_eq!(left.len(), 1, "{left:?}");
    }

    #[test]
    fn what_was_moved_goes_back() {
        let place = tempfile::tempdir().unwrap();
        let at = |path: &str| place.path().join(path);
        fs::create_dir_all(at("old/deep/deeper")).unwrap();
        fs::create_dir_all(at("new/deep/deeper")).unwrap();
        fs::write(at("new/deep/file"), "text").unwrap();
        fs::remove_dir(at("old/deep/deeper")).unwrap();
        let stat = rustix::fs::stat(at("new")).unwrap();
        let path = |text: &str| CString::new(text).unwrap();
        let carried = Carried {
            old: fs::File::open(at("old")).unwrap().into(),
            new: fs::File::open(at("new")).unwrap().into(),
            moved: vec![path("deep/file")],
            made: vec![(path(""), stat), (path("deep"), stat), (path("deep/deeper"), stat)],
            gone: 1,
        };
        carried.take_back();
        assert_eq!(fs::read(at("old/deep/file")).unwrap(), b"text");
        assert!(at("old/deep/deeper").is_dir());
        assert_eq!(fs::read_dir(at("new")).unwrap().count(), 0);
    }
}
