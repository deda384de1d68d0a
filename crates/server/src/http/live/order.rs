//! The messages of a WebSocket client.

use super::super::wire;
use crate::service::{ErrorCode, ServiceError};
use serde::Deserialize;
use serde_json::{Map, Value};
use sessile_gateway::input;
use sessile_protocol::RunNo;

#[derive(Debug)]
pub(super) enum Order {
    /// Begins a run, whose events follow.
    Exec(wire::ExecRequest),
    /// An order for a run: the named one, or the current one of this connection.
    To(Option<RunNo>, RunOrder),
}

#[derive(Debug)]
pub(super) enum RunOrder {
    Stdin(wire::InputRequest),
    Signal(wire::SignalRequest),
    Keys(Keys),
    Resize(Size),
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Keys {
    pub(super) keys: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Size {
    #[serde(alias = "cols")]
    pub(super) columns: u16,
    pub(super) rows: u16,
}

impl Order {
    pub(super) fn parse(text: &[u8]) -> Result<Self, ServiceError> {
        let mut fields: Map<String, Value> =
            input::from_slice(text).map_err(|error| refuse(error.to_string()))?;
        let kind = fields.remove("type").unwrap_or_default();
        if kind == "exec" {
            let exec = input::from_value(Value::Object(fields));
            return exec.map(Self::Exec).map_err(|error| refuse(error.to_string()));
        }
        let run = match fields.remove("run") {
            None | Some(Value::Null) => None,
            Some(run) => {
                let message = format!("run must be the number of a run, not {run}");
                Some(RunNo(input::from_value(run).map_err(|_| refuse(message))?))
            }
        };
        let rest = Value::Object(fields);
        let order = match kind.as_str() {
            Some("stdin") => input::from_value(rest).map(RunOrder::Stdin),
            Some("eof") => {
                let input = wire::InputRequest { eof: true, ..wire::InputRequest::default() };
                Ok(RunOrder::Stdin(input))
            }
            Some("signal") => input::from_value(rest).map(RunOrder::Signal),
            Some("keys") => input::from_value(rest).map(RunOrder::Keys),
            Some("resize") => input::from_value(rest).map(RunOrder::Resize),
            Some(_) | None => {
                let message =
                    format!("type must be exec, stdin, eof, keys, signal or resize, not {kind}");
                return Err(refuse(message));
            }
        };
        order.map(|order| Self::To(run, order)).map_err(|error| refuse(error.to_string()))
    }
}

fn refuse(error: String) -> ServiceError {
    ServiceError::new(ErrorCode::BadRequest, error)
}
