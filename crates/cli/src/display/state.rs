//! The state of a session.

use super::words::{age, count, cut, on_one_line, width};
use super::{Colour, Page, sessions};
use jiff::Timestamp;
use serde_json::{Map, Value};
use sessile_sandbox::limits::size;
use sessile_store::{Entry, Metadata};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// How many variables of a kernel are shown.
const MOST: usize = 40;
/// Width of the label column.
const LABEL: usize = 13;
/// Variables that every shell and every terminal sets for itself.
const OWN: [&str; 6] = ["_", "PWD", "OLDPWD", "SHLVL", "TERM", "SESSILE_SESSION_ID"];

#[derive(Debug)]
pub(crate) struct StateReport<'a> {
    pub(crate) metadata: &'a Metadata,
    pub(crate) kernels: &'a Map<String, Value>,
    pub(crate) last: Option<&'a Entry>,
    /// The user's own environment: only differences to it are shown.
    pub(crate) environment: &'a BTreeMap<String, String>,
    pub(crate) home: Option<&'a Path>,
    pub(crate) now: Timestamp,
}

pub(crate) fn show(of: &StateReport<'_>, page: Page) -> String {
    let m = of.metadata;
    let name = m.name.as_deref().map(|name| format!(" {}", on_one_line(name))).unwrap_or_default();
    let head = format!("{}{name}, {}", m.session_id, m.status.as_str());
    let mut text = format!("{}\n", page.paint.text(Colour::Bold, &cut(&head, page.width)));
    if let Some(last) = of.last {
        let runs = count(usize::try_from(m.execution_count).unwrap_or(usize::MAX), "run");
        let ago = age(&last.timestamp, of.now);
        let line = format!("{runs}; the last, {ago}: {}", on_one_line(&last.command));
        let _ = writeln!(text, "{}", cut(&line, page.width));
    }
    if let Some(limits) = of.kernels.get("resources").and_then(Value::as_object) {
        let _ = writeln!(text, "{}", cut(&limits_line(limits), page.width));
    }
    let kernels = of.kernels.get("kernels").and_then(Value::as_object);
    for (language, kernel) in kernels.into_iter().flatten() {
        if let Some(kernel) = kernel.as_object() {
            text.push_str(&one(language, kernel, of, page));
        }
    }
    text
}

/// Returns `memory 12.5 MiB of 512 MiB, 3 of 200 processes`.
fn limits_line(limits: &Map<String, Value>) -> String {
    let number = |name: &str, field: &str| limits.get(name)?.get(field)?.as_u64();
    let of = |name: &str| {
        let limit = size(number(name, "limit_bytes")?);
        Some(match number(name, "used_bytes") {
            Some(used) => format!("{name} {} of {limit}", size(used)),
            None => format!("{name} up to {limit}"),
        })
    };
    let counted = |name: &str, what: &str| {
        let limit = number(name, "limit")?;
        Some(match number(name, "used") {
            Some(used) => format!("{used} of {limit} {what}"),
            None => format!("up to {limit} {what}"),
        })
    };
    let cpus = limits.get("cpus").and_then(|cpus| cpus.get("limit")?.as_f64());
    let parts = [
        of("memory"),
        cpus.map(|cpus| format!("{cpus} CPUs")),
        counted("pids", "processes"),
        counted("open_files", "open files each"),
        of("layer"),
    ];
    format!("limits: {}", parts.into_iter().flatten().collect::<Vec<_>>().join(", "))
}

fn one(language: &str, kernel: &Map<String, Value>, of: &StateReport<'_>, page: Page) -> String {
    let run = kernel.get("as_of_run").and_then(Value::as_u64).unwrap_or(0);
    let is_busy = kernel.get("busy").and_then(Value::as_bool).unwrap_or(false);
    let since = match (run, is_busy) {
        (0, false) => "as started".to_owned(),
        (run, false) => format!("after run {run}"),
        (run, true) => format!("busy; this was after run {run}"),
    };
    let head = page.paint.text(Colour::Bold, language);
    let room = page.width.saturating_sub(width(language) + 1);
    let since = page.paint.text(Colour::Dim, &cut(&format!("({since})"), room));
    let mut text = format!("\n{head} {since}\n");
    for (label, lines) in sections(kernel, of, page) {
        let mut label = label;
        for line in lines {
            let blank = " ".repeat(LABEL.saturating_sub(width(label)));
            let painted = page.paint.text(Colour::Dim, label);
            let room = page.width.saturating_sub(LABEL + 2);
            let _ = writeln!(text, "  {painted}{blank}{}", cut(&line, room));
            label = "";
        }
    }
    text
}

