//! A session of a harness.

use crate::{Answer, Client, Harness, Link, Output, Process};
use serde_json::Value;
use std::path::PathBuf;

/// Returns the private directory in memory of a session with this id.
#[must_use]
pub fn memory_of(id: &str) -> PathBuf {
    let hex = id.trim_start_matches("sess_");
    PathBuf::from(format!("/dev/shm/.{}.sessile", &hex[..hex.len().min(12)]))
}

#[derive(Debug)]
pub struct Session<'h> {
    harness: &'h Harness,
    id: String,
}

impl<'h> Session<'h> {
    pub(crate) fn new(harness: &'h Harness, id: String) -> Self {
        Self { harness, id }
    }

    #[must_use]
    pub fn harness(&self) -> &'h Harness {
        self.harness
    }

    #[must_use]
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns its directory in memory, unless it is a fork.
    #[must_use]
    pub fn memory(&self) -> PathBuf {
        memory_of(self.id())
    }

    #[must_use]
    pub fn dir(&self) -> PathBuf {
        self.harness.sessions_dir().join(&self.id)
    }

    /// Runs a command and returns its answer, whatever its exit code.
    #[track_caller]
    pub fn run(&self, text: impl AsRef<[u8]>) -> Answer {
        self.run_with(&[], text)
    }

    /// Runs a command with options of `sessile exec`.
    #[track_caller]
    pub fn run_with(&self, options: &[&str], text: impl AsRef<[u8]>) -> Answer {
        self.answer(self.begin_with(options, text.as_ref()), text)
    }

    /// Runs a command in a language that need not be the session's own.
    #[track_caller]
    pub fn run_in(&self, language: &str, text: impl AsRef<[u8]>) -> Answer {
        self.run_with(&["--language", language], text)
    }

    /// Waits until the file of an earlier run's stream (`stdout` or `stderr`) has this
    /// text: output may arrive after the end of the run.
    #[track_caller]
    pub fn wait_filed(&self, run: u64, stream: &str, text: &str) {
        let path = self.dir().join(format!("runs/{run}.{stream}"));
        crate::until(&format!("{text:?} in {}", path.display()), || {
            (std::fs::read(&path).ok()? == text.as_bytes()).then_some(())
        });
    }

    /// Starts a client for a command, which waits for the answer.
    #[must_use]
    pub fn begin(&self, text: impl AsRef<[u8]>) -> Client {
        self.begin_with(&[], text)
    }

    #[must_use]
    pub fn begin_with(&self, options: &[&str], text: impl AsRef<[u8]>) -> Client {
        let args = [&["exec", &self.id], options].concat();
        self.harness.begin(&args, text.as_ref())
    }

    /// Returns the answer of a client that was started.
    #[track_caller]
    pub fn answer(&self, client: Client, text: impl AsRef<[u8]>) -> Answer {
        Answer::new(text.as_ref(), client.finish().json())
    }

    /// Connects to the keeper.
    #[track_caller]
    #[must_use]
    pub fn link(&self) -> Link {
        Link::to(&self.dir())
    }

    /// Runs `sessile COMMAND ID`.
    #[track_caller]
    pub fn sessile(&self, command: &str) -> Output {
        self.harness.sessile(&[command, &self.id])
    }

    #[track_caller]
    #[must_use]
    pub fn state(&self) -> Value {
        self.sessile("state").json()
    }

    #[track_caller]
    #[must_use]
    pub fn history(&self) -> Value {
        self.sessile("history").json()
    }

    #[track_caller]
    pub fn end(&self) {
        self.sessile("end").exits(0);
    }

    /// Returns a file of the session's directory, as JSON.
    #[track_caller]
    #[must_use]
    pub fn file(&self, name: &str) -> Value {
        let path = self.dir().join(name);
        let bytes = std::fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        serde_json::from_slice(&bytes).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
    }

    #[track_caller]
    #[must_use]
    pub fn metadata(&self) -> Value {
        self.file("metadata.json")
    }

    /// Waits until the state after this run is captured, which happens in idle time.
    #[track_caller]
    pub fn wait_captured(&self, run: u64) {
        crate::until("a capture", || {
            let state = std::fs::read(self.dir().join("state.json")).ok()?;
            let state: Value = serde_json::from_slice(&state).ok()?;
            let mut kernels = state["kernels"].as_object()?.values();
            kernels.any(|kernel| kernel["as_of_run"].as_u64() >= Some(run)).then_some(())
        });
    }

    #[track_caller]
    #[must_use]
    pub fn keeper(&self) -> Process {
        let pid = self.metadata()["keeper_pid"].as_i64();
        Process::of(i32::try_from(pid.expect("a keeper")).expect("a process id"))
    }

    /// Returns the kernel of the session's own shell.
    #[track_caller]
    #[must_use]
    pub fn kernel(&self) -> Process {
        Process::of(self.run("echo $$").number())
    }

    /// Starts a long-lived process with `text`, which prints its pid.
    #[track_caller]
    #[must_use]
    pub fn spawns(&self, text: &str) -> Process {
        let process = Process::of(self.run(text).exits(0).number());
        process.assert_alive();
        process
    }
}
