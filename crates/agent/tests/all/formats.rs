//! The formats of models, as their servers really speak them.

use serde_json::{Value, json};
use sessile_agent::conversation::Turn;
use sessile_agent::model::{
    ApiFormat, Arguments, Block, Call, Failure, FailureKind, Reply, Request, Stop, Usage,
};
use sessile_agent::thread::Outcome;
use sessile_agent::tools::file_tools;

fn conversation() -> Vec<Turn> {
    let call = |id: &str| {
        let input = Arguments::parse("{\"path\": \"a\"}");
        Block::Call(Call { id: id.into(), tool: "read_file".into(), input })
    };
    let outcome =
        |id: &str, is_error| Outcome { call: id.into(), text: "x".into(), is_error, run: None };
    vec![
        Turn::User("look".into()),
        Turn::Model(vec![Block::Text { text: "I look".into() }, call("1"), call("2")]),
        Turn::Outcomes(vec![outcome("1", false), outcome("2", true)]),
        Turn::User("go on".into()),
    ]
}

fn body(wire: ApiFormat) -> Value {
    let turns = conversation();
    let tools = &file_tools()[..1];
    let request = Request {
        model: "m",
        instructions: "be good",
        turns: &turns,
        tools,
        max_output_tokens: 100,
        stream: true,
    };
    wire.envelope(&request).body
}

#[test]
fn chat_completions_have_a_message_for_each_outcome() {
    let body = body(ApiFormat::ChatCompletions);
    let roles: Vec<_> =
        body["messages"].as_array().unwrap().iter().map(|m| m["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool", "tool", "user"]);
    let calls = &body["messages"][2]["tool_calls"];
    assert_eq!(calls[1]["id"], "2");
    assert_eq!(calls[1]["function"]["arguments"], "{\"path\":\"a\"}");
    assert_eq!(body["tools"][0]["function"]["name"], "read_file");
    assert_eq!(body["stream_options"]["include_usage"], true);
}

#[test]
fn responses_have_an_item_for_each_thing() {
    let body = body(ApiFormat::Responses);
    let kinds: Vec<_> =
        body["input"].as_array().unwrap().iter().map(|i| i["type"].as_str().unwrap()).collect();
    let expected = [
        "message",
        "message",
        "function_call",
        "function_call",
        "function_call_output",
        "function_call_output",
        "message",
    ];
    assert_eq!(kinds, expected);
    assert_eq!(body["store"], false);
}

#[test]
fn messages_alternate_between_two_roles() {
    let body = body(ApiFormat::Messages);
    let roles: Vec<_> =
        body["messages"].as_array().unwrap().iter().map(|m| m["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "assistant", "user"]);
    let last = body["messages"][2]["content"].as_array().unwrap();
    assert_eq!(last[1]["is_error"], true);
    assert_eq!(last[2]["text"], "go on");
    assert_eq!(last[2]["cache_control"]["type"], "ephemeral");
}

/// Decodes a stream, cut into pieces of each size, which must not matter.
fn decoded(wire: ApiFormat, stream: &str) -> (String, Result<Reply, Failure>) {
    let mut results = [1, 2, 7, stream.len()].map(|size| {
        let mut decoder = wire.decoder();
        let mut text = String::new();
        for piece in stream.as_bytes().chunks(size) {
            match decoder.push(piece) {
                Ok(deltas) => deltas.iter().for_each(|delta| text.push_str(&delta.0)),
                Err(failure) => return (text, Err(failure)),
            }
        }
        (text, decoder.finish())
    });
    assert!(results.windows(2).all(|pair| pair[0] == pair[1]), "{results:?}");
    std::mem::replace(&mut results[0], (String::new(), Err(Failure::broken())))
}

fn expected(text: &str) -> Vec<Block> {
    let input = Arguments::Json(json!({ "path": "ä" }));
    vec![
        Block::Text { text: text.into() },
        Block::Call(Call { id: "c1".into(), tool: "read_file".into(), input }),
    ]
}

const CHAT: &str = r#"data: {"model":"m-1","choices":[{"delta":{"role":"assistant","content":"I "}}]}

data: {"choices":[{"delta":{"content":"löok"}}]}

data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"read_file","arguments":"{\"pa"}}]}}]}

data: {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"th\": \"ä\"}"}}]}}]}

data: {"choices":[{"delta":{},"finish_reason":"tool_calls"}]}

data: {"choices":[],"usage":{"prompt_tokens":10,"completion_tokens":5,"prompt_tokens_details":{"cached_tokens":4}}}

