//! The activity of sessions, and the runs of one, as text.

use super::answer::answer_text;
use super::excerpt::clip;
use super::history::event_text;
use crate::tool::NextCall;
use serde_json::{Map, Value};
use std::fmt::Write;

/// How many characters of a command a log shows: as many as a person would type.
const COMMAND: usize = 1000;

/// The same for an overview.
const SHORT: usize = 200;

/// Lists runs with their output, and says how to continue.
#[must_use]
pub fn logs(runs: &[Map<String, Value>], again: &NextCall, after: &str) -> String {
    let mut text = String::new();
    for run in runs {
        let word = |name: &str| run.get(name).and_then(Value::as_str).unwrap_or_default();
        if run.contains_key("event") {
            let event = event_text(&Value::Object(run.clone()));
            let _ = writeln!(text, "{}: {event}\n", run["run"]);
            continue;
        }
        let command = clip(word("command").trim_end(), COMMAND);
        let _ = writeln!(text, "{}> {command}\n{}\n", word("language"), answer_text(run, again));
    }
    if runs.is_empty() {
        text.push_str("no runs\n");
    }
    let _ = write!(text, "To read on, call session_logs with \"after\": \"{after}\".");
    text
}

/// Lists sessions with their activity, one per line.
#[must_use]
pub fn top(sessions: &[Value]) -> String {
    if sessions.is_empty() {
        return "no live sessions".to_owned();
    }
    let lines: Vec<String> = sessions.iter().map(line).collect();
    lines.join("\n")
}

fn line(session: &Value) -> String {
    let word = |name: &str| session[name].as_str().unwrap_or_default();
    let number = |name: &str| session[name].as_f64().unwrap_or(0.0);
    let mut text = word("session_id").to_owned();
    if let Some(name) = session["name"].as_str() {
        let _ = write!(text, " ({})", clip(name, SHORT));
    }
    let _ = write!(
        text,
        ": {}, {:.1} % CPU, {:.1} MiB, {} processes",
        word("state"),
        number("cpu_percent"),
        number("memory_bytes") / f64::from(1 << 20),
        session["processes"],
    );
    if let Some(queued) = session["queued"].as_u64().filter(|queued| *queued > 0) {
        let _ = write!(text, ", {queued} queued");
    }
    match session["running"].as_array().map(Vec::as_slice).unwrap_or_default() {
        [] => {
            if let Some(idle) = session["idle_ms"].as_u64() {
                let _ = write!(text, ", no run for {} s", idle / 1000);
            }
        }
        running => running.iter().for_each(|run| {
            let command: Vec<&str> =
                run["command"].as_str().unwrap_or_default().split_whitespace().collect();
            let waits = if run["waiting_for_input"] == true { ", waits for input" } else { "" };
            let _ = write!(
                text,
                "\n  run {}, {} s{waits}: {}",
                run["run"],
                run["running_ms"].as_u64().unwrap_or(0) / 1000,
                clip(&command.join(" "), SHORT)
            );
        }),
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_session_is_a_line_and_each_of_its_runs_another() {
        let busy = json!({"session_id": "sess_1", "name": "web", "state": "busy", "cpu_percent": 50.04,
            "memory_bytes": 3 << 20, "processes": 4, "queued": 1, "idle_ms": null, "running": [
                {"run": 7, "command": "make\n  all", "running_ms": 2500, "waiting_for_input": true}]});
        let idle = json!({"session_id": "sess_2", "name": null, "state": "idle", "cpu_percent": 0.0,
            "memory_bytes": 1 << 20, "processes": 2, "queued": 0, "idle_ms": 61_000, "running": []});
        assert_eq!(
            top(&[busy, idle]),
            "sess_1 (web): busy, 50.0 % CPU, 3.0 MiB, 4 processes, 1 queued\n  run 7, 2 s, waits \
             for input: make all\nsess_2: idle, 0.0 % CPU, 1.0 MiB, 2 processes, no run for 61 s"
        );
        assert_eq!(top(&[]), "no live sessions");
    }

    #[test]
    fn a_log_is_runs_one_after_the_other() {
        let run = json!({"run": 1, "language": "bash", "command": "seq 9", "exit_code": 0,
            "stdout": "x\n", "stderr": ""});
        let runs: Vec<_> = (0..2).map(|_| run.as_object().unwrap().clone()).collect();
        let text = logs(&runs, &NextCall::session("sess_1"), "20");
        assert_eq!(text.matches("bash> seq 9\nexit code 0").count(), 2, "{text}");
        assert!(text.ends_with("\"after\": \"20\"."));
    }
}
