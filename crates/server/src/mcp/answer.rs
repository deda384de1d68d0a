//! Replies to MCP clients: text for the model, and the same as structured data.

use super::pictures::{Picture, Pictures};
use crate::service::{ErrorCode, ServiceError};
use rmcp::model::{CallToolResult, ContentBlock};
use serde::Serialize;
use serde_json::{Map, Value};
use sessile_gateway::answer;
use sessile_gateway::text;
use sessile_gateway::tool::MOST_BESIDES;
use sessile_gateway::tool::answers::{Failed, InSession};
use sessile_protocol::SessionId;

/// Limit for the base64 of pictures in an answer: a message stays below one mebibyte.
const MOST_PICTURES: usize = 400_000;

/// Advice for errors whose message has none: the tool that helps.
const ADVICE: [(ErrorCode, &str); 3] = [
    (ErrorCode::SessionNotFound, "session_list has those that there are"),
    (ErrorCode::JobNotFound, "session_jobs has those that there are"),
    (ErrorCode::RunNotFound, "session_logs has those that are kept"),
];

/// A reply in both forms.
#[derive(Debug)]
pub(super) struct ToolReply {
    pub(super) text: String,
    pub(super) exact: Map<String, Value>,
    pub(super) success: bool,
    pub(super) pictures: Vec<Picture>,
}

/// Returns an answer with its session, which its own type does not have.
pub(super) fn in_session(answer: impl Serialize, session: &SessionId) -> Map<String, Value> {
    answer::fields(&InSession::of(answer, session.clone()))
}

impl ToolReply {
    /// Makes a reply from an answer, whose `success` field counts if it has one.
    pub(super) fn of(exact: Map<String, Value>, text: String) -> Self {
        let success = exact.get("success") != Some(&Value::Bool(false));
        Self { text, exact, success, pictures: Vec::new() }
    }

    pub(super) fn refused(error: &ServiceError) -> Self {
        let exact = answer::fields(&Failed::from(&**error));
        let mut text = format!("error: {}", text::sentence(&error.to_string()));
        if let Some((_, advice)) = ADVICE.iter().find(|(code, _)| *code == error.code) {
            text.push_str(&format!("; {advice}"));
        }
        Self { text, exact, success: false, pictures: Vec::new() }
    }

    /// Adds pictures, as far as they fit into a message.
    pub(super) fn with_pictures(mut self, pictures: Pictures) -> Self {
        for note in pictures.notes {
            self.text.push_str(&format!("\n({})", text::sentence(&note)));
        }
        if let Some(length) = pictures.printed {
            self.shows_stdout(length);
        }
        let mut room = MOST_PICTURES;
        for picture in pictures.list {
            let size = picture.base64.len();
            if let Some(left) = room.checked_sub(size) {
                room = left;
                self.pictures.push(picture);
            } else {
                let size = size / 4 * 3;
                self.text.push_str(&format!(
                    "\n(a picture of {size} bytes is left out, which is too large: draw it smaller, or write it to a file)"
                ));
            }
        }
        self
    }

    /// Replaces stdout by a note, since it is shown as a picture: a model need not read
    /// the base64 as well.
    fn shows_stdout(&mut self, length: usize) {
        let told = format!("({length} bytes, shown as a picture)");
        for place in ["encoding", "truncated"] {
            if let Some(Value::Object(streams)) = self.exact.get_mut(place) {
                streams.remove("stdout");
                if streams.is_empty() {
                    self.exact.shift_remove(place);
                }
            }
        }
        self.exact.insert("stdout".to_owned(), told.into());
        if self.exact.contains_key("result") {
            self.exact.insert("result".to_owned(), Value::Null);
        }
    }

    /// Converts to the result, cut to less than the size that clients accept.
    pub(super) fn into_result(mut self) -> CallToolResult {
        text::fit(&mut self.exact, MOST_BESIDES);
        let text = text::bounded(self.text, text::MOST + MOST_BESIDES);
        let pictures = self.pictures.into_iter();
        let pictures = pictures.map(|picture| ContentBlock::image(picture.base64, picture.kind));
        let content = std::iter::once(ContentBlock::text(text)).chain(pictures);
        let mut result = CallToolResult::success(content.collect());
        result.structured_content = Some(Value::Object(self.exact));
        result.is_error = Some(!self.success);
        result
    }
}
