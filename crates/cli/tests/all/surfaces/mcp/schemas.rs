//! The tools as models and strict clients read them.

use super::peer::Peer;
use serde_json::{Value, json};
use sessile_testkit::{harness, needs};
use std::path::Path;
use std::process::{Command, Stdio};

/// What the vendors of models take in the schema of a tool's input, all of them.
const KNOWN: [&str; 7] =
    ["type", "properties", "required", "additionalProperties", "items", "enum", "description"];

#[track_caller]
fn assert_plain(schema: &Value, place: &str) {
    let fields = schema.as_object().unwrap_or_else(|| panic!("{place}: {schema}"));
    for name in fields.keys() {
        assert!(KNOWN.contains(&name.as_str()), "{place} has {name}");
    }
    assert!(schema["type"].is_string(), "{place} has one type: {schema}");
    if schema["type"] == "object" {
        assert_eq!(schema["additionalProperties"], false, "{place}");
        for (name, property) in schema["properties"].as_object().unwrap() {
            assert_plain(property, &format!("{place}.{name}"));
        }
        for name in schema["required"].as_array().into_iter().flatten() {
            assert!(schema["properties"][name.as_str().unwrap()].is_object(), "{place}: {name}");
        }
    }
    if schema["type"] == "array" {
        assert_plain(&schema["items"], &format!("{place}[]"));
    }
}

#[test]
fn inputs_are_described_in_what_all_vendors_take() {
    let h = harness!();
    let mut peer = Peer::start(&h, &["--tools", "all"]);
    let listed = peer.ask("tools/list", json!({}));
    let tools = listed["tools"].as_array().unwrap();
    assert_eq!(tools.len(), 21);
    for tool in tools {
        let name = tool["name"].as_str().unwrap();
        assert_plain(&tool["inputSchema"], name);
        assert!(tool["description"].as_str().unwrap().len() > 20, "{name}");
        assert!(tool["title"].is_string() && tool["annotations"].is_object(), "{name}");
        assert_eq!(tool["outputSchema"], json!({"type": "object"}), "{name}: it costs tokens");
    }
    let schema = h.sessile(&["tool", "--schema"]).json();
    assert_plain(&schema["input_schema"], "sessile tool");
    peer.close();
}

/// Counted as a model reads them, by the tokenizer of one: its name,
/// description and input schema are what clients hand on.
#[test]
fn tools_take_few_tokens() {
    let Some(modules) = needs::installed("SESSILE_TEST_MCP_NODE") else { return };
    let h = harness!();
    for (offer, most) in [("runtime", 1200), ("all", 3000)] {
        let mut peer = Peer::start(&h, &["--tools", offer]);
        let listed = peer.ask("tools/list", json!({}));
        let told: Vec<Value> = listed["tools"].as_array().unwrap().iter().map(|tool| {
            json!({"name": tool["name"], "description": tool["description"], "inputSchema": tool["inputSchema"]})
        }).collect();
        let tokens = count(&modules, &Value::from(told).to_string());
        assert!(tokens < most, "{offer}: {tokens} tokens, over {most}");
        peer.close();
    }
}

#[track_caller]
fn count(modules: &Path, text: &str) -> u64 {
    use std::io::Write;
    let script =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/all/surfaces/mcp/clients/tokens.mjs");
    let mut node = Command::new("node")
        .arg(script)
        .env("SESSILE_TEST_MCP_NODE", modules)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("node starts");
    node.stdin.take().expect("a pipe").write_all(text.as_bytes()).expect("it reads");
    let output = node.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stdout);
    said.trim().parse().unwrap_or_else(|_| panic!("{said:?}"))
}
