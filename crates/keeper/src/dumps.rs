//! Files with the states of kernels: where a kernel writes one, where it is kept, and how
//! a new kernel gets it.
//!
//! Without a sandbox all of this is one folder of the session's directory. In a sandbox,
//! a kernel writes to a directory in memory that only the sandbox has, and the files are
//! copied from there. It reads from a directory that only keepers write to.
//!
//! Invariant: in a directory that processes inside can write to, no name is trusted and
//! no link followed. A path that a kernel reports is only compared, or used as a name in
//! such a directory.

use crate::confined::Confined;
use crate::kernels::outcome_file;
use crate::scratch::{open_left, read_left};
use rustix::fs::OFlags;
use sessile_sandbox::plan::{DUMPS, GIVEN};
use sessile_store::Directory;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Prefixes of the names that kernels are asked to write to.
const IMAGE: &str = "image-";
const SAVE: &str = "save-";

#[derive(Clone, Debug)]
pub(crate) struct Dumps {
    directory: Directory,
    confined: Option<Rc<Confined>>,
}

/// Location of one of our paths.
enum Place<'a> {
    /// In the sandbox, under that name.
    Inside(&'a Confined, String),
    Here(PathBuf),
}

impl Dumps {
    pub(crate) fn of(directory: Directory, confined: Option<Rc<Confined>>) -> Self {
        Self { directory, confined }
    }

    /// Returns a free path where a kernel is to write an image.
    pub(crate) fn for_image(&self, what: &str) -> io::Result<PathBuf> {
        self.order(&format!("{IMAGE}{what}"))
    }

    /// Does the same for a save.
    pub(crate) fn for_save(&self, what: &str) -> io::Result<PathBuf> {
        self.order(&format!("{SAVE}{what}"))
    }

    fn order(&self, name: &str) -> io::Result<PathBuf> {
        let folder = self.directory.make_kernels().map_err(io::Error::other)?;
        let path = match &self.confined {
            Some(_) => Path::new(DUMPS).join(name),
            None => folder.join(name),
        };
        self.remove(&path);
        Ok(path)
    }

    /// Returns the state that a kernel has written, as a file in the session's folder. A
    /// kernel in a sandbox cannot change it there.
    pub(crate) fn collect(&self, path: &Path) -> io::Result<PathBuf> {
        match self.place(path).ok_or(io::ErrorKind::NotFound)? {
            Place::Here(path) => Ok(path),
            Place::Inside(confined, name) => {
                let sandbox = confined.sandbox();
                let (file, length) = sandbox.open_dump(&name)?;
                let kept = self.directory.make_kernels().map_err(io::Error::other)?.join(&name);
                let _ = std::fs::remove_file(&kept);
                write_new(&kept, file, length)?;
                sandbox.remove_dump(&name);
                Ok(kept)
            }
        }
    }

    /// Returns the report of a dump's writer.
    pub(crate) fn outcome(&self, dump: &Path) -> Option<Vec<u8>> {
        match self.place(&outcome_file(dump))? {
            Place::Here(path) => read_left(&path).ok(),
            Place::Inside(confined, name) => {
                let (file, length) = confined.sandbox().open_dump(&name).ok()?;
                let mut said = Vec::new();
                file.take(length.min(LONGEST_OUTCOME)).read_to_end(&mut said).ok()?;
                Some(said)
            }
        }
    }

    /// Removes a dump that a kernel was asked for, and the report about it.
    pub(crate) fn remove(&self, dump: &Path) {
        for path in [dump.to_owned(), outcome_file(dump)] {
            match self.place(&path) {
                Some(Place::Here(path)) => {
                    let _ = std::fs::remove_file(path);
                }
                Some(Place::Inside(confined, name)) => confined.sandbox().remove_dump(&name),
                None => {}
            }
        }
    }

    /// Does the same for a dump that a kernel reports and that is no longer wanted.
    pub(crate) fn remove_told(&self, dump: &Path) {
        match self.place(dump) {
            Some(Place::Here(_)) if self.confined.is_some() => {}
            Some(Place::Here(_) | Place::Inside(..)) | None => self.remove(dump),
        }
    }

    /// Whether there is no space where kernels write.
    pub(crate) fn are_full(&self) -> bool {
        let room = match &self.confined {
            Some(confined) => confined.sandbox().private_bytes().map(|(used, all)| all - used),
            None => rustix::fs::statvfs(self.directory.kernels()).ok().map(|disk| disk.f_bavail),
        };
        room == Some(0)
    }

