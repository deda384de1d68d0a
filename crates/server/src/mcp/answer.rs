//! What a client gets: text for its model, and the same exactly.

use crate::service::ServiceError;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::{Map, Value};
use sessile_gateway::answer;
use sessile_gateway::text;
use sessile_gateway::tool::MOST_BESIDES;
use sessile_gateway::tool::answers::Failed;

/// Bytes of pictures in an answer: in base64 they are a third more, and no
/// message has a mebibyte.
const MOST_PICTURE: usize = 400_000;

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
        let text = format!("error: {}", text::sentence(&error.to_string()));
        Self { text, exact, success: false, picture: None }
    }

    /// With a picture, if it is not too large for a message.
    pub(super) fn with_picture(mut self, png: Vec<u8>) -> Self {
        if png.len() > MOST_PICTURE {
            let size = png.len();
            self.text.push_str(&format!("\n(the picture is left out: it has {size} bytes)"));
            return self;
        }
        Self { picture: Some(png), ..self }
    }

    /// Whatever was asked for, a message has less than clients take.
    pub(super) fn into_result(mut self) -> CallToolResult {
        text::fit(&mut self.exact, MOST_BESIDES);
        let text = text::bounded(self.text, text::MOST + MOST_BESIDES);
        let picture = self.picture.map(|png| STANDARD.encode(png));
        let picture = picture.map(|png| ContentBlock::image(png, "image/png"));
        let content = std::iter::once(ContentBlock::text(text)).chain(picture);
        let mut result = CallToolResult::success(content.collect());
        result.structured_content = Some(Value::Object(self.exact));
        result.is_error = Some(!self.success);
        result
    }
}
