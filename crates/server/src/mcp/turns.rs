//! Runs of one session begin in the order in which their calls came.
//!
//! A model that asks for several things at once (`cd build`, then `make`) has its client
//! send several calls without waiting for answers. Each call is a separate task, and gets
//! its run's number only after some lookups; so it takes a turn first, and passes it on
//! when its run has a number. On a single-threaded runtime, tasks are begun in the order
//! of their messages.

use super::tools::ToolName;
use crate::keepers::lock;
use serde_json::{Map, Value};
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::sync::{Arc, Mutex};
use tokio::sync::OwnedMutexGuard;

/// Number of locks. Sessions that share one wait for each other, but only briefly.
const TURNS: usize = 64;

#[derive(Debug)]
pub(super) struct Turns([Arc<tokio::sync::Mutex<()>>; TURNS]);

impl Default for Turns {
    fn default() -> Self {
        Self(std::array::from_fn(|_| Arc::default()))
    }
}

/// A call's turn, until it is passed on or dropped.
#[derive(Debug, Default)]
pub(super) struct Turn(Mutex<Option<OwnedMutexGuard<()>>>);

impl Turn {
    /// Lets the next call begin.
    pub(super) fn pass_on(&self) {
        lock(&self.0).take();
    }
}

impl Turns {
    /// Waits for a turn if the call begins a run; otherwise returns at once.
    pub(super) async fn take(
        &self,
        tool: ToolName,
        arguments: Option<&Map<String, Value>>,
    ) -> Turn {
        let place = arguments.and_then(|arguments| place(tool, arguments));
        let Some(place) = place else { return Turn::default() };
        let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(place);
        let at = usize::try_from(hash % TURNS as u64).unwrap_or_default();
        let turn = self.0[at].clone().lock_owned().await;
        Turn(Mutex::new(Some(turn)))
    }
}

/// Returns where a call begins a run, if it does.
fn place(tool: ToolName, arguments: &Map<String, Value>) -> Option<Vec<String>> {
    let text = |name: &str| arguments.get(name).map(Value::to_string).unwrap_or_default();
    if arguments.contains_key("run") {
        return None;
    }
    if tool == ToolName::SessionExec {
        return Some(vec![text("session_id")]);
    }
    let action = arguments.get("action").and_then(Value::as_str);
    let begins = tool == ToolName::Runtime && matches!(action, Some("exec" | "eval"));
    begins.then(|| vec![text("workspace"), text("session_key")])
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn place_of(tool: ToolName, arguments: &Value) -> Option<Vec<String>> {
        place(tool, arguments.as_object().unwrap())
    }

    #[test]
    fn what_begins_no_run_waits_for_nobody() {
        let runtime = |arguments| place_of(ToolName::Runtime, &arguments);
        assert!(runtime(json!({"action": "exec", "command": "ls"})).is_some());
        assert!(runtime(json!({"action": "exec", "run": 3})).is_none());
        assert!(runtime(json!({"action": "interrupt"})).is_none());
        let session = |arguments| place_of(ToolName::SessionExec, &arguments);
        assert!(session(json!({"session_id": "a", "command": "ls"})).is_some());
        assert!(session(json!({"session_id": "a", "run": 3, "interrupt": true})).is_none());
        assert!(place_of(ToolName::SessionList, &json!({})).is_none());
    }

    #[tokio::test]
    async fn turns_are_passed_on_and_given_back() {
        let (turns, call) = (Turns::default(), json!({"action": "exec", "command": "ls"}));
        let first = turns.take(ToolName::Runtime, call.as_object()).await;
        first.pass_on();
        let second = turns.take(ToolName::Runtime, call.as_object()).await;
        drop(second);
        let _third = turns.take(ToolName::Runtime, call.as_object()).await;
    }
}
