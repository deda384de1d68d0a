//! Records of moves in progress: a move that is killed is undone before any program sees
//! the files again.
//!
//! A record is a file beside the layer, invisible inside: the three paths, as seen in the
//! sandbox, and a mark once all files are in the new directory.
//!
//! | mark | staging | recovery |
//! |---|---|---|
//! | no | exists | its entries are moved back |
//! | no | gone | none: the move had not begun |
//! | yes | exists | its entries are moved back |
//! | yes | gone | the new directory is complete: empty directories of the old one are removed |

use super::carrying::{Named, entries, open, take_whole};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Beginning of a record's name; a number follows.
const NAME: &str = "moving-";

/// A move that was not finished.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending {
    /// The directory that was moved.
    pub from: Vec<u8>,
    /// Its temporary name until it was complete.
    pub staging: Vec<u8>,
    pub to: Vec<u8>,
    is_whole: bool,
}

/// The directory of the records: that of a layer.
#[derive(Debug)]
pub(crate) struct Records {
    directory: OwnedFd,
    last: u32,
}

/// A record that is being written.
#[derive(Debug)]
pub(crate) struct Record {
    file: File,
    pub(crate) name: CString,
}

impl AsFd for Records {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.directory.as_fd()
    }
}

impl Records {
    pub(crate) fn of(layer: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::open(layer, flags, Mode::empty())?;
        Ok(Self { directory, last: 0 })
    }

    /// Creates a new, empty record: nothing has begun.
    pub(crate) fn begin(&mut self) -> io::Result<Record> {
        loop {
            self.last += 1;
            let name = CString::new(format!("{NAME}{}-{}", std::process::id(), self.last))?;
            let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
            let mode = Mode::RUSR | Mode::WUSR;
            match rustix::fs::openat(&self.directory, &name, flags, mode) {
                Ok(file) => return Ok(Record { file: file.into(), name }),
                Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Whether there are interrupted or unfinished moves.
    pub(crate) fn are_there(&self) -> bool {
        !self.list().is_empty()
    }

    /// Removes the record of a finished move, whether it succeeded or not.
    pub(crate) fn end(&self, name: &CString) {
        let _ = rustix::fs::unlinkat(&self.directory, name, AtFlags::empty());
    }

    /// Undoes interrupted moves. Paths are resolved below the root.
    pub(crate) fn recover(&self, root: BorrowedFd<'_>, above: &[u8]) {
        for (name, pending) in self.list() {
            if pending.is_none_or(|pending| pending.recover(root, above).is_ok()) {
                self.end(&name);
            }
        }
    }

    fn list(&self) -> Vec<(CString, Option<Pending>)> {
        let Ok(found) = entries(&self.directory, c"") else { return Vec::new() };
        let is_one = |(name, kind): &(CString, FileType)| {
            name.to_bytes().starts_with(NAME.as_bytes()) && *kind == FileType::RegularFile
        };
        let records = found.into_iter().filter(is_one).map(|(name, _)| name);
        records.map(|name| (name.clone(), self.read(&name))).collect()
    }

    /// Returns none if nothing had begun.
    fn read(&self, name: &CString) -> Option<Pending> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&self.directory, name, flags, Mode::empty()).ok()?;
        let mut text = Vec::new();
        File::from(file).read_to_end(&mut text).ok()?;
        parse(&text)
    }
}

/// Returns the unfinished moves of a layer: those in progress, and those that were killed.
#[must_use]
pub fn pending(layer: &Path) -> Vec<Pending> {
    let Ok(records) = Records::of(layer) else { return Vec::new() };
    records.list().into_iter().filter_map(|(_, pending)| pending).collect()
}

impl Record {
    /// Records the paths: the directory, its temporary name, and its new name.
    pub(super) fn say(&mut self, paths: [&[u8]; 3]) -> Result<(), Errno> {
        let text: Vec<u8> = paths.iter().flat_map(|path| [path, &b"\0"[..]].concat()).collect();
        self.file.write_all(&text).map_err(|_| Errno::IO)
    }

