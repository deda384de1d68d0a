//! Answers about sessions and runs, as types.
//!
//! Every surface serialises these types, and the OpenAPI document describes them. What
//! only one surface adds (`continuity` over HTTP, `revived` over MCP) is a field that the
//! others leave out. The JSON is a public contract: fields are added, neither changed nor moved.

mod branch;
mod continuity;
mod done;
mod file;
mod job;
mod layer;
mod run;
mod saved;
mod screen;
mod session;
mod state;
mod stream;

pub use branch::{Checkpoint, Checkpoints, Dropped, Files, Fork, Forked, RestoredFiles, Rewound};
pub use continuity::Continuity;
pub use done::{
    Cleaned, Ended, EndedAll, Input, Interrupted, InterruptedSession, Reset, Resized, Signalled,
    SignalledJob,
};
pub use file::{
    FileChange, FileEntry, FileList, FileType, RemovedFile, SkippedFile, UnpackedFiles, change_name,
};
pub use job::{Job, Port, cpu_percent};
pub use layer::{
    ChangeSort, DiffForm, LayerApplied, LayerChange, LayerDiff, LayerDiscarded, SkippedChange,
};
pub use run::{Output, OutputPiece, OutputSoFar, Piece, RunResult, RunRow, runs};
pub use saved::{Restored, RestoredKernel, Saved, SavedKernel};
pub use screen::{CursorPosition, Screen, Size, TerminalRow, TerminalStarted, WaitOutcome};
pub use session::{SessionPage, SessionRow, Started, revival};
pub use state::State;
pub use stream::{
    Encoded, Encoding, Encodings, Milliseconds, OutputText, Truncated, Truncations, encode, text,
    whole_end, whole_start,
};

use serde::Serialize;
use serde_json::{Map, Value};

/// Returns an answer as a JSON object.
#[must_use]
pub fn fields(answer: &impl Serialize) -> Map<String, Value> {
    match serde_json::to_value(answer) {
        Ok(Value::Object(fields)) => fields,
        // Cannot happen: all answers are structs with string keys.
        Ok(_) | Err(_) => Map::new(),
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
pub(crate) fn is_false(flag: &bool) -> bool {
    !*flag
}
