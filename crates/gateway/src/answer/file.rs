//! Files of a session's workspace.

use super::stream::{Encoding, text};
use serde::Serialize;
use sessile_files::{Change, ChangeKind, Entry, Kind, Unpacked};
use utoipa::ToSchema;

/// The type of a path
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum FileType {
    File,
    Directory,
    Symlink,
    /// A FIFO, a socket or a device
    Other,
}

/// A file or a directory of the workspace
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct FileEntry {
    /// Relative to the workspace; `.` is the workspace itself
    pub path: String,
    pub name: String,
    #[serde(rename = "type")]
    pub kind: FileType,
    pub size: u64,
    /// Permissions, such as `0644`
    pub mode: String,
    /// Time of the last change
    pub modified: String,
    /// The target of a link
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub target: Option<String>,
    /// The encoding of path, name and target if one of them is not UTF-8
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub encoding: Option<Encoding>,
}

impl From<Kind> for FileType {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::File => Self::File,
            Kind::Directory => Self::Directory,
            Kind::Symlink => Self::Symlink,
            Kind::Other => Self::Other,
        }
    }
}

impl From<&Entry> for FileEntry {
    fn from(entry: &Entry) -> Self {
        let path: &[u8] = if entry.path.is_root() { b"." } else { entry.path.bytes() };
        let name: &[u8] = if entry.path.is_root() { b"." } else { entry.path.name() };
        let target = entry.target.as_deref();
        let all = [Some(path), Some(name), target];
        let is_text = all.into_iter().flatten().all(|bytes| std::str::from_utf8(bytes).is_ok());
        let write = |bytes: &[u8]| match is_text {
            true => String::from_utf8_lossy(bytes).into_owned(),
            false => super::stream::base64(bytes),
        };
        Self {
            path: write(path),
            name: write(name),
            kind: entry.kind.into(),
            size: entry.size,
            mode: format!("{:04o}", entry.mode),
            modified: sessile_store::timestamp_of(entry.modified.0, entry.modified.1),
            target: target.map(write),
            encoding: (!is_text).then_some(Encoding::Base64),
        }
    }
}

/// The entries of a directory
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct FileList {
    /// Sorted by name; each directory comes before its entries
    pub entries: Vec<FileEntry>,
    /// There are more entries than the limit
    pub truncated: bool,
}

/// The result of unpacking an archive
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = UnpackedArchive)]
pub struct UnpackedFiles {
    pub files: u64,
    pub directories: u64,
    pub links: u64,
    /// Total size of the files
    pub bytes: u64,
    /// The first hundred skipped entries: links that lead out of the workspace, devices,
    /// FIFOs
    pub skipped: Vec<SkippedFile>,
    pub skipped_count: u64,
}

/// A skipped entry of an archive
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct SkippedFile {
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub encoding: Option<Encoding>,
    #[schema(value_type = String)]
    pub reason: &'static str,
}

impl From<&Unpacked> for UnpackedFiles {
    fn from(unpacked: &Unpacked) -> Self {
        let skipped = unpacked.skipped.iter().map(|skipped| {
            let (path, encoding) = text(&skipped.path);
            SkippedFile { path, encoding, reason: skipped.reason }
        });
        Self {
            files: unpacked.files,
            directories: unpacked.directories,
            links: unpacked.links,
            bytes: unpacked.bytes,
            skipped: skipped.collect(),
            skipped_count: unpacked.skipped_count,
        }
    }
}

/// A path that was removed
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RemovedFile {
    pub removed: bool,
}

/// A change of a file
#[derive(Clone, Debug, Serialize)]
pub struct FileChange {
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encoding: Option<Encoding>,
    #[serde(rename = "type")]
    pub kind: FileType,
}

impl From<&Change> for FileChange {
    fn from(change: &Change) -> Self {
        let path: &[u8] = if change.path.is_root() { b"." } else { change.path.bytes() };
        let (path, encoding) = text(path);
        let kind = if change.is_directory { FileType::Directory } else { FileType::File };
        Self { path, encoding, kind }
    }
}

/// Returns the name of a change as an event.
#[must_use]
pub fn change_name(kind: ChangeKind) -> &'static str {
    match kind {
        ChangeKind::Created => "created",
        ChangeKind::Modified => "modified",
        ChangeKind::Removed => "removed",
        ChangeKind::Overflow => "overflow",
    }
}
