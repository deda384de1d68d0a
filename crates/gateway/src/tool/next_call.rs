//! Suggests the next call: its arguments, as a model would write them.

use crate::answer::is_false;
use serde::Serialize;
use serde_json::{Map, Value};

/// The tool of the next call, and how it names the session.
#[derive(Clone, Debug)]
pub enum NextCall {
    /// The `runtime` tool, with the workspace and key of the call before.
    Runtime(Map<String, Value>),
    /// `session_exec`.
    Session(String),
}

impl NextCall {
    /// Takes them from the arguments of a call of `runtime`.
    #[must_use]
    pub fn runtime(mut arguments: Map<String, Value>) -> Self {
        arguments.retain(|name, _| matches!(name.as_str(), "workspace" | "session_key"));
        Self::Runtime(arguments)
    }

    #[must_use]
    pub fn session(id: &str) -> Self {
        Self::Session(id.to_owned())
    }

    /// Returns the call that waits on.
    #[must_use]
    pub fn wait(&self, run: u64) -> String {
        self.text(&Arguments { action: "exec", ..Arguments::of(run) })
    }

    #[must_use]
    pub fn interrupt(&self, run: u64) -> String {
        match self {
            Self::Runtime(_) => self.text(&Arguments { action: "interrupt", ..Arguments::of(run) }),
            Self::Session(_) => self.text(&Arguments { interrupt: true, ..Arguments::of(run) }),
        }
    }

    /// Returns the call that writes input.
    #[must_use]
    pub fn input(&self, run: u64) -> String {
        self.text(&Arguments { action: "input", input: Some("…\n"), ..Arguments::of(run) })
    }

    /// Returns the call that reads the output from this offset on.
    #[must_use]
    pub fn output(&self, run: u64, stream: &str, from: u64) -> String {
        let (stream, from) = (Some(stream), Some(from));
        self.text(&Arguments { action: "output", stream, from, ..Arguments::of(run) })
    }

    fn text(&self, arguments: &Arguments<'_>) -> String {
        let call = match self {
            Self::Runtime(target) => Call::Runtime { action: arguments.action, target, arguments },
            Self::Session(session_id) => Call::Session { session_id, arguments },
        };
        // Cannot fail: these are structs with string keys.
        serde_json::to_string(&call).unwrap_or_default()
    }
}

/// A suggested call, as the model would write it.
#[derive(Serialize)]
#[serde(untagged)]
enum Call<'a> {
    Runtime {
        action: &'a str,
        #[serde(flatten)]
        target: &'a Map<String, Value>,
        #[serde(flatten)]
        arguments: &'a Arguments<'a>,
    },
    Session {
        session_id: &'a str,
        #[serde(flatten)]
        arguments: &'a Arguments<'a>,
    },
}

#[derive(Default, Serialize)]
struct Arguments<'a> {
    /// Only `runtime` has actions.
    #[serde(skip)]
    action: &'a str,
    run: u64,
    #[serde(skip_serializing_if = "is_false")]
    interrupt: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    from: Option<u64>,
}

impl Arguments<'_> {
    fn of(run: u64) -> Self {
        Self { run, ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_call_names_the_session_that_the_one_before_did() {
        let Value::Object(before) = json!({"action": "exec", "command": "x", "workspace": "/w"})
        else {
            panic!("an object")
        };
        let again = NextCall::runtime(before);
        assert_eq!(again.wait(3), r#"{"action":"exec","workspace":"/w","run":3}"#);
        assert_eq!(again.interrupt(3), r#"{"action":"interrupt","workspace":"/w","run":3}"#);
        let read = r#"{"action":"output","workspace":"/w","run":3,"stream":"stderr","from":7}"#;
        assert_eq!(again.output(3, "stderr", 7), read);
        let session = NextCall::session("sess_1");
        assert_eq!(session.interrupt(3), r#"{"session_id":"sess_1","run":3,"interrupt":true}"#);
    }
}