data: [DONE]

"#;

#[test]
fn a_chat_stream_is_put_together() {
    let (text, reply) = decoded(ApiFormat::ChatCompletions, CHAT);
    let reply = reply.unwrap();
    assert_eq!(text, "I löok");
    assert_eq!(reply.blocks, expected("I löok"));
    assert_eq!(reply.stop, Stop::Calls);
    assert_eq!(reply.usage, Usage { input_tokens: 10, cached_tokens: 4, output_tokens: 5 });
    assert_eq!(reply.model, "m-1");
}

const RESPONSES: &str = r#"event: response.created
data: {"type":"response.created","response":{}}

event: response.output_text.delta
data: {"type":"response.output_text.delta","delta":"I "}

data: {"type":"response.output_text.delta","delta":"löok"}

event: response.completed
data: {"type":"response.completed","response":{"model":"m-1","status":"completed","output":[{"type":"reasoning","id":"r","encrypted_content":"z"},{"type":"message","content":[{"type":"output_text","text":"I löok"}]},{"type":"function_call","call_id":"c1","name":"read_file","arguments":"{\"path\": \"ä\"}"}],"usage":{"input_tokens":10,"output_tokens":5,"input_tokens_details":{"cached_tokens":4}}}}

"#;

#[test]
fn a_responses_stream_ends_with_the_whole_and_reasoning_goes_back_as_it_came() {
    let (text, reply) = decoded(ApiFormat::Responses, RESPONSES);
    let reply = reply.unwrap();
    assert_eq!(text, "I löok");
    assert_eq!(reply.blocks[1..], expected("I löok"));
    assert_eq!(reply.stop, Stop::Calls);
    let turns = [Turn::Model(reply.blocks)];
    let request = Request {
        model: "m",
        instructions: "",
        turns: &turns,
        tools: &[],
        max_output_tokens: 1,
        stream: false,
    };
    let body = ApiFormat::Responses.envelope(&request).body;
    assert_eq!(body["input"][0]["encrypted_content"], "z");
    let body = ApiFormat::Messages.envelope(&request).body;
    assert_eq!(body["messages"][0]["content"].as_array().unwrap().len(), 2);
}

const MESSAGES: &str = r#"event: message_start
data: {"type":"message_start","message":{"model":"m-1","usage":{"input_tokens":6,"cache_read_input_tokens":4,"output_tokens":1}}}

event: ping
data: {"type":"ping"}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}

data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"hm"}}

data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"sig"}}

data: {"type":"content_block_stop","index":0}

data: {"type":"content_block_start","index":1,"content_block":{"type":"text","text":""}}

data: {"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"I löok"}}

data: {"type":"content_block_start","index":2,"content_block":{"type":"tool_use","id":"c1","name":"read_file","input":{}}}

data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":"{\"path\":"}}

data: {"type":"content_block_delta","index":2,"delta":{"type":"input_json_delta","partial_json":" \"ä\"}"}}

data: {"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":5}}

data: {"type":"message_stop"}

"#;

#[test]
fn a_messages_stream_is_put_together_with_its_thinking() {
    let (text, reply) = decoded(ApiFormat::Messages, MESSAGES);
    let reply = reply.unwrap();
    assert_eq!(text, "I löok");
    let value = json!({ "type": "thinking", "thinking": "hm", "signature": "sig" });
    assert_eq!(reply.blocks[0], Block::Opaque { wire: ApiFormat::Messages, value });
    assert_eq!(reply.blocks[1..], expected("I löok"));
    assert_eq!(reply.usage, Usage { input_tokens: 10, cached_tokens: 4, output_tokens: 5 });
}

#[test]
fn a_stream_that_is_cut_off_is_no_answer() {
    for (wire, stream) in [
        (ApiFormat::ChatCompletions, CHAT),
        (ApiFormat::Responses, RESPONSES),
        (ApiFormat::Messages, MESSAGES),
    ] {
        let half = &stream[..stream.find("I ").unwrap() + 8];
        let (_, reply) = decoded(wire, half.trim_end_matches(|c| c != '\n'));
        let failure = reply.unwrap_err();
        assert_eq!(failure.fault, FailureKind::Broken, "{wire:?}");
        // Only one of them says at the beginning what it uses.
        let told = if wire == ApiFormat::Messages { 10 } else { 0 };
        assert_eq!(failure.used.input_tokens, told, "{wire:?}");
    }
}

