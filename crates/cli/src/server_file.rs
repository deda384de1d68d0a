//! `servers/PID.json`: where the servers of a sessions directory are.
//!
//! Each server holds a lock on its file as long as it lives, so that the file of a killed
//! server can be recognized. Several servers may share a sessions directory; clients use
//! the oldest one.

use anyhow::Context;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

const FOLDER: &str = "servers";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ServerInfo {
    /// Such as `http://127.0.0.1:7377`.
    pub(crate) url: String,
    pub(crate) pid: u32,
    pub(crate) version: String,
    /// The certificate that it presents, if it uses TLS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tls_cert: Option<PathBuf>,
}

/// The file of a running server, removed with it.
#[derive(Debug)]
pub(crate) struct ServerFile {
    path: PathBuf,
    _lock: File,
}

impl ServerFile {
    /// Announces this server.
    pub(crate) fn announce(private: &Path, announcement: &ServerInfo) -> anyhow::Result<Self> {
        let folder = private.join(FOLDER);
        let path = folder.join(format!("{}.json", announcement.pid));
        let temporary = path.with_extension("tmp");
        let write = || -> anyhow::Result<File> {
            DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
            let _ = fs::remove_file(&temporary);
            let mut options = OpenOptions::new();
            let mut file = options.write(true).create_new(true).mode(0o600).open(&temporary)?;
            // Locked before the file can be found.
            flock(&file, FlockOperation::LockExclusive)?;
            serde_json::to_writer(&file, announcement)?;
            file.write_all(b"\n")?;
            fs::rename(&temporary, &path)?;
            Ok(file)
        };
        let lock = write().with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Self { path, _lock: lock })
    }

    /// Returns the server that has been running for longest, if there is one.
    pub(crate) fn find(private: &Path) -> Option<ServerInfo> {
        let files = fs::read_dir(private.join(FOLDER)).ok()?.flatten().map(|entry| entry.path());
        let mut running: Vec<(SystemTime, ServerInfo)> = files.filter_map(running).collect();
        running.sort_by(|(one, a), (other, b)| (one, a.pid).cmp(&(other, b.pid)));
        running.into_iter().next().map(|(_, announcement)| announcement)
    }
}

/// Reads the announcement of a running server, and since when it runs. Removes the file
/// of a killed one.
fn running(path: PathBuf) -> Option<(SystemTime, ServerInfo)> {
    if path.extension()? != "json" {
        return None;
    }
    let mut file = File::open(&path).ok()?;
    if flock(&file, FlockOperation::NonBlockingLockShared).is_ok() {
        let _ = fs::remove_file(path);
        return None;
    }
    let since = file.metadata().ok()?.modified().ok()?;
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    Some((since, serde_json::from_str(&text).ok()?))
}

impl Drop for ServerFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    fn announcement(pid: u32) -> ServerInfo {
        ServerInfo {
            url: "http://127.0.0.1:1".to_owned(),
            pid,
            version: "0".to_owned(),
            tls_cert: None,
        }
    }

    #[test]
    fn a_server_is_found_as_long_as_it_is_there() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(ServerFile::find(root.path()), None);
        let first = ServerFile::announce(root.path(), &announcement(1)).unwrap();
        assert_eq!(ServerFile::find(root.path()), Some(announcement(1)));
        let mode = fs::metadata(&first.path).unwrap().mode();
        assert_eq!(mode & 0o777, 0o600);
        let second = ServerFile::announce(root.path(), &announcement(2)).unwrap();
        assert_eq!(ServerFile::find(root.path()), Some(announcement(1)));
        drop(first);
        assert_eq!(ServerFile::find(root.path()), Some(announcement(2)));
        let third = ServerFile::announce(root.path(), &announcement(3)).unwrap();
        drop(third);
        assert_eq!(ServerFile::find(root.path()), Some(announcement(2)), "the others stay");
        drop(second);
        assert_eq!(ServerFile::find(root.path()), None);
    }

    #[test]
    fn what_a_killed_server_left_is_not_believed() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join(FOLDER).join("1.json");
        fs::create_dir(path.parent().unwrap()).unwrap();
        fs::write(&path, serde_json::to_string(&announcement(1)).unwrap()).unwrap();
        assert_eq!(ServerFile::find(root.path()), None);
        assert!(!path.exists());
    }
}
