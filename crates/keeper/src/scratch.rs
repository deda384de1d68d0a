//! A private directory in memory for what passes between keeper and kernels:
//! command texts, FIFOs, captured states.
//!
//! Kernels open everything by path, each run anew: user code may close or
//! overwrite any descriptor it likes. The path is short, because shells show
//! it in syntax errors and a trigger line with several of them must fit into
//! the shell's read buffer.

use rustix::fs::{FileType, FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use sessile_proc::Process;
use std::cell::RefCell;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// How the directories of forks begin; nothing else does.
const FORK: &str = "f-";

#[derive(Debug)]
pub(crate) struct Scratch {
    path: PathBuf,
    /// Locks that show that the directory is in use, for as long as this process or its
    /// guardian lives. Another keeper of the same session, under another state directory,
    /// sees them.
    held: RefCell<LockedDirectories>,
}

/// Open directories, each locked: that of the family, and a fork's own.
#[derive(Clone, Debug, Default)]
struct LockedDirectories {
    root: Option<Rc<OwnedFd>>,
    own: Option<Rc<OwnedFd>>,
}

impl Scratch {
    /// Creates a directory for the session. One that a lost keeper left behind is cleared
    /// away first. One that is in use stays as it is.
    pub(crate) fn create(session: &str) -> io::Result<Self> {
        let name = name_of(session);
        let mut refusal = io::Error::from(io::ErrorKind::NotFound);
        let (roomy, full): (Vec<_>, Vec<_>) = bases().partition(|base| has_room(base));
        for base in roomy.into_iter().chain(full) {
            for attempt in 0..ATTEMPTS {
                let suffix = if attempt == 0 { String::new() } else { format!("-{attempt}") };
                let path = base.join(format!("{name}{suffix}"));
                match make(&path) {
                    Ok(root) => {
                        let held = LockedDirectories { root: Some(Rc::new(root)), own: None };
                        return Ok(Self { path, held: RefCell::new(held) });
                    }
                    Err(error) => refusal = error,
                }
            }
        }
        Err(refusal)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn subdirectory(&self, name: &str) -> io::Result<PathBuf> {
        let path = self.path.join(name);
        match rustix::fs::mkdir(&path, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => Ok(path),
            Err(Errno::NOENT) => self.subdirectory_anew(name),
            Err(error) => Err(error.into()),
        }
    }

    /// The same where somebody may have removed all of it: a command of the user's, or a
    /// service manager that clears a user's memory files when they log out.
    pub(crate) fn subdirectory_anew(&self, name: &str) -> io::Result<PathBuf> {
        self.make_anew()?;
        let path = self.path.join(name);
        match rustix::fs::mkdir(&path, Mode::RWXU) {
            Ok(()) | Err(Errno::EXIST) => Ok(path),
            Err(error) => Err(error.into()),
        }
    }

    fn make_anew(&self) -> io::Result<()> {
        for path in [self.root(), &self.path] {
            match rustix::fs::mkdir(path, Mode::RWXU) {
                Ok(()) => {}
                Err(Errno::EXIST) if is_ours(path)? => {}
                Err(error) => return Err(error.into()),
            }
        }
        let hold = |path: &Path| hold(path).ok().flatten().map(Rc::new);
        let mut held = self.held.borrow_mut();
        // If it was not removed, the lock stays as it is.
        held.root = hold(self.root()).or(held.root.take());
        held.own = held.own.take().map(|own| hold(&self.path).unwrap_or(own));
        Ok(())
    }

    /// Creates a directory for a fork, in that of its family.
    pub(crate) fn for_fork(&self, session: &str) -> io::Result<Self> {
        let path = self.root().join(name_of_fork(session));
        self.make_anew()?;
        let own = Some(Rc::new(make(&path)?));
        let held = LockedDirectories { root: self.held.borrow().root.clone(), own };
        Ok(Self { path, held: RefCell::new(held) })
    }

    /// The directory of the family: that of its first session.
    fn root(&self) -> &Path {
        match self.path.parent() {
            Some(parent) if self.is_of_fork() => parent,
            Some(_) | None => &self.path,
        }
    }

    fn is_of_fork(&self) -> bool {
        let name = self.path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with(FORK))
    }

    /// Removes what belongs to the session; the last of a family leaves nothing.
    pub(crate) fn remove(&self) {
        if self.is_of_fork() {
            let _ = remove_tree(&self.path);
        } else {
            for entry in std::fs::read_dir(&self.path).into_iter().flatten().flatten() {
                if entry.file_name().to_str().is_some_and(|name| name.starts_with(FORK)) {
                    continue;
                }
                let path = entry.path();
                let _ = remove_tree(&path).or_else(|_| std::fs::remove_file(&path));
            }
        }
        let _ = std::fs::remove_dir(self.root());
    }
}

/// Number of names to try: a session may be in use under several state directories of a
/// machine at once, until the first of them learns that it has moved.
const ATTEMPTS: u32 = 8;

/// Returns the directory's name. It is hidden and begins with the part that differs: a
/// single pattern for our files, or for all files, does not match the memory of all
/// sessions.
fn name_of(session: &str) -> String {
    let hex = session.trim_start_matches("sess_");
    format!(".{}.sessile", &hex[..hex.len().min(12)])
}

fn name_of_fork(session: &str) -> String {
    let hex = session.trim_start_matches("sess_");
    format!("{FORK}{}", &hex[..hex.len().min(8)])
}

/// Whether a process has the session's directory: its keeper, or the guardian of it.
pub(crate) fn is_kept_by(process: Process, session: &str) -> bool {
    let (name, fork) = (name_of(session), name_of_fork(session));
    process.descriptors().filter_map(|descriptor| descriptor.link()).any(|link| {
        let last = link.file_name().and_then(|last| last.to_str());
        last.is_some_and(|last| last.starts_with(&name) || last == fork)
    })
}

/// Opens and locks a directory; `None` if another process has it.
fn hold(path: &Path) -> io::Result<Option<OwnedFd>> {
    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let directory = rustix::fs::open(path, flags, Mode::empty())?;
    match rustix::fs::flock(&directory, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) => return Ok(None),
        Err(error) => return Err(error.into()),
    }
    // Another process may have removed it between its creation and its locking.
    let (opened, found) = (rustix::fs::fstat(&directory)?, rustix::fs::lstat(path)?);
    let is_same = (opened.st_dev, opened.st_ino) == (found.st_dev, found.st_ino);
    Ok(is_same.then_some(directory))
}