    /// Records that all files are in the new directory.
    pub(super) fn mark_whole(&mut self) -> Result<(), Errno> {
        self.file.write_all(b"whole\0").map_err(|_| Errno::IO)
    }
}

fn parse(text: &[u8]) -> Option<Pending> {
    // A path that was not completely written has no zero behind it.
    let mut parts: Vec<Vec<u8>> = text.split(|byte| *byte == 0).map(Vec::from).collect();
    parts.pop();
    let is_whole = parts.len() == 4;
    let [from, staging, to] =
        <[Vec<u8>; 3]>::try_from(parts.into_iter().take(3).collect::<Vec<_>>()).ok()?;
    Some(Pending { from, staging, to, is_whole })
}

impl Pending {
    fn recover(&self, root: BorrowedFd<'_>, above: &[u8]) -> Result<(), Errno> {
        let find = |path: &[u8]| -> Result<OwnedFd, Errno> {
            let path = path.strip_prefix(above).unwrap_or(path);
            let path = path.strip_prefix(b"/").unwrap_or(path);
            let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS;
            let path = std::ffi::OsStr::from_bytes(if path.is_empty() { b"." } else { path });
            rustix::fs::openat2(root, path, flags, Mode::empty(), resolve)
        };
        let split = |path: &[u8]| -> Option<(Vec<u8>, CString)> {
            let slash = path.iter().rposition(|byte| *byte == b'/')?;
            Some((path[..slash].to_vec(), CString::new(&path[slash + 1..]).ok()?))
        };
        let (Some((above_staging, staging)), Some((above_old, old))) =
            (split(&self.staging), split(&self.from))
        else {
            return Ok(());
        };
        match find(&self.staging) {
            Ok(new) => {
                take_whole(&new, &find(&self.from)?)?;
                let above = find(&above_staging)?;
                rustix::fs::unlinkat(&above, &staging, AtFlags::REMOVEDIR)
            }
            Err(Errno::NOENT) if self.is_whole => {
                let above = find(&above_old)?;
                remove_empty((above.as_fd(), &old));
                Ok(())
            }
            Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(errno),
        }
    }
}

/// Removes empty directories. A directory with new entries stays.
fn remove_empty((directory, name): Named<'_>) {
    if let Ok(opened) = open(directory, name) {
        for (below, kind) in entries(&opened, c"").unwrap_or_default() {
            if kind == FileType::Directory {
                remove_empty((opened.as_fd(), &below));
            }
        }
    }
    let _ = rustix::fs::unlinkat(directory, name, AtFlags::REMOVEDIR);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// Returns a workspace and its layer's directory, with a record that was left.
    fn left(whole: bool) -> (tempfile::TempDir, Records) {
        let place = tempfile::tempdir().unwrap();
        for directory in ["layer", "root/old/deep/empty", "root/.sessile-moving-0/deep/empty"] {
            fs::create_dir_all(place.path().join(directory)).unwrap();
        }
        let mut records = Records::of(&place.path().join("layer")).unwrap();
        let mut record = records.begin().unwrap();
        record.say([b"/w/old", b"/w/.sessile-moving-0", b"/w/new"]).unwrap();
        if whole {
            record.mark_whole().unwrap();
        }
        (place, records)
    }

    #[test]
    fn what_was_killed_in_the_middle_is_taken_back() {
        for whole in [false, true] {
            let (place, records) = left(whole);
            let at = |path: &str| place.path().join("root").join(path);
            fs::write(at("old/deep/a"), "a").unwrap();
            fs::write(at(".sessile-moving-0/deep/b"), "b").unwrap();
            fs::create_dir(at(".sessile-moving-0/moved")).unwrap();
            fs::write(at(".sessile-moving-0/moved/c"), "c").unwrap();
            assert_eq!(pending(&place.path().join("layer")).len(), 1);
            let root = fs::File::open(place.path().join("root")).unwrap();
            records.recover(root.as_fd(), b"/w");
            for (path, text) in [("deep/a", "a"), ("deep/b", "b"), ("moved/c", "c")] {
                assert_eq!(fs::read_to_string(at("old").join(path)).unwrap(), text);
            }
            assert!(at("old/deep/empty").is_dir());
            assert_eq!(fs::read_dir(place.path().join("root")).unwrap().count(), 1);
            assert_eq!(pending(&place.path().join("layer")), []);
        }
    }

    #[test]
    fn what_had_not_begun_is_left_and_what_was_whole_is_finished() {
        for (whole, is_there) in [(false, true), (true, false)] {
            let (place, records) = left(whole);
            let at = |path: &str| place.path().join("root").join(path);
            fs::rename(at(".sessile-moving-0"), at("new")).unwrap();
            let root = fs::File::open(place.path().join("root")).unwrap();
            records.recover(root.as_fd(), b"/w");
            assert_eq!(at("old").exists(), is_there);
            assert!(at("new/deep/empty").is_dir());
        }
        // A file that was added meanwhile stays.
        let (place, records) = left(true);
        let at = |path: &str| place.path().join("root").join(path);
        fs::rename(at(".sessile-moving-0"), at("new")).unwrap();
        fs::write(at("old/deep/later"), "x").unwrap();
        records.recover(fs::File::open(place.path().join("root")).unwrap().as_fd(), b"/w");
        assert_eq!(fs::read_to_string(at("old/deep/later")).unwrap(), "x");
        assert!(!at("old/deep/empty").exists());
    }

    #[test]
    fn a_record_that_was_not_written_to_its_end_is_of_nothing() {
        assert_eq!(parse(b""), None);
        assert_eq!(parse(b"/w/a\0/w/b\0/w/c"), None);
        assert!(parse(b"/w/a\0/w/b\0/w/c\0").is_some_and(|pending| !pending.is_whole));
        assert!(parse(b"/w/a\0/w/b\0/w/c\0whole\0").is_some_and(|pending| pending.is_whole));
    }
}
