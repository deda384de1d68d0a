//! Suggests the next call: its arguments, as a model would write them.

use serde_json::{Map, Value, json};

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
        self.call("exec", run, [])
    }

    #[must_use]
    pub fn interrupt(&self, run: u64) -> String {
        match self {
            Self::Runtime(_) => self.call("interrupt", run, []),
            Self::Session(_) => self.call("", run, [("interrupt", json!(true))]),
        }
    }

    /// Returns the call that writes input.
    #[must_use]
    pub fn input(&self, run: u64) -> String {
        self.call("input", run, [("input", json!("…\n"))])
    }

    /// Returns the call that reads the output from this offset on.
    #[must_use]
    pub fn output(&self, run: u64, stream: &str, from: u64) -> String {
        self.call("output", run, [("stream", json!(stream)), ("from", json!(from))])
    }

    fn call<const N: usize>(&self, action: &str, run: u64, more: [(&str, Value); N]) -> String {
        let mut arguments = Map::new();
        match self {
            Self::Runtime(target) => {
                arguments.insert("action".to_owned(), action.into());
                arguments.extend(target.clone());
            }
            Self::Session(id) => {
                arguments.insert("session_id".to_owned(), id.as_str().into());
            }
        }
        arguments.insert("run".to_owned(), run.into());
        arguments.extend(more.map(|(name, value)| (name.to_owned(), value)));
        Value::Object(arguments).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_names_the_session_that_the_one_before_did() {
        let Value::Object(before) = json!({"action": "exec", "command": "x", "workspace": "/w"})
        else {
            panic!("an object")
        };
        let again = NextCall::runtime(before);
        assert_eq!(again.wait(3), r#"{"action":"exec","workspace":"/w","run":3}"#);
        assert_eq!(again.interrupt(3), r#"{"action":"interrupt","workspace":"/w","run":3}"#);
    }
}