/// Memory file systems first: a run writes its command there, and a disk's
/// journal would cost more than the run itself.
fn bases() -> impl Iterator<Item = PathBuf> {
    ["/dev/shm", "/run/shm", "/tmp", "/var/tmp"].into_iter().map(PathBuf::from)
}

/// What kernels need at their start, several times over: a driver has 150 KiB.
const ROOM: u64 = 1 << 20;

/// Whether there is room. A container's memory file system is small, and programs fill it
/// with what they leave there.
fn has_room(base: &Path) -> bool {
    let Ok(found) = rustix::fs::statvfs(base) else {
        return false;
    };
    // Some file systems do not count their files.
    let has_files = found.f_files == 0 || found.f_favail > 64;
    found.f_bavail.saturating_mul(found.f_frsize) >= ROOM && has_files
}

/// Creates the directory, which must not belong to another user, and locks it.
fn make(path: &Path) -> io::Result<OwnedFd> {
    let in_use = || io::Error::from(io::ErrorKind::ResourceBusy);
    match rustix::fs::mkdir(path, Mode::RWXU) {
        Ok(()) => return hold(path)?.ok_or_else(in_use),
        Err(Errno::EXIST) => {}
        Err(error) => return Err(error.into()),
    }
    if !is_ours(path)? {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    let _left = hold(path)?.ok_or_else(in_use)?;
    remove_tree(path)?;
    rustix::fs::mkdir(path, Mode::RWXU)?;
    hold(path)?.ok_or_else(in_use)
}

fn is_ours(path: &Path) -> io::Result<bool> {
    let found = rustix::fs::lstat(path)?;
    let is_directory = FileType::from_raw_mode(found.st_mode) == FileType::Directory;
    Ok(is_directory && found.st_uid == rustix::process::geteuid().as_raw())
}

/// Makes a FIFO, in place of whatever is there.
pub(crate) fn make_fifo(path: &Path) -> io::Result<()> {
    let _ = std::fs::remove_file(path);
    let mode = Mode::RUSR | Mode::WUSR;
    Ok(rustix::fs::mknodat(rustix::fs::CWD, path, FileType::Fifo, mode, 0)?)
}

/// Gives a FIFO of this process a name in a directory that was made anew. Its own is
/// gone for good, as the system has no second one for what has none; but a link leads
/// to it, by way of this process.
pub(crate) fn name_again(path: &Path, fifo: impl AsFd) -> io::Result<()> {
    let _ = std::fs::remove_file(path);
    Ok(rustix::fs::symlink(way_to(fifo), path)?)
}

/// What leads to an open file of this process, for all of the user's processes.
fn way_to(file: impl AsFd) -> String {
    format!("/proc/{}/fd/{}", std::process::id(), file.as_fd().as_raw_fd())
}

/// Opens a FIFO so that neither we nor the other side ever sees it closed.
pub(crate) fn open_both_ways(path: &Path) -> io::Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(rustix::fs::open(path, flags, Mode::empty())?)
}

