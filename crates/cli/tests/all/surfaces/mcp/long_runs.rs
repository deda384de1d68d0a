//! Commands that take longer than a client waits.

use super::peer::Peer;
use super::{exact, gated, text};
use serde_json::json;
use sessile_testkit::harness;

#[test]
fn a_long_run_is_come_back_to() {
    let h = harness!();
    let mut peer = Peer::start(&h, &["--wait", "200ms"]);
    let begun = json!({"action": "exec", "command": gated("gate"), "timeout_ms": 0});
    let result = peer.runtime(&begun);
    assert_eq!(result["isError"], false);
    assert_eq!((&exact(&result)["running"], &exact(&result)["run"]), (&json!(true), &json!(1)));
    let told = text(&result);
    assert!(told.starts_with("still running as run 1"), "{told}");
    assert!(told.contains("stdout:\nbegun\n"), "{told}");
    let wait = r#"{"action":"exec","run":1}"#;
    assert!(told.contains(wait) && told.contains(r#"{"action":"interrupt","run":1}"#), "{told}");
    let wait: serde_json::Value = serde_json::from_str(wait).unwrap();
    assert_eq!(exact(&peer.runtime(&wait))["running"], true);
    let read = peer.runtime(&json!({"action": "output", "run": 1}));
    assert_eq!(exact(&read)["data"], "begun\n");
    assert!(text(&read).contains("still running"), "{read}");
    // Somebody else lets it go.
    std::fs::write(h.path("gate"), "go\n").unwrap();
    let done = sessile_testkit::until("the end of the run", || {
        let result = peer.runtime(&wait);
        (exact(&result)["running"] != true).then_some(result)
    });
    assert_eq!(exact(&done)["stdout"], "begun\ngo\nover\n");
    assert_eq!((&exact(&done)["exitCode"], &done["isError"]), (&json!(0), &json!(false)));
    peer.close();
}

#[test]
fn a_run_is_interrupted_by_its_number() {
    let h = harness!();
    let mut peer = Peer::start(&h, &["--wait", "0s"]);
    let idle = peer.runtime(&json!({"action": "exec", "command": "x=41"}));
    assert_eq!(exact(&idle)["run"], 1);
    peer.runtime(&json!({"action": "exec", "command": gated("gate"), "timeout_ms": 0}));
    h.wait_for_file("gate.begun");
    let stopped = peer.runtime(&json!({"action": "interrupt", "run": 2}));
    assert_eq!(exact(&stopped)["status"], "interrupted");
    let mut peer = Peer::start(&h, &[]);
    let result = peer.runtime(&json!({"action": "exec", "run": 2}));
    assert_eq!((&exact(&result)["interrupted"], &result["isError"]), (&json!(true), &json!(true)));
    assert_eq!(peer.exec("echo $x"), "41\n");
    let nothing = peer.runtime(&json!({"action": "interrupt"}));
    assert_eq!(text(&nothing), "nothing is running");
    peer.close();
}

#[test]
fn a_cancelled_call_interrupts_its_run_and_keeps_the_state() {
    for version in [None, Some("2025-06-18")] {
        let h = harness!();
        let mut peer = match version {
            None => Peer::start(&h, &[]),
            Some(version) => Peer::shake_hands(&h, version).0,
        };
        peer.exec("x=41");
        let command = json!({"action": "exec", "command": gated("gate"), "timeout_ms": 0});
        let call = peer.begin("runtime", &command);
        h.wait_for_file("gate.begun");
        peer.notify("notifications/cancelled", &json!({"requestId": call, "reason": "enough"}));
        // It has to wait for its turn, which comes when the other has ended.
        assert_eq!(peer.exec("echo $x"), "41\n");
        let history = peer.runtime(&json!({"action": "history"}));
        assert_eq!(exact(&history)["history"][1]["exitCode"], 130);
        assert!(!peer.is_answered(call), "a cancelled call is not answered");
        peer.close();
    }
}

#[test]
fn a_call_that_waits_on_is_cancelled_like_the_first_one() {
    let h = harness!();
    let mut peer = Peer::start(&h, &["--wait", "0s"]);
    peer.runtime(&json!({"action": "exec", "command": gated("gate"), "timeout_ms": 0}));
    h.wait_for_file("gate.begun");
    let mut peer = Peer::start(&h, &[]);
    let call = peer.begin("runtime", &json!({"action": "exec", "run": 1}));
    // Answered at once, so the one before it is being answered.
    peer.ask("tools/list", json!({}));
    peer.notify("notifications/cancelled", &json!({"requestId": call}));
    assert_eq!(peer.exec("echo next"), "next\n");
    peer.close();
}

#[test]
fn a_client_that_waits_is_told_what_goes_on() {
    let h = harness!();
    let mut peer = Peer::start(&h, &[]);
    let command = r"printf 'step 1\n 10%%\r 90%%'; echo >here; mkfifo gate; cat gate";
    let call = peer.request(
        "tools/call",
        json!({
            "name": "runtime",
            "arguments": {"action": "exec", "command": command, "timeout_ms": 0},
            "_meta": {"progressToken": "token-1"},
        }),
    );
    h.wait_for_file("here");
    let word = peer.notification();
    assert_eq!(word["method"], "notifications/progress");
    assert_eq!(word["params"]["progressToken"], "token-1");
    assert_eq!(word["params"]["message"], " 90%");
    assert!(word["params"]["progress"].as_f64().unwrap() > 0.0);
    std::fs::write(h.path("gate"), "").unwrap();
    assert_eq!(exact(&peer.result(call))["exitCode"], 0);
    peer.close();
}
