//! Copies files, links and directories into a tree.

use crate::beneath::{Tree, look_at};
use crate::found::{Found, Kind, Mark, Node, Time};
use crate::{LayerError, Result};
use rustix::fs::{AtFlags, Gid, Mode, OFlags, Timespec, Timestamps, Uid};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Seek};
use std::os::fd::OwnedFd;

/// How often a file is read that changes meanwhile.
const ATTEMPTS: u32 = 5;

/// Permissions without setuid and similar bits, which are never applied from a session.
pub(crate) const PERMISSIONS: u32 = 0o777;

/// How a file is put in place.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Placement {
    /// It is written under a temporary name, then replaces the current file, which must be
    /// this one.
    Replace(Option<Mark>),
    /// It is written under its own name: nothing is there, and no other name may be used.
    Create,
}

/// Copies a file or a link from one tree to the same path of another. A directory is made
/// without its contents.
pub(crate) fn copy(from: &Tree, to: &Tree, path: &[u8], placement: Placement) -> Result<()> {
    let wrong = |errno| LayerError::of(errno, path);
    let found = from.look(path)?.ok_or_else(|| wrong(Errno::NOENT))?;
    let (above, name) = to.place(path).map_err(wrong)?;
    let flags = AtFlags::SYMLINK_NOFOLLOW;
    match found.node.kind {
        Kind::Directory => match rustix::fs::mkdirat(&above, name, Mode::RWXU) {
            Ok(()) => {
                if let Some((uid, gid)) = owner_of(&above, placement) {
                    let _ = rustix::fs::chownat(&above, name, Some(uid), Some(gid), flags);
                }
                Ok(())
            }
            Err(Errno::EXIST) => Ok(()),
            Err(errno) => Err(wrong(errno)),
        },
        Kind::File => {
            let aside = aside(placement, name).map_err(wrong)?;
            let owner = match placement {
                Placement::Replace(_) => {
                    let old = look_at(&above, name).ok();
                    let old = old.map(|old| (Uid::from_raw(old.uid), Gid::from_raw(old.gid)));
                    old.or_else(|| owner_of(&above, placement))
                }
                Placement::Create => None,
            };
            let copied = copy_file(from, path, (&above, &aside), owner);
            finish(copied, (&above, &aside, name), path, placement)
        }
        Kind::Link => {
            let aside = aside(placement, name).map_err(wrong)?;
            let linked = rustix::fs::symlinkat(OsStr::new(&os(from.target(path)?)), &above, &aside);
            if let (Ok(()), Some((uid, gid))) = (&linked, owner_of(&above, placement)) {
                let _ = rustix::fs::chownat(&above, &*aside, Some(uid), Some(gid), flags);
            }
            finish(linked.map_err(wrong), (&above, &aside, name), path, placement)
        }
        Kind::Other => Err(wrong(Errno::OPNOTSUPP)),
    }
}

/// Returns who gets a new file of the real tree: the owner of its directory, where root
/// applies changes to a directory of somebody else. Otherwise it belongs to the caller.
fn owner_of(directory: &OwnedFd, placement: Placement) -> Option<(Uid, Gid)> {
    match placement {
        Placement::Create => None,
        Placement::Replace(_) if !rustix::process::geteuid().is_root() => None,
        Placement::Replace(_) => {
            let found = look_at(directory, OsStr::new("")).ok().filter(|found| found.uid != 0);
            found.map(|found| (Uid::from_raw(found.uid), Gid::from_raw(found.gid)))
        }
    }
}

fn os(bytes: Vec<u8>) -> OsString {
    use std::os::unix::ffi::OsStringExt;
    OsString::from_vec(bytes)
}

/// Returns the name that the file has until it is complete.
fn aside(placement: Placement, name: &OsStr) -> rustix::io::Result<OsString> {
    match placement {
        Placement::Create => Ok(name.to_owned()),
        Placement::Replace(_) => {
            let mut random = [0; 8];
            rustix::rand::getrandom(&mut random, rustix::rand::GetRandomFlags::empty())?;
            Ok(format!(".sessile-{:016x}", u64::from_ne_bytes(random)).into())
        }
    }
}

/// Gives the file its name, or removes it.
fn finish(
    made: Result<()>,
    (above, aside, name): (&OwnedFd, &OsStr, &OsStr),
    path: &[u8],
    placement: Placement,
) -> Result<()> {
    let named = made.and_then(|()| match placement {
        Placement::Create => Ok(()),
        Placement::Replace(expected) => {
            check(above, name, path, expected)?;
            let renamed = rustix::fs::renameat(above, aside, above, name);
            renamed.map_err(|errno| LayerError::of(errno, path))
        }
    });
    if named.is_err() {
        let _ = rustix::fs::unlinkat(above, aside, AtFlags::empty());
    }
    named
}

