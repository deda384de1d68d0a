//! Calls of `runtime` by a client that can return to a run: to wait for it, interrupt it,
//! read its output, give it input or signal it, and to list, rewind or fork the session.

use super::RunAction;
use super::branches::WorkspaceBranch;
use super::request::{ACTIONS, Action, Fields, Request, Target, refuse};
use crate::signal::signal_number;
use crate::text::OutputOptions;
use crate::{Error, Result};
use serde_json::{Map, Value};
use sessile_protocol::RunNo;

/// The actions on earlier runs, and on the session as a whole.
const MORE_ACTIONS: &str =
    "interrupt, output, input, signal, jobs, checkpoint, checkpoints, rewind, undo, fork";

/// Limits for a piece of output: at least one character, and at most what fits into a
/// message, whatever the bytes are.
const LEAST_PIECE: usize = 4;
const MOST_PIECE: usize = 100_000;

/// A call of `runtime`.
#[derive(Debug)]
pub enum Call {
    New(Box<Request>),
    Earlier { target: Target, order: Order, output: OutputOptions },
    Branch { target: Target, branch: WorkspaceBranch },
}

/// An operation on an earlier run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Order {
    Wait(RunNo, RunAction),
    /// Without a number, the current run.
    Interrupt(Option<RunNo>),
    Read(Piece),
    /// Write input, then wait.
    RunInput(RunInput),
    Signal(SignalTarget, i32),
    /// List all runs, and their background jobs.
    Jobs,
}

/// Input for an interactive run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunInput {
    pub run: RunNo,
    pub text: String,
    /// Close stdin after this.
    pub eof: bool,
}

/// The target of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignalTarget {
    Run(RunNo),
    Job(u32),
}

/// A piece of a run's output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    pub run: RunNo,
    pub stream: Stream,
    pub from: u64,
    /// How many bytes of it.
    pub max: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    Stdout,
    Stderr,
}

impl Stream {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
        }
    }
}

impl Call {
    /// # Errors
    /// When the request is invalid; the message says what to do.
    pub fn from_arguments(arguments: &Map<String, Value>) -> Result<Self> {
        let fields = Fields(arguments);
        let run = fields.number("run")?.map(RunNo);
        let action = fields.text("action")?;
        if let Some(branch) = fields.branch(action.as_deref().unwrap_or_default())? {
            return Ok(Self::Branch { target: fields.target()?, branch });
        }
        let order = match (action.as_deref(), run) {
            (Some("exec"), Some(run)) => Some(Order::Wait(run, RunAction::Exec)),
            (Some("eval"), Some(run)) => Some(Order::Wait(run, RunAction::Eval)),
            (Some("interrupt"), run) => Some(Order::Interrupt(run)),
            (Some("output"), Some(run)) => Some(Order::Read(fields.piece(run)?)),
            (Some("input"), Some(run)) => Some(Order::RunInput(fields.feed(run)?)),
            (Some(action @ ("output" | "input")), None) => {
                return refuse(format!("run is required for {action} action"));
            }
            (Some("signal"), run) => Some(fields.signal(run)?),
            (Some("jobs"), _) => Some(Order::Jobs),
            (Some("exec" | "eval" | "state" | "reset" | "history"), _) => None,
            (Some(other), _) => {
                let message =
                    format!("Invalid action: {other}. Must be one of: {ACTIONS}, {MORE_ACTIONS}");
                return refuse(message);
            }
            (None, _) => {
                let message =
                    format!("action is required. Must be one of: {ACTIONS}, {MORE_ACTIONS}");
                return refuse(message);
            }
        };
        fields.number("wait_ms")?;
        match order {
            Some(Order::Wait(run, _))
                if fields.get("command").or_else(|| fields.get("code")).is_some() =>
            {
                refuse(both(run))
            }
            Some(order) => {
                let output = fields.output()?.bounded();
                Ok(Self::Earlier { target: fields.target()?, order, output })
            }
            None => {
                let mut request = Request::from_value(&Value::Object(arguments.clone()))?;
                request.output = request.output.bounded();
                if let Action::Exec(run) | Action::Eval(run) = &mut request.action {
                    run.interactive = fields.flag("interactive")?;
                }
                Ok(Self::New(Box::new(request)))
            }
        }
    }
}

pub(super) fn both(run: RunNo) -> String {
    format!("give either a command, to run it, or run {run}, to wait for that one")
}

