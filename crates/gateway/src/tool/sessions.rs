//! Arguments of the tools that name sessions.

use super::RunAction;
use super::call::{Order, both};
use super::request::{Fields, Run, refuse};
use crate::following::Position;
use crate::text::OutputOptions;
use crate::{Error, Result};
use serde_json::{Map, Value};
use sessile_protocol::{Auto, Language, RunNo, SessionId};
use std::collections::BTreeMap;

/// A call of `session_exec`.
#[derive(Debug)]
pub struct SessionCall {
    pub session: SessionId,
    pub wanted: SessionAction,
    pub output: OutputOptions,
}

#[derive(Debug)]
pub enum SessionAction {
    /// In this language, or in the session's own.
    New(Run, Option<Language>),
    Earlier(Order),
}

impl SessionCall {
    /// # Errors
    /// When the request is invalid; the message says what to do.
    pub fn from_arguments(arguments: &Map<String, Value>) -> Result<Self> {
        let fields = Fields(arguments);
        let session = session_of(arguments)?;
        let run = fields.number("run")?.map(RunNo);
        let is_interrupt = fields.get("interrupt") == Some(&Value::Bool(true));
        let is_read = fields.get("stream").is_some() || fields.get("from").is_some();
        let has_command = fields.get("command").or_else(|| fields.get("code")).is_some();
        let is_feed = fields.get("input").is_some() || fields.get("eof").is_some();
        let is_signal = fields.get("signal").is_some() || fields.get("pid").is_some();
        fields.number("wait_ms")?;
        let wanted = match run {
            Some(run) if has_command => return refuse(both(run)),
            run if is_signal && !has_command => SessionAction::Earlier(fields.signal(run)?),
            Some(run) if is_feed => SessionAction::Earlier(Order::RunInput(fields.feed(run)?)),
            Some(run) if is_interrupt => SessionAction::Earlier(Order::Interrupt(Some(run))),
            Some(run) if is_read => SessionAction::Earlier(Order::Read(fields.piece(run)?)),
            Some(run) => SessionAction::Earlier(Order::Wait(run, RunAction::Exec)),
            None if is_interrupt && !has_command => SessionAction::Earlier(Order::Interrupt(None)),
            None if !has_command => {
                return refuse("command is required, or the number of a run that was begun before");
            }
            None => {
                let mut run = fields.run("session_exec", Language::Bash)?;
                run.interactive = fields.flag("interactive")?;
                let language = fields.get("language").map(|_| run.language);
                SessionAction::New(run, language)
            }
        };
        Ok(Self { session, wanted, output: fields.output()?.bounded() })
    }
}

/// A call of `session_start`.
#[derive(Debug)]
pub struct SessionStart {
    pub shell: Option<String>,
    pub from: Option<String>,
    pub cwd: Option<String>,
    pub name: Option<String>,
    pub env: BTreeMap<String, String>,
    pub command_timeout_ms: Option<u64>,
    pub idle_timeout_ms: Option<u64>,
    pub auto: Option<Auto>,
    pub durable: Option<bool>,
}

impl SessionStart {
    /// # Errors
    /// When the request is invalid; the message says what to do.
    pub fn from_arguments(arguments: &Map<String, Value>) -> Result<Self> {
        let fields = Fields(arguments);
        Ok(Self {
            shell: fields.text("shell")?,
            from: fields.text("from")?,
            cwd: fields.text("cwd")?,
            name: fields.text("name")?,
            env: fields.env()?,
            command_timeout_ms: fields.number("command_timeout_ms")?,
            idle_timeout_ms: fields.number("idle_timeout_ms")?,
            auto: fields.auto()?,
            durable: fields.choice("durable")?,
        })
    }
}

/// A call of `session_list`.
#[derive(Debug)]
pub struct SessionList {
    pub status: Option<String>,
    pub limit: u64,
}

/// Statuses of sessions in lists.
const STATUSES: [&str; 4] = ["active", "starting", "lost", "terminated"];

impl SessionList {
    /// # Errors
    /// When the request is invalid; the message says what to do.
    pub fn from_arguments(arguments: &Map<String, Value>) -> Result<Self> {
        let fields = Fields(arguments);
        let status = fields.text("status")?;
        if let Some(other) = status.as_deref().filter(|status| !STATUSES.contains(status)) {
            return refuse(format!("status must be one of: {}; not {other}", STATUSES.join(", ")));
        }
        Ok(Self { status, limit: fields.number("limit")?.unwrap_or(20).clamp(1, 1000) })
    }
}

