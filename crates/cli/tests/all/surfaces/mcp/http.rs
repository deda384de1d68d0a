//! MCP over HTTP.

use super::server::{Reply, Server};
use super::{exact, gated, peer, text};
use serde_json::{Value, json};
use sessile_testkit::harness;

fn exec(command: &str) -> Value {
    json!({"action": "exec", "command": command, "timeout_ms": 0})
}

/// A call of an older version.
fn call(id: u64, arguments: &Value) -> Value {
    json!({
        "jsonrpc": "2.0", "id": id, "method": "tools/call",
        "params": {"name": "runtime", "arguments": arguments},
    })
}

#[test]
fn a_body_that_is_no_message_is_told_so() {
    let h = harness!();
    let server = Server::start(&h, &[]);
    let authorization = format!("Bearer {}", server.token);
    let reply = server.post_text(&[("Authorization", &authorization)], "{oops");
    assert_eq!(reply.status, 400);
    assert_eq!(reply.messages()[0]["error"]["code"], -32700);
    for other in ["[1, 2]", "{\"foo\": 1}", "{\"id\": 1, \"method\": \"ping\"}"] {
        let reply = server.post_text(&[("Authorization", &authorization)], other);
        assert_eq!(reply.status, 400, "{other}");
        assert_eq!(reply.messages()[0]["error"]["code"], -32600, "{other}");
    }
}

#[test]
fn a_request_is_on_its_own() {
    let h = harness!();
    let server = Server::start(&h, &[]);
    server.call("runtime", &exec("x=41"));
    let result = server.call("runtime", &exec("echo $((x+1))"));
    assert_eq!(exact(&result)["stdout"], "42\n");
    assert_eq!(text(&result).lines().last(), Some("42"));
}

#[test]
fn nobody_calls_without_a_token_or_under_another_name() {
    let h = harness!();
    let server = Server::start(&h, &[]);
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": peer::initialize("2025-06-18")});
    assert_eq!(server.post(&[], &message).status, 401);
    assert_eq!(server.post(&[("Authorization", "Bearer no")], &message).status, 401);
    let token = format!("Bearer {}", server.token);
    let page = [("Authorization", token.as_str()), ("Origin", "http://evil.example")];
    assert_eq!(server.post(&page, &message).status, 403);
    assert_eq!(server.post(&[("Authorization", &token)], &message).status, 200);
    let odd = Reply::read(server.send("/mcp?tools=odd", &[("Authorization", &token)], &message));
    assert_eq!(odd.status, 400);
}

#[test]
fn a_token_sees_the_workspaces_that_it_is_for() {
    let h = harness!();
    for name in ["mine", "theirs"] {
        std::fs::create_dir(h.path(name)).unwrap();
    }
    let mut server = Server::start(&h, &[]);
    let theirs = server.call("session_start", &json!({"cwd": "theirs"}));
    let theirs = exact(&theirs)["session_id"].clone();
    let tokens = sessile_server::Tokens::at(&h.private_dir());
    server.token = tokens
        .create(
            "limited",
            sessile_server::TokenLimits {
                workspaces: Some(vec![h.path("mine")]),
                ..Default::default()
            },
        )
        .unwrap()
        .0;
    let here = server.call("runtime", &exec("pwd"));
    assert_eq!(exact(&here)["stdout"], format!("{}\n", h.path("mine").display()));
    let outside = json!({"action": "state", "workspace": h.path("theirs")});
    assert!(text(&server.call("runtime", &outside)).contains("outside"));
    let other = server.call("session_exec", &json!({"session_id": theirs, "command": "pwd"}));
    assert!(text(&other).contains("not found"), "{other}");
    let listed = server.call("session_list", &json!({}));
    assert_eq!(exact(&listed)["sessions"].as_array().unwrap().len(), 1);
}

