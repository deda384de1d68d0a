//! Unpacks a tar from any source.
//!
//! Names that lead out are refused. Links that lead out, devices and FIFOs are left out and
//! reported: a project has a few such links (a virtual environment's `python`), and its
//! other files are still wanted.

use crate::path::RelativePath;
use crate::root::Root;
use crate::writing::{Replace, Writing};
use crate::{FileError, Result};
use rustix::fs::{AtFlags, Mode, OFlags};
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use tar::{Archive, Entry, EntryType};

/// Number of bytes that are read at once.
const PIECE: usize = 64 << 10;

/// Maximum number of skipped entries that are reported by name.
const TOLD: usize = 100;

/// The result of unpacking.
#[derive(Debug, Default)]
pub struct Unpacked {
    pub files: u64,
    pub directories: u64,
    pub links: u64,
    pub bytes: u64,
    /// The first skipped entries.
    pub skipped: Vec<Skipped>,
    /// Total number of skipped entries.
    pub skipped_count: u64,
}

#[derive(Debug)]
pub struct Skipped {
    pub path: Vec<u8>,
    pub reason: &'static str,
}

impl Unpacked {
    fn skip(&mut self, path: &RelativePath, reason: &'static str) {
        self.skipped_count += 1;
        if self.skipped.len() < TOLD {
            self.skipped.push(Skipped { path: path.bytes().to_vec(), reason });
        }
    }
}

impl Root {
    /// Unpacks a tar into a directory, which is made if it does not exist. Existing files
    /// in its way are replaced one by one.
    ///
    /// # Errors
    /// When it is not a tar, has a name that leads out, or there is no room; the entries
    /// before that stay.
    pub fn unpack(&self, path: &RelativePath, from: impl Read) -> Result<Unpacked> {
        self.unpack_telling(path, from, &mut |_| ())
    }

    /// Unpacks a tar, and reports its progress.
    ///
    /// # Errors
    /// As [`Root::unpack`].
    pub fn unpack_telling(
        &self,
        path: &RelativePath,
        from: impl Read,
        tell: &mut dyn FnMut(&Unpacked),
    ) -> Result<Unpacked> {
        self.make_all(path)?;
        let mut archive = Archive::new(from);
        let mut unpacking = Unpacking {
            root: self,
            base: path,
            told: Unpacked::default(),
            directories: BTreeMap::new(),
            piece: vec![0; PIECE],
            tell,
        };
        let wrong = |error: io::Error| FileError::BadArchive(error.to_string());
        for entry in archive.entries().map_err(wrong)? {
            unpacking.entry(&mut entry.map_err(wrong)?)?;
        }
        // When everything is in them: some may be read-only.
        for (directory, mode) in &unpacking.directories {
            self.set_mode(directory, *mode)?;
        }
        Ok(unpacking.told)
    }

    fn set_mode(&self, directory: &RelativePath, mode: u32) -> Result<()> {
        let found = self.directory(directory)?;
        let opened = Self::reopen(&found, OFlags::RDONLY | OFlags::DIRECTORY, directory)?;
        rustix::fs::fchmod(opened, Mode::from_raw_mode(mode))
            .map_err(|errno| FileError::of(errno, directory))
    }
}

struct Unpacking<'a> {
    root: &'a Root,
    base: &'a RelativePath,
    told: Unpacked,
    /// Directories that get other permissions at the end.
    directories: BTreeMap<RelativePath, u32>,
    piece: Vec<u8>,
    tell: &'a mut dyn FnMut(&Unpacked),
}