/// A call of `session_logs`.
#[derive(Debug)]
pub struct SessionLogs {
    pub session: SessionId,
    pub limit: usize,
    /// The position up to which the caller has read.
    pub after: Option<Position>,
    /// Whether to wait for more.
    pub waits: bool,
}

/// Limit for the runs in one log: each has its share of the answer's text.
const LOGGED: u64 = 50;

impl SessionLogs {
    /// # Errors
    /// When the request is invalid; the message says what to do.
    pub fn from_arguments(arguments: &Map<String, Value>) -> Result<Self> {
        let fields = Fields(arguments);
        let after = match fields.get("after") {
            None => None,
            Some(Value::String(text)) => Some(text.parse()),
            Some(number) => Some(number.to_string().parse()),
        };
        let after = after.transpose().map_err(|_| {
            Error::bad_request("after must be the number of a run, or what an answer of session_logs gave as after")
        })?;
        let limit = fields.number("limit")?.unwrap_or(10).clamp(1, LOGGED);
        Ok(Self {
            session: session_of(arguments)?,
            limit: usize::try_from(limit).unwrap_or(1),
            after,
            waits: fields.number("wait_ms")?.is_some(),
        })
    }
}

/// Whether a call of `session_top` wants ended sessions, too.
///
/// # Errors
/// When the request is invalid; the message says what to do.
pub fn all_of(arguments: &Map<String, Value>) -> Result<bool> {
    Fields(arguments).flag("all")
}

/// Returns the session that a call names.
///
/// # Errors
/// When the request is invalid; the message says what to do.
pub fn session_of(arguments: &Map<String, Value>) -> Result<SessionId> {
    let id = Fields(arguments).text("session_id")?;
    let id = id.ok_or_else(|| {
        Error::bad_request("session_id is required; session_start gives one, session_list all")
    })?;
    id.parse()
        .map_err(|_| Error::bad_request(format!("{id:?} is not a session id; see session_list")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::SignalTarget;
    use serde_json::json;

    #[test]
    fn a_session_is_named_by_its_id() {
        let call = |arguments: Value| SessionCall::from_arguments(arguments.as_object().unwrap());
        let id = "sess_0123456789ab";
        assert!(call(json!({"command": "ls"})).unwrap_err().message.contains("session_start"));
        assert!(call(json!({"session_id": "../x", "command": "ls"})).is_err());
        assert!(
            call(json!({"session_id": id})).unwrap_err().message.starts_with("command is required")
        );
        let run = call(json!({"session_id": id, "command": "ls"})).unwrap();
        assert!(matches!(run.wanted, SessionAction::New(run, None) if run.command == "ls"));
        let stop = call(json!({"session_id": id, "run": 4, "interrupt": true})).unwrap();
        assert!(matches!(stop.wanted, SessionAction::Earlier(Order::Interrupt(Some(RunNo(4))))));
        let kill = call(json!({"session_id": id, "pid": 4, "signal": "KILL"})).unwrap();
        assert!(matches!(
            kill.wanted,
            SessionAction::Earlier(Order::Signal(SignalTarget::Job(4), 9))
        ));
        let feed = call(json!({"session_id": id, "run": 4, "input": "y\n"})).unwrap();
        assert!(matches!(feed.wanted, SessionAction::Earlier(Order::RunInput(_))));
        let talk = call(json!({"session_id": id, "command": "cat", "interactive": true}));
        assert!(matches!(talk.unwrap().wanted, SessionAction::New(run, None) if run.interactive));
    }

    #[test]
    fn a_log_goes_on_after_a_number_or_what_it_gave() {
        let logs = |after: Value| {
            let arguments =
                json!({"session_id": "sess_0123456789ab", "after": after, "limit": 900});
            SessionLogs::from_arguments(arguments.as_object().unwrap())
        };
        for (after, position) in [(json!(7), "7"), (json!("7"), "7"), (json!("9_2~3"), "9_2~3")] {
            let logs = logs(after).unwrap();
            assert_eq!((logs.after.unwrap().to_string().as_str(), logs.limit), (position, 50));
            assert!(!logs.waits);
        }
        assert!(logs(Value::Null).unwrap().after.is_none());
        for wrong in [json!(-1), json!("soon"), json!(true), json!("1_9")] {
            assert!(logs(wrong).unwrap_err().message.starts_with("after must be"));
        }
    }

    #[test]
    fn a_status_is_one_that_there_is() {
        let list = |arguments: Value| SessionList::from_arguments(arguments.as_object().unwrap());
        assert_eq!(list(json!({})).unwrap().limit, 20);
        assert!(list(json!({"status": "ended"})).unwrap_err().message.contains("terminated"));
    }
}
