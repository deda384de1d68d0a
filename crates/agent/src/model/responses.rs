//! OpenAI's responses format. The server keeps nothing: each request has the whole
//! conversation, as in the other formats.

use super::{
    ApiFormat, Arguments, Block, Call, Failure, Reply, Request, Stop, Usage, count, string,
};
use crate::conversation::Turn;
use serde_json::{Map, Value, json};

pub(super) fn body(request: &Request<'_>) -> Value {
    let mut input = Vec::new();
    for turn in request.turns {
        match turn {
            Turn::User(text) => input.push(message("user", "input_text", text)),
            Turn::Model(blocks) => input.extend(blocks.iter().filter_map(item)),
            Turn::Outcomes(outcomes) => input.extend(outcomes.iter().map(|outcome| {
                json!({ "type": "function_call_output", "call_id": outcome.call,
                        "output": outcome.text })
            })),
        }
    }
    let mut body = Map::new();
    body.insert("model".into(), request.model.into());
    body.insert("instructions".into(), request.instructions.into());
    body.insert("input".into(), input.into());
    if !request.tools.is_empty() {
        let tools = request.tools.iter().map(|tool| {
            json!({ "type": "function", "name": tool.name, "description": tool.description,
                    "parameters": tool.schema, "strict": false })
        });
        body.insert("tools".into(), tools.collect::<Vec<_>>().into());
    }
    body.insert("max_output_tokens".into(), request.max_output_tokens.into());
    body.insert("store".into(), false.into());
    // The reasoning comes back encrypted, and goes to the server again with the next request.
    body.insert("include".into(), json!(["reasoning.encrypted_content"]));
    if request.stream {
        body.insert("stream".into(), true.into());
    }
    body.into()
}

fn message(role: &str, kind: &str, text: &str) -> Value {
    json!({ "type": "message", "role": role, "content": [{ "type": kind, "text": text }] })
}

fn item(block: &Block) -> Option<Value> {
    match block {
        Block::Text { text } => Some(message("assistant", "output_text", text)),
        Block::Call(call) => Some(json!({ "type": "function_call", "call_id": call.id,
            "name": call.tool, "arguments": call.input.text() })),
        Block::Opaque { wire: ApiFormat::Responses, value } => Some(value.clone()),
        Block::Opaque { wire: ApiFormat::ChatCompletions | ApiFormat::Messages, .. } => None,
    }
}

pub(super) fn reply(body: &Value) -> Result<Reply, Failure> {
    if body["error"].is_object() {
        return Err(Failure::of_event(body));
    }
    let Some(output) = body["output"].as_array() else {
        return Err(Failure::nonsense(body.to_string().as_bytes()));
    };
    let mut blocks = Vec::new();
    let mut is_refused = false;
    for item in output {
        match item["type"].as_str() {
            Some("message") => {
                for content in item["content"].as_array().into_iter().flatten() {
                    is_refused |= content["type"] == "refusal";
                    let text = content["text"].as_str().or(content["refusal"].as_str());
                    if let Some(text) = text.filter(|text| !text.is_empty()) {
                        blocks.push(Block::Text { text: text.to_owned() });
                    }
                }
            }
            Some("function_call") => blocks.push(Block::Call(Call {
                id: string(&item["call_id"]),
                tool: string(&item["name"]),
                input: Arguments::parse(item["arguments"].as_str().unwrap_or_default()),
            })),
            Some("reasoning") => {
                blocks.push(Block::Opaque { wire: ApiFormat::Responses, value: item.clone() });
            }
            Some(_) | None => {}
        }
    }
    let has_calls = blocks.iter().any(|block| matches!(block, Block::Call(_)));
    let stop = match body["incomplete_details"]["reason"].as_str() {
        Some("max_output_tokens") => Stop::Length,
        Some(_) => Stop::Refused,
        None if has_calls => Stop::Calls,
        None if is_refused => Stop::Refused,
        None => Stop::Done,
    };
    Ok(Reply { blocks, stop, usage: usage(&body["usage"]), model: string(&body["model"]) })
}

pub(super) fn usage(usage: &Value) -> Usage {
    Usage {
        input_tokens: count(&usage["input_tokens"]),
        cached_tokens: count(&usage["input_tokens_details"]["cached_tokens"]),
        output_tokens: count(&usage["output_tokens"]),
    }
}

/// A partial answer. The last event has the whole answer; the ones before are for display.
#[derive(Debug, Default)]
pub(super) struct Stream {
    whole: Option<Value>,
    usage: Usage,
}

impl Stream {
    pub(super) fn push(&mut self, event: &Value) -> Result<Option<String>, Failure> {
        if event["response"]["usage"].is_object() {
            self.usage = usage(&event["response"]["usage"]);
        }
        match event["type"].as_str() {
            Some("response.output_text.delta") => {
                return Ok(event["delta"].as_str().map(str::to_owned));
            }
            Some("response.completed" | "response.incomplete") => {
                self.whole = Some(event["response"].clone());
            }
            Some("response.failed") => return Err(Failure::of_event(&event["response"])),
            Some("error") => return Err(Failure::of_event(event)),
            Some(_) | None => {}
        }
        Ok(None)
    }

    /// Returns the usage, as far as the server has reported it.
    pub(super) fn used(&self) -> Usage {
        self.usage
    }

    pub(super) fn finish(self) -> Result<Reply, Failure> {
        reply(&self.whole.ok_or_else(Failure::broken)?)
    }
}
