//! OpenAI's chat completions format.

use super::{Arguments, Block, Call, Failure, Reply, Request, Stop, Usage, count, string};
use crate::conversation::Turn;
use crate::thread::Outcome;
use serde_json::{Map, Value, json};

pub(super) fn body(request: &Request<'_>) -> Value {
    let mut messages = vec![json!({ "role": "system", "content": request.instructions })];
    for turn in request.turns {
        match turn {
            Turn::User(text) => messages.push(json!({ "role": "user", "content": text })),
            Turn::Model(blocks) => messages.push(assistant(blocks)),
            Turn::Outcomes(outcomes) => messages.extend(outcomes.iter().map(outcome)),
        }
    }
    let mut body = Map::new();
    body.insert("model".into(), request.model.into());
    body.insert("messages".into(), messages.into());
    if !request.tools.is_empty() {
        let tools = request.tools.iter().map(|tool| {
            json!({ "type": "function", "function": {
                "name": tool.name, "description": tool.description, "parameters": tool.schema } })
        });
        body.insert("tools".into(), tools.collect::<Vec<_>>().into());
    }
    body.insert("max_completion_tokens".into(), request.max_output_tokens.into());
    if request.stream {
        body.insert("stream".into(), true.into());
        body.insert("stream_options".into(), json!({ "include_usage": true }));
    }
    body.into()
}

fn assistant(blocks: &[Block]) -> Value {
    let mut text = String::new();
    let mut calls = Vec::new();
    for block in blocks {
        match block {
            Block::Text { text: more } => text.push_str(more),
            Block::Call(call) => calls.push(json!({
                "id": call.id, "type": "function",
                "function": { "name": call.tool, "arguments": call.input.text() } })),
            Block::Opaque { .. } => {}
        }
    }
    let content = if text.is_empty() { Value::Null } else { text.into() };
    let mut message = json!({ "role": "assistant", "content": content });
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    message
}

fn outcome(outcome: &Outcome) -> Value {
    json!({ "role": "tool", "tool_call_id": outcome.call, "content": outcome.text })
}

pub(super) fn reply(body: &Value) -> Result<Reply, Failure> {
    let Some(choice) = body["choices"].get(0) else {
        return Err(no_choice(body));
    };
    let message = &choice["message"];
    let mut blocks = Vec::new();
    push_text(&mut blocks, &string(&message["content"]));
    push_text(&mut blocks, &string(&message["refusal"]));
    for call in message["tool_calls"].as_array().into_iter().flatten() {
        blocks.push(Block::Call(call_of(call)));
    }
    let has_calls = blocks.iter().any(|block| matches!(block, Block::Call(_)));
    Ok(Reply {
        stop: stop(choice["finish_reason"].as_str(), has_calls),
        blocks,
        usage: usage(&body["usage"]),
        model: string(&body["model"]),
    })
}

fn no_choice(body: &Value) -> Failure {
    if body["error"].is_null() {
        Failure::nonsense(body.to_string().as_bytes())
    } else {
        Failure::of_event(body)
    }
}

fn call_of(call: &Value) -> Call {
    let input = match call["function"]["arguments"].as_str() {
        Some(text) => Arguments::parse(text),
        // Some servers send the object itself.
        None => Arguments::of(&call["function"]["arguments"]),
    };
    Call { id: string(&call["id"]), tool: string(&call["function"]["name"]), input }
}

fn push_text(blocks: &mut Vec<Block>, text: &str) {
    if !text.is_empty() {
        blocks.push(Block::Text { text: text.to_owned() });
    }
}

fn stop(reason: Option<&str>, has_calls: bool) -> Stop {
    match reason {
        Some("length") => Stop::Length,
        Some("content_filter") => Stop::Refused,
        // Some servers say "stop" although there are calls.
        Some(_) | None if has_calls => Stop::Calls,
        Some(_) | None => Stop::Done,
    }
}

pub(super) fn usage(usage: &Value) -> Usage {
    Usage {
        input_tokens: count(&usage["prompt_tokens"]),
        cached_tokens: count(&usage["prompt_tokens_details"]["cached_tokens"]),
        output_tokens: count(&usage["completion_tokens"]),
    }
}

/// A partial answer, which becomes the same object as a complete one.
#[derive(Debug, Default)]
pub(super) struct Stream {
    text: String,
    refusal: String,
    calls: Vec<Partial>,
    reason: Option<String>,
    usage: Usage,
    model: String,
}

#[derive(Debug, Default)]
struct Partial {
    index: u64,
    id: String,
    name: String,
    arguments: String,
}

impl Stream {
    /// Adds a chunk, and returns the text that it adds.
    pub(super) fn push(&mut self, chunk: &Value) -> Result<Option<String>, Failure> {
        if !chunk["error"].is_null() {
            return Err(Failure::of_event(chunk));
        }
        if self.model.is_empty() {
            self.model = string(&chunk["model"]);
        }
        if chunk["usage"].is_object() {
            self.usage = usage(&chunk["usage"]);
        }
        let choice = &chunk["choices"][0];
        let delta = &choice["delta"];
        if let Some(reason) = choice["finish_reason"].as_str() {
            self.reason = Some(reason.to_owned());
        }
        for call in delta["tool_calls"].as_array().into_iter().flatten() {
            self.push_call(call);
        }
        self.refusal.push_str(delta["refusal"].as_str().unwrap_or_default());
        let text = delta["content"].as_str().unwrap_or_default();
        self.text.push_str(text);
        Ok((!text.is_empty()).then(|| text.to_owned()))
    }

    /// Returns the usage, as far as the server has reported it.
    pub(super) fn used(&self) -> Usage {
        self.usage
    }

    fn push_call(&mut self, call: &Value) {
        // Servers that send each call in one piece omit the index.
        let next = self.calls.len() as u64;
        let index = call["index"].as_u64().unwrap_or(next);
        let known = self.calls.iter().position(|partial| partial.index == index);
        let at = known.unwrap_or_else(|| {
            self.calls.push(Partial { index, ..Partial::default() });
            self.calls.len() - 1
        });
        let partial = &mut self.calls[at];
        if let Some(id) = call["id"].as_str().filter(|id| !id.is_empty()) {
            id.clone_into(&mut partial.id);
        }
        partial.name.push_str(call["function"]["name"].as_str().unwrap_or_default());
        partial.arguments.push_str(call["function"]["arguments"].as_str().unwrap_or_default());
    }

    /// Returns the reply. `is_done`: the end marker of the stream was seen.
    pub(super) fn finish(self, is_done: bool) -> Result<Reply, Failure> {
        if self.reason.is_none() && !is_done {
            return Err(Failure::broken());
        }
        let mut blocks = Vec::new();
        push_text(&mut blocks, &self.text);
        push_text(&mut blocks, &self.refusal);
        let has_calls = !self.calls.is_empty();
        blocks.extend(self.calls.into_iter().map(|partial| {
            Block::Call(Call {
                id: partial.id,
                tool: partial.name,
                input: Arguments::parse(&partial.arguments),
            })
        }));
        let stop = stop(self.reason.as_deref(), has_calls);
        Ok(Reply { blocks, stop, usage: self.usage, model: self.model })
    }
}
