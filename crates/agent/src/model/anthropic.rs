//! Anthropic's messages format.

use super::{
    ApiFormat, Arguments, Block, Call, Failure, Reply, Request, Stop, Usage, count, string,
};
use crate::conversation::Turn;
use serde_json::{Map, Value, json};

pub(super) fn body(request: &Request<'_>) -> Value {
    let mut body = Map::new();
    body.insert("model".into(), request.model.into());
    body.insert("max_tokens".into(), request.max_output_tokens.into());
    // The conversation only grows at its end, so everything before that is cached.
    body.insert(
        "system".into(),
        json!([{ "type": "text", "text": request.instructions,
                 "cache_control": { "type": "ephemeral" } }]),
    );
    body.insert("messages".into(), messages(request.turns).into());
    if !request.tools.is_empty() {
        let tools = request.tools.iter().map(|tool| {
            json!({ "name": tool.name, "description": tool.description,
                    "input_schema": tool.schema })
        });
        body.insert("tools".into(), tools.collect::<Vec<_>>().into());
    }
    if request.stream {
        body.insert("stream".into(), true.into());
    }
    body.into()
}

/// Returns the messages. Roles have to alternate: what the caller says after outcomes goes
/// into the same message.
fn messages(turns: &[Turn]) -> Vec<Value> {
    let mut messages: Vec<(&str, Vec<Value>)> = Vec::new();
    for turn in turns {
        let (role, content) = match turn {
            Turn::User(text) => ("user", vec![json!({ "type": "text", "text": text })]),
            Turn::Model(blocks) => ("assistant", blocks.iter().filter_map(content).collect()),
            Turn::Outcomes(outcomes) => (
                "user",
                outcomes
                    .iter()
                    .map(|outcome| {
                        json!({ "type": "tool_result", "tool_use_id": outcome.call,
                                "content": outcome.text, "is_error": outcome.is_error })
                    })
                    .collect(),
            ),
        };
        match messages.last_mut() {
            Some((last, before)) if *last == role => before.extend(content),
            Some(_) | None => messages.push((role, content)),
        }
    }
    if let Some(last) = messages.last_mut().and_then(|(_, content)| content.last_mut()) {
        last["cache_control"] = json!({ "type": "ephemeral" });
    }
    messages
        .into_iter()
        .map(|(role, content)| json!({ "role": role, "content": content }))
        .collect()
}

fn content(block: &Block) -> Option<Value> {
    match block {
        // The server refuses an empty text.
        Block::Text { text } if text.trim().is_empty() => None,
        Block::Text { text } => Some(json!({ "type": "text", "text": text })),
        Block::Call(call) => Some(json!({ "type": "tool_use", "id": call.id,
            "name": call.tool, "input": call.input.object() })),
        Block::Opaque { wire: ApiFormat::Messages, value } => Some(value.clone()),
        Block::Opaque { wire: ApiFormat::ChatCompletions | ApiFormat::Responses, .. } => None,
    }
}

pub(super) fn reply(body: &Value) -> Result<Reply, Failure> {
    if body["type"] == "error" {
        return Err(Failure::of_event(body));
    }
    let Some(content) = body["content"].as_array() else {
        return Err(Failure::nonsense(body.to_string().as_bytes()));
    };
    let blocks: Vec<_> = content.iter().filter_map(block).collect();
    let has_calls = blocks.iter().any(|block| matches!(block, Block::Call(_)));
    Ok(Reply {
        blocks,
        stop: stop(body["stop_reason"].as_str(), has_calls),
        usage: usage(&body["usage"]),
        model: string(&body["model"]),
    })
}

fn block(content: &Value) -> Option<Block> {
    match content["type"].as_str()? {
        "text" => {
            let text = string(&content["text"]);
            (!text.is_empty()).then_some(Block::Text { text })
        }
        "tool_use" => Some(Block::Call(Call {
            id: string(&content["id"]),
            tool: string(&content["name"]),
            input: Arguments::of(&content["input"]),
        })),
        "thinking" | "redacted_thinking" => {
            Some(Block::Opaque { wire: ApiFormat::Messages, value: content.clone() })
        }
        _ => None,
    }
}

