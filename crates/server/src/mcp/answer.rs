//! What a client gets: text for its model, and the same exactly.

use crate::service::ServiceError;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::{Map, Value};
use sessile_gateway::answer;
use sessile_gateway::tool::answers::Failed;

/// An answer in both forms.
#[derive(Debug)]
pub(super) struct ToolReply {
    pub(super) text: String,
    pub(super) exact: Map<String, Value>,
    pub(super) success: bool,
    /// A PNG.
    pub(super) picture: Option<Vec<u8>>,
}

impl ToolReply {
    /// One that says itself whether it is a success.
    pub(super) fn of(exact: Map<String, Value>, text: String) -> Self {
        let success = exact.get("success") != Some(&Value::Bool(false));
        Self { text, exact, success, picture: None }
    }

    pub(super) fn refused(error: &ServiceError) -> Self {
        let exact = answer::fields(&Failed::from(&**error));
        Self { text: format!("error: {error}"), exact, success: false, picture: None }
    }

    pub(super) fn with_picture(self, png: Vec<u8>) -> Self {
        Self { picture: Some(png), ..self }
    }

    pub(super) fn into_result(self) -> CallToolResult {
        let picture = self.picture.map(|png| STANDARD.encode(png));
        let picture = picture.map(|png| ContentBlock::image(png, "image/png"));
        let content = std::iter::once(ContentBlock::text(self.text)).chain(picture);
        let mut result = CallToolResult::success(content.collect());
        result.structured_content = Some(Value::Object(self.exact));
        result.is_error = Some(!self.success);
        result
    }
}
