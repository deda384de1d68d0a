//! Tasks: orders of operations to the driver.

use super::{CopyId, FilesId, ImageId, RequestId, SaveId};
use crate::effect::Epoch;
use crate::kernel::Origin;
use crate::timeline::PointId;
use sessile_protocol::{Failure, ForkOrder, Language, RewoundView, RunNo, SavedView};
use std::path::PathBuf;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Task {
    Answer {
        request: RequestId,
        outcome: Result<Done, Failure>,
    },
    /// Write the checkpoints to disk, and answer; with the failure, if they cannot be written.
    AnswerWritten {
        request: RequestId,
        done: Done,
    },
    /// A note for the next run of a language.
    Tell {
        language: Language,
        note: String,
    },

    /// Capture a kernel's state, because a run waits for it.
    Capture {
        language: Language,
        as_of: RunNo,
    },
    /// Make an image: have a kernel process copy itself.
    Copy {
        image: ImageId,
        language: Language,
    },
    /// Make an image: have a kernel write its state to a file.
    Dump {
        image: ImageId,
        language: Language,
    },
    /// Make an image: keep the state of a kernel as of that run, which is captured or about to be.
    Keep {
        image: ImageId,
        language: Language,
        as_of: RunNo,
    },
    /// Release an image, wherever it is.
    Release {
        image: ImageId,
    },

    /// Make a process from an image, which stays as it is.
    BringUp {
        copy: CopyId,
        language: Language,
        image: ImageId,
    },
    /// End the processes that were to replace kernels.
    Abandon {
        copies: Vec<CopyId>,
    },

    /// A point was just made.
    Mark {
        point: PointId,
    },
    /// The checkpoints have changed, and are to be written at some time.
    NoteTimeline,
    /// Write the checkpoints to disk; `request` wants to know the outcome.
    WriteTimeline {
        request: Option<RequestId>,
    },

    TakeFiles {
        files: FilesId,
    },
    /// Restore the workspace to `to`; on failure, to `before`.
    PutFiles {
        files: FilesId,
        to: FilesId,
        before: FilesId,
    },
    /// Remove the files that none of these needs.
    SweepFiles {
        keep: Vec<FilesId>,
    },

    /// Write the plan of a rewind, so that a new keeper could finish it.
    WriteJournal {
        point: PointId,
        plan: Vec<(Language, Origin)>,
        to: FilesId,
        before: FilesId,
    },
    RemoveJournal,
    /// Write the states that new kernels start from.
    WriteStates {
        point: PointId,
        plan: Vec<(Language, Origin)>,
    },
    /// Record the rewind in the history, under this number.
    RecordRewind {
        run: RunNo,
        checkpoint: String,
        undone: Vec<RunNo>,
    },

    /// Make the directories of forks, and copy the files if requested.
    PlanForks {
        request: RequestId,
        order: ForkOrder,
        kernels: Vec<(Language, RunNo, KernelStart)>,
    },
    /// Make the sessions, and have processes copied.
    MakeForks {
        request: RequestId,
        kernels: Vec<(Language, RunNo, KernelStart)>,
    },
    /// End the forks that were made, and remove the planned directories.
    EndForks {
        request: RequestId,
    },

    /// Ask these kernels for the parts that a save needs, and note what kernels without a
    /// process have left. Captures of their states are already ordered.
    GatherSave {
        save: SaveId,
        target: Target,
        kernels: Vec<(Language, Epoch, RunNo)>,
    },
    /// All parts are there: write the save.
    WriteSave {
        save: SaveId,
    },
    /// A save is over: end its processes, and remove its temporary data.
    ReleaseSave {
        save: SaveId,
    },
    /// Record the outcome of a durable session's own save.
    RecordSave {
        save: SaveId,
        place: Place,
        outcome: Result<(), String>,
    },
    /// Upload the file of a save to the store.
    Upload {
        save: SaveId,
    },
    CancelUpload,
    /// Ask the store whether this machine still owns the session.
    LookAtStore,
    CancelLook,
    /// Record that the session continues on another machine. It ends here.
    RecordMove {
        host: String,
    },
}

/// The destination of a save.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A file that a client asked for.
    File {
        path: PathBuf,
        /// Include the files of the workspace.
        files: bool,
    },
    /// The session's own directory; and a file for the store.
    Here { for_store: bool },
}

/// A place where a durable session is saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Here,
    Store,
}

/// The result of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Done {
    Forked,
    Checkpointed(PointId),
    Rewound(Box<RewoundView>),
    Dropped(Vec<String>),
    Saved(Box<SavedView>),
}

/// The state that a fork's kernel starts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelStart {
    /// A copy of the process.
    Copy,
    /// An image that was written.
    Image(ImageId),
    /// The state in the session's file.
    Written,
    Nothing,
}
