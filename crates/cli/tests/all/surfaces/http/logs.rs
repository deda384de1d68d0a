//! What a server tells its operator, and what it never does.

use serde_json::{Value, json};
use sessile_testkit::harness;

#[test]
fn a_request_is_one_line_of_json() {
    let h = harness!();
    let server = h.server(&["--log", "json", "--log-level", "debug"]);
    let id = server.session();
    let made = h.sessile(&["token", "create", "ci"]).json();
    let token = made["token"].as_str().expect("a token");
    let path = format!("/v1/sessions/{id}/history?limit=1");
    let _ = server.request("GET", &path).token(token).send().is(200);
    let line: Value = serde_json::from_str(&server.wait_for_log("history")).expect("JSON");
    assert_eq!(line["method"], "GET");
    assert_eq!(line["path"], "/v1/sessions/{id}/history");
    assert_eq!(line["status"], 200);
    assert_eq!(line["session_id"], id.as_str());
    assert_eq!(line["token"], "ci");
    assert!(line["duration_ms"].is_number(), "{line}");
    let (_, log) = server.stop();
    for line in log.lines() {
        serde_json::from_str::<Value>(line).expect("JSON");
    }
    for said in ["the server has started", "asked to stop", "the server has stopped"] {
        assert!(log.contains(said), "{said}: {log}");
    }
}

#[test]
fn refusals_are_told_and_ordinary_requests_are_not() {
    let h = harness!();
    let server = h.server(&[]);
    let _ = server.session();
    let _ = server.request("GET", "/v1/sessions").send().is(401);
    let line = server.wait_for_log("unauthorized");
    assert!(line.contains("INFO") && line.contains("status=401"), "{line}");
    assert_eq!(server.log().matches("request").count(), 1, "{}", server.log());
}

#[test]
fn no_token_and_no_body_is_ever_logged() {
    let h = harness!();
    let server = h.server(&["--log-level", "trace"]);
    let made = h.sessile(&["token", "create", "ci"]).json();
    let good = made["token"].as_str().expect("a token").to_owned();
    let bad = format!("sessile_{}", "b".repeat(64));
    let id = server.session();
    let secret = "open-sesame-4711";
    let order = json!({"command": format!("echo {secret}"), "env": {"S": secret}});
    for token in [server.token(), &good, &bad, "short"] {
        let exec = server.request("POST", &format!("/v1/sessions/{id}/exec"));
        let _ = exec.token(token).json(&order).send();
        let tool = json!({"action": "exec", "command": format!("echo {secret}")});
        let _ = server.request("POST", "/v1/tools/runtime").token(token).json(&tool).send();
        let mcp =
            json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"x": secret}});
        let _ = server.request("POST", "/mcp").token(token).json(&mcp).send();
        // In places where it does not belong.
        let _ = server.request("GET", &format!("/v1/sessions?token={token}")).token(token).send();
        let _ = server.request("GET", &format!("/v1/{token}")).send();
        let _ = server.request("GET", &format!("/v1/sessions/{token}/state")).token(token).send();
        let _ = server.request("GET", "/v1/sessions").header("authorization", token).send();
    }
    let token = server.token().to_owned();
    let (_, log) = server.stop();
    assert!(log.contains("DEBUG"), "{log}");
    for secret in [&token, &good, &bad, secret] {
        assert!(!log.contains(secret), "{secret} in {log}");
    }
}
