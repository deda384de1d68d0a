//! Arguments of the tools for saving and restoring.

use super::request::Fields;
use super::sessions::session_of;
use crate::{Error, Result};
use serde_json::{Map, Value};
use sessile_protocol::SessionId;

/// A call of `session_save`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SaveCall {
    pub session: SessionId,
    pub path: String,
    pub files: bool,
    pub wait: bool,
}

/// A call of `session_restore`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RestoreCall {
    pub path: String,
    pub trust: bool,
    pub cwd: Option<String>,
    pub name: Option<String>,
    pub durable: Option<bool>,
}

impl SaveCall {
    /// # Errors
    /// When the request is invalid; the message says what to do.
    pub fn from_arguments(arguments: &Map<String, Value>) -> Result<Self> {
        let fields = Fields(arguments);
        let session = session_of(arguments)?;
        let path = fields.text("path")?.filter(|path| !path.is_empty());
        let path = path.ok_or_else(|| {
            Error::bad_request("path is required: the file to save the session to")
        })?;
        Ok(Self { session, path, files: fields.flag("files")?, wait: fields.flag("wait")? })
    }
}

impl RestoreCall {
    /// # Errors
    /// When the request is invalid; the message says what to do.
    pub fn from_arguments(arguments: &Map<String, Value>) -> Result<Self> {
        let fields = Fields(arguments);
        let path = fields.text("path")?.filter(|path| !path.is_empty());
        let path = path.ok_or_else(|| {
            Error::bad_request("path is required: the file that a session was saved to")
        })?;
        Ok(Self {
            path,
            trust: fields.flag("trust")?,
            cwd: fields.text("cwd")?,
            name: fields.text("name")?,
            durable: fields.choice("durable")?,
        })
    }
}

impl Fields<'_> {
    /// Parses a flag that may be absent.
    pub(super) fn choice(&self, name: &str) -> Result<Option<bool>> {
        self.get(name).map(|_| self.flag(name)).transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_call_names_a_file() {
        let restore = |call: Value| RestoreCall::from_arguments(call.as_object().unwrap());
        let call = restore(json!({"path": "a", "trust": true, "durable": false})).unwrap();
        assert_eq!((call.path.as_str(), call.trust, call.durable), ("a", true, Some(false)));
        assert_eq!(restore(json!({"path": "a"})).unwrap().durable, None);
        for wrong in [json!({}), json!({"path": ""}), json!({"path": "a", "trust": "yes"})] {
            assert!(restore(wrong.clone()).is_err(), "{wrong}");
        }
        let save = json!({"session_id": "sess_0123456789ab"});
        let refused = SaveCall::from_arguments(save.as_object().unwrap());
        assert!(refused.unwrap_err().message.starts_with("path is required"));
    }
}
