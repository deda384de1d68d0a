//! The words that the keeper and its clients share: ids, requests, answers,
//! error codes, and how they are framed on the keeper's socket.
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
mod job;
mod request;
mod saved;
mod screen;
mod size;

pub use answer::{
    Answer, Completed, HistoryEntry, HistoryView, KernelFate, KernelState, KernelStatus, OpenRun,
    OutputView, Reset, RunError, RunPhase, RunValue, RunsView, StateView, Status, StreamView,
};
pub use boot::{Auto, Boot, BootReport, Duty, KernelProgram, SESSION_MARKER};
pub use branch::{
    Carried, CarriedKernel, CheckpointView, DropCheckpoints, FilesView, ForkFiles, ForkOrder,
    ForkView, ForkedView, NewCheckpoint, RestoredFiles, Rewind, RewindTo, RewoundView,
};
pub use failure::{Code, Failure};
pub use frame::{Call, FrameError, MAX_FRAME, Reply, Splitter, decode, encode};
pub use id::{InvalidId, Language, RunNo, SessionId, UnknownLanguage};
pub use job::{Job, JobState, JobsView, Port, Transport};
pub use request::{Exec, ReadOutput, ReadScreen, Request, Until};
pub use saved::{LeftBehind, SavedFiles, SavedKernelView, SavedView};
pub use screen::{Color, Cursor, Screen, ScreenLine, ScreenView, Span, Style, TerminalSize};
pub use size::{ParseQuantityError, format_duration, parse_duration, parse_size};

/// Version of the messages on the keeper's socket. It grows when a message
/// changes its meaning; additions with defaults do not need it.
///
/// 2: `patience_ms`, `key`, `interactive`, `known`, `Input` and `Signal`, which
/// a keeper of version 1 passes over or refuses.
///
/// 3: terminals, jobs, and a timeout for silence.
///
/// 4: forks and checkpoints.
pub const PROTOCOL: u16 = 4;
