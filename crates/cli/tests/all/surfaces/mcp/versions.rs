//! Every version of the protocol that clients speak.

use super::peer::Peer;
use super::{exact, text};
use serde_json::{Value, json};
use sessile_testkit::harness;

#[test]
fn a_client_needs_no_handshake() {
    let h = harness!();
    let mut peer = Peer::start(&h, &[]);
    assert_eq!(peer.exec("x=41"), "");
    let result = peer.runtime(&json!({"action": "exec", "command": "echo $((x+1))"}));
    assert_eq!(exact(&result)["stdout"], "42\n");
    assert_eq!(result["resultType"], "complete");
    peer.close();
}

#[test]
fn a_client_finds_out_what_there_is() {
    let h = harness!();
    let mut peer = Peer::start(&h, &[]);
    let told = peer.ask("server/discover", json!({}));
    let versions: Vec<&str> =
        told["supportedVersions"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    for version in ["2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"] {
        assert!(versions.contains(&version), "{version} is not in {versions:?}");
    }
    assert!(told["capabilities"]["tools"].is_object());
    peer.close();
}

#[test]
fn a_line_that_is_no_message_is_told_so() {
    let h = harness!();
    let mut peer = Peer::start(&h, &[]);
    assert_eq!(peer.exec("x=41"), "");
    for line in ["{oops", "[1, 2", "hello"] {
        peer.write_line(line);
        let told = peer.notification();
        assert_eq!(told["error"]["code"], -32700, "{line}: {told}");
        assert!(told["error"]["message"].as_str().unwrap().starts_with("Parse error"), "{told}");
    }
    for line in ["[1, 2]", "{\"foo\": 1}"] {
        peer.write_line(line);
        assert_eq!(peer.notification()["error"]["code"], -32600, "{line}");
    }
    peer.write_line("");
    assert_eq!(peer.exec("echo $x"), "41\n");
    peer.close();
}

#[test]
fn params_that_do_not_fit_a_method_are_told_from_a_method_that_is_not_there() {
    let h = harness!();
    let mut peer = Peer::start(&h, &[]);
    for params in [json!({}), json!({"name": 5}), json!({"name": "runtime", "arguments": [1]})] {
        let id = peer.request("tools/call", params.clone());
        assert_eq!(peer.reply(id)["error"]["code"], -32602, "{params}");
    }
    let id = peer.request("tools/nothing", json!({}));
    assert_eq!(peer.reply(id)["error"]["code"], -32601);
    peer.close();
}

#[test]
fn older_clients_shake_hands_first() {
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let h = harness!();
        let (mut peer, told) = Peer::shake_hands(&h, version);
        assert_eq!(told["protocolVersion"], version);
        assert_eq!(told["serverInfo"]["name"], "sessile");
        let tools = peer.ask("tools/list", json!({}));
        assert_eq!(tools["tools"][0]["name"], "runtime");
        peer.exec("x=41");
        let result = peer.runtime(&json!({"action": "exec", "command": "echo $((x+1))"}));
        assert_eq!(text(&result).lines().last(), Some("42"), "{version}");
        assert!(result.get("resultType").is_none(), "{version} does not know that");
        assert_eq!(peer.ask("ping", json!({})), json!({}));
        peer.close();
    }
}

#[test]
fn a_version_that_nobody_knows_is_answered_with_one_that_we_do() {
    let h = harness!();
    let (peer, told) = Peer::shake_hands(&h, "1999-01-01");
    assert_eq!(told["protocolVersion"], "2025-11-25");
    peer.close();
}

#[test]
fn the_tools_are_those_that_were_asked_for() {
    let h = harness!();
    let sessions = [
        "session_start",
        "session_exec",
        "session_state",
        "session_reset",
        "session_screen",
        "session_keys",
        "session_resize",
        "session_jobs",
        "session_fork",
        "session_checkpoint",
        "session_checkpoints",
        "session_rewind",
        "session_undo",
        "session_drop",
        "session_save",
        "session_restore",
        "session_logs",
        "session_top",
        "session_end",
        "session_list",
    ];
    let all = [&["runtime"][..], &sessions].concat();
    for (options, wanted) in [
        (&[][..], &["runtime"][..]),
        (&["--tools", "sessions"], &sessions),
        (&["--tools", "all"], &all),
    ] {
        let mut peer = Peer::start(&h, options);
        let listed = peer.ask("tools/list", json!({}));
        let tools = listed["tools"].as_array().unwrap();
        let names: Vec<&str> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
        assert_eq!(names, wanted);
        for tool in tools {
            assert!(tool["description"].as_str().unwrap().len() > 20, "{tool}");
            assert_eq!(tool["inputSchema"]["type"], "object");
            assert_eq!(tool["outputSchema"]["type"], "object");
            let looks = [
                "session_list",
                "session_screen",
                "session_state",
                "session_jobs",
                "session_checkpoints",
                "session_logs",
                "session_top",
            ];
            let only_looks = looks.iter().any(|name| tool["name"] == *name);
            assert_eq!(tool["annotations"]["readOnlyHint"], only_looks, "{tool}");
        }
        peer.close();
    }
}