/// Whether programs beside a kernel are kept out of its pipes. They are in a sandbox,
/// where permissions cannot be changed; without one, they run as the user who owns the
/// pipes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PipeAccess {
    Open,
    Closed,
}

/// Creates a FIFO to which only this process writes.
pub(crate) fn make_orders(path: &Path, pipe_access: PipeAccess) -> io::Result<OwnedFd> {
    make_fifo(path)?;
    let orders = open_both_ways(path)?;
    if pipe_access == PipeAccess::Closed {
        rustix::fs::chmod(path, Mode::RUSR)?;
        give_away(path, Mode::RUSR | Mode::RGRP | Mode::ROTH)?;
    }
    Ok(orders)
}

/// Gives a FIFO of orders its name again. In a sandbox no link leads to this process: there
/// another one takes the name, and is returned.
pub(crate) fn name_orders_again(
    path: &Path,
    orders: &OwnedFd,
    pipe_access: PipeAccess,
) -> io::Result<Option<OwnedFd>> {
    match pipe_access {
        PipeAccess::Open => name_again(path, orders).map(|()| None),
        PipeAccess::Closed => make_orders(path, pipe_access).map(Some),
    }
}

/// Removes a directory of kernels, including directories that cannot be listed.
pub(crate) fn remove_tree(path: &Path) -> io::Result<()> {
    /// A kernel's directory, in that of a fork, in that of a family.
    const DEPTH: u32 = 2;
    allow_listing(path, DEPTH);
    std::fs::remove_dir_all(path)
}

fn allow_listing(path: &Path, depth: u32) {
    let _ = rustix::fs::chmod(path.join(HIDDEN), Mode::RWXU);
    if depth == 0 {
        return;
    }
    for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            allow_listing(&entry.path(), depth - 1);
        }
    }
}

/// Directory whose entries cannot be listed: a file in it is found only by its name.
const HIDDEN: &str = "x";

pub(crate) fn hidden_directory(directory: &Path) -> PathBuf {
    directory.join(HIDDEN)
}

/// Characters of such a name: as many as those of a secret, for the same reason.
const NAME_LENGTH: usize = 8;

/// Returns a new path in a directory that can be searched but not listed. In a sandbox,
/// programs cannot change that: the directory is read-only for them.
pub(crate) fn hidden_name(directory: &Path) -> io::Result<PathBuf> {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-";
    let place = hidden_directory(directory);
    match rustix::fs::mkdir(&place, Mode::WUSR | Mode::XUSR) {
        Ok(()) => give_away(&place, Mode::WUSR | Mode::XUSR | Mode::XGRP | Mode::XOTH)?,
        Err(Errno::EXIST) => {}
        Err(error) => return Err(error.into()),
    }
    let mut random = [0; NAME_LENGTH];
    rustix::rand::getrandom(&mut random[..], rustix::rand::GetRandomFlags::empty())?;
    let name: String =
        random.iter().map(|byte| char::from(LETTERS[usize::from(*byte) % LETTERS.len()])).collect();
    Ok(place.join(name))
}

