//! Packs a tree, or one file, as a tar.

use crate::entry::{Entry, Kind};
use crate::path::RelativePath;
use crate::root::Root;
use crate::{FileError, Result};
use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::ops::ControlFlow;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use tar::{Builder, EntryType, Header};

impl Root {
    /// Writes a directory's files as a tar, with names relative to it; for a file, only the
    /// file. FIFOs, sockets and devices are left out, and so are files that vanish or
    /// cannot be read. A file that changes meanwhile is cut or padded to the size that it
    /// had.
    ///
    /// # Errors
    /// When the path does not exist, or the archive cannot be written.
    pub fn pack(&self, path: &RelativePath, into: impl Write) -> Result<()> {
        let mut builder = Builder::new(into);
        let whole = self.stat(path)?;
        let wrong = |source| FileError::Io { path: path.to_string(), source };
        match whole.kind {
            Kind::Directory => {
                let mut outcome = Ok(());
                self.list(path, u32::MAX, |entry| {
                    let name = entry.path.within(path);
                    outcome = self.append(&mut builder, &entry, &name);
                    match outcome {
                        Ok(()) => ControlFlow::Continue(()),
                        Err(_) => ControlFlow::Break(()),
                    }
                })?;
                outcome.map_err(wrong)?;
            }
            Kind::File | Kind::Symlink => {
                let name = RelativePath::default().join(path.name());
                self.append(&mut builder, &whole, &name).map_err(wrong)?;
            }
            Kind::Other => return Err(FileError::NotAFile(path.to_string())),
        }
        builder.into_inner().and_then(|mut into| into.flush()).map_err(wrong)
    }

    fn append(
        &self,
        builder: &mut Builder<impl Write>,
        entry: &Entry,
        name: &RelativePath,
    ) -> io::Result<()> {
        let name = Path::new(name.os());
        let mut header = Header::new_gnu();
        header.set_mode(entry.mode & 0o777);
        header.set_mtime(u64::try_from(entry.modified.0).unwrap_or_default());
        header.set_uid(0);
        header.set_gid(0);
        header.set_size(0);
        match entry.kind {
            Kind::Directory => {
                header.set_entry_type(EntryType::Directory);
                builder.append_data(&mut header, name, io::empty())
            }
            Kind::Symlink => {
                header.set_entry_type(EntryType::Symlink);
                let target = entry.target.as_deref().unwrap_or_default();
                builder.append_link(&mut header, name, Path::new(OsStr::from_bytes(target)))
            }
            Kind::File => {
                let Ok(content) = self.read(&entry.path) else { return Ok(()) };
                let size = content.entry.size;
                header.set_entry_type(EntryType::Regular);
                header.set_size(size);
                // As long as the header says, whatever happens to the file.
                let bytes = content.file.chain(io::repeat(0)).take(size);
                builder.append_data(&mut header, name, bytes)
            }
            Kind::Other => Ok(()),
        }
    }
}
