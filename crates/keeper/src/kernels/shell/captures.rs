//! The contents of a shell's captures, and the functions that it cannot list itself.

use super::super::{RawCapture, Report};
use super::dialect::{self, Dialect};
use super::traps::ExitTrap;
use super::view::{self, Interpreted};
use super::{SOURCES, Shell, functions, quote};
use crate::scratch::{read_left, write_file};
use serde_json::{Map, Value};
use sessile_protocol::{Language, RunNo};
use sessile_store::SavedKernel;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::io;

/// Captures in progress, each in a fork of the shell.
#[derive(Debug, Default)]
pub(super) struct Captures {
    pub(super) under_way: Vec<RunNo>,
    /// The one that was asked for a second time.
    pub(super) repeated: Option<RunNo>,
}

impl Shell {
    /// Records the functions in a text, for a shell that cannot list its own, and makes
    /// the next capture ask which of them exist.
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
        let ask = |name: &String| format!("\\command -V {}\n", quote(name));
        let questions: String = self.functions.keys().map(ask).collect();
        // Renamed into place: a capture may be reading it.
        write_file(&self.path("names.new"), questions.as_bytes())?;
        std::fs::rename(self.path("names.new"), self.path("names"))
    }

    /// Handles a finished capture. Captures that began before it are of no use any more.
    pub(super) fn captured(&mut self, as_of: RunNo) -> Option<Report> {
        if !self.captures.under_way.contains(&as_of) {
            let _ = std::fs::remove_file(self.left(&capture_file(as_of)));
            return None;
        }
        self.captures.under_way.retain(|run| *run > as_of);
        let raw = self.take_capture(&capture_file(as_of), as_of);
        Some(raw.map_or(Report::NotCaptured, |raw| Report::Captured(RawCapture::Listed(raw))))
    }

    pub(super) fn take_capture(&mut self, name: &str, as_of: RunNo) -> Option<Listed> {
        let path = self.left(name);
        let bytes = read_left(&path).ok()?;
        let _ = std::fs::remove_file(path);
        if !bytes.ends_with(END) {
            return None;
        }
        // Only the shell's current traps matter; a run that began meanwhile may have
        // changed them again.
        if self.current.is_none() {
            let traps = bytes.split(|b| *b == 0).nth(self.dialect.traps_section());
            let [exit_trap, debug_trap] =
                ["EXIT", "DEBUG"].map(|name| view::trap(traps.unwrap_or_default(), &[name]));
            if self.dialect.hides_debug_trap() && debug_trap.is_some() {
                self.keep_debug_trap(debug_trap);
            }
            self.rearm(exit_trap);
        }
        let exit_trap = match &self.exit_trap {
            ExitTrap::Armed { users } => users.clone(),
            ExitTrap::Guarded { .. } | ExitTrap::Open => None,
        };
        Some(Listed {
            dialect: self.dialect,
            bytes,
            as_of,
            exit_trap,
            debug_trap: self.debug_trap.clone(),
            functions: self.functions.clone(),
        })
    }
}

/// Returns the file for the state after a run.
pub(super) fn capture_file(as_of: RunNo) -> String {
    format!("w/x{as_of}")
}

/// How a complete capture ends.
const END: &[u8] = b"\0end\0";

/// A shell's state, as the shell has listed it.
#[derive(Debug)]
pub(crate) struct Listed {
    dialect: &'static dyn Dialect,
    bytes: Vec<u8>,
    pub(crate) as_of: RunNo,
    /// The user's traps: a listing has ours in their place.
    exit_trap: Option<String>,
    debug_trap: Option<String>,
    /// The sources of functions, for a shell that does not list them.
    functions: BTreeMap<String, String>,
}

/// Interprets a capture without the shell that has written it.
pub(crate) fn interpret(language: Language, bytes: Vec<u8>) -> Option<SavedKernel> {
    let listed = Listed {
        dialect: dialect::of(language),
        bytes,
        as_of: RunNo(0),
        exit_trap: None,
        debug_trap: None,
        functions: BTreeMap::new(),
    };
    listed.interpret()
}

impl Listed {
    /// Interprets it. Returns `None` if it contains no state.
    pub(crate) fn interpret(&self) -> Option<SavedKernel> {
        let Interpreted { mut view, mut restore } = self.dialect.interpret(&self.bytes)?;
        view.insert("shell".into(), Value::from(self.dialect.name()));
        for (name, trap) in [("EXIT", &self.exit_trap), ("DEBUG", &self.debug_trap)] {
            if let Some(trap) = trap {
                let traps = view.entry("traps").or_insert_with(|| Map::new().into());
                traps[name] = Value::from(trap.as_str());
            }
        }
        self.add_functions(&mut view, &mut restore);
        Some(SavedKernel {
            as_of_run: self.as_of,
            view,
            restore: Some(restore),
            dump: None,
            dump_as_of_run: None,
        })
    }

    /// Adds the sources of the functions that were found to what is restored.
    fn add_functions(&self, view: &mut Map<String, Value>, restore: &mut String) {
        let found = view.get("functions").and_then(Value::as_array).cloned().unwrap_or_default();
        let mut sources = Map::new();
        for name in found.iter().filter_map(Value::as_str) {
            if let Some(source) = self.functions.get(name) {
                // On the left of `||`: a function that cannot be read affects no other.
                let _ = write!(restore, "\n\\command eval {} || \\command :", quote(source));
                sources.insert(name.to_owned(), source.as_str().into());
            }
        }
        if !sources.is_empty() {
            view.insert(SOURCES.to_owned(), sources.into());
        }
    }
}