/// Makes sure that no other process can read from this FIFO, however it gets to it.
pub(crate) fn allow_writing_only(path: &Path) -> io::Result<()> {
    rustix::fs::chmod(path, Mode::WUSR)?;
    give_away(path, Mode::WUSR | Mode::WGRP | Mode::WOTH)
}

/// Gives a file to `nobody` if this process is root: the root of a sandbox may do everything
/// to files of its own users.
fn give_away(path: &Path, mode: Mode) -> io::Result<()> {
    const NOBODY: u32 = 65534;
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let (user, group) = (rustix::fs::Uid::from_raw(NOBODY), rustix::fs::Gid::from_raw(NOBODY));
    match rustix::fs::chown(path, Some(user), Some(group)) {
        Ok(()) => Ok(rustix::fs::chmod(path, mode)?),
        // A root without that right, such as that of a container.
        Err(Errno::PERM | Errno::INVAL) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// A FIFO to which many may write at any time, for as long as there is a reader.
///
/// Its name is removed before its reader: a process that opens it in between would wait
/// for another reader for ever.
#[derive(Debug)]
pub(crate) struct Inbox {
    fd: OwnedFd,
    path: PathBuf,
    name: Name,
    /// The number of what is at the path: its own, or that of a link to it.
    number: u64,
    /// Other pipes to it: earlier FIFOs of this name, which writers may still have open,
    /// and one without a name.
    others: Vec<OwnedFd>,
}

/// What is at the path of an inbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Name {
    Itself,
    /// A link to it: see [`name_again`].
    Link,
}

/// Creates a FIFO that others can write to. A closed one can be read only by this process,
/// because a kernel's reports are for no other: it becomes visible only when that holds.
fn make_inbox(path: &Path, pipe_access: PipeAccess) -> io::Result<OwnedFd> {
    if pipe_access == PipeAccess::Open {
        make_fifo(path)?;
        return open_both_ways(path);
    }
    let directory = path.parent().unwrap_or(Path::new("/"));
    let hidden = hidden_name(directory)?;
    make_fifo(&hidden)?;
    let fd = open_both_ways(&hidden)?;
    allow_writing_only(&hidden)?;
    let _ = std::fs::remove_file(path);
    rustix::fs::rename(&hidden, path)?;
    Ok(fd)
}

impl Inbox {
    pub(crate) fn create(path: PathBuf, pipe_access: PipeAccess) -> io::Result<Self> {
        let fd = make_inbox(&path, pipe_access)?;
        let number = rustix::fs::fstat(&fd)?.st_ino;
        Ok(Self { fd, path, name: Name::Itself, number, others: Vec::new() })
    }

    /// Whether its name is gone although it is in use: then the directory around it was
    /// removed or renamed.
    pub(crate) fn is_unlinked(&self) -> bool {
        match rustix::fs::lstat(&self.path) {
            Ok(named) => named.st_ino != self.number,
            Err(error) => error == Errno::NOENT,
        }
    }

    /// Does the same check for a name that was removed, at a third of the cost: without a
    /// path lookup.
    pub(crate) fn was_removed(&self) -> bool {
        match self.name {
            Name::Itself => rustix::fs::fstat(&self.fd).is_ok_and(|own| own.st_nlink == 0),
            Name::Link => self.is_unlinked(),
        }
    }

    /// A second path, for when the first is gone.
    pub(crate) fn way(&self) -> String {
        way_to(&self.fd)
    }

    /// Takes its name again, in a directory that was made anew.
    ///
    /// In a sandbox no link leads to this process: there a second FIFO takes the name, and
    /// both are read. It has to be watched, too.
    pub(crate) fn name_again(&mut self, pipe_access: PipeAccess) -> io::Result<()> {
        match pipe_access {
            PipeAccess::Open => {
                name_again(&self.path, &self.fd)?;
                self.name = Name::Link;
            }
            PipeAccess::Closed => {
                let fresh = make_inbox(&self.path, pipe_access)?;
                self.others.push(std::mem::replace(&mut self.fd, fresh));
            }
        }
        self.number = rustix::fs::lstat(&self.path)?.st_ino;
        Ok(())
    }

    /// Adds another pipe to it, which has to be watched.
    pub(crate) fn read_also(&mut self, pipe: OwnedFd) {
        self.others.push(pipe);
    }

    /// Reads what has been written. Returns `None` if there is nothing.
    pub(crate) fn read(&mut self, buffer: &mut [u8]) -> Option<usize> {
        if let Ok(n) = rustix::io::read(&self.fd, &mut *buffer) {
            return Some(n);
        }
        let mut at = 0;
        while let Some(other) = self.others.get(at) {
            match rustix::io::read(other, &mut *buffer) {
                // All who could write to it are gone.
                Ok(0) => drop(self.others.swap_remove(at)),
                Ok(n) => return Some(n),
                Err(_) => at += 1,
            }
        }
        None
    }
}

impl AsFd for Inbox {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for Inbox {
    fn drop(&mut self) {
        // A successor may have its own FIFO there.
        let is_own = || {
            let (ours, there) =
                (rustix::fs::fstat(&self.fd).ok()?, rustix::fs::stat(&self.path).ok()?);
            Some((ours.st_dev, ours.st_ino) == (there.st_dev, there.st_ino))
        };
        if is_own() == Some(true) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// A file that is written anew for each run, and read by the kernel before the
/// next: kept open, because making and removing it would cost as much as the
/// run.
#[derive(Debug)]
pub(crate) struct RewrittenFile {
    file: File,
    length: usize,
}

impl RewrittenFile {
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        let _ = std::fs::remove_file(path);
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
        let file = File::from(rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR)?);
        Ok(Self { file, length: 0 })
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        use std::os::unix::fs::FileExt;
        if bytes.len() < self.length {
            self.file.set_len(bytes.len() as u64)?;
        }
        self.length = bytes.len();
        self.file.write_all_at(bytes, 0)
    }
}

/// Writes a file that a kernel is about to read.
pub(crate) fn write_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let flags = OFlags::CREATE | OFlags::TRUNC | OFlags::WRONLY | OFlags::CLOEXEC;
    // Does not write to a link or a FIFO that another process has put there.
    let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR)?;
    File::from(file).write_all(bytes)
}

