//! Answers that are not too long, whatever is asked for.

use super::peer::Peer;
use super::{exact, text};
use serde_json::json;
use sessile_testkit::harness;

/// The official Python client refuses messages of a mebibyte, and with it the
/// run's number is lost.
const MOST: usize = 800_000;

#[test]
fn what_a_client_makes_up_is_not_repeated_at_length() {
    let h = harness!();
    let mut peer = Peer::start(&h, &[]);
    let long = "x".repeat(100_000);
    let tool = peer.begin(&long, &json!({}));
    let tool = peer.reply(tool);
    let method = peer.request(&long, json!({}));
    let method = peer.reply(method);
    for answer in [&tool, &method] {
        let length = answer.to_string().len();
        assert!(answer["error"].is_object() && length < 1000, "{length} bytes");
    }
    for method in ["prompts/get", "nosuch/method"] {
        let id = peer.request(method, json!({"name": "any"}));
        let answer = peer.reply(id);
        let told = answer["error"]["message"].as_str().expect("an error");
        assert!(told.contains(method) && told.contains("tools/call"), "{told}");
    }
    peer.close();
}

#[test]
fn bytes_that_are_no_text_are_counted() {
    let h = harness!();
    let mut peer = Peer::start(&h, &[]);
    for (count, shown) in [("5", "(5 bytes that are not text)"), ("3000000", "(3000000 bytes")] {
        let command = format!("head -c {count} /dev/zero | tr '\\0' '\\1'");
        let result = peer.runtime(&json!({"action": "exec", "command": command}));
        assert!(text(&result).contains(shown), "{}", text(&result));
    }
    peer.close();
}

#[test]
fn no_answer_is_too_long_whatever_is_asked_for() {
    let h = harness!();
    let mut peer = Peer::start(&h, &["--tools", "all"]);
    let wild = "head -c 3000000 /dev/zero | tr '\\0' '\\1'";
    let commands = [
        json!({"action": "exec", "command": "seq 1000000; seq 1000000 >&2", "max_output": 1 << 30}),
        json!({"action": "exec", "command": wild, "max_output": 1 << 30, "raw": true}),
        json!({"action": "exec", "command": "head -c 3000000 /dev/urandom", "max_output": 1 << 30}),
        json!({"action": "output", "run": 2, "max_output": 1 << 30}),
        json!({"action": "eval", "command": "'\u{1}' * 3000000", "max_output": 1 << 30}),
        json!({"action": "eval", "command": "raise ValueError('x' * 3000000)"}),
        json!({"action": "exec", "command": ["x".repeat(2_000_000)]}),
        json!({"action": "exec", "command": format!(": {}", "x".repeat(2_000_000))}),
        json!({"action": "history", "limit": 100}),
        json!({"action": "eval", "command": "for n in range(5000): globals()[f'v{n}'] = 'x' * 500"}),
        json!({"action": "state", "all": true}),
        json!({"action": "jobs"}),
    ];
    for arguments in commands {
        let result = peer.runtime(&arguments);
        let length = result.to_string().len();
        let asked: String = arguments.to_string().chars().take(100).collect();
        assert!(length < MOST, "{asked}: {length} bytes");
        if arguments["max_output"].is_null() {
            assert!(length < 60_000, "{asked}: {length} bytes");
        }
    }
    let listed = peer.call("session_list", &json!({}));
    let id = exact(&listed)["sessions"][0]["session_id"].as_str().unwrap().to_owned();
    let logs = peer.call("session_logs", &json!({"session_id": id, "limit": 50}));
    assert!(logs.to_string().len() < 100_000, "{}", logs.to_string().len());
    peer.close();
}