/// Checks that the current file is the expected one.
pub(crate) fn check(
    above: &OwnedFd,
    name: &OsStr,
    path: &[u8],
    expected: Option<Mark>,
) -> Result<()> {
    let there = match look_at(above, name) {
        Ok(found) => Some(found),
        Err(Errno::NOENT) => None,
        Err(errno) => return Err(LayerError::of(errno, path)),
    };
    if there.as_ref().map(Found::mark) == expected {
        return Ok(());
    }
    Err(LayerError::Raced { path: crate::quoted(path) })
}

/// Copies the content, the permissions and the modification time. A file that is written to
/// meanwhile is read again.
fn copy_file(
    from: &Tree,
    path: &[u8],
    to: (&OwnedFd, &OsStr),
    owner: Option<(Uid, Gid)>,
) -> Result<()> {
    let wrong = |errno| LayerError::of(errno, path);
    let failed = |error: io::Error| LayerError::io(error, path);
    let (above, name) = to;
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW;
    let private = Mode::RUSR | Mode::WUSR;
    let file = rustix::fs::openat(above, name, flags | OFlags::CLOEXEC, private).map_err(wrong)?;
    let mut file = File::from(file);
    let mut source = from.read(path)?;
    let looked = |file: &File| look_at(file, OsStr::new("")).map_err(wrong);
    let mut found = looked(&source)?;
    for attempt in 1.. {
        source.rewind().and_then(|()| file.rewind()).map_err(failed)?;
        file.set_len(0).map_err(failed)?;
        io::copy(&mut source, &mut file).map_err(failed)?;
        let after = looked(&source)?;
        if after.mark() == found.mark() {
            break;
        }
        if attempt == ATTEMPTS {
            return Err(failed(io::Error::other("it is being written; try again in a moment")));
        }
        found = after;
    }
    // A replaced file keeps its owner, if we may change that.
    if let Some((uid, gid)) = owner {
        let _ = rustix::fs::fchown(&file, Some(uid), Some(gid));
    }
    let mode = Mode::from_raw_mode(found.node.mode & PERMISSIONS);
    rustix::fs::fchmod(&file, mode).map_err(wrong)?;
    let time = timespec(found.modified);
    let times = Timestamps { last_access: time, last_modification: time };
    rustix::fs::futimens(&file, &times).map_err(wrong)
}

pub(crate) fn timespec(time: Time) -> Timespec {
    Timespec { tv_sec: time.div_euclid(1_000_000_000), tv_nsec: time.rem_euclid(1_000_000_000) }
}

/// The bits that make a program run as its owner or its group.
const SET_IDS: u32 = 0o6000;
/// Setgid. New files in a directory with this bit get its group.
const SET_GROUP_ID: u32 = 0o2000;

/// Returns whether a file has bits that are never applied.
pub(crate) fn has_set_ids(node: &Node) -> bool {
    node.kind == Kind::File && node.mode & SET_IDS != 0
}

/// Gives a directory of the real tree the permissions that it has in the layer. This can
/// remove its setgid bit but never add it: it only inherits it from the directory above.
pub(crate) fn apply_mode(real: &Tree, path: &[u8], mode: u32) -> Result<()> {
    let there = real.look(path)?.map_or(0, |found| found.node.mode);
    set_mode(real, path, mode & (!SET_IDS | there & SET_GROUP_ID))
}

/// Sets the permissions of a directory.
pub(crate) fn set_mode(tree: &Tree, path: &[u8], mode: u32) -> Result<()> {
    // Besides permissions, a directory may have setgid, which new files inherit, and sticky.
    let mode = Mode::from_raw_mode(mode & 0o3777);
    let set = tree.directory(path).and_then(|directory| rustix::fs::fchmod(directory, mode));
    set.map_err(|errno| LayerError::of(errno, path))
}

/// Removes a name; a directory only if it is empty.
pub(crate) fn remove(tree: &Tree, path: &[u8], kind: Kind, expected: Option<Mark>) -> Result<()> {
    let wrong = |errno| LayerError::of(errno, path);
    let (above, name) = match tree.place(path) {
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(()),
        place => place.map_err(wrong)?,
    };
    let flags = match kind {
        Kind::Directory => AtFlags::REMOVEDIR,
        Kind::File | Kind::Link | Kind::Other => {
            if expected.is_some() {
                check(&above, name, path, expected)?;
            }
            AtFlags::empty()
        }
    };
    match rustix::fs::unlinkat(&above, name, flags) {
        Ok(()) | Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(wrong(errno)),
    }
}

/// Makes the missing directories above a path, like those of the other tree.
pub(crate) fn make_above(from: &Tree, to: &Tree, path: &[u8], placement: Placement) -> Result<()> {
    let slashes = path.iter().enumerate().filter(|(_, byte)| **byte == b'/');
    for (end, _) in slashes {
        let above = &path[..end];
        if to.look(above)?.is_none() {
            copy(from, to, above, placement)?;
            if let Some(found) = from.look(above)? {
                apply_mode(to, above, found.node.mode | 0o700)?;
            }
        }
    }
    Ok(())
}