#[test]
fn errors_in_a_stream_are_told_by_their_kind() {
    let overloaded =
        r#"data: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
    let limited = r#"data: {"error":{"message":"slow down","type":"rate_limit_error"}}"#;
    let (_, reply) = decoded(ApiFormat::Messages, &format!("{overloaded}\n\n"));
    assert_eq!(reply.unwrap_err().fault, FailureKind::Unavailable);
    let (_, reply) = decoded(ApiFormat::ChatCompletions, &format!("{limited}\n\n"));
    assert_eq!(reply.unwrap_err().fault, FailureKind::RateLimited);
    let (_, reply) = decoded(ApiFormat::ChatCompletions, "data: hello\n\n");
    assert_eq!(reply.unwrap_err().fault, FailureKind::Nonsense);
}

#[test]
fn statuses_are_told_by_what_helps() {
    let fault = |status, body: &str| Failure::of_status(status, None, body.as_bytes()).fault;
    assert_eq!(fault(401, "{}"), FailureKind::BadKey);
    assert_eq!(fault(404, "no"), FailureKind::UnknownModel);
    assert_eq!(fault(429, r#"{"error":{"code":"insufficient_quota"}}"#), FailureKind::BadKey);
    assert_eq!(fault(429, ""), FailureKind::RateLimited);
    assert_eq!(fault(529, ""), FailureKind::Unavailable);
    assert_eq!(fault(400, r#"{"error":{"code":"context_length_exceeded"}}"#), FailureKind::TooLong);
    assert_eq!(
        fault(400, r#"{"error":{"message":"prompt is too long: 3 > 2"}}"#),
        FailureKind::TooLong
    );
    assert_eq!(fault(400, r#"{"error":{"message":"max_tokens: bad"}}"#), FailureKind::BadRequest);
    let limited = Failure::of_status(429, Some("1.5"), b"");
    assert_eq!(limited.retry_after_ms, Some(1500));
}

#[test]
fn whole_answers_are_read_as_streams_are() {
    let chat = json!({ "model": "m-1", "choices": [{ "finish_reason": "stop", "message": {
        "content": "I löok", "tool_calls": [{ "id": "c1", "function": {
            "name": "read_file", "arguments": "{\"path\": \"ä\"}" } }] } }],
        "usage": { "prompt_tokens": 10, "completion_tokens": 5 } });
    let reply = ApiFormat::ChatCompletions.reply(chat.to_string().as_bytes()).unwrap();
    assert_eq!((reply.blocks, reply.stop), (expected("I löok"), Stop::Calls));
    let messages = json!({ "type": "message", "stop_reason": "tool_use", "content": [
        { "type": "text", "text": "I löok" },
        { "type": "tool_use", "id": "c1", "name": "read_file", "input": { "path": "ä" } }] });
    let reply = ApiFormat::Messages.reply(messages.to_string().as_bytes()).unwrap();
    assert_eq!((reply.blocks, reply.stop), (expected("I löok"), Stop::Calls));
    for wire in [ApiFormat::ChatCompletions, ApiFormat::Responses, ApiFormat::Messages] {
        assert_eq!(wire.reply(b"<html>").unwrap_err().fault, FailureKind::Nonsense);
        assert_eq!(wire.reply(b"{}").unwrap_err().fault, FailureKind::Nonsense);
        assert_eq!(wire.reply(b"[1]").unwrap_err().fault, FailureKind::Nonsense);
    }
}

#[test]
fn answers_that_are_none_tell_what_they_have_used() {
    let chat = r#"{"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 2}}"#;
    let others = r#"{"usage": {"input_tokens": 7, "output_tokens": 2}}"#;
    let used = Usage { input_tokens: 7, cached_tokens: 0, output_tokens: 2 };
    for (wire, body) in [
        (ApiFormat::ChatCompletions, chat),
        (ApiFormat::Responses, others),
        (ApiFormat::Messages, others),
    ] {
        let failure = wire.reply(body.as_bytes()).unwrap_err();
        assert_eq!((failure.fault, failure.used), (FailureKind::Nonsense, used), "{wire:?}");
    }
    let failed = r#"data: {"type": "response.failed", "response": {"error": {"message": "no"},
        "usage": {"input_tokens": 7, "output_tokens": 2}}}"#
        .replace('\n', "");
    let (_, reply) = decoded(ApiFormat::Responses, &format!("{failed}\n\n"));
    assert_eq!(reply.unwrap_err().used, used);
}
