//! What a shell's captures say, and the functions that it cannot list itself.

use super::super::Report;
use super::dialect::Dialect;
use super::traps::ExitTrap;
use super::{SOURCES, Shell, functions, quote, records};
use crate::scratch::write_file;
use serde_json::Value;
use sessile_protocol::RunNo;
use sessile_store::SavedKernel;
use std::fmt::Write;
use std::io;

/// Captures that are under way, each in a fork of the shell.
#[derive(Debug, Default)]
pub(super) struct Captures {
    pub(super) under_way: Vec<RunNo>,
}

impl Shell {
    /// Takes note of the functions in a text, for a shell that cannot list its
    /// own, and has the next capture ask which of them there are.
    pub(super) fn learn_functions(&mut self, text: &[u8]) -> io::Result<()> {
        let Ok(text) = std::str::from_utf8(text) else { return Ok(()) };
        if !self.dialect.hides_functions() || !text.contains("()") {
            return Ok(());
        }
        for definition in functions::definitions(text) {
            self.functions.insert(definition.name, definition.source);
        }
        self.name_functions()
    }

    pub(super) fn name_functions(&self) -> io::Result<()> {
        let names: Vec<&str> = self.functions.keys().map(String::as_str).collect();
        // Renamed into place: a capture may just be reading it.
        write_file(&self.path("names.new"), (names.join("\n") + "\n").as_bytes())?;
        std::fs::rename(self.path("names.new"), self.path("names"))
    }

    /// Adds the sources of the functions that a capture found to what it
    /// restores.
    pub(super) fn add_functions(
        &self,
        view: &mut serde_json::Map<String, Value>,
        restore: &mut String,
    ) {
        let found = view.get("functions").and_then(Value::as_array).cloned().unwrap_or_default();
        let mut sources = serde_json::Map::new();
        for name in found.iter().filter_map(Value::as_str) {
            if let Some(source) = self.functions.get(name) {
                // On the left of `||`: one that cannot be read costs only itself.
                let _ = write!(restore, "\n\\command eval {} || \\:", quote(source));
                sources.insert(name.to_owned(), source.as_str().into());
            }
        }
        if !sources.is_empty() {
            view.insert(SOURCES.to_owned(), sources.into());
        }
    }

    pub(super) fn captured(&mut self, as_of: RunNo) -> Option<Report> {
        let at = self.captures.under_way.iter().position(|run| *run == as_of)?;
        self.captures.under_way.remove(at);
        let saved = self.take_capture(&format!("x{as_of}"), as_of);
        if let Some(fifo) = self.dialect.capture_fifo(as_of) {
            let _ = std::fs::remove_file(self.path(&fifo));
        }
        Some(match saved {
            Some(saved) => Report::Captured { as_of, saved: Box::new(saved) },
            None => Report::NotCaptured,
        })
    }

    pub(super) fn take_capture(&mut self, name: &str, as_of: RunNo) -> Option<SavedKernel> {
        let path = self.path(name);
        let bytes = std::fs::read(&path).ok()?;
        let _ = std::fs::remove_file(path);
        let captured = records::parse(&bytes)?;
        // Only what the shell is like now matters for its traps; a run that
        // began meanwhile may have changed them again.
        if self.current.is_none() {
            if self.dialect == Dialect::Bash && captured.debug_trap.is_some() {
                self.keep_debug_trap(captured.debug_trap.clone());
            }
            self.rearm(captured.exit_trap.clone());
        }
        let mut view = captured.view;
        view.insert("shell".into(), Value::from(self.dialect.name()));
        // The capture passes over a trap with ours in it.
        if let ExitTrap::Armed { users: Some(users) } = &self.exit_trap {
            let traps =
                view.entry("traps").or_insert_with(|| Value::Object(serde_json::Map::new()));
            traps["EXIT"] = Value::from(users.as_str());
        }
        if let Some(trap) = &self.debug_trap {
            let traps =
                view.entry("traps").or_insert_with(|| Value::Object(serde_json::Map::new()));
            traps["DEBUG"] = Value::from(trap.as_str());
        }
        let mut restore = captured.restore;
        if self.dialect.hides_functions() {
            self.add_functions(&mut view, &mut restore);
        }
        Some(SavedKernel {
            as_of_run: as_of,
            view,
            restore: Some(restore),
            dump: None,
            dump_as_of_run: None,
        })
    }
}
