//! The results of saving and restoring a session.

use super::Continuity;
use serde::Serialize;
use sessile_protocol::Language;
use sessile_protocol::{LeftBehind, RunNo, SavedFiles, SavedKernelView, SavedView, SessionId};
use sessile_store::{BundledKernel, Manifest, Metadata};
use std::path::{Path, PathBuf};
use utoipa::ToSchema;

/// A saved session
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Saved {
    pub session_id: SessionId,
    #[schema(value_type = String)]
    pub path: PathBuf,
    pub bytes: u64,
    /// The newest run in it
    pub as_of_run: RunNo,
    pub kernels: Vec<SavedKernel>,
    /// What could not be saved
    pub left: Vec<NotCarried>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub files: Option<Files>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub continuity: Option<Continuity>,
}

#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct SavedKernel {
    pub language: Language,
    pub as_of_run: RunNo,
    /// Number of saved names, for languages that save them one by one
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub carried: Option<u64>,
}

/// Something that was not saved or restored
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct NotCarried {
    pub name: String,
    pub reason: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub language: Option<Language>,
}

/// The files of a saved session
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = SavedFilesRow)]
pub struct Files {
    pub files: u64,
    pub directories: u64,
    pub symlinks: u64,
    pub bytes: u64,
    /// How many were left out
    pub left_out: u64,
    /// Examples of those
    pub examples: Vec<NotCarried>,
    /// Whether they were restored
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub restored: Option<bool>,
}

impl From<&LeftBehind> for NotCarried {
    fn from(left: &LeftBehind) -> Self {
        let LeftBehind { language, name, reason } = left.clone();
        Self { name, reason, language }
    }
}

impl From<&SavedFiles> for Files {
    fn from(found: &SavedFiles) -> Self {
        Self {
            files: found.files,
            directories: found.directories,
            symlinks: found.symlinks,
            bytes: found.bytes,
            left_out: found.left_out,
            examples: found.examples.iter().map(NotCarried::from).collect(),
            restored: None,
        }
    }
}

impl From<&SavedKernelView> for SavedKernel {
    fn from(kernel: &SavedKernelView) -> Self {
        Self { language: kernel.language, as_of_run: kernel.as_of_run, carried: kernel.carried }
    }
}

impl Saved {
    #[must_use]
    pub fn of(session: &SessionId, path: &Path, view: &SavedView) -> Self {
        Self {
            session_id: session.clone(),
            path: path.to_owned(),
            bytes: view.bytes,
            as_of_run: view.as_of_run,
            kernels: view.kernels.iter().map(SavedKernel::from).collect(),
            left: view.left.iter().map(NotCarried::from).collect(),
            files: view.files.as_ref().map(Files::from),
            continuity: None,
        }
    }
}

/// A restored session
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Restored {
    pub session_id: SessionId,
    pub command: String,
    #[schema(value_type = String)]
    pub work_dir: PathBuf,
    #[schema(value_type = String)]
    pub status: &'static str,
    /// The session that was saved
    pub restored_from: SessionId,
    pub saved_at: String,
    /// The newest run in it
    pub as_of_run: RunNo,
    pub kernels: Vec<RestoredKernel>,
    /// What was not restored
    pub left: Vec<NotCarried>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub files: Option<Files>,
}

#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RestoredKernel {
    pub language: Language,
    /// The interpreter's version, if known
    #[schema(nullable)]
    pub version: Option<String>,
    pub as_of_run: RunNo,
    /// Number of saved names, for languages that save them one by one
    #[schema(nullable)]
    pub carried: Option<u64>,
}

impl From<&BundledKernel> for RestoredKernel {
    fn from(kernel: &BundledKernel) -> Self {
        let BundledKernel { language, version, as_of_run, carried } = kernel.clone();
        Self { language, version, as_of_run, carried }
    }
}

impl Restored {
    /// `more`: what could not be restored here, beyond what the file says.
    #[must_use]
    pub fn of(
        metadata: &Metadata,
        manifest: &Manifest,
        more: &[LeftBehind],
        has_files: bool,
    ) -> Self {
        let as_of = manifest.kernels.iter().map(|kernel| kernel.as_of_run).max();
        let files = manifest.files.as_ref().map(Files::from);
        Self {
            session_id: metadata.session_id.clone(),
            command: metadata.command.clone(),
            work_dir: metadata.work_dir.clone(),
            status: "active",
            restored_from: manifest.session_id.clone(),
            saved_at: manifest.saved_at.clone(),
            as_of_run: as_of.unwrap_or_default(),
            kernels: manifest.kernels.iter().map(RestoredKernel::from).collect(),
            left: manifest.left.iter().chain(more).map(NotCarried::from).collect(),
            files: files.map(|files| Files { restored: Some(has_files), ..files }),
        }
    }
}