impl Fields<'_> {
    pub(super) fn feed(&self, run: RunNo) -> Result<RunInput> {
        let (text, eof) = (self.text("input")?, self.flag("eof")?);
        if text.is_none() && !eof {
            return refuse("give input, the text to read, or eof, to end the input");
        }
        Ok(RunInput { run, text: text.unwrap_or_default(), eof })
    }

    /// Parses a signal to a run, or to a job.
    pub(super) fn signal(&self, run: Option<RunNo>) -> Result<Order> {
        let name = self
            .text("signal")?
            .ok_or_else(|| Error::bad_request("signal is required, such as TERM or KILL"))?;
        let signal = signal_number(&name)?;
        let recipient = match (run, self.number("pid")?) {
            (Some(run), None) => SignalTarget::Run(run),
            (None, Some(pid)) => SignalTarget::Job(
                u32::try_from(pid)
                    .map_err(|_| Error::bad_request(format!("pid {pid} is not a process")))?,
            ),
            (Some(_), Some(_)) | (None, None) => {
                return refuse("give either run, or the pid of a job, to signal it");
            }
        };
        Ok(Order::Signal(recipient, signal))
    }

    pub(super) fn piece(&self, run: RunNo) -> Result<Piece> {
        let stream = match self.text("stream")?.as_deref() {
            None | Some("stdout") => Stream::Stdout,
            Some("stderr") => Stream::Stderr,
            Some(other) => return refuse(format!("stream must be stdout or stderr, not {other}")),
        };
        let max = self.output()?.bounded().limit.clamp(LEAST_PIECE, MOST_PIECE);
        Ok(Piece { run, stream, from: self.number("from")?.unwrap_or(0), max: max as u64 })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn call(arguments: &Value) -> Result<Call> {
        Call::from_arguments(arguments.as_object().unwrap())
    }

    fn order(arguments: &Value) -> Order {
        match call(arguments).unwrap() {
            Call::Earlier { order, .. } => order,
            other @ (Call::New(_) | Call::Branch { .. }) => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_run_is_come_back_to_by_its_number() {
        let wait = order(&json!({"action": "exec", "run": 12}));
        assert_eq!(wait, Order::Wait(RunNo(12), RunAction::Exec));
        let any = order(&json!({"action": "interrupt"}));
        assert_eq!(any, Order::Interrupt(None));
        let piece = Piece { run: RunNo(3), stream: Stream::Stderr, from: 80, max: 16_000 };
        let read = order(&json!({"action": "output", "run": 3, "stream": "stderr", "from": 80}));
        assert_eq!(read, Order::Read(piece));
        assert!(matches!(call(&json!({"action": "state"})), Ok(Call::New(_))));
        let feed = RunInput { run: RunNo(3), text: "y\n".to_owned(), eof: false };
        let input = order(&json!({"action": "input", "run": 3, "input": "y\n"}));
        assert_eq!(input, Order::RunInput(feed));
        let signal = order(&json!({"action": "signal", "pid": 42, "signal": "TERM"}));
        assert_eq!(signal, Order::Signal(SignalTarget::Job(42), 15));
    }

    #[test]
    fn a_wrong_call_is_told_what_to_do() {
        let refusal = |arguments: &Value| call(arguments).unwrap_err().message;
        let jump = refusal(&json!({"action": "jump"}));
        assert!(
            jump.contains("history, interrupt, output, input, signal, jobs, checkpoint"),
            "{jump}"
        );
        let input = refusal(&json!({"action": "input", "run": 1}));
        assert!(input.starts_with("give input"), "{input}");
        let signal = |more: &str| {
            let text = format!(r#"{{"action": "signal"{more}}}"#);
            refusal(&serde_json::from_str(&text).unwrap())
        };
        assert!(signal("").starts_with("signal is required"));
        assert!(signal(r#", "signal": "TERM""#).starts_with("give either run"));
        assert!(signal(r#", "signal": "BOO", "run": 1"#).contains("is not a signal"));
        assert!(refusal(&json!({"action": "fork"})).starts_with("new_key is required"));
        assert!(refusal(&json!({})).starts_with("action is required"));
        assert!(refusal(&json!({"action": "output"})).starts_with("run is required"));
        assert!(refusal(&json!({"action": "exec", "run": 1, "command": "x"})).contains("either"));
        assert_eq!(refusal(&json!({"action": "exec"})), "command is required for exec action");
    }
}
