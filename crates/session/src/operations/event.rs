//! Inputs of operations.

use super::{CopyId, FilesId, ImageId, RequestId, SaveId};
use crate::effect::Epoch;
use sessile_protocol::{
    DropCheckpoints, Failure, FilesView, ForkOrder, Language, LeftBehind, NewCheckpoint,
    RestoredFiles, Rewind, RunNo, SavedView, SessionId,
};
use std::path::PathBuf;

/// An operation on a session as a whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    Fork(ForkOrder),
    Checkpoint(NewCheckpoint),
    Rewind(Rewind),
    Drop(DropCheckpoints),
}

/// A save that a client asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SaveOrder {
    /// The file to write.
    pub path: PathBuf,
    /// Include the files of the workspace.
    pub files: bool,
    /// Wait for runs to end.
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
    /// The client that asked is gone. An operation that has not begun will not; a save is
    /// cancelled.
    ClientGone {
        request: RequestId,
    },

    /// A kernel's state is captured, in the session's file or in a separate one.
    Captured {
        language: Language,
        as_of: RunNo,
    },
    /// A kernel's state could not be captured.
    NotCaptured {
        language: Language,
    },
    /// A kernel has finished describing its state.
    Described {
        language: Language,
    },
    /// A kernel process is gone, and will not describe or copy itself any more.
    KernelGone {
        language: Language,
        epoch: Epoch,
        copies: Copies,
    },

    /// An image is ready; with what it lacks, and whether its kernel changes without runs.
    ImageReady {
        image: ImageId,
        left: Vec<LeftBehind>,
        is_restless: bool,
    },
    /// An image failed, or is gone.
    ImageLost {
        image: ImageId,
        why: String,
    },

    /// A process that is to replace a kernel is up.
    CopyUp {
        copy: CopyId,
    },
    /// Such a process did not start, or is gone again.
    CopyLost {
        copy: CopyId,
        why: String,
    },

    /// The files of the workspace were taken.
    FilesTaken {
        files: FilesId,
        view: FilesView,
    },
    FilesNotTaken {
        files: FilesId,
        failure: Failure,
    },
    /// The files of the workspace were put back.
    FilesPut {
        files: FilesId,
        restored: RestoredFiles,
    },
    FilesNotPut {
        files: FilesId,
        failure: PutFailure,
    },

    /// The journal of a rewind is on disk, or could not be written.
    JournalWritten {
        outcome: Result<(), Failure>,
    },
    /// The states that new kernels start from are on disk; with whatever continues although
    /// the kernel that started it does not.
    StatesWritten {
        outcome: Result<Vec<LeftBehind>, Failure>,
    },
    /// The checkpoints are on disk, as a request asked.
    TimelineWritten {
        request: RequestId,
        outcome: Result<(), Failure>,
    },

    /// The directories of forks are made, with copies of the files if those were requested.
    ForksPlanned {
        request: RequestId,
        outcome: Result<(), Failure>,
    },
    /// The forks are made, or some of them; `expected` are those whose processes are pending.
    ForksMade {
        request: RequestId,
        expected: Vec<SessionId>,
        failure: Option<Failure>,
    },
    /// A fork's processes are up, or failed.
    ForkUp {
        fork: SessionId,
        outcome: Result<(), Failure>,
    },

    /// A part of a save has arrived from a kernel.
    SaveGathered {
        save: SaveId,
        language: Language,
        part: Part,
    },
    /// A save could not be gathered or written.
    SaveFailed {
        save: SaveId,
        failure: Failure,
    },
    SaveWritten {
        save: SaveId,
        saved: Saved,
    },
    /// A save was uploaded to the store, or not.
    Uploaded {
        save: SaveId,
        outcome: Result<(), NotStored>,
    },
    /// The store has said which machine owns the session, or could not be asked.
    Looked {
        outcome: Result<(), NotStored>,
    },
}

/// Why an upload or an ownership check failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotStored {
    Failed(String),
    /// Another machine has taken over the session.
    Moved {
        host: String,
    },
}

/// A part of a save that comes from a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The names and values in the kernel; for a shell, the state that restores it.
    State,
    /// A separate process that writes the dump: the kernel is no longer needed.
    Writer,
    /// The dump; or that there is none and none will come.
    Dump,
}

/// The result of a save.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Saved {
    /// The file that a client asked for.
    File(Box<SavedView>),
    /// The session's own save; and what became of the file for the store.
    Here { outgoing: Option<Result<(), String>> },
}

/// What becomes of the copies that a dead process was to make of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copies {
    /// They will not be made.
    Lost,
    /// A copied process exists, but has not identified itself.
    OnTheirWay,
}

/// Why files were not put back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PutFailure {
    /// The files are as they were before.
    Refused(Failure),
    /// The process was ended, and nobody knows how far it got.
    Killed,
}
