//! Requests to a model and its answers, independent of the wire format.

mod anthropic;
mod chat;
mod decoder;
mod error;
mod responses;
mod sse;

pub use decoder::{Decoder, Delta};
pub use error::{Failure, FailureKind, Retry};
pub use sse::{Sse, SseEvent};

use crate::conversation::Turn;
use crate::tools::Tool;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The supported formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = ModelFormat))]
pub enum ApiFormat {
    /// OpenAI's chat completions, which most servers of models speak.
    ChatCompletions,
    /// OpenAI's responses.
    Responses,
    /// Anthropic's messages.
    Messages,
}

/// An HTTP request: everything that the driver needs besides the base URL and the key.
#[derive(Clone, Debug, PartialEq)]
pub struct HttpRequest {
    /// Appended to the base URL.
    pub path: &'static str,
    /// The header with the key, and the prefix of the key in it.
    pub key_header: (&'static str, &'static str),
    pub headers: &'static [(&'static str, &'static str)],
    pub body: Value,
}

/// A request to a model.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    pub model: &'a str,
    pub instructions: &'a str,
    pub turns: &'a [Turn],
    pub tools: &'a [Tool],
    pub max_output_tokens: u32,
    pub stream: bool,
}

impl ApiFormat {
    #[must_use]
    pub fn envelope(self, request: &Request<'_>) -> HttpRequest {
        match self {
            Self::ChatCompletions => HttpRequest {
                path: "/chat/completions",
                key_header: ("authorization", "Bearer "),
                headers: &[],
                body: chat::body(request),
            },
            Self::Responses => HttpRequest {
                path: "/responses",
                key_header: ("authorization", "Bearer "),
                headers: &[],
                body: responses::body(request),
            },
            Self::Messages => HttpRequest {
                path: "/v1/messages",
                key_header: ("x-api-key", ""),
                headers: &[("anthropic-version", "2023-06-01")],
                body: anthropic::body(request),
            },
        }
    }

    /// Decodes an answer in one piece.
    pub fn reply(self, body: &[u8]) -> Result<Reply, Failure> {
        let body = serde_json::from_slice::<Value>(body).map_err(|_| Failure::nonsense(body))?;
        let (reply, used) = match self {
            Self::ChatCompletions => (chat::reply(&body), chat::usage(&body["usage"])),
            Self::Responses => (responses::reply(&body), responses::usage(&body["usage"])),
            Self::Messages => (anthropic::reply(&body), anthropic::usage(&body["usage"])),
        };
        reply.map_err(|failure| failure.having_used(used))
    }

    /// Returns a decoder for a streamed answer.
    #[must_use]
    pub fn decoder(self) -> Decoder {
        Decoder::new(self)
    }
}

/// An answer of a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = ModelReply))]
pub struct Reply {
    pub blocks: Vec<Block>,
    pub stop: Stop,
    #[serde(default)]
    pub usage: Usage,
    /// The model's own name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub model: String,
}

impl Reply {
    pub fn calls(&self) -> impl Iterator<Item = &Call> {
        self.blocks.iter().filter_map(|block| match block {
            Block::Call(call) => Some(call),
            Block::Text { .. } | Block::Opaque { .. } => None,
        })
    }

    #[must_use]
    pub fn text(&self) -> String {
        let texts = self.blocks.iter().filter_map(|block| match block {
            Block::Text { text } => Some(text.as_str()),
            Block::Call(_) | Block::Opaque { .. } => None,
        });
        texts.collect::<Vec<_>>().join("\n")
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = ReplyBlock))]
pub enum Block {
    Text {
        text: String,
    },
    Call(Call),
    /// Data that only the model's server understands, returned unchanged: reasoning with its
    /// signature.
    Opaque {
        wire: ApiFormat,
        value: Value,
    },
}

/// A tool call by the model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = ToolCall))]
pub struct Call {
    /// The model's id for the call.
    pub id: String,
    pub tool: String,
    pub input: Arguments,
}

/// The arguments of a tool call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = ToolArguments))]
pub enum Arguments {
    Json(Value),
    /// Text that is not a JSON object, kept to repeat the conversation unchanged.
    Malformed(String),
}

impl Arguments {
    /// Parses arguments. An empty text means no arguments.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        if text.trim().is_empty() {
            return Self::Json(Value::Object(serde_json::Map::new()));
        }
        match serde_json::from_str::<Value>(text) {
            Ok(value @ Value::Object(_)) => Self::Json(value),
            Ok(_) | Err(_) => Self::Malformed(text.to_owned()),
        }
    }

    /// Returns arguments that come as JSON, not as a text that contains JSON.
    #[must_use]
    pub fn of(value: &Value) -> Self {
        match value {
            Value::Object(_) => Self::Json(value.clone()),
            Value::Null => Self::parse(""),
            Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                Self::Malformed(value.to_string())
            }
        }
    }

    /// Returns the text for OpenAI's formats.
    #[must_use]
    pub fn text(&self) -> String {
        match self {
            Self::Json(value) => value.to_string(),
            Self::Malformed(text) => text.clone(),
        }
    }

    /// Returns the value for Anthropic's format, which accepts only objects.
    #[must_use]
    pub fn object(&self) -> Value {
        match self {
            Self::Json(value) => value.clone(),
            Self::Malformed(text) => serde_json::json!({ "malformed": text }),
        }
    }
}

/// Why the model stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = ReplyStop))]
pub enum Stop {
    /// It has said what it wanted to.
    Done,
    /// It wants calls to be performed.
    Calls,
    /// Its answer was too long, and is cut off.
    Length,
    /// It, or a filter in front of it, refuses.
    Refused,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = TokenUsage))]
pub struct Usage {
    /// All tokens of the request, including cached ones.
    pub input_tokens: u64,
    pub cached_tokens: u64,
    pub output_tokens: u64,
}

impl Usage {
    #[must_use]
    pub fn total(self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }

    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            cached_tokens: self.cached_tokens.saturating_add(other.cached_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
        }
    }
}

/// Returns a number of tokens, which servers may omit or send as null.
fn count(value: &Value) -> u64 {
    value.as_u64().unwrap_or(0)
}

fn string(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
