//! The result of saving a session.

use crate::{Language, RunNo};
use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedView {
    /// Size of the file.
    pub bytes: u64,
    /// The last run in the file.
    pub as_of_run: RunNo,
    pub kernels: Vec<SavedKernelView>,
    /// State that could not be carried.
    pub left: Vec<LeftBehind>,
    /// The files of the workspace, if requested.
    #[serde(default)]
    pub files: Option<SavedFiles>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedKernelView {
    pub language: Language,
    pub as_of_run: RunNo,
    /// Number of names that were carried, for kernels whose names are carried one by one.
    #[serde(default)]
    pub carried: Option<u64>,
}

/// Something that could not be saved or copied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct LeftBehind {
    /// The language that it belongs to, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<Language>,
    pub name: String,
    pub reason: String,
}

impl LeftBehind {
    /// What root inside a sandbox has changed of the system.
    #[must_use]
    pub fn system() -> Self {
        Self {
            language: None,
            name: "changes to the system".to_owned(),
            reason: "installed programs and other changes outside of the workspace stay in \
                     this session's layer"
                .to_owned(),
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SavedFiles {
    pub files: u64,
    pub directories: u64,
    pub symlinks: u64,
    pub bytes: u64,
    /// How many were left out.
    pub left_out: u64,
    /// Some of those, by their path in the workspace.
    #[serde(default)]
    pub examples: Vec<LeftBehind>,
}
