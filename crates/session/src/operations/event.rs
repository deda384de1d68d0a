//! What operations are told.

use super::{CopyId, FilesId, ImageId, RequestId, SaveId};
use crate::effect::Epoch;
use sessile_protocol::{
    DropCheckpoints, Failure, FilesView, ForkOrder, Language, LeftBehind, NewCheckpoint,
    RestoredFiles, Rewind, RunNo, SavedView, SessionId,
};
use std::path::PathBuf;

/// What is asked of a session as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    Fork(ForkOrder),
    Checkpoint(NewCheckpoint),
    Rewind(Rewind),
    Drop(DropCheckpoints),
}

/// A save that somebody asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SaveOrder {
    /// The file to write.
    pub path: PathBuf,
    /// With the files of the workspace.
    pub files: bool,
    /// For runs to end.
    pub wait: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    Asked {
        request: RequestId,
        order: Order,
    },
    SaveAsked {
        request: RequestId,
        order: SaveOrder,
    },
    /// Whoever asked is gone. What has not begun will not; a save is taken back.
    Left {
        request: RequestId,
    },

    /// A kernel's state has been written down, in the session's file or aside.
    Captured {
        language: Language,
        as_of: RunNo,
    },
    /// It could not be.
    NotCaptured {
        language: Language,
    },
    /// A kernel has nothing left to say of its state.
    Described {
        language: Language,
    },
    /// A kernel process is gone, and will not say or copy anything any more.
    KernelGone {
        language: Language,
        epoch: Epoch,
        copies: Copies,
    },

    /// An image is there: what it has not, and whether what it was taken of
    /// changes without runs.
    ImageReady {
        image: ImageId,
        left: Vec<LeftBehind>,
        is_restless: bool,
    },
    /// An image will not be there, or is gone.
    ImageLost {
        image: ImageId,
        why: String,
    },

    /// A process that is to take the place of a kernel is up.
    CopyUp {
        copy: CopyId,
    },
    /// It will not be, or is gone again.
    CopyLost {
        copy: CopyId,
        why: String,
    },

    /// The workspace's files were taken.
    FilesTaken {
        files: FilesId,
        view: FilesView,
    },
    FilesNotTaken {
        files: FilesId,
        failure: Failure,
    },
    /// The workspace's files are what they were.
    FilesPut {
        files: FilesId,
        restored: RestoredFiles,
    },
    FilesNotPut {
        files: FilesId,
        failure: PutFailure,
    },

    /// What a rewind is to bring about is on disk, or cannot be.
    JournalWritten {
        outcome: Result<(), Failure>,
    },
    /// What new kernels start from is on disk; what goes on although the kernel
    /// that started it does not.
    StatesWritten {
        outcome: Result<Vec<LeftBehind>, Failure>,
    },
    /// The checkpoints are on disk, for whoever asked.
    TimelineWritten {
        request: RequestId,
        outcome: Result<(), Failure>,
    },

    /// The directories of forks are there, with copies of the files if they were
    /// wanted.
    ForksPlanned {
        request: RequestId,
        outcome: Result<(), Failure>,
    },
    /// The forks are made, or some of them; those whose processes are yet to come.
    ForksMade {
        request: RequestId,
        expected: Vec<SessionId>,
        failure: Option<Failure>,
    },
    /// A fork's processes are there, or will not be.
    ForkUp {
        fork: SessionId,
        outcome: Result<(), Failure>,
    },

    /// Something of what a save needs of a kernel.
    SaveGathered {
        save: SaveId,
        language: Language,
        part: Part,
    },
    /// A save cannot be gathered or written.
    SaveFailed {
        save: SaveId,
        failure: Failure,
    },
    SaveWritten {
        save: SaveId,
        saved: Saved,
    },
    /// A save has come to the store, or not.
    Uploaded {
        save: SaveId,
        outcome: Result<(), NotStored>,
    },
    /// The store has said whose the session is, or could not be asked.
    Looked {
        outcome: Result<(), NotStored>,
    },
}

/// Why a save did not come to the store, or a look at it to nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotStored {
    Failed(String),
    /// Another machine has taken the session up.
    Moved {
        host: String,
    },
}

/// What a save needs of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// What it has, by name; and of a shell, all that brings it back.
    State,
    /// A process of its own that writes its dump: the kernel may go.
    Writer,
    /// Its dump; or that there is none, and none to come.
    Dump,
}

/// What was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Saved {
    /// The file that somebody asked for.
    File(Box<SavedView>),
    /// The session's own; and what became of the file for the store.
    Here { outgoing: Option<Result<(), String>> },
}

/// What becomes of copies that a dead process was to make of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copies {
    /// They will not be made.
    Lost,
    /// A process is there that has not said what it is.
    OnTheirWay,
}

/// Why files were not put back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PutFailure {
    /// They are as they were before.
    Refused(Failure),
    /// The process was ended, and nobody knows how far it was.
    Killed,
}