fn stop(reason: Option<&str>, has_calls: bool) -> Stop {
    match reason {
        Some("max_tokens" | "model_context_window_exceeded") => Stop::Length,
        Some("refusal") => Stop::Refused,
        Some(_) | None if has_calls => Stop::Calls,
        Some(_) | None => Stop::Done,
    }
}

pub(super) fn usage(usage: &Value) -> Usage {
    let cached = count(&usage["cache_read_input_tokens"]);
    let written = count(&usage["cache_creation_input_tokens"]);
    Usage {
        // Anthropic counts cached tokens separately.
        input_tokens: count(&usage["input_tokens"]) + cached + written,
        cached_tokens: cached,
        output_tokens: count(&usage["output_tokens"]),
    }
}

/// A partial answer: its blocks, with the JSON of calls as text.
#[derive(Debug, Default)]
pub(super) struct Stream {
    blocks: Vec<Value>,
    inputs: Vec<String>,
    reason: Option<String>,
    usage: Usage,
    model: String,
    is_over: bool,
}

/// An answer has a handful of blocks; an index far beyond that is invalid.
const MAX_BLOCKS: usize = 10_000;

impl Stream {
    pub(super) fn push(&mut self, event: &Value) -> Result<Option<String>, Failure> {
        match event["type"].as_str() {
            Some("message_start") => {
                self.usage = usage(&event["message"]["usage"]);
                self.model = string(&event["message"]["model"]);
            }
            Some("content_block_start") => {
                let at = index(event)?;
                self.at(at).clone_from(&event["content_block"]);
            }
            Some("content_block_delta") => return self.delta(index(event)?, &event["delta"]),
            Some("message_delta") => {
                if let Some(reason) = event["delta"]["stop_reason"].as_str() {
                    self.reason = Some(reason.to_owned());
                }
                // The count includes all output since the beginning.
                let output = count(&event["usage"]["output_tokens"]);
                self.usage.output_tokens = self.usage.output_tokens.max(output);
            }
            Some("message_stop") => self.is_over = true,
            Some("error") => return Err(Failure::of_event(event)),
            Some(_) | None => {}
        }
        Ok(None)
    }

    fn at(&mut self, index: usize) -> &mut Value {
        if self.blocks.len() <= index {
            self.blocks.resize(index + 1, Value::Null);
            self.inputs.resize(index + 1, String::new());
        }
        &mut self.blocks[index]
    }

    /// Returns the usage, as far as the server has reported it.
    pub(super) fn used(&self) -> Usage {
        self.usage
    }

    fn delta(&mut self, index: usize, delta: &Value) -> Result<Option<String>, Failure> {
        let block = self.at(index);
        let mut append = |name: &str, more: &Value| {
            let mut text = string(&block[name]);
            text.push_str(more.as_str().unwrap_or_default());
            if block.is_object() {
                block[name] = text.into();
            }
        };
        match delta["type"].as_str() {
            Some("text_delta") => {
                append("text", &delta["text"]);
                return Ok(delta["text"].as_str().map(str::to_owned));
            }
            Some("thinking_delta") => append("thinking", &delta["thinking"]),
            Some("signature_delta") => append("signature", &delta["signature"]),
            Some("input_json_delta") => {
                self.inputs[index].push_str(delta["partial_json"].as_str().unwrap_or_default());
            }
            Some(_) | None => {}
        }
        Ok(None)
    }

    pub(super) fn finish(self) -> Result<Reply, Failure> {
        if !self.is_over && self.reason.is_none() {
            return Err(Failure::broken());
        }
        let mut blocks = Vec::new();
        for (content, input) in self.blocks.iter().zip(&self.inputs) {
            match block(content) {
                Some(Block::Call(call)) if !input.is_empty() => {
                    blocks.push(Block::Call(Call { input: Arguments::parse(input), ..call }));
                }
                Some(other) => blocks.push(other),
                None => {}
            }
        }
        let has_calls = blocks.iter().any(|block| matches!(block, Block::Call(_)));
        let stop = stop(self.reason.as_deref(), has_calls);
        Ok(Reply { blocks, stop, usage: self.usage, model: self.model })
    }
}

fn index(event: &Value) -> Result<usize, Failure> {
    let index = event["index"].as_u64().and_then(|index| usize::try_from(index).ok());
    index
        .filter(|index| *index < MAX_BLOCKS)
        .ok_or_else(|| Failure::nonsense(event.to_string().as_bytes()))
}
