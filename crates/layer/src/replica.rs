//! Copies a layer, for a session that continues beside the first: everything that overlayfs
//! keeps, including its own marks.

use crate::beneath::{Tree, join, look_at};
use crate::copying::timespec;
use crate::found::{Found, Kind};
use crate::{LayerError, Result, UPPER, ledger, remember_bases};
use rustix::fs::{AtFlags, FileType, Gid, Mode, OFlags, Timestamps, Uid, XattrFlags};
use rustix::io::Errno;
use sessile_sandbox::plan::SYSTEM;
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// Maximum size of one attribute, and of all names of attributes.
const ATTRIBUTES: usize = 64 << 10;

/// Copies the layer in one directory to another, which has none.
///
/// # Errors
/// With the path that could not be copied. The incomplete copy is left.
pub fn replicate(from: &Path, to: &Path) -> Result<()> {
    let failed = |error, path: &Path| LayerError::io(error, path.as_os_str().as_bytes());
    let upper = to.join(UPPER);
    std::fs::create_dir_all(&upper).map_err(|error| failed(error, &upper))?;
    if !from.join(UPPER).is_dir() {
        return Ok(());
    }
    // If the user is root inside, each of the system's directories has a layer as well.
    let systems = std::fs::read_dir(from.join(SYSTEM)).into_iter().flatten();
    for system in systems.filter_map(std::result::Result::ok) {
        let below = Path::new(SYSTEM).join(system.file_name()).join(UPPER);
        let (source, upper) = (from.join(&below), to.join(&below));
        std::fs::create_dir_all(&upper).map_err(|error| failed(error, &upper))?;
        let (source, upper) = (Tree::open(&source)?, Tree::open(&upper)?);
        Replica { from: &source, to: &upper, names: HashMap::new() }.copy()?;
    }
    remember_bases(from)?;
    let record = to.join(ledger::FILE);
    std::fs::copy(from.join(ledger::FILE), &record).map_err(|error| failed(error, &record))?;
    let (from, to) = (Tree::open(&from.join(UPPER))?, Tree::open(&upper)?);
    Replica { from: &from, to: &to, names: HashMap::new() }.copy()
}

struct Replica<'a> {
    from: &'a Tree,
    to: &'a Tree,
    /// Files with several names, by inode number: the path of the first copy.
    names: HashMap<u64, Vec<u8>>,
}

impl Replica<'_> {
    fn copy(&mut self) -> Result<()> {
        let mut directories = vec![Vec::new()];
        let mut seen = Vec::new();
        while let Some(directory) = directories.pop() {
            for name in self.from.names(&directory)? {
                let path = join(&directory, &name);
                // The session continues meanwhile: a file may vanish.
                let Some(found) = self.from.look(&path)? else { continue };
                match self.copy_one(&path, &found) {
                    Err(LayerError::Io { source, .. })
                        if source.kind() == std::io::ErrorKind::NotFound => {}
                    outcome => outcome?,
                }
                if found.is_directory() {
                    directories.push(path.clone());
                    seen.push((path, found));
                }
            }
        }
        // The deepest first, because adding an entry changes a directory's time.
        for (path, found) in seen.iter().rev() {
            let wrong = |errno| LayerError::of(errno, path);
            let directory = self.to.directory(path).map_err(wrong)?;
            finish(&directory, found).map_err(wrong)?;
        }
        Ok(())
    }

    fn copy_one(&mut self, path: &[u8], found: &Found) -> Result<()> {
        let wrong = |errno| LayerError::of(errno, path);
        let (above, name) = self.to.place(path).map_err(wrong)?;
        if found.links > 1 && !found.is_directory() && !found.is_whiteout {
            if let Some(first) = self.names.get(&found.inode) {
                let (there, first) = self.to.place(first).map_err(wrong)?;
                return rustix::fs::linkat(there, first, above, name, AtFlags::empty())
                    .map_err(wrong);
            }
            self.names.insert(found.inode, path.to_vec());
        }
        let node = |kind, mode| rustix::fs::mknodat(&above, name, kind, mode, 0).map_err(wrong);
        match found.node.kind {
            Kind::Other if found.is_whiteout => node(FileType::CharacterDevice, Mode::empty()),
            Kind::Other if found.is_fifo => {
                node(FileType::Fifo, Mode::from_raw_mode(found.node.mode))
            }
            // A socket without a listener.
            Kind::Other => Ok(()),
            Kind::Link => {
                let target = self.from.target(path)?;
                rustix::fs::symlinkat(OsStr::from_bytes(&target), above, name).map_err(wrong)
            }
            Kind::Directory => {
                rustix::fs::mkdirat(&above, name, Mode::RWXU).map_err(wrong)?;
                self.copy_attributes(path, (&above, name)).map_err(wrong)
            }
            Kind::File => {
                let mut source = self.from.read(path)?;
                let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
                let private = Mode::RUSR | Mode::WUSR;
                let file = rustix::fs::openat(&above, name, flags, private).map_err(wrong)?;
                let mut file = File::from(file);
                std::io::copy(&mut source, &mut file)
                    .map_err(|error| LayerError::io(error, path))?;
                self.copy_attributes(path, (&above, name)).map_err(wrong)?;
                let found = look_at(&source, OsStr::new("")).map_err(wrong)?;
                finish(&OwnedFd::from(file), &found).map_err(wrong)
            }
        }
    }

    /// Copies the attributes that overlayfs, or a program, has set.
    fn copy_attributes(
        &self,
        path: &[u8],
        (above, name): (&OwnedFd, &OsStr),
    ) -> rustix::io::Result<()> {
        let place = |directory: &OwnedFd, name: &OsStr| -> PathBuf {
            Path::new("/proc/self/fd").join(directory.as_raw_fd().to_string()).join(name)
        };
        let (from_above, from_name) = self.from.place(path)?;
        let (from, to) = (place(&from_above, from_name), place(above, name));
        let mut names = vec![0; ATTRIBUTES];
        let length = match rustix::fs::llistxattr(&from, &mut names[..]) {
            Err(Errno::OPNOTSUPP) => return Ok(()),
            length => length?,
        };
        let mut value = vec![0; ATTRIBUTES];
        for name in names[..length].split(|byte| *byte == 0) {
            let Ok(name) = std::str::from_utf8(name) else { continue };
            if name.starts_with("user.") {
                let length = rustix::fs::lgetxattr(&from, name, &mut value[..])?;
                rustix::fs::lsetxattr(&to, name, &value[..length], XattrFlags::empty())?;
            }
        }
        Ok(())
    }
}

/// Sets permissions, owner and time.
fn finish(file: &OwnedFd, found: &Found) -> rustix::io::Result<()> {
    let _ =
        rustix::fs::fchown(file, Some(Uid::from_raw(found.uid)), Some(Gid::from_raw(found.gid)));
    rustix::fs::fchmod(file, Mode::from_raw_mode(found.node.mode))?;
    let time = timespec(found.modified);
    rustix::fs::futimens(file, &Timestamps { last_access: time, last_modification: time })
}
