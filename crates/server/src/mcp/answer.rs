//! What a client gets: text for its model, and the same exactly.

use crate::service::ServiceError;
use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::{Map, Value};
use sessile_gateway::tool;

/// Why a call was not done, in words that say what to do.
#[derive(Debug)]
pub(super) struct Refusal(pub(super) String);

impl From<String> for Refusal {
    fn from(message: String) -> Self {
        Self(message)
    }
}

impl From<ServiceError> for Refusal {
    fn from(error: ServiceError) -> Self {
        Self(error.message)
    }
}

/// An answer in both forms.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) text: String,
    pub(super) exact: Map<String, Value>,
    pub(super) success: bool,
}

impl Told {
    /// One that says itself whether it is a success.
    pub(super) fn of(exact: Map<String, Value>, text: String) -> Self {
        let success = exact.get("success") != Some(&Value::Bool(false));
        Self { text, exact, success }
    }

    pub(super) fn refused(Refusal(message): &Refusal) -> Self {
        let exact = tool::failure(message).as_object().cloned().unwrap_or_default();
        Self { text: format!("error: {message}"), exact, success: false }
    }

    pub(super) fn into_result(self) -> CallToolResult {
        let mut result = CallToolResult::success(vec![ContentBlock::text(self.text)]);
        result.structured_content = Some(Value::Object(self.exact));
        result.is_error = Some(!self.success);
        result
    }
}
