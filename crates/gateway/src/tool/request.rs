//! A request of the `runtime` tool, checked before anything is done.

use super::unknown::check_fields;
use super::{MAX_OUTPUT, StateExtent, schema};
use crate::text::{OutputOptions, TextForm};
use crate::{Error, Result};
use serde_json::{Map, Value};
use sessile_protocol::{Auto, Language};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub struct Request {
    pub action: Action,
    pub target: Target,
    pub output: OutputOptions,
}

/// Identifies the session.
#[derive(Clone, Debug, Default)]
pub struct Target {
    pub workspace: Option<PathBuf>,
    pub session_key: Option<String>,
    /// Automatic checkpoints, if the session is made now.
    pub auto: Option<Auto>,
}

#[derive(Debug)]
pub enum Action {
    Exec(Run),
    Eval(Run),
    State(StateExtent),
    Reset,
    History { limit: u64 },
}

#[derive(Debug)]
pub struct Run {
    pub command: String,
    pub language: Language,
    pub timeout_ms: Option<u64>,
    pub queue_timeout_ms: Option<u64>,
    pub silence_ms: Option<u64>,
    pub stdin: Option<String>,
    pub env: BTreeMap<String, String>,
    /// Its stdin stays open. Only for clients that can return to the run.
    pub interactive: bool,
}

/// Refuses an invalid request.
pub(super) fn refuse<T>(message: impl Into<String>) -> Result<T> {
    Err(Error::bad_request(message))
}

pub(super) const ACTIONS: &str = "exec, eval, state, reset, history";

impl Request {
    /// # Errors
    /// When the request is invalid; the message says what to do.
    pub fn parse(text: &str) -> Result<Self> {
        let value: Value = serde_json::from_str(text).map_err(|error| {
            Error::bad_request(format!("Invalid JSON: {error}. Send one object, such as {{\"action\": \"exec\", \"command\": \"ls\"}}"))
        })?;
        Self::checked(&value)
    }

    /// Parses a request, and refuses unknown fields.
    ///
    /// # Errors
    /// When the request is invalid; the message says what to do.
    pub fn checked(value: &Value) -> Result<Self> {
        // Checked first, so that a misspelt required field is not just reported as missing.
        if let (Some(given), Some(known)) = (value.as_object(), schema::fields()) {
            check_fields(given.keys().map(String::as_str), known)?;
        }
        Self::from_value(value)
    }

    /// # Errors
    /// When the request is invalid; the message says what to do.
    pub fn from_value(value: &Value) -> Result<Self> {
        let Value::Object(fields) = value else {
            return refuse(
                "Invalid request: send one JSON object, such as {\"action\": \"state\"}",
            );
        };
        let fields = Fields(fields);
        let action = match fields.text("action")?.as_deref() {
            None => return refuse(format!("action is required. Must be one of: {ACTIONS}")),
            Some("exec") => Action::Exec(fields.run("exec", Language::Bash)?),
            Some("eval") => Action::Eval(fields.run("eval", Language::Python)?),
            Some("state") => Action::State(fields.extent()?),
            Some("reset") => Action::Reset,
            Some("history") => Action::History { limit: fields.number("limit")?.unwrap_or(20) },
            Some(other) => {
                return refuse(format!("Invalid action: {other}. Must be one of: {ACTIONS}"));
            }
        };
        Ok(Self { action, target: fields.target()?, output: fields.output()? })
    }
}

impl Target {
    /// Returns the key of the session. `sandbox` distinguishes sessions with different
    /// sandboxes, or without one.
    #[must_use]
    pub fn key(&self, workspace: &Path, sandbox: Option<&str>) -> String {
        let key = self.session_key.as_deref().unwrap_or("");
        let sandbox = sandbox.map(|mark| format!("\0{mark}")).unwrap_or_default();
        format!("{}\0{key}{sandbox}", workspace.display())
    }
}

/// Parses a whole number that is not negative; `2.0` counts as one.
#[must_use]
pub fn whole_number(value: &Value) -> Option<u64> {
    // The largest number that a float distinguishes from its neighbours.
    const MOST: f64 = 9_007_199_254_740_992.0;
    let whole = |number: f64| (0.0..=MOST).contains(&number) && number.fract() == 0.0;
    value.as_u64().or_else(|| value.as_f64().filter(|n| whole(*n)).map(|n| n as u64))
}

pub(super) struct Fields<'a>(pub(super) &'a Map<String, Value>);

