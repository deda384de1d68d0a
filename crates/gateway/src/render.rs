//! Answers as JSON.

use crate::{encoding, runs};
use serde_json::{Map, Value, json};
use sessile_protocol::{Completed, KernelFate, OutputView, RunNo, StreamView};
use sessile_store::Metadata;

/// What `sessile exec` prints.
#[must_use]
pub fn completed(done: &Completed) -> Map<String, Value> {
    let stdout = encoding::encode(&done.stdout, done.run, "stdout");
    let stderr = encoding::encode(&done.stderr, done.run, "stderr");
    let mut answer = Map::new();
    let mut put = |key: &str, value: Value| answer.insert(key.to_owned(), value);
    put("stdout", stdout.text.into());
    put("stderr", stderr.text.into());
    put("exit_code", done.exit_code.into());
    put("execution_time_ms", milliseconds(done.duration_us));
    put("run", done.run.0.into());
    put("kernel", done.kernel.as_str().into());
    if let KernelFate::Restored { as_of_run } = done.kernel {
        put("as_of_run", as_of_run.0.into());
    }
    put("language", done.language.as_str().into());
    put("timed_out", done.timed_out.into());
    if done.interrupted {
        put("interrupted", true.into());
    }
    if done.repeated {
        put("repeated", true.into());
    }
    if let Some(result) = &done.result {
        put("result", result.text.clone().into());
        let data = result.data_json.as_ref().and_then(|text| serde_json::from_str(text).ok());
        if let Some(data) = data {
            put("data", data);
        }
    }
    if let Some(error) = &done.error {
        put("error", json!({"type": error.kind, "message": error.message}));
    }
    let mut encodings = Map::new();
    let mut truncated = Map::new();
    for (name, stream) in [("stdout", stdout.is_base64), ("stderr", stderr.is_base64)] {
        if stream {
            encodings.insert(name.to_owned(), "base64".into());
        }
    }
    for (name, stream) in [("stdout", stdout.truncated), ("stderr", stderr.truncated)] {
        if let Some(stream) = stream {
            truncated.insert(name.to_owned(), stream);
        }
    }
    if !encodings.is_empty() {
        put("encoding", encodings.into());
    }
    if !truncated.is_empty() {
        put("truncated", truncated.into());
    }
    if !done.notes.is_empty() {
        put("notes", done.notes.clone().into());
    }
    answer
}

/// A run that is still going, with what it has written so far.
#[must_use]
pub fn running(run: RunNo, so_far: &OutputView) -> Map<String, Value> {
    let mut answer = runs::output(run, so_far);
    answer.shift_remove("phase");
    answer
}

/// The same for somebody who has watched it: the head and the tail of what it
/// has written.
#[must_use]
pub fn so_far(run: RunNo, stdout: &StreamView, stderr: &StreamView) -> Map<String, Value> {
    let mut answer = Map::new();
    let (mut encodings, mut truncated) = (Map::new(), Map::new());
    for (name, view) in [("stdout", stdout), ("stderr", stderr)] {
        let stream = encoding::encode(view, run, name);
        answer.insert(name.to_owned(), stream.text.into());
        if stream.is_base64 {
            encodings.insert(name.to_owned(), "base64".into());
        }
        truncated.extend(stream.truncated.map(|left_out| (name.to_owned(), left_out)));
    }
    answer.insert("run".to_owned(), run.0.into());
    answer.insert("running".to_owned(), true.into());
    for (name, fields) in [("encoding", encodings), ("truncated", truncated)] {
        if !fields.is_empty() {
            answer.insert(name.to_owned(), fields.into());
        }
    }
    answer
}

/// Milliseconds to the microsecond.
#[must_use]
pub fn milliseconds(us: u64) -> Value {
    if us.is_multiple_of(1000) { (us / 1000).into() } else { (us as f64 / 1000.0).into() }
}

/// What a command says about a lost session that it continued.
#[must_use]
pub fn revival(previous: &Metadata) -> String {
    format!(
        "the session's keeper had died (last run at {}); what the session had started is gone, and `kernel` says what was brought back",
        previous.last_executed_at.as_deref().unwrap_or("no time"),
    )
}

/// What `sessile start` prints.
#[must_use]
pub fn started(metadata: &Metadata) -> Map<String, Value> {
    let fields = [
        ("session_id", json!(metadata.session_id)),
        ("command", json!(metadata.command)),
        ("work_dir", json!(metadata.work_dir)),
        ("status", json!("active")),
    ];
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}
