//! Lists directories, without following links.

use crate::entry::{Entry, Kind};
use crate::path::RelativePath;
use crate::root::{Links, Root, look};
use crate::{FileError, Result};
use rustix::fs::{Dir, OFlags};
use std::ffi::{CString, OsStr};
use std::ops::ControlFlow;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;

impl Root {
    /// Lists a directory, down to this depth, in the order of the names. The visitor may stop it.
    ///
    /// # Errors
    /// When it is not a directory, or cannot be read. Entries that vanish meanwhile, or may
    /// not be listed, are skipped.
    pub fn list(
        &self,
        path: &RelativePath,
        depth: u32,
        mut visit: impl FnMut(Entry) -> ControlFlow<()>,
    ) -> Result<()> {
        let mut open = vec![self.level(path, Links::Followed)?];
        while let Some(level) = open.last_mut() {
            let Some(name) = level.names.pop() else {
                open.pop();
                continue;
            };
            let name = OsStr::from_bytes(name.as_bytes());
            let path = level.path.join(name.as_bytes());
            let Ok(entry) = look(&level.directory, name, path) else { continue };
            let goes_on = entry.kind == Kind::Directory && (open.len() as u64) < u64::from(depth);
            let below = goes_on.then(|| self.level(&entry.path, Links::NotFollowed).ok()).flatten();
            if visit(entry).is_break() {
                return Ok(());
            }
            open.extend(below);
        }
        Ok(())
    }

    fn level(&self, path: &RelativePath, links: Links) -> Result<Level> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NONBLOCK;
        let directory = self.at(path, flags, links)?;
        let names = names(&directory).map_err(|errno| FileError::of(errno, path))?;
        Ok(Level { path: path.clone(), directory, names })
    }
}

/// A directory that is being listed.
struct Level {
    path: RelativePath,
    directory: OwnedFd,
    /// The remaining names, the next one last.
    names: Vec<CString>,
}

/// Returns the names in a directory in reverse order.
pub(crate) fn names(directory: &OwnedFd) -> rustix::io::Result<Vec<CString>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(directory)? {
        let entry = entry?;
        let name = entry.file_name();
        if name != c"." && name != c".." {
            names.push(name.to_owned());
        }
    }
    names.sort_unstable_by(|one, other| other.cmp(one));
    Ok(names)
}