/// Reads a file that a kernel, or another process in its place, has written: does not
/// follow a link, wait for a FIFO, or read without end.
pub(crate) fn read_left(path: &Path) -> io::Result<Vec<u8>> {
    const MOST: u64 = 256 << 20;
    let (file, length) = open_left(path)?;
    // A sparse file may be longer than the file system.
    let room = rustix::fs::fstatvfs(&file)?;
    let room = room.f_blocks.saturating_mul(room.f_frsize);
    if length > MOST.min(room) {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or(0) + 1);
    file.take(MOST).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Opens such a file. Returns it with its length.
pub(crate) fn open_left(path: &Path) -> io::Result<(File, u64)> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    let found = file.metadata()?;
    if !found.is_file() {
        return Err(io::ErrorKind::InvalidData.into());
    }
    Ok((file, found.len()))
}

/// Directory in which a kernel writes what its keeper reads. In a sandbox it is the only
/// writable place there.
pub(crate) const LEFT: &str = "w";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_that_was_removed_is_made_anew_also_that_of_a_fork() {
        let base = tempfile::tempdir().unwrap();
        let root = base.path().join(".0123.sessile");
        for path in [root.clone(), root.join(format!("{FORK}45"))] {
            let scratch = Scratch { path, held: RefCell::default() };
            for _ in 0..2 {
                let made = scratch.subdirectory("b").unwrap();
                let inbox = Inbox::create(made.join("s"), PipeAccess::Open).unwrap();
                assert!(!inbox.is_unlinked());
                std::fs::remove_dir_all(&root).unwrap();
                assert!(inbox.is_unlinked());
            }
        }
    }

    #[test]
    fn the_name_of_an_inbox_goes_before_its_reader_and_a_successors_stays() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("s");
        let first = Inbox::create(path.clone(), PipeAccess::Open).unwrap();
        let second = Inbox::create(path.clone(), PipeAccess::Closed).unwrap();
        drop(first);
        assert!(path.exists());
        drop(second);
        assert!(!path.exists());
    }
}