impl Unpacking<'_> {
    fn entry(&mut self, entry: &mut Entry<'_, impl Read>) -> Result<()> {
        let path = self.inside(&entry.path_bytes())?;
        let mode = entry.header().mode().unwrap_or(0o644) & 0o777;
        match entry.header().entry_type() {
            EntryType::Directory => self.directory(path, mode),
            EntryType::Symlink => self.symlink(&path, entry.link_name_bytes().as_deref()),
            EntryType::Link => self.hard_link(&path, entry.link_name_bytes().as_deref()),
            EntryType::Regular | EntryType::Continuous | EntryType::GNUSparse => {
                self.file(&path, mode, entry)
            }
            EntryType::Char | EntryType::Block => self.leave_out(&path, "it is a device"),
            EntryType::Fifo => self.leave_out(&path, "it is a FIFO"),
            // Remarks about the whole archive.
            EntryType::XGlobalHeader => Ok(()),
            EntryType::GNULongName | EntryType::GNULongLink | EntryType::XHeader => {
                self.leave_out(&path, "it is a remark without a file")
            }
            _ => self.leave_out(&path, "it is of an unknown kind"),
        }
    }

    fn inside(&self, name: &[u8]) -> Result<RelativePath> {
        let name = RelativePath::parse(name, Path::new("/nothing is absolute"));
        let name = name.map_err(|error| FileError::BadArchive(error.to_string()))?;
        Ok(name.below(self.base))
    }

    fn leave_out(&mut self, path: &RelativePath, reason: &'static str) -> Result<()> {
        self.told.skip(path, reason);
        Ok(())
    }

    fn make_room(&self, path: &RelativePath) -> Result<()> {
        let (above, _) = path.split()?;
        self.root.make_all(&above)?;
        Ok(())
    }

    fn directory(&mut self, path: RelativePath, mode: u32) -> Result<()> {
        if path == *self.base {
            return Ok(());
        }
        self.root.make_all(&path)?;
        self.told.directories += 1;
        // The owner can continue to write into it meanwhile.
        self.directories.insert(path, mode | 0o700);
        Ok(())
    }

    fn file(
        &mut self,
        path: &RelativePath,
        mode: u32,
        content: &mut Entry<'_, impl Read>,
    ) -> Result<()> {
        let modified = content.header().mtime().ok().and_then(|time| i64::try_from(time).ok());
        self.make_room(path)?;
        let writing = Writing { mode: Some(mode), parents: false, replace: Replace::Yes, modified };
        let mut draft = self.root.write_plainly(path, writing)?;
        let mut left = content.size();
        loop {
            let length = content.read(&mut self.piece);
            let length = length.map_err(|error| FileError::BadArchive(error.to_string()))?;
            if length == 0 {
                break;
            }
            left = left.saturating_sub(length as u64);
            draft.write(&self.piece[..length])?;
            self.told.bytes += length as u64;
            (self.tell)(&self.told);
        }
        if left > 0 {
            return Err(FileError::BadArchive(format!("it ends in the middle of {path}")));
        }
        draft.finish()?;
        self.told.files += 1;
        (self.tell)(&self.told);
        Ok(())
    }

    fn symlink(&mut self, path: &RelativePath, target: Option<&[u8]>) -> Result<()> {
        let target = target.unwrap_or_default();
        self.make_room(path)?;
        // The real location of the link: its path may contain links.
        let depth = self.root.behind(&path.split()?.0)?.steps().count();
        if !stays_within(depth, target) {
            return self.leave_out(path, "it is a link that leads out of the workspace");
        }
        let (parent, name) = self.root.parent(path)?;
        // Removes what is in the way, except for a directory that is not empty.
        let _ = self.root.remove(path);
        let target = std::ffi::OsStr::from_bytes(target);
        rustix::fs::symlinkat(target, &parent, name).map_err(|errno| FileError::of(errno, path))?;
        self.told.links += 1;
        Ok(())
    }

    /// Makes a hard link to an earlier file.
    fn hard_link(&mut self, path: &RelativePath, target: Option<&[u8]>) -> Result<()> {
        let target = self.inside(target.unwrap_or_default())?;
        self.make_room(path)?;
        let (from, from_name) = self.root.parent(&target)?;
        let (to, to_name) = self.root.parent(path)?;
        let _ = self.root.remove(path);
        rustix::fs::linkat(&from, from_name, &to, to_name, AtFlags::empty())
            .map_err(|errno| FileError::of(errno, path))?;
        self.told.links += 1;
        Ok(())
    }
}

/// Returns whether a link in a directory of this depth stays in the workspace: it leads up
/// no further than that, and then only down. On the way down it passes directories, or
/// links that stay inside themselves.
fn stays_within(depth: usize, target: &[u8]) -> bool {
    if target.is_empty() || target.starts_with(b"/") {
        return false;
    }
    let names = target.split(|byte| *byte == b'/').filter(|name| !matches!(*name, b"" | b"."));
    let names: Vec<&[u8]> = names.collect();
    let up = names.iter().take_while(|name| **name == b"..").count();
    up <= depth && !names[up..].contains(&b"..".as_slice())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_leads_up_no_further_than_the_workspace() {
        for (depth, target) in [(0, "a"), (0, "./a/b"), (1, "../a"), (2, "../../a/b"), (1, "..")] {
            assert!(stays_within(depth, target.as_bytes()), "{depth} {target}");
        }
        for (depth, target) in
            [(0, ".."), (1, "../../a"), (3, "/etc"), (0, ""), (2, "a/../b"), (1, "./../..")]
        {
            assert!(!stays_within(depth, target.as_bytes()), "{depth} {target}");
        }
    }
}
