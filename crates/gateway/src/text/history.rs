//! The history as text, one line per run or other entry.

use super::answer::duration;
use super::excerpt::clip;
use serde_json::Value;

/// How many characters of a command are shown: enough to recognize it.
const COMMAND: usize = 200;

pub(super) fn lines(entries: &[Value]) -> String {
    let line = |entry: &Value| {
        if entry["event"].is_string() {
            return event(entry);
        }
        let command = entry["command"].as_str().unwrap_or_default();
        let more = command.trim_end().lines().count().saturating_sub(1);
        let more = if more > 0 { format!(" (and {more} more lines)") } else { String::new() };
        format!(
            "run {}: {} {}, exit code {}, {}{more}\n",
            entry["run"],
            entry["language"].as_str().unwrap_or_default(),
            clip(command.lines().next().unwrap_or_default(), COMMAND),
            entry["exitCode"],
            duration(entry["duration"].as_f64().unwrap_or(0.0)),
        )
    };
    entries.iter().map(line).collect()
}

/// Returns the line of an entry that is not a run.
fn event(entry: &Value) -> String {
    format!("{}: {}\n", entry["run"], event_text(entry))
}

pub(super) fn event_text(entry: &Value) -> String {
    let notes = entry["notes"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let command = entry["command"].as_str().unwrap_or_default();
    let all: Vec<&str> = std::iter::once(command).chain(notes).collect();
    clip(&all.join("; "), COMMAND)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_run_is_a_line() {
        let entries = [
            json!({"run": 3, "language": "bash", "command": "ls\npwd\n", "exitCode": 0, "duration": 4}),
        ];
        assert_eq!(lines(&entries), "run 3: bash ls, exit code 0, 4 ms (and 1 more lines)\n");
        let rewind = json!({"run": 5, "event": "rewind", "command": "rewind before-4",
            "notes": ["takes back run 4"], "exitCode": 0});
        assert_eq!(lines(&[rewind]), "5: rewind before-4; takes back run 4\n");
    }
}
