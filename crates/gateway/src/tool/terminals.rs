//! Arguments of the tools for terminals of runs.

use super::request::{Fields, refuse};
use super::sessions::session_of;
use crate::{Error, Result};
use serde_json::{Map, Value};
use sessile_protocol::{RunNo, SessionId, TerminalSize};

/// A call of `session_screen`, and what `session_keys` has in common with it.
#[derive(Debug)]
pub struct ScreenCall {
    pub session: SessionId,
    pub run: RunNo,
    /// A regular expression.
    pub wait_for: Option<String>,
    pub settle_ms: Option<u64>,
    /// How long to wait at most.
    pub wait_ms: Option<u64>,
    pub look: ScreenForm,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScreenForm {
    Text,
    /// With a picture as well.
    Picture,
}

impl ScreenCall {
    /// # Errors
    /// When the request is invalid; the message says what to do.
    pub fn from_arguments(arguments: &Map<String, Value>) -> Result<Self> {
        let fields = Fields(arguments);
        let look = match fields.get("picture") {
            None | Some(Value::Bool(false)) => ScreenForm::Text,
            Some(Value::Bool(true)) => ScreenForm::Picture,
            Some(other) => return refuse(format!("picture must be true or false, not {other}")),
        };
        Ok(Self {
            session: session_of(arguments)?,
            run: run_of(&fields)?,
            wait_for: fields.text("wait_for")?,
            settle_ms: fields.number("settle_ms")?,
            wait_ms: fields.number("wait_ms")?,
            look,
        })
    }
}

/// A call of `session_keys`.
#[derive(Debug)]
pub struct KeysCall {
    pub keys: String,
    pub screen: ScreenCall,
}

impl KeysCall {
    /// # Errors
    /// When the request is invalid; the message says what to do.
    pub fn from_arguments(arguments: &Map<String, Value>) -> Result<Self> {
        let screen = ScreenCall::from_arguments(arguments)?;
        let keys = Fields(arguments).text("keys")?;
        let keys = keys.ok_or_else(|| {
            Error::bad_request("keys is required, such as \"ihello<Esc>:wq<Enter>\"")
        })?;
        Ok(Self { keys, screen })
    }
}

/// A call of `session_resize`.
#[derive(Debug)]
pub struct ResizeCall {
    pub session: SessionId,
    pub run: RunNo,
    pub size: TerminalSize,
}

impl ResizeCall {
    /// # Errors
    /// When the request is invalid; the message says what to do.
    pub fn from_arguments(arguments: &Map<String, Value>) -> Result<Self> {
        let fields = Fields(arguments);
        let (session, run) = (session_of(arguments)?, run_of(&fields)?);
        let (Some(cols), Some(rows)) = (side(&fields, "cols")?, side(&fields, "rows")?) else {
            return refuse("cols and rows are required, such as 80 and 24");
        };
        Ok(Self { session, run, size: TerminalSize { cols, rows } })
    }
}

/// Returns the terminal that a call of `session_exec` wants for its command.
///
/// # Errors
/// When the request is invalid; the message says what to do.
pub fn terminal_of(arguments: &Map<String, Value>) -> Result<Option<TerminalSize>> {
    let fields = Fields(arguments);
    match fields.get("terminal") {
        None | Some(Value::Bool(false)) => {
            if fields.get("cols").is_some() || fields.get("rows").is_some() {
                return refuse("cols and rows are a terminal's: give terminal, too");
            }
            Ok(None)
        }
        Some(Value::Bool(true)) => size_of(&fields).map(Some),
        Some(Value::Object(size)) => size_of(&Fields(size)).map(Some),
        Some(other) => {
            refuse(format!("terminal must be true or {{\"cols\": 80, \"rows\": 24}}, not {other}"))
        }
    }
}

/// Returns the given size, or the default.
fn size_of(fields: &Fields<'_>) -> Result<TerminalSize> {
    let usual = TerminalSize::DEFAULT;
    Ok(TerminalSize {
        cols: side(fields, "cols")?.unwrap_or(usual.cols),
        rows: side(fields, "rows")?.unwrap_or(usual.rows),
    })
}

fn run_of(fields: &Fields<'_>) -> Result<RunNo> {
    let run = fields.number("run")?.map(RunNo);
    run.ok_or_else(|| {
        Error::bad_request("run is required: the number that session_exec gave, with terminal")
    })
}

fn side(fields: &Fields<'_>, name: &str) -> Result<Option<u16>> {
    let most = u64::from(TerminalSize::MOST);
    match fields.number(name)? {
        None => Ok(None),
        Some(number) if (1..=most).contains(&number) => Ok(u16::try_from(number).ok()),
        Some(number) => refuse(format!("{name} must be from 1 to {most}, not {number}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn of(arguments: &Value) -> &Map<String, Value> {
        arguments.as_object().unwrap()
    }

    #[test]
    fn a_terminal_has_a_size_or_the_usual_one() {
        let size = |terminal: Value| terminal_of(of(&json!({"terminal": terminal})));
        assert_eq!(size(json!(null)).unwrap(), None);
        assert_eq!(size(json!(false)).unwrap(), None);
        assert_eq!(size(json!(true)).unwrap(), Some(TerminalSize::DEFAULT));
        let wide = TerminalSize { cols: 132, rows: 24 };
        assert_eq!(size(json!({"cols": 132})).unwrap(), Some(wide));
        let flat = json!({"terminal": true, "cols": 132});
        assert_eq!(terminal_of(of(&flat)).unwrap(), Some(wide));
        assert!(terminal_of(of(&json!({"cols": 132}))).is_err());
        assert!(size(json!({"rows": 0})).unwrap_err().message.contains("1 to 1000"));
        assert!(size(json!("80x24")).unwrap_err().message.contains("must be true or"));
    }

    #[test]
    fn a_wrong_call_is_told_what_to_do() {
        let id = "sess_0123456789ab";
        let refusal = |more: Value| {
            let mut arguments = json!({"session_id": id, "run": 1});
            arguments.as_object_mut().unwrap().extend(of(&more).clone());
            KeysCall::from_arguments(of(&arguments)).unwrap_err().message
        };
        assert!(refusal(json!({})).starts_with("keys is required"));
        assert!(refusal(json!({"run": null, "keys": "x"})).starts_with("run is required"));
        assert!(refusal(json!({"keys": "x", "picture": 1})).starts_with("picture must be"));
        assert!(refusal(json!({"keys": "x", "settle_ms": "1s"})).starts_with("settle_ms must be"));
        let resize = ResizeCall::from_arguments(of(&json!({"session_id": id, "run": 1})));
        assert!(resize.unwrap_err().message.starts_with("cols and rows"));
    }
}