type Section = (&'static str, Vec<String>);

/// Returns the sections of a kernel, without empty ones.
fn sections(kernel: &Map<String, Value>, of: &StateReport<'_>, page: Page) -> Vec<Section> {
    let room = page.width.saturating_sub(LABEL + 2);
    let mut all: Vec<Section> = Vec::new();
    if let Some(place) = kernel.get("working_dir").and_then(Value::as_str) {
        all.push(("directory", vec![on_one_line(&sessions::place(Path::new(place), of.home))]));
    }
    all.push(("variables", pairs(kernel, "variables")));
    all.push(("environment", environment(kernel, of.environment)));
    for name in ["functions", "classes", "imports", "arguments", "threads"] {
        all.push((name, wrapped(&names(kernel, name), room)));
    }
    for name in ["aliases", "options", "traps"] {
        all.push((name, pairs(kernel, name)));
    }
    all.retain(|(_, lines)| !lines.is_empty());
    all
}

/// Returns `name = value`, one per line.
fn pairs(kernel: &Map<String, Value>, field: &str) -> Vec<String> {
    let fields = kernel.get(field).and_then(Value::as_object);
    let lines: Vec<String> =
        fields.into_iter().flatten().map(|(name, value)| pair(name, value)).collect();
    bounded(lines)
}

fn pair(name: &str, value: &Value) -> String {
    let text = |field: &str| value.get(field).and_then(Value::as_str).map(on_one_line);
    match (value.as_str(), text("type"), text("repr")) {
        (Some(value), _, _) => format!("{name} = {}", on_one_line(value)),
        (None, Some(kind), Some(repr)) => format!("{name}: {kind} = {repr}"),
        (None, _, _) => format!("{name} = {}", on_one_line(&value.to_string())),
    }
}

fn bounded(mut lines: Vec<String>) -> Vec<String> {
    if lines.len() > MOST {
        let more = lines.len() - MOST;
        lines.truncate(MOST);
        lines.push(format!("… and {more} more; --json shows all"));
    }
    lines
}

/// Returns the variables that differ from the user's own.
fn environment(kernel: &Map<String, Value>, own: &BTreeMap<String, String>) -> Vec<String> {
    let theirs = kernel.get("env_vars").and_then(Value::as_object);
    let other: Vec<String> = theirs
        .into_iter()
        .flatten()
        .filter(|(name, _)| !OWN.contains(&name.as_str()))
        .filter(|(name, value)| own.get(*name).map(String::as_str) != value.as_str())
        .map(|(name, value)| pair(name, value))
        .collect();
    bounded(other)
}

fn names(kernel: &Map<String, Value>, field: &str) -> Vec<String> {
    let list = kernel.get(field).and_then(Value::as_array);
    let name = |value: &Value| match value.as_str() {
        Some(text) => on_one_line(text),
        None => value
            .get("name")
            .and_then(Value::as_str)
            .map_or_else(|| on_one_line(&value.to_string()), on_one_line),
    };
    list.into_iter().flatten().map(name).collect()
}

/// Returns names side by side, in as many lines as needed.
fn wrapped(names: &[String], room: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for name in names {
        match lines.last_mut() {
            Some(line) if width(line) + 2 + width(name) <= room => {
                line.push_str("  ");
                line.push_str(name);
            }
            Some(_) | None => lines.push(name.clone()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::super::Paint;
    use super::*;
    use serde_json::json;

    fn shown(width: usize) -> String {
        let metadata = serde_json::from_value(json!({
            "session_id": "sess_0123456789abcdef01234567", "command": "bash", "name": "web",
            "created_at": "2026-01-01T00:00:00Z", "status": "active", "work_dir": "/home/me",
            "execution_count": 16, "language": "bash", "idle_timeout_ms": 0,
            "command_timeout_ms": 0, "max_history": 1, "output_cap": 1,
        }))
        .unwrap();
        let last: Entry = serde_json::from_value(json!({
            "run": 16, "timestamp": "2026-01-01T11:58:00Z", "command": "make\ntest",
            "language": "bash", "exit_code": 0, "duration_ms": 1, "kernel": "kept",
        }))
        .unwrap();
        let kernels = json!({"kernels": {
            "bash": {
                "working_dir": "/home/me/project", "as_of_run": 16, "busy": false,
                "variables": {"x": "41", "greeting": "日本語 日本語 日本語 日本語 日本語"},
                "env_vars": {"HOME": "/home/me", "STAGE": "test", "SHLVL": "3"},
                "functions": ["build", "deploy", "check", "release"], "aliases": {},
                "limits": {"-n": "1024"},
            },
            "python": {
                "working_dir": "/", "as_of_run": 3, "busy": true, "imports": ["math"],
                "variables": {"y": {"name": "y", "type": "list", "repr": "[1, 2]"}},
            },
        }});
        let environment = BTreeMap::from([("HOME".to_owned(), "/home/me".to_owned())]);
        let of = StateReport {
            metadata: &metadata,
            kernels: kernels.as_object().unwrap(),
            last: Some(&last),
            environment: &environment,
            home: Some(Path::new("/home/me")),
            now: "2026-01-01T12:00:00Z".parse().unwrap(),
        };
        show(&of, Page { width, paint: Paint::Plain })
    }

    #[test]
    fn a_state_is_shown_by_language() {
        let text = "\
sess_0123456789abcdef01234567 web, active
16 runs; the last, 2m ago: make ↵ test

bash (after run 16)
  directory    ~/project
  variables    x = 41
               greeting = 日本語 日本語 日本語 日本語 日本語
  environment  STAGE = test
  functions    build  deploy  check  release

python (busy; this was after run 3)
  directory    /
  variables    y: list = [1, 2]
  imports      math
";
        assert_eq!(shown(200), text);
        assert_eq!(shown(80), text);
    }

    #[test]
    fn a_narrow_terminal_wraps_names_and_cuts_values() {
        let text = shown(40);
        assert!(text.lines().all(|line| width(line) <= 40), "{text}");
        assert!(text.contains("               greeting = 日本語 日本語…\n"), "{text}");
        assert!(text.contains("  functions    build  deploy  check\n               release\n"));
    }
}
