//! A tar, from whomever, becomes files.
//!
//! Names that lead out are refused. Links that lead out, devices and FIFOs are
//! left out and told: a project has a few of the former (a virtual environment's
//! `python`), and its files are wanted all the same.

use crate::path::Inside;
use crate::root::Root;
use crate::writing::{Replace, Writing};
use crate::{FileError, Result};
use rustix::fs::{AtFlags, Mode, OFlags};
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use tar::{Archive, Entry, EntryType};

/// Bytes that are read at once.
const PIECE: usize = 64 << 10;

/// How many of those that were left out are told by name.
const TOLD: usize = 100;

/// What became of an archive.
#[derive(Debug, Default)]
pub struct Unpacked {
    pub files: u64,
    pub directories: u64,
    pub links: u64,
    pub bytes: u64,
    /// The first of those that were left out.
    pub skipped: Vec<Skipped>,
    /// How many were left out in all.
    pub skipped_count: u64,
}

#[derive(Debug)]
pub struct Skipped {
    pub path: Vec<u8>,
    pub reason: &'static str,
}

impl Unpacked {
    fn skip(&mut self, path: &Inside, reason: &'static str) {
        self.skipped_count += 1;
        if self.skipped.len() < TOLD {
            self.skipped.push(Skipped { path: path.bytes().to_vec(), reason });
        }
    }
}

impl Root {
    /// Unpacks a tar into a directory, which is made if it is not there. What is
    /// in its way is replaced, file by file.
    ///
    /// # Errors
    /// When it is no tar, has a name that leads out, or there is no room; what
    /// came before that is there.
    pub fn unpack(&self, path: &Inside, from: impl Read) -> Result<Unpacked> {
        self.unpack_telling(path, from, &mut |_| ())
    }

    /// The same, and tells how far it is.
    ///
    /// # Errors
    /// As [`Root::unpack`].
    pub fn unpack_telling(
        &self,
        path: &Inside,
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
        // When everything is in them: some may be for reading only.
        for (directory, mode) in &unpacking.directories {
            self.set_mode(directory, *mode)?;
        }
        Ok(unpacking.told)
    }

    fn set_mode(&self, directory: &Inside, mode: u32) -> Result<()> {
        let found = self.directory(directory)?;
        let opened = Self::reopen(&found, OFlags::RDONLY | OFlags::DIRECTORY, directory)?;
        rustix::fs::fchmod(opened, Mode::from_raw_mode(mode))
            .map_err(|errno| FileError::of(errno, directory))
    }
}

struct Unpacking<'a> {
    root: &'a Root,
    base: &'a Inside,
    told: Unpacked,
    /// Those that are to have other permissions in the end.
    directories: BTreeMap<Inside, u32>,
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
            // Remarks on the archive as a whole.
            EntryType::XGlobalHeader => Ok(()),
            EntryType::GNULongName | EntryType::GNULongLink | EntryType::XHeader => {
                self.leave_out(&path, "it is a remark without a file")
            }
            _ => self.leave_out(&path, "it is of an unknown kind"),
        }
    }

    fn inside(&self, name: &[u8]) -> Result<Inside> {
        let name = Inside::parse(name, Path::new("/nothing is absolute"));
        let name = name.map_err(|error| FileError::BadArchive(error.to_string()))?;
        Ok(name.below(self.base))
    }

    fn leave_out(&mut self, path: &Inside, reason: &'static str) -> Result<()> {
        self.told.skip(path, reason);
        Ok(())
    }

    fn make_room(&self, path: &Inside) -> Result<()> {
        let (above, _) = path.split()?;
        self.root.make_all(&above)?;
        Ok(())
    }

    fn directory(&mut self, path: Inside, mode: u32) -> Result<()> {
        if path == *self.base {
            return Ok(());
        }
        self.root.make_all(&path)?;
        self.told.directories += 1;
        // Its owner can go on writing into it meanwhile.
        self.directories.insert(path, mode | 0o700);
        Ok(())
    }

    fn file(&mut self, path: &Inside, mode: u32, content: &mut Entry<'_, impl Read>) -> Result<()> {
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

    fn symlink(&mut self, path: &Inside, target: Option<&[u8]>) -> Result<()> {
        let target = target.unwrap_or_default();
        self.make_room(path)?;
        // Where the link really is: links may have led there.
        let depth = self.root.behind(&path.split()?.0)?.steps().count();
        if !stays_within(depth, target) {
            return self.leave_out(path, "it is a link that leads out of the workspace");
        }
        let (parent, name) = self.root.parent(path)?;
        // What is in the way goes, but no directory with something in it.
        let _ = self.root.remove(path);
        let target = std::ffi::OsStr::from_bytes(target);
        rustix::fs::symlinkat(target, &parent, name).map_err(|errno| FileError::of(errno, path))?;
        self.told.links += 1;
        Ok(())
    }

    /// To a file that came before it.
    fn hard_link(&mut self, path: &Inside, target: Option<&[u8]>) -> Result<()> {
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

/// Whether a link in a directory this deep leads nowhere but into the workspace:
/// up no further than that, and from there on only down. What it goes through on
/// its way down are directories, or links that stay within themselves.
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