    /// Returns the location of a path, if a kernel was asked to write to it.
    fn place(&self, path: &Path) -> Option<Place<'_>> {
        let name = path.file_name()?.to_str()?;
        if ![IMAGE, SAVE].iter().any(|ours| name.starts_with(ours)) {
            return None;
        }
        let kept = self.directory.dump(name)?;
        match &self.confined {
            Some(confined) if path == Path::new(DUMPS).join(name) => {
                Some(Place::Inside(confined, name.to_owned()))
            }
            Some(_) | None => (path == kept).then_some(Place::Here(kept)),
        }
    }

    /// Links a state under another name in a session's folder.
    pub(crate) fn link(&self, name: &str, to: &Directory) -> io::Result<String> {
        let from = self.directory.dump(name).ok_or(io::ErrorKind::NotFound)?;
        let folder = to.make_kernels().map_err(io::Error::other)?;
        let linked = format!("linked-{}", name.trim_start_matches("linked-"));
        link_or_copy(&from, &folder.join(&linked))?;
        Ok(linked)
    }

    /// Makes a state available to a kernel. Returns the path for the kernel.
    pub(crate) fn give(&self, name: &str) -> io::Result<PathBuf> {
        let kept = self.directory.dump(name).ok_or(io::ErrorKind::NotFound)?;
        let Some(confined) = &self.confined else { return Ok(kept) };
        // Forks share the sandbox, and each has its own names.
        let session = self.directory.path().file_name().unwrap_or_default().to_string_lossy();
        let given = format!("{session}-{name}");
        link_or_copy(&kept, &confined.given().join(&given))?;
        Ok(Path::new(GIVEN).join(given))
    }

    /// Removes the file after the kernel has read it.
    pub(crate) fn take_back(&self, given: &Path) {
        let name = given.strip_prefix(GIVEN).ok().and_then(Path::file_name);
        if let (Some(confined), Some(name)) = (&self.confined, name) {
            let _ = std::fs::remove_file(confined.given().join(name));
        }
    }
}

/// Limit for the list of what could not be written.
const LONGEST_OUTCOME: u64 = 16 << 20;

/// Replaces `to`. Both folders are ours; still, a link in the place of a file is not
/// followed.
fn link_or_copy(from: &Path, to: &Path) -> io::Result<()> {
    let _ = std::fs::remove_file(to);
    let (file, length) = open_left(from)?;
    std::fs::hard_link(from, to).or_else(|_| write_new(to, file, length))
}

/// Copies `length` bytes of a file into a new one, or leaves nothing.
fn write_new(to: &Path, from: File, length: u64) -> io::Result<()> {
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = File::from(rustix::fs::open(to, flags, 0o600.into())?);
    io::copy(&mut from.take(length), &mut file).map(drop).inspect_err(|_| {
        let _ = std::fs::remove_file(to);
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dumps() -> (tempfile::TempDir, Dumps) {
        let root = tempfile::tempdir().unwrap();
        let directory = Directory::at(root.path().join("sess_1"));
        directory.make_kernels().unwrap();
        (root, Dumps::of(directory, None))
    }

    #[test]
    fn only_what_a_kernel_was_asked_to_write_is_removed() {
        let (root, dumps) = dumps();
        let folder = dumps.directory.kernels();
        let others =
            [root.path().join("save-1"), folder.join("kept-1"), folder.join("../save-1-node")];
        let ordered = dumps.for_save("1-node").unwrap();
        for path in others.iter().chain([&ordered]) {
            std::fs::write(path, "x").unwrap();
            dumps.remove(path);
        }
        assert!(others.iter().all(|path| path.exists()));
        assert!(!ordered.exists());
    }

    #[test]
    fn a_link_is_neither_read_nor_written_through() {
        let (root, dumps) = dumps();
        let victim = root.path().join("victim");
        std::fs::write(&victim, "mine").unwrap();
        let folder = dumps.directory.kernels();
        std::os::unix::fs::symlink(&victim, folder.join("image-1-node")).unwrap();
        assert!(dumps.link("image-1-node", &dumps.directory).is_err());
        assert!(!folder.join("linked-image-1-node").exists());
        std::fs::write(folder.join("image-2-node"), "state").unwrap();
        std::os::unix::fs::symlink(&victim, folder.join("linked-image-2-node")).unwrap();
        let linked = dumps.link("image-2-node", &dumps.directory).unwrap();
        assert_eq!(std::fs::read_to_string(folder.join(linked)).unwrap(), "state");
        assert_eq!(std::fs::read_to_string(victim).unwrap(), "mine");
    }
}
