//! Atomic writes: whole files or none.

use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

pub(crate) const PRIVATE_FILE: Mode = Mode::RUSR.union(Mode::WUSR);
pub(crate) const PRIVATE_DIR: Mode = Mode::RWXU;

/// Replaces `path` by a file with these bytes. A reader sees the old or the new content,
/// never a part. There is no fsync: this guards against the death of any process, not of
/// the machine, and ext4, xfs and btrfs write the data of a rename that replaces a file
/// before the rename itself.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    // The pid makes the name unique, because two clients may mark a session as lost at the
    // same time.
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

/// Updates a file that is written often and changes little, such as one with a count and a
/// time in it. A new file costs a disk's journal more than a run takes, so if only a few
/// bytes differ, they are changed in place. They are in one page, so the death of a process
/// never leaves half of the write; and nothing moves, so that a concurrent reader finds
/// whole values, old and new ones.
pub(crate) fn update(path: &Path, bytes: &[u8]) -> io::Result<()> {
    if change_in_place(path, bytes).unwrap_or(false) {
        return Ok(());
    }
    match replace(path, bytes) {
        // A disk without room for a new file still has the blocks of the old one.
        Err(error) if is_full(&error) && overwrite(path, bytes).unwrap_or(false) => Ok(()),
        outcome => outcome,
    }
}

fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// Overwrites an existing file of one page with JSON, padded with spaces to at least the
/// old length. Returns false if that is not possible.
fn overwrite(path: &Path, bytes: &[u8]) -> io::Result<bool> {
    let flags = OFlags::WRONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    let metadata = file.metadata()?;
    let length = usize::try_from(metadata.len()).unwrap_or(usize::MAX).max(bytes.len());
    if !metadata.is_file() || metadata.nlink() != 1 || metadata.len() == 0 || length > PAGE {
        return Ok(false);
    }
    let mut content = bytes.to_vec();
    content.resize(length, b' ');
    Ok(file.write_at(&content, 0)? == length)
}

/// Changes the differing bytes in place. Returns false if that is not possible.
fn change_in_place(path: &Path, bytes: &[u8]) -> io::Result<bool> {
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    let metadata = file.metadata()?;
    // Another hard link may share the file.
    let is_ours = metadata.is_file() && metadata.nlink() == 1;
    if !is_ours || metadata.len() != bytes.len() as u64 {
        return Ok(false);
    }
    let mut before = vec![0; bytes.len()];
    file.read_exact_at(&mut before, 0)?;
    let mut differing = (0..bytes.len()).filter(|at| before[*at] != bytes[*at]);
    let Some(first) = differing.next() else {
        return Ok(true);
    };
    let last = differing.next_back().unwrap_or(first);
    if first / PAGE != last / PAGE {
        return Ok(false);
    }
    Ok(file.write_at(&bytes[first..=last], first as u64)? == last + 1 - first)
}

/// The unit that Linux writes to a file without checking for a fatal signal.
const PAGE: usize = 4096;

/// Replaces a file like `replace`; when this returns, it survives a power cut. It blocks.
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

/// Makes a file with these bytes, unless one exists: then that one stays.
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

/// Makes a new or emptied private file.
pub(crate) fn create(path: &Path) -> io::Result<File> {
    let flags = OFlags::CREATE | OFlags::TRUNC | OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    Ok(File::from(rustix::fs::open(path, flags, PRIVATE_FILE)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn inode(path: &Path) -> u64 {
        std::fs::metadata(path).unwrap().ino()
    }

    #[test]
    fn a_few_bytes_are_changed_in_place_and_everything_else_is_a_new_file() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("file");
        update(&path, &[b'a'; 10_000]).unwrap();
        let first = inode(&path);
        let mut content = vec![b'a'; 10_000];
        content[4096] = b'b';
        content[8191] = b'b';
        update(&path, &content).unwrap();
        assert_eq!((inode(&path), std::fs::read(&path).unwrap()), (first, content.clone()));
        // Across a page boundary, another length, and a file with another link.
        content[4095] = b'c';
        content[4097] = b'c';
        update(&path, &content).unwrap();
        let second = inode(&path);
        assert_ne!(second, first);
        content.push(b'd');
        update(&path, &content).unwrap();
        assert_ne!(inode(&path), second);
        let link = root.path().join("link");
        std::fs::hard_link(&path, &link).unwrap();
        let before = content.clone();
        content[0] = b'e';
        update(&path, &content).unwrap();
        assert_eq!(
            (std::fs::read(&link).unwrap(), std::fs::read(&path).unwrap()),
            (before, content)
        );
    }

    #[test]
    fn a_file_of_one_page_is_overwritten_in_one_piece() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("file");
        assert!(overwrite(&path, b"{}").is_err());
        replace(&path, b"{\"a\": 1}").unwrap();
        assert!(overwrite(&path, b"{}").unwrap());
        assert_eq!(std::fs::read(&path).unwrap(), b"{}      ");
        assert!(overwrite(&path, b"{\"abcd\": 12}").unwrap());
        assert_eq!(std::fs::read(&path).unwrap(), b"{\"abcd\": 12}");
        assert!(!overwrite(&path, &[b' '; PAGE + 1]).unwrap());
    }

    proptest! {
        #![proptest_config(sessile_testkit::cases(256))]
        #[test]
        fn what_was_written_last_is_there(
            contents in prop::collection::vec((0..3_usize, 0..9000_usize, any::<u8>()), 1..20)
        ) {
            let root = tempfile::tempdir().unwrap();
            let path = root.path().join("file");
            for (size, at, byte) in contents {
                let mut content = vec![b'x'; [100, 5000, 9000][size]];
                let at = at % content.len();
                content[at] = byte;
                update(&path, &content).unwrap();
                prop_assert_eq!(std::fs::read(&path).unwrap(), content);
            }
        }
    }
}
