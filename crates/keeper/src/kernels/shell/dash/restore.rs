//! Builds a text that gives a fresh shell the state of another one.
//!
//! Everything that could disturb the rest comes last. Behind `command`, the failure of a
//! special builtin does not end the whole.

use super::super::quoting::quote;
use super::listing::State;
use std::fmt::Write;

pub(super) fn script(state: &State<'_>) -> String {
    let mut text = include_str!("restore.sh").to_owned();
    let _ = writeln!(text, "\\command cd -- {}\n\\unset -v OLDPWD", word(state.cwd));
    for (name, value) in state.variables.iter().filter(|(name, _)| *name != "PWD") {
        let _ = writeln!(text, "{name}={}", word(value));
    }
    if !state.variables.iter().any(|(name, _)| *name == "IFS") {
        text.push_str("\\unset -v IFS\n");
    }
    for name in &state.exported {
        let _ = writeln!(text, "\\command export {name}");
    }
    let arguments: String =
        state.arguments.iter().map(|value| format!(" {}", word(value))).collect();
    let _ = writeln!(text, "\\set --{arguments}");
    for (name, value) in &state.aliases {
        let _ = writeln!(text, "\\command alias {}", word(&[&name[..], b"=", value].concat()));
    }
    for trap in &state.traps {
        let _ = writeln!(text, "\\command trap -- {} {}", word(&trap.text), trap.name);
    }
    let _ = writeln!(text, "\\command umask {}", state.umask);
    for limit in state.limits.iter().filter(|limit| limit.is_carried()) {
        for (kind, value) in [('S', &limit.soft), ('H', &limit.hard)] {
            let _ = writeln!(text, "\\command ulimit -{kind} -{} {value}", limit.flag);
        }
    }
    for name in &state.readonly {
        let _ = writeln!(text, "\\command readonly {name}");
    }
    let (last, first): (Vec<&str>, Vec<&str>) =
        state.options.iter().partition(|line| line.ends_with(" errexit"));
    for line in first.iter().chain(&last) {
        let _ = writeln!(text, "\\command {line}");
    }
    text
}

/// Returns any bytes as one word. Invalid UTF-8 can only be printed.
fn word(bytes: &[u8]) -> String {
    let mut word = String::new();
    for chunk in bytes.utf8_chunks() {
        word.push_str(&quote(chunk.valid()));
        if !chunk.invalid().is_empty() {
            let octal: String = chunk.invalid().iter().map(|b| format!("\\{b:03o}")).collect();
            let _ = write!(word, "\"$(\\command printf '{octal}')\"");
        }
    }
    if word.is_empty() { "''".to_owned() } else { word }
}
