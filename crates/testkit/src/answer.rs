//! The answer of `sessile exec`, with assertions for tests.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

/// The JSON of a run. Each assertion shows the whole answer when it fails.
#[derive(Clone, Debug)]
pub struct Answer {
    command: String,
    json: Value,
}

impl Answer {
    pub(crate) fn new(command: &[u8], json: Value) -> Self {
        let command = String::from_utf8_lossy(command);
        // A megabyte of command would hide the important part.
        let command = command.chars().take(200).collect();
        Self { command, json }
    }

    #[must_use]
    pub fn json(&self) -> &Value {
        &self.json
    }

    #[must_use]
    pub fn run(&self) -> u64 {
        self.json["run"].as_u64().expect("a run's number")
    }

    #[must_use]
    pub fn stdout(&self) -> &str {
        self.json["stdout"].as_str().expect("text")
    }

    #[must_use]
    pub fn stderr(&self) -> &str {
        self.json["stderr"].as_str().expect("text")
    }

    /// Returns the bytes of `stdout` or `stderr`, decoded if need be.
    #[must_use]
    pub fn bytes(&self, stream: &str) -> Vec<u8> {
        let text = self.json[stream].as_str().expect("text");
        match self.json["encoding"][stream].as_str() {
            None => text.as_bytes().to_vec(),
            Some("base64") => STANDARD.decode(text).expect("base64"),
            Some(other) => panic!("unknown encoding {other}"),
        }
    }

    /// Returns the number that the run printed, mostly a pid.
    #[track_caller]
    #[must_use]
    pub fn number(&self) -> i32 {
        let text = self.stdout().trim();
        text.parse().unwrap_or_else(|_| panic!("{self:?} is no number"))
    }

    #[track_caller]
    pub fn prints(self, text: &str) -> Self {
        self.has("stdout", text)
    }

    /// Asserts the value of its last expression.
    #[track_caller]
    pub fn shows(self, text: &str) -> Self {
        self.has("result", text)
    }

    #[track_caller]
    pub fn warns(self, text: &str) -> Self {
        self.has("stderr", text)
    }

    /// Asserts that its stderr contains this.
    ///
    /// # Panics
    /// When it is not.
    #[track_caller]
    pub fn complains(self, part: &str) -> Self {
        assert!(self.stderr().contains(part), "no {part:?} in {:#}", self.json);
        self
    }

    #[track_caller]
    pub fn exits(self, code: i64) -> Self {
        self.has("exit_code", code)
    }

    #[track_caller]
    pub fn is_kept(self) -> Self {
        self.has("kernel", "kept")
    }

    #[track_caller]
    pub fn is_restarted(self) -> Self {
        self.has("kernel", "restarted")
    }

    #[track_caller]
    pub fn is_restored_as_of(self, run: u64) -> Self {
        self.has("kernel", "restored").has("as_of_run", run)
    }

    /// Asserts that the kernel is a new one without state.
    #[track_caller]
    pub fn is_fresh(self) -> Self {
        self.has("kernel", "fresh")
    }

    /// Returns the notes about the run, one per line.
    #[must_use]
    pub fn notes(&self) -> String {
        let notes = self.json["notes"].as_array().into_iter().flatten();
        notes.filter_map(Value::as_str).collect::<Vec<_>>().join("\n")
    }

    #[track_caller]
    pub fn timed_out(self) -> Self {
        self.has("timed_out", true)
    }

    /// Asserts the value of a field.
    ///
    /// # Panics
    /// When it has another.
    #[track_caller]
    pub fn has(self, field: &str, value: impl Into<Value>) -> Self {
        let value = value.into();
        assert!(
            self.json[field] == value,
            "{field} of `{}` should be {value}, but the answer is {:#}",
            self.command,
            self.json
        );
        self
    }
}
