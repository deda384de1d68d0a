//! What the driver is asked to do for operations.

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
    /// Write down what is known of checkpoints, and answer; with the failure, if
    /// it cannot be written.
    AnswerWritten {
        request: RequestId,
        done: Done,
    },
    /// A note for the next run of a language.
    Tell {
        language: Language,
        note: String,
    },

    /// Have a kernel's state written down, because a run waits for it.
    Capture {
        language: Language,
        as_of: RunNo,
    },
    /// Make an image: have a kernel copy itself.
    Copy {
        image: ImageId,
        language: Language,
    },
    /// Make an image: have a kernel write its state into a file.
    Dump {
        image: ImageId,
        language: Language,
    },
    /// Make an image: keep the state of a kernel as of that run, which is written
    /// down or about to be.
    Keep {
        image: ImageId,
        language: Language,
        as_of: RunNo,
    },
    /// Let go of an image, wherever it is.
    Release {
        image: ImageId,
    },

    /// Have a process made of an image, which stays as it is.
    BringUp {
        copy: CopyId,
        language: Language,
        image: ImageId,
    },
    /// End the processes that were to take the place of kernels.
    Abandon {
        copies: Vec<CopyId>,
    },

    /// A point was made just now.
    Mark {
        point: PointId,
    },
    /// What is known of checkpoints has changed, and is to be on disk some time.
    NoteTimeline,
    /// Write down what is known of checkpoints; who wants to hear of it.
    WriteTimeline {
        request: Option<RequestId>,
    },

    TakeFiles {
        files: FilesId,
    },
    /// Make the workspace what it was, or leave it as it is (`before`).
    PutFiles {
        files: FilesId,
        to: FilesId,
        before: FilesId,
    },
    /// Remove the files that none of these needs.
    SweepFiles {
        keep: Vec<FilesId>,
    },

    /// Write down what a rewind is to bring about, so that a new keeper could
    /// finish it.
    WriteJournal {
        point: PointId,
        plan: Vec<(Language, Origin)>,
        to: FilesId,
        before: FilesId,
    },
    RemoveJournal,
    /// Write down what new kernels start from.
    WriteStates {
        point: PointId,
        plan: Vec<(Language, Origin)>,
    },
    /// The session has gone back: that has a number and a place in the history.
    RecordRewind {
        run: RunNo,
        checkpoint: String,
        undone: Vec<RunNo>,
    },

    /// Make the directories of forks, and copy the files if that is wanted.
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
    /// End the forks that were made, and remove what was planned.
    EndForks {
        request: RequestId,
    },

    /// Ask these kernels for what a save needs of them, and take note of what
    /// those without a process have left. Their states have been asked for.
    GatherSave {
        save: SaveId,
        target: Target,
        kernels: Vec<(Language, Epoch, RunNo)>,
    },
    /// Everything is there: have the save written.
    WriteSave {
        save: SaveId,
    },
    /// A save is over: end what works for it, and remove what is only its own.
    ReleaseSave {
        save: SaveId,
    },
    /// Write down what became of a durable session's own save.
    RecordSave {
        save: SaveId,
        place: Place,
        outcome: Result<(), String>,
    },
    /// Bring the file of a save to the store.
    Upload {
        save: SaveId,
    },
    CancelUpload,
    /// Ask the store whether the session is still this machine's.
    LookAtStore,
    CancelLook,
    /// Write down that the session goes on elsewhere. It ends here.
    RecordMove {
        host: String,
    },
}

/// What a save is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A file that somebody asked for.
    File {
        path: PathBuf,
        /// With the files of the workspace.
        files: bool,
    },
    /// The session's own directory; and a file to bring to the store.
    Here { for_store: bool },
}

/// Where a durable session is saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Here,
    Store,
}

/// What an operation came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Done {
    Forked,
    Checkpointed(PointId),
    Rewound(Box<RewoundView>),
    Dropped(Vec<String>),
    Saved(Box<SavedView>),
}

/// What a fork's kernel starts from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelStart {
    /// A copy of the process.
    Copy,
    /// An image that was written down.
    Image(ImageId),
    /// Whatever the session's file has of it.
    Written,
    Nothing,
}
