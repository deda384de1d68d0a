//! Forks of a session, and checkpoints.

use crate::{Boot, Code, Failure, Language, LeftBehind, RunNo, SessionId};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Maximum number of forks in one request.
const MOST_FORKS: u32 = 1000;

/// Maximum length of a checkpoint's name.
const NAME_LIMIT: usize = 100;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForkOrder {
    pub count: u32,
    #[serde(default)]
    pub files: ForkFiles,
    /// Wait for active runs; otherwise they are a reason to refuse.
    #[serde(default)]
    pub wait: bool,
    /// Name of the fork; several get a number after it.
    #[serde(default)]
    pub name: Option<String>,
    /// Make this new session instead of a fork: only the state of the kernels comes from
    /// the original. Its directory and metadata exist.
    #[serde(default)]
    pub new: Option<Box<Boot>>,
}

impl ForkOrder {
    /// Returns an order for a new session with the state of another.
    #[must_use]
    pub fn into_new(boot: Boot) -> Self {
        let new = Some(Box::new(boot));
        Self { count: 1, files: ForkFiles::Share, wait: false, name: None, new }
    }

    /// Returns the names of the forks, in order. All are different.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        match (&self.name, self.count) {
            (None, _) => Vec::new(),
            (Some(name), 1) => vec![name.clone()],
            (Some(name), count) => (1..=count).map(|number| format!("{name}-{number}")).collect(),
        }
    }

    /// # Errors
    /// When the number of forks is out of range.
    pub fn check(&self) -> Result<(), Failure> {
        if self.new.is_some() && self.count != 1 {
            return Err(Failure::new(Code::BadRequest, "a new session is one"));
        }
        if (1..=MOST_FORKS).contains(&self.count) {
            return Ok(());
        }
        let message = format!("a session can be forked 1 to {MOST_FORKS} times at once");
        Err(Failure::new(Code::BadRequest, message))
    }
}

/// The workspace of a fork.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ForkFiles {
    /// The same directory.
    #[default]
    Share,
    /// A copy in the fork's session directory.
    Copy,
}

/// How a kernel's state is in a fork or a checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Carried {
    /// The whole process was copied.
    Live,
    /// Its state was written down.
    Saved,
    /// It had a run, and is not part of it.
    Busy,
    /// It was there once: its copy has ended since.
    Lost,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct CarriedKernel {
    pub language: Language,
    pub as_of_run: RunNo,
    pub carried: Carried,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForkView {
    pub session: SessionId,
    pub work_dir: PathBuf,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForkedView {
    /// The newest run of the original that is in the forks.
    pub as_of_run: RunNo,
    pub forks: Vec<ForkView>,
    pub kernels: Vec<CarriedKernel>,
    pub left: Vec<LeftBehind>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewCheckpoint {
    /// For instance `checkpoint-7` when absent.
    #[serde(default)]
    pub name: Option<String>,
    /// Include the files of the workspace.
    #[serde(default)]
    pub files: bool,
    /// Wait for active runs; otherwise they are a reason to refuse.
    #[serde(default)]
    pub wait: bool,
}

impl NewCheckpoint {
    /// # Errors
    /// When the name is ambiguous or cannot be typed.
    pub fn check(&self) -> Result<(), Failure> {
        let Some(name) = &self.name else {
            return Ok(());
        };
        let is_plain = name.chars().all(|c| !c.is_control()) && name.trim() == name;
        if (1..=NAME_LIMIT).contains(&name.chars().count()) && is_plain && !name.starts_with('-') {
            return Ok(());
        }
        let message = format!(
            "{name:?} cannot be the name of a checkpoint: 1 to {NAME_LIMIT} characters, no control characters, no space at either end, no dash in front"
        );
        Err(Failure::new(Code::BadRequest, message))
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckpointView {
    pub name: String,
    pub created_at: String,
    /// The newest run in it.
    pub as_of_run: RunNo,
    /// Taken automatically before a run.
    #[serde(default)]
    pub auto: bool,
    pub kernels: Vec<CarriedKernel>,
    #[serde(default)]
    pub files: Option<FilesView>,
    #[serde(default)]
    pub left: Vec<LeftBehind>,
}

/// The files of a checkpoint.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilesView {
    pub files: u64,
    pub bytes: u64,
    /// Bytes that had to be read and stored for it.
    pub stored_bytes: u64,
    /// Number of files that were left out; `examples` has some of them with the reason.
    #[serde(default)]
    pub left_out: u64,
    #[serde(default)]
    pub examples: Vec<LeftBehind>,
}

/// The target of a rewind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RewindTo {
    /// The newest checkpoint.
    Newest,
    Name(String),
    /// Before this many last runs.
    Runs(u64),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rewind {
    pub to: RewindTo,
    /// Leave the workspace as it is, even if the checkpoint has its files.
    #[serde(default)]
    pub keep_files: bool,
    #[serde(default)]
    pub wait: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RewoundView {
    pub checkpoint: String,
    pub as_of_run: RunNo,
    /// The number of the rewind in the history.
    pub run: RunNo,
    /// The runs that were undone.
    pub undone: Vec<RunNo>,
    pub kernels: Vec<CarriedKernel>,
    #[serde(default)]
    pub files: Option<RestoredFiles>,
    #[serde(default)]
    pub left: Vec<LeftBehind>,
}

/// Changes of a rewind to the workspace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestoredFiles {
    pub written: u64,
    pub removed: u64,
    /// The checkpoint that has the files from before.
    #[serde(default)]
    pub before: Option<String>,
    #[serde(default)]
    pub problems: Vec<LeftBehind>,
}

/// Checkpoints to remove.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DropCheckpoints {
    All,
    Named(Vec<String>),
}
