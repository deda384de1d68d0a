//! The messages that the keeper and its clients exchange: ids, requests, answers, error
//! codes, and their framing on the keeper's socket.
//!
//! Invariants: nothing here does I/O, reads a clock or the environment. A
//! keeper outlives upgrades of its clients, so every message is a map with
//! named fields, unknown fields are skipped, and new fields have defaults.

mod answer;
mod boot;
mod branch;
mod failure;
mod frame;
mod id;
mod inherited;
mod job;
mod program;
mod request;
mod resources;
mod saved;
mod screen;
mod shortage;
mod size;
pub mod wording;

pub use answer::{
    Answer, Behind, CHANGED_LIMITS, CHANGED_VARIABLES, Completed, HistoryEntry, HistoryView,
    KernelFate, KernelState, KernelStatus, OpenRun, OutputView, Queued, Reset, RunError, RunPhase,
    RunValue, RunsView, StateView, Status, StreamView,
};
pub use boot::{
    Auto, Boot, BootPurpose, BootReport, FORK_SERVER, KernelProgram, MAX_FORKED_BOOT,
    SESSION_MARKER,
};
pub use branch::{
    Carried, CarriedKernel, CheckpointView, DropCheckpoints, FilesView, ForkFiles, ForkOrder,
    ForkView, ForkedView, NewCheckpoint, RestoredFiles, Rewind, RewindTo, RewoundView,
};
pub use failure::{Code, Failure};
pub use frame::{Call, FrameError, MAX_FRAME, Reply, Splitter, decode, encode};
pub use id::{InvalidId, Language, RunNo, SessionId, UnknownLanguage};
pub use inherited::Inherited;
pub use job::{EndedJob, Job, JobState, JobsView, OwnNetwork, Port, PortsView, Transport};
pub use program::Program;
pub use request::{Adoption, Exec, ReadOutput, ReadScreen, Request, Until};
pub use resources::{
    CpuLimit, Evidence, FilesLimit, LayerLimit, LimitedResource, LimitsView, MemoryLimit, MetLimit,
    PidsLimit,
};
pub use saved::{LeftBehind, SavedFiles, SavedKernelView, SavedView};
pub use screen::{Color, Cursor, Screen, ScreenLine, ScreenView, Span, Style, TerminalSize};
pub use shortage::Shortage;
pub use size::{
    ParseQuantityError, format_duration, parse_bytes, parse_duration, parse_seconds, parse_size,
};

/// Version of the messages on the keeper's socket, in every call and reply. It grows when a
/// message changes its meaning; a new field with a default, or a new request, does not need
/// it.
pub const PROTOCOL: u16 = 1;

/// The oldest version of calls that a keeper of this build accepts.
pub const OLDEST_PROTOCOL: u16 = 1;
