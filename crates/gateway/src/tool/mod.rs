//! The `runtime` tool: what agents call, and what it answers.

mod again;
mod branches;
mod call;
mod request;
mod saving;
mod schema;
mod sessions;
mod terminals;

pub use again::Again;
pub use branches::{Branch, BranchCall, BranchTool, WorkspaceBranch};
pub use call::{Call, Feed, Order, Piece, Recipient, Stream};
pub use request::{Action, Request, Run, Target};
pub use saving::{RestoreCall, SaveCall};
pub use schema::schema;
pub use sessions::{
    SessionCall, SessionList, SessionLogs, SessionStart, Wanted, all_of, session_of,
};
pub use terminals::{KeysCall, Look, ResizeCall, ScreenCall, terminal_of};

use crate::render;
use serde_json::{Map, Value, json};
use sessile_protocol::{Completed, Exec, OutputView, RunNo, StreamView, Until};
use sessile_store::{Entry, Metadata};

/// Bytes of each stream that an answer shows.
pub const MAX_OUTPUT: u64 = 1 << 20;

/// What a workspace's session is made with.
pub const IDLE_TIMEOUT_MS: u64 = 30 * 60 * 1000;
pub const COMMAND_TIMEOUT_MS: u64 = 30 * 1000;
pub const MAX_HISTORY: u64 = 100;
pub const OUTPUT_CAP: u64 = 64 << 20;

/// What a reset says.
pub const RESET: &str =
    "Runtime reset: fresh kernels, empty history, everything that was running is ended";

/// Which of the two actions that run something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    Exec,
    Eval,
}

#[must_use]
pub fn failure(message: &str) -> Value {
    json!({"success": false, "error": message})
}

/// A success, to which the action's own fields are added.
#[must_use]
pub fn success(name: &str, value: impl Into<Value>) -> Map<String, Value> {
    Map::from_iter([("success".to_owned(), json!(true)), (name.to_owned(), value.into())])
}

impl Run {
    /// What a keeper is asked for.
    #[must_use]
    pub fn order(&self) -> Exec {
        Exec {
            text: self.command.clone().into_bytes(),
            language: Some(self.language),
            timeout_ms: self.timeout_ms,
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

/// A run that is still going, with what it has written so far.
#[must_use]
pub fn running(run: RunNo, so_far: &OutputView) -> Map<String, Value> {
    let mut answer = render::running(run, so_far);
    answer.shift_insert(0, "success".into(), true.into());
    answer
}

/// The same for somebody who has watched it.
#[must_use]
pub fn so_far(run: RunNo, stdout: &StreamView, stderr: &StreamView) -> Map<String, Value> {
    let mut answer = render::so_far(run, stdout, stderr);
    answer.shift_insert(0, "success".into(), true.into());
    answer
}

/// Adds which session it was, and what happened to it before this call.
pub fn describe(
    answer: &mut Map<String, Value>,
    metadata: &Metadata,
    is_new: bool,
    revived: Option<&Metadata>,
) {
    answer.insert("session_id".into(), json!(metadata.session_id));
    if is_new {
        answer.insert("new_session".into(), true.into());
    }
    if let Some(previous) = revived {
        answer.insert("revived".into(), render::revival(previous).into());
    }
}

/// The history in the tool's words.
#[must_use]
pub fn history(entries: Vec<Entry>) -> Value {
    let rows = entries.into_iter().map(|entry| {
        let mut row = json!({
            "timestamp": entry.timestamp,
            "command": entry.command,
            "language": entry.language,
            "duration": entry.duration_ms,
            "exitCode": entry.exit_code,
            "run": entry.run,
        });
        if let Some(event) = entry.event {
            row["event"] = event.into();
            row["notes"] = entry.remarks.notes.into();
        }
        row
    });
    rows.collect()
}

/// A finished run in the tool's words.
#[must_use]
pub fn completed(done: &Completed, shape: Shape) -> Map<String, Value> {
    let mut rendered = render::completed(done);
    let error = error_of(done);
    let mut answer = Map::new();
    answer.insert("success".into(), error.is_none().into());
    for name in ["stdout", "stderr"] {
        answer.insert(name.into(), rendered.shift_remove(name).unwrap_or_default());
    }
    answer.insert("exitCode".into(), done.exit_code.into());
    answer.insert("error".into(), error.into());
    answer.insert("language".into(), done.language.as_str().into());
    answer.insert("duration".into(), render::milliseconds(done.duration_us));
    let result = rendered.shift_remove("result");
    if shape == Shape::Eval || result.is_some() {
        // A shell's value is what it prints.
        let printed = || done.language.is_shell().then(|| trimmed(&answer["stdout"]));
        let result = result.or_else(printed).unwrap_or_default();
        answer.insert("result".into(), result);
    }
    for name in ["execution_time_ms", "exit_code", "language", "error"] {
        rendered.shift_remove(name);
    }
    answer.extend(rendered);
    answer
}

fn trimmed(text: &Value) -> Value {
    text.as_str().unwrap_or_default().trim_end_matches('\n').into()
}

/// What went wrong, in one sentence.
#[must_use]
pub fn error_of(done: &Completed) -> Option<String> {
    if done.timed_out {
        let seconds = done.duration_us as f64 / 1e6;
        return Some(format!(
            "timed out after {seconds:.1} s and was interrupted; the session's state is {}",
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

/// The parts of all live kernels that an agent looks for at the top.
pub fn gather(state: &mut Map<String, Value>) {
    let kernels = state.get("kernels").and_then(Value::as_object).cloned().unwrap_or_default();
    for name in ["functions", "imports"] {
        let mut all = Vec::new();
        for kernel in kernels.values() {
            for item in kernel.get(name).and_then(Value::as_array).into_iter().flatten() {
                let item = item.get("name").unwrap_or(item).clone();
                if !all.contains(&item) {
                    all.push(item);
                }
            }
        }
        state.insert(name.into(), all.into());
    }
    let mut variables = Map::new();
    for (language, kernel) in &kernels {
        if let Some(found) = kernel.get("variables") {
            variables.insert(language.clone(), found.clone());
        }
    }
    state.insert("variables".into(), variables.into());
    state.shift_remove("language");
    state.insert("languages".into(), kernels.keys().cloned().collect::<Vec<_>>().into());
}
