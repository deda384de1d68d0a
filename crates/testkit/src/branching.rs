//! Forks and checkpoints of a session, and the processes that they leave.

use crate::{Answer, Output, Process, Session, until};
use serde_json::Value;

impl<'h> Session<'h> {
    /// Runs `sessile COMMAND ID ARGS…`.
    #[track_caller]
    pub fn call(&self, command: &str, args: &[&str]) -> Output {
        self.harness().sessile(&[&[command, self.id()], args].concat())
    }

    /// Makes a fork that shares the workspace.
    #[track_caller]
    #[must_use]
    pub fn fork(&self) -> Self {
        let (mut forks, _) = self.forks(&[]);
        forks.pop().expect("a fork")
    }

    /// Makes forks, and returns them with the answer.
    #[track_caller]
    #[must_use]
    pub fn forks(&self, args: &[&str]) -> (Vec<Self>, Value) {
        let answer = self.call("fork", args).json();
        let ids = answer["session_ids"].as_array().expect("ids").iter();
        let called = |id: &Value| self.harness().session_called(id.as_str().expect("an id"));
        (ids.map(called).collect(), answer)
    }

    #[track_caller]
    pub fn checkpoint(&self, args: &[&str]) -> Value {
        self.call("checkpoint", args).json()
    }

    #[track_caller]
    pub fn rewind(&self, args: &[&str]) -> Value {
        self.call("rewind", args).json()
    }

    #[track_caller]
    pub fn undo(&self) -> Value {
        self.call("undo", &[]).json()
    }

    /// Returns the names of the checkpoints.
    #[track_caller]
    #[must_use]
    pub fn checkpoints(&self) -> Vec<String> {
        let listed = self.sessile("checkpoints").json();
        let points = listed.as_array().expect("a list").iter();
        points.map(|point| point["name"].as_str().expect("a name").to_owned()).collect()
    }

    /// Runs a text in Python.
    #[track_caller]
    pub fn python(&self, text: impl AsRef<[u8]>) -> Answer {
        self.run_in("python", text)
    }

    /// Waits until the keeper has exactly this many children.
    #[track_caller]
    pub fn wait_children(&self, count: usize) {
        let keeper = self.keeper();
        until(&format!("{count} children of the keeper: {:?}", keeper.children()), || {
            (keeper.children().len() == count).then_some(())
        });
    }
}

impl Process {
    /// Returns its children.
    #[must_use]
    pub fn children(&self) -> Vec<Self> {
        let children = self.entry().children().into_iter();
        children.map(|pid| Self::of(pid.as_raw_nonzero().get())).collect()
    }
}
