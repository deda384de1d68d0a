//! Runs, listed and read.

use crate::cursor::{self, Cursor};
use crate::encoding;
use serde_json::{Map, Value, json};
use sessile_protocol::{OpenRun, OutputView, RunNo, RunPhase};
use sessile_store::Entry;
use std::collections::BTreeMap;

/// Output of a run from some cursor on.
#[must_use]
pub fn output(run: RunNo, view: &OutputView) -> Map<String, Value> {
    let mut answer = Map::new();
    let mut encodings = Map::new();
    for (name, bytes) in [("stdout", &view.stdout), ("stderr", &view.stderr)] {
        let (text, is_base64) = encoding::text(cursor::whole(bytes, view.phase));
        answer.insert(name.to_owned(), text.into());
        if is_base64 {
            encodings.insert(name.to_owned(), "base64".into());
        }
    }
    answer.insert("run".to_owned(), run.0.into());
    answer.insert("running".to_owned(), (view.phase < RunPhase::Exited).into());
    if view.waiting_for_input {
        answer.insert("waiting_for_input".to_owned(), true.into());
    }
    answer.insert("phase".to_owned(), view.phase.as_str().into());
    answer.insert("cursor".to_owned(), Cursor::after(view).to_string().into());
    if !encodings.is_empty() {
        answer.insert("encoding".to_owned(), encodings.into());
    }
    answer
}

/// Finished runs, and those that are not over; oldest first.
#[must_use]
pub fn runs(open: &[OpenRun], finished: &[Entry]) -> Vec<Value> {
    let mut all: BTreeMap<RunNo, Value> = BTreeMap::new();
    for entry in finished {
        all.insert(entry.run, over(entry));
    }
    for run in open {
        match all.get_mut(&run.run) {
            Some(known) => known["phase"] = run.phase.as_str().into(),
            None => drop(all.insert(run.run, going(run))),
        }
    }
    all.into_values().collect()
}

fn going(run: &OpenRun) -> Value {
    let mut value = json!({
        "run": run.run,
        "phase": run.phase.as_str(),
        "language": run.language.as_str(),
        "command": run.command,
        "timestamp": run.timestamp,
    });
    let marks = [
        ("interactive", run.interactive),
        ("waiting_for_input", run.waiting_for_input),
        ("terminal", run.terminal),
    ];
    for (name, _) in marks.into_iter().filter(|(_, is_so)| *is_so) {
        value[name] = true.into();
    }
    value
}

fn over(entry: &Entry) -> Value {
    if let Some(event) = &entry.event {
        return happened(entry, event);
    }
    let mut value = json!({
        "run": entry.run,
        "phase": RunPhase::Closed.as_str(),
        "language": entry.language.as_str(),
        "command": entry.command,
        "timestamp": entry.timestamp,
        "exit_code": entry.exit_code,
        "duration_ms": entry.duration_ms,
    });
    for (name, is_so) in [("timed_out", entry.timed_out), ("interrupted", entry.interrupted)] {
        if is_so {
            value[name] = true.into();
        }
    }
    value
}

/// What has a number among the runs, and is none.
fn happened(entry: &Entry, event: &str) -> Value {
    json!({
        "run": entry.run,
        "event": event,
        "phase": RunPhase::Closed.as_str(),
        "language": entry.language.as_str(),
        "command": entry.command,
        "timestamp": entry.timestamp,
        "notes": entry.remarks.notes,
    })
}