#[test]
fn an_older_client_cancels_its_own_calls_and_no_others() {
    let h = harness!();
    let server = Server::start(&h, &[]);
    let (mine, theirs) = (server.shake_hands(), server.shake_hands());
    assert_ne!(mine, theirs);
    let waiting = server.send_as(&mine, &call(5, &exec(&gated("gate"))));
    h.wait_for_file("gate.begun");
    let cancelled =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 5}});
    assert_eq!(Reply::read(server.send_as(&theirs, &cancelled)).status, 202);
    let read = server.call("runtime", &json!({"action": "output", "run": 1}));
    assert_eq!(exact(&read)["running"], true, "another client's call was cancelled");
    assert_eq!(Reply::read(server.send_as(&mine, &cancelled)).status, 202);
    let ended = Reply::read(waiting).result();
    assert!(text(&ended).contains("cancelled"), "{ended}");
    let result = server.call("runtime", &json!({"action": "exec", "run": 1}));
    assert_eq!(exact(&result)["interrupted"], true);
}

#[test]
fn a_connection_that_drops_cancels_in_the_stateless_version_only() {
    let h = harness!();
    let server = Server::start(&h, &[]);
    let session = server.shake_hands();
    let new = server.begin("runtime", &exec(&format!("kept=1; {}", gated("new"))));
    h.wait_for_file("new.begun");
    drop(new);
    let done = server.call("runtime", &json!({"action": "exec", "run": 1}));
    assert_eq!(exact(&done)["interrupted"], true);
    assert_eq!(exact(&done)["stdout"], "begun\n");
    let old = server.send_as(&session, &call(2, &exec(&gated("old"))));
    h.wait_for_file("old.begun");
    drop(old);
    std::fs::write(h.path("old"), "go\n").unwrap();
    let done = server.call("runtime", &json!({"action": "exec", "run": 2}));
    assert_eq!(exact(&done)["stdout"], "begun\ngo\nover\n");
    let kept = server.call("runtime", &exec("echo $kept"));
    assert_eq!(exact(&kept)["stdout"], "1\n");
}

#[test]
fn an_older_client_goes_on_after_the_server_was_killed() {
    let h = harness!();
    let server = Server::start(&h, &[]);
    let session = server.shake_hands();
    Reply::read(server.send_as(&session, &call(2, &exec("x=41")))).result();
    let address = server.address.clone();
    server.kill();
    let server = Server::start_at(&h, &address, &[]);
    let result = Reply::read(server.send_as(&session, &call(3, &exec("echo $x")))).result();
    assert_eq!(exact(&result)["stdout"], "41\n");
}

#[test]
fn a_client_that_waits_is_told_what_goes_on() {
    let h = harness!();
    let server = Server::start(&h, &[]);
    let session = server.shake_hands();
    let mut message = call(2, &exec("echo step 1; mkfifo gate; cat gate"));
    message["params"]["_meta"] = json!({"progressToken": 9});
    let mut stream = server.send_as(&session, &message);
    // Up to the word; the rest is read when the run is let go.
    let mut heard = Vec::new();
    while !String::from_utf8_lossy(&heard).contains("notifications/progress") {
        let mut byte = [0; 512];
        let n = std::io::Read::read(&mut stream, &mut byte).unwrap();
        assert!(n > 0, "no word came: {}", String::from_utf8_lossy(&heard));
        heard.extend(&byte[..n]);
    }
    assert!(String::from_utf8_lossy(&heard).contains("step 1"));
    std::fs::write(h.path("gate"), "").unwrap();
    let mut rest = String::new();
    std::io::Read::read_to_string(&mut stream, &mut rest).unwrap();
    assert!(rest.contains("exit code 0"), "{rest}");
}

#[test]
fn a_session_is_called_by_its_name() {
    let h = harness!();
    let server = Server::start(&h, &[]);
    let started = server.call("session_start", &json!({"name": "web"}));
    let id = exact(&started)["session_id"].clone();
    let ran = server.call("session_exec", &json!({"session_id": "web", "command": "echo hi"}));
    assert_eq!(exact(&ran)["stdout"], "hi\n");
    let short = &id.as_str().unwrap()[..15];
    let ran = server.call("session_exec", &json!({"session_id": short, "run": 1}));
    assert_eq!(exact(&ran)["stdout"], "hi\n");
    let nobody = server.call("session_end", &json!({"session_id": "nobody"}));
    let advice = "error: Session nobody not found; session_list has those that there are";
    assert_eq!(text(&nobody), advice);
    assert_eq!(exact(&server.call("session_end", &json!({"session_id": "web"})))["session_id"], id);
}
