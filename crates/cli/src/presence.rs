//! `server.json`: where the server of a sessions directory is.
//!
//! The server holds a lock on the file as long as it lives, so that one that was
//! left by a server that was killed is known for what it is.

use anyhow::Context;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

const FILE: &str = "server.json";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Announcement {
    /// Such as `http://127.0.0.1:7377`.
    pub(crate) url: String,
    pub(crate) pid: u32,
    pub(crate) version: String,
    /// The certificate that it shows, if it speaks TLS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tls_cert: Option<PathBuf>,
}

/// A running server's file, which goes with it.
#[derive(Debug)]
pub(crate) struct Presence {
    path: PathBuf,
    file: File,
}

impl Presence {
    /// Says where we are. A server that said so before is no longer found.
    pub(crate) fn announce(root: &Path, announcement: &Announcement) -> anyhow::Result<Self> {
        let path = root.join(FILE);
        let temporary = root.join(format!("{FILE}.{}.tmp", std::process::id()));
        let _ = fs::remove_file(&temporary);
        let write = || -> anyhow::Result<File> {
            let mut options = OpenOptions::new();
            let mut file = options.write(true).create_new(true).mode(0o600).open(&temporary)?;
            // Before anybody can find it.
            flock(&file, FlockOperation::LockExclusive)?;
            serde_json::to_writer(&file, announcement)?;
            file.write_all(b"\n")?;
            fs::rename(&temporary, &path)?;
            Ok(file)
        };
        let file = write().with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Self { path, file })
    }

    /// The server that is there now, if there is one.
    pub(crate) fn find(root: &Path) -> Option<Announcement> {
        let mut file = File::open(root.join(FILE)).ok()?;
        if flock(&file, FlockOperation::NonBlockingLockShared).is_ok() {
            return None;
        }
        let mut text = String::new();
        file.read_to_string(&mut text).ok()?;
        serde_json::from_str(&text).ok()
    }
}

impl Drop for Presence {
    fn drop(&mut self) {
        // Another server's file may have come in its place.
        let inode = |metadata: fs::Metadata| (metadata.dev(), metadata.ino());
        let there = fs::metadata(&self.path).map(inode).ok();
        if there.is_some() && there == self.file.metadata().map(inode).ok() {
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn announcement(pid: u32) -> Announcement {
        Announcement {
            url: "http://127.0.0.1:1".to_owned(),
            pid,
            version: "0".to_owned(),
            tls_cert: None,
        }
    }

    #[test]
    fn a_server_is_found_as_long_as_it_is_there() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(Presence::find(root.path()), None);
        let first = Presence::announce(root.path(), &announcement(1)).unwrap();
        assert_eq!(Presence::find(root.path()), Some(announcement(1)));
        let mode = fs::metadata(root.path().join(FILE)).unwrap().mode();
        assert_eq!(mode & 0o777, 0o600);
        let second = Presence::announce(root.path(), &announcement(2)).unwrap();
        drop(first);
        assert_eq!(Presence::find(root.path()), Some(announcement(2)));
        drop(second);
        assert!(!root.path().join(FILE).exists());
    }

    #[test]
    fn what_a_killed_server_left_is_not_believed() {
        let root = tempfile::tempdir().unwrap();
        let text = serde_json::to_string(&announcement(1)).unwrap();
        fs::write(root.path().join(FILE), text).unwrap();
        assert_eq!(Presence::find(root.path()), None);
    }
}
