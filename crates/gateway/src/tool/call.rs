//! Calls of somebody who can come back to a run: waits on, interrupts, reads.
//!
//! `runtime` takes them besides its own requests.

use super::Shape;
use super::request::{ACTIONS, Fields, Request, Target};
use serde_json::{Map, Value};
use sessile_protocol::RunNo;

/// A call of `runtime`.
#[derive(Debug)]
pub enum Call {
    New(Box<Request>),
    Earlier { target: Target, order: Order },
}

/// What is wanted of a run that was begun before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    Wait(RunNo, Shape),
    /// Without a number, whatever is running.
    Interrupt(Option<RunNo>),
    Read(Piece),
}

/// A piece of a run's output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    pub run: RunNo,
    pub stream: Stream,
    pub from: u64,
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
    /// What is wrong with it, and what to do.
    pub fn from_arguments(arguments: &Map<String, Value>) -> Result<Self, String> {
        let fields = Fields(arguments);
        let run = fields.number("run")?.map(RunNo);
        let action = fields.text("action")?;
        let order = match (action.as_deref(), run) {
            (Some("exec"), Some(run)) => Some(Order::Wait(run, Shape::Exec)),
            (Some("eval"), Some(run)) => Some(Order::Wait(run, Shape::Eval)),
            (Some("interrupt"), run) => Some(Order::Interrupt(run)),
            (Some("output"), Some(run)) => Some(Order::Read(fields.piece(run)?)),
            (Some("output"), None) => return Err("run is required for output action".to_owned()),
            (Some("exec" | "eval" | "state" | "reset" | "history"), _) => None,
            (Some(other), _) => {
                let message = format!(
                    "Invalid action: {other}. Must be one of: {ACTIONS}, interrupt, output"
                );
                return Err(message);
            }
            (None, _) => {
                let message =
                    format!("action is required. Must be one of: {ACTIONS}, interrupt, output");
                return Err(message);
            }
        };
        match order {
            Some(Order::Wait(run, _)) if fields.get("command").is_some() => Err(both(run)),
            Some(order) => Ok(Self::Earlier { target: fields.target()?, order }),
            None => {
                let request = Request::from_value(&Value::Object(arguments.clone()))?;
                Ok(Self::New(Box::new(request)))
            }
        }
    }
}

pub(super) fn both(run: RunNo) -> String {
    format!("give either a command, to run it, or run {run}, to wait for that one")
}

impl Fields<'_> {
    pub(super) fn piece(&self, run: RunNo) -> Result<Piece, String> {
        let stream = match self.text("stream")?.as_deref() {
            None | Some("stdout") => Stream::Stdout,
            Some("stderr") => Stream::Stderr,
            Some(other) => return Err(format!("stream must be stdout or stderr, not {other}")),
        };
        Ok(Piece { run, stream, from: self.number("from")?.unwrap_or(0) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn call(arguments: &Value) -> Result<Call, String> {
        Call::from_arguments(arguments.as_object().unwrap())
    }

    fn order(arguments: &Value) -> Order {
        match call(arguments).unwrap() {
            Call::Earlier { order, .. } => order,
            Call::New(request) => panic!("{request:?}"),
        }
    }

    #[test]
    fn a_run_is_come_back_to_by_its_number() {
        let wait = order(&json!({"action": "exec", "run": 12}));
        assert_eq!(wait, Order::Wait(RunNo(12), Shape::Exec));
        let any = order(&json!({"action": "interrupt"}));
        assert_eq!(any, Order::Interrupt(None));
        let piece = Piece { run: RunNo(3), stream: Stream::Stderr, from: 80 };
        let read = order(&json!({"action": "output", "run": 3, "stream": "stderr", "from": 80}));
        assert_eq!(read, Order::Read(piece));
        assert!(matches!(call(&json!({"action": "state"})), Ok(Call::New(_))));
    }

    #[test]
    fn a_wrong_call_is_told_what_to_do() {
        let refusal = |arguments: &Value| call(arguments).unwrap_err();
        assert!(refusal(&json!({"action": "jump"})).ends_with("history, interrupt, output"));
        assert!(refusal(&json!({})).starts_with("action is required"));
        assert!(refusal(&json!({"action": "output"})).starts_with("run is required"));
        assert!(refusal(&json!({"action": "exec", "run": 1, "command": "x"})).contains("either"));
        assert_eq!(refusal(&json!({"action": "exec"})), "command is required for exec action");
    }
}
