//! Whole files or none.

use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

pub(crate) const PRIVATE_FILE: Mode = Mode::RUSR.union(Mode::WUSR);
pub(crate) const PRIVATE_DIR: Mode = Mode::RWXU;

/// Replaces `path` by a file with these bytes. A reader sees the old or the
/// new content, never a part. There is no fsync: what is guarded against is
/// the death of any process, not of the machine, and ext4, xfs and btrfs order
/// the data of a rename that replaces a file before the rename itself.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    // The pid, because a client may mark a session as lost at the same time as
    // another does.
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    let temporary = path.with_file_name(name);
    let outcome = create(&temporary).and_then(|mut file| file.write_all(bytes));
    if let Err(error) = outcome.and_then(|()| std::fs::rename(&temporary, path)) {
        let _ = std::fs::remove_file(&temporary);
        return Err(error);
    }
    Ok(())
}

/// The same, and when this comes back it outlasts a power cut. It blocks.
pub(crate) fn replace_synced(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let temporary = path.with_file_name(name);
    let write = || {
        let mut file = create(&temporary)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        std::fs::rename(&temporary, path)?;
        match path.parent() {
            Some(directory) => File::open(directory)?.sync_all(),
            None => Ok(()),
        }
    };
    write().inspect_err(|_| {
        let _ = std::fs::remove_file(&temporary);
    })
}

/// Makes a file with these bytes, unless there is one: then that one stays.
pub(crate) fn create_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    let temporary = path.with_file_name(name);
    let linked = create(&temporary)
        .and_then(|mut file| file.write_all(bytes))
        .and_then(|()| std::fs::hard_link(&temporary, path));
    let _ = std::fs::remove_file(&temporary);
    match linked {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// A new or emptied private file.
pub(crate) fn create(path: &Path) -> io::Result<File> {
    let flags = OFlags::CREATE | OFlags::TRUNC | OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    Ok(File::from(rustix::fs::open(path, flags, PRIVATE_FILE)?))
}
