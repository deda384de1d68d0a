//! The `runtime` tool: requests of agents, and answers.

pub mod answers;
mod branches;
mod call;
mod next_call;
mod request;
mod saving;
mod schema;
mod sessions;
mod state;
mod terminals;
mod unknown;

pub use branches::{Branch, BranchCall, BranchTool, WorkspaceBranch};
pub use call::{Call, Order, Piece, RunInput, SignalTarget, Stream};
pub use next_call::NextCall;
pub use request::{Action, Request, Run, Target, whole_number};
pub use saving::{RestoreCall, SaveCall};
pub use schema::schema;
pub use sessions::{
    SessionAction, SessionCall, SessionList, SessionLogs, SessionStart, all_of, session_of,
};
pub use state::{HISTORY as STATE_HISTORY, State, StateExtent};
pub use terminals::{KeysCall, ResizeCall, ScreenCall, ScreenForm, terminal_of};

pub use unknown::check_fields;

use crate::{answer, text};
use answers::{InSession, SessionNote};
use serde::Serialize;
use serde_json::{Map, Value};
use sessile_protocol::{Completed, Exec, Until};

/// How many bytes of each stream are read for an answer, and the most that one shows.
pub const MAX_OUTPUT: u64 = 1 << 20;

/// Size limit of an answer besides the run's output.
pub const MOST_BESIDES: usize = 24_000;

/// The defaults of a workspace's session.
pub const IDLE_TIMEOUT_MS: u64 = 30 * 60 * 1000;
pub const COMMAND_TIMEOUT_MS: u64 = 30 * 1000;
pub const MAX_HISTORY: u64 = 100;
pub const OUTPUT_CAP: u64 = 64 << 20;

/// Returns an answer with its session, in the size of an answer.
#[must_use]
pub fn described(answer: &impl Serialize, note: SessionNote) -> Map<String, Value> {
    let mut fields = answer::fields(&InSession::noted(answer, note));
    text::fit(&mut fields, MOST_BESIDES);
    fields
}

/// Which of the two actions that run something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunAction {
    Exec,
    Eval,
}

impl Run {
    /// Returns the request to the keeper.
    #[must_use]
    pub fn order(&self) -> Exec {
        Exec {
            text: self.command.clone().into_bytes(),
            language: Some(self.language),
            timeout_ms: self.timeout_ms,
            queue_timeout_ms: self.queue_timeout_ms,
            silence_ms: self.silence_ms,
            stdin: self.stdin.clone().map(|text| text.into_bytes().into()),
            env: self.env.clone(),
            interactive: self.interactive,
            until_input: self.interactive,
            max_output: MAX_OUTPUT,
            until: Until::Recorded,
            ..Exec::default()
        }
    }
}

/// Says in one sentence what went wrong.
#[must_use]
pub fn error_of(done: &Completed) -> Option<String> {
    if done.timed_out {
        let took = match done.duration_us {
            us @ ..100_000 => format!("{} ms", us / 1000),
            us => format!("{:.1} s", us as f64 / 1e6),
        };
        return Some(format!(
            "timed out after {took} and was interrupted; the session's state is {}",
            done.kernel.as_str()
        ));
    }
    if let Some(error) = &done.error {
        return Some(
            format!("{}: {}", error.kind, error.message).trim_end_matches(": ").to_owned(),
        );
    }
    match done.exit_code {
        0 => None,
        code if done.interrupted => Some(format!("interrupted (exit code {code})")),
        code => Some(format!("exit code {code}")),
    }
}