impl Fields<'_> {
    /// Returns a field that is present and not null.
    pub(super) fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name).filter(|value| !value.is_null())
    }

    pub(super) fn target(&self) -> Result<Target> {
        Ok(Target {
            workspace: self.text("workspace")?.map(PathBuf::from),
            session_key: self.text("session_key")?,
            auto: self.auto()?,
        })
    }

    pub(super) fn text(&self, name: &str) -> Result<Option<String>> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(other) => refuse(format!("{name} must be a string, not {other}")),
        }
    }

    pub(super) fn number(&self, name: &str) -> Result<Option<u64>> {
        match self.get(name) {
            None => Ok(None),
            Some(value) => match whole_number(value) {
                Some(number) => Ok(Some(number)),
                None => refuse(format!(
                    "{name} must be a whole number that is not negative, not {value}"
                )),
            },
        }
    }

    /// Parses the limit and the form of the output.
    pub(super) fn output(&self) -> Result<OutputOptions> {
        let usual = OutputOptions::default();
        let limit = self.number("max_output")?.map(|most| most.min(MAX_OUTPUT));
        let limit = limit.and_then(|most| usize::try_from(most).ok()).unwrap_or(usual.limit);
        let form = if self.flag("raw")? { TextForm::Raw } else { usual.form };
        Ok(OutputOptions { limit, form })
    }

    /// Parses how much of a state is wanted.
    pub(super) fn extent(&self) -> Result<StateExtent> {
        Ok(if self.flag("all")? { StateExtent::All } else { StateExtent::Own })
    }

    /// Parses a flag; absent means false.
    pub(super) fn flag(&self, name: &str) -> Result<bool> {
        match self.get(name) {
            None => Ok(false),
            Some(Value::Bool(is_set)) => Ok(*is_set),
            Some(other) => refuse(format!("{name} must be true or false, not {other}")),
        }
    }

    pub(super) fn run(&self, action: &str, default: Language) -> Result<Run> {
        let command = match (self.text("command")?, self.text("code")?) {
            (Some(_), Some(_)) => return refuse("give either command or code, not both"),
            (command, code) => command.or(code),
        };
        let command = command.filter(|command| !command.trim().is_empty());
        let command = command
            .ok_or_else(|| Error::bad_request(format!("command is required for {action} action")));
        let language = match self.text("language")? {
            None => default,
            Some(name) => name.parse().map_err(|_| {
                Error::bad_request(format!(
                    "Unknown language: {name}. Must be one of: bash, python, node (or sh, zsh)"
                ))
            })?,
        };
        Ok(Run {
            command: command?,
            language,
            timeout_ms: self.number("timeout_ms")?,
            queue_timeout_ms: self.number("queue_timeout_ms")?,
            silence_ms: self.number("no_output_timeout_ms")?,
            stdin: self.text("stdin")?,
            env: self.env()?,
            interactive: false,
        })
    }

    pub(super) fn env(&self) -> Result<BTreeMap<String, String>> {
        match self.get("env") {
            None => Ok(BTreeMap::new()),
            Some(Value::Object(variables)) => variables
                .iter()
                .map(|(name, value)| match value.as_str() {
                    Some(text) => Ok((name.clone(), text.to_owned())),
                    None => refuse(format!("env.{name} must be a string, not {value}")),
                })
                .collect(),
            Some(Value::Array(assignments)) => assignments
                .iter()
                .map(|assignment| match assignment.as_str().and_then(|text| text.split_once('=')) {
                    Some((name, value)) => Ok((name.to_owned(), value.to_owned())),
                    None => {
                        refuse(format!("env must have texts like NAME=value, not {assignment}"))
                    }
                })
                .collect(),
            Some(other) => refuse(format!(
                "env must be a list of NAME=value, or an object of strings, not {other}"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        Request::parse(text).unwrap_err().message
    }

    #[test]
    fn a_wrong_request_is_told_what_to_do() {
        assert_eq!(
            refusal(r#"{"action": "x"}"#),
            "Invalid action: x. Must be one of: exec, eval, state, reset, history"
        );
        assert_eq!(refusal(r#"{"action": "exec"}"#), "command is required for exec action");
        assert_eq!(
            refusal(r#"{"action": "eval", "command": " "}"#),
            "command is required for eval action"
        );
        assert!(
            refusal(r#"{"action": "exec", "command": "x", "language": "perl"}"#)
                .contains("bash, python, node")
        );
        assert!(refusal(r#"{"action": "history", "limit": -1}"#).contains("limit must be"));
        assert!(
            refusal(r#"{"action": "exec", "command": "x", "env": {"A": 1}}"#).contains("env.A")
        );
        let key = refusal(r#"{"action": "state", "sessionKey": "a"}"#);
        assert_eq!(key, "unknown field \"sessionKey\"; did you mean \"session_key\"?");
        let command = refusal(r#"{"action": "exec", "comand": "x"}"#);
        assert_eq!(command, "unknown field \"comand\"; did you mean \"command\"?");
        assert!(refusal("{").starts_with("Invalid JSON"));
        assert!(refusal("[]").starts_with("Invalid request"));
        assert!(refusal("{}").starts_with("action is required"));
    }

    #[test]
    fn what_models_write_is_taken() {
        let run = |text: &str| match Request::parse(text).unwrap().action {
            Action::Exec(run) | Action::Eval(run) => run,
            Action::State(_) | Action::Reset | Action::History { .. } => panic!("{text}"),
        };
        assert_eq!(run(r#"{"action": "eval", "code": "6*7"}"#).command, "6*7");
        let timeout = run(r#"{"action": "exec", "command": "x", "timeout_ms": 2.0}"#).timeout_ms;
        assert_eq!(timeout, Some(2));
        let list = run(r#"{"action": "exec", "command": "x", "env": ["A=1=2", "B="]}"#).env;
        assert_eq!(list, [("A", "1=2"), ("B", "")].map(|(n, v)| (n.into(), v.into())).into());
        assert!(refusal(r#"{"action": "eval", "code": "1", "command": "2"}"#).contains("either"));
        assert!(refusal(r#"{"action": "exec", "command": "x", "env": ["A"]}"#).contains("NAME="));
    }

    #[test]
    fn languages_default_by_action() {
        let language = |text: &str| match Request::parse(text).unwrap().action {
            Action::Exec(run) | Action::Eval(run) => run.language,
            Action::State(_) | Action::Reset | Action::History { .. } => panic!("{text}"),
        };
        assert_eq!(language(r#"{"action": "exec", "command": "ls"}"#), Language::Bash);
        assert_eq!(language(r#"{"action": "eval", "command": "1"}"#), Language::Python);
        assert_eq!(
            language(r#"{"action": "exec", "command": "1", "language": "node"}"#),
            Language::Node
        );
    }
}
