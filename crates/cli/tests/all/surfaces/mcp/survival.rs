//! What is left when a client goes, and where.

use super::peer::Peer;
use super::{exact, gated, text};
use serde_json::json;
use sessile_testkit::harness;

#[test]
fn a_restarted_client_finds_its_variables() {
    let h = harness!();
    let mut peer = Peer::start(&h, &[]);
    peer.exec("x=41; cd /tmp");
    peer.runtime(&json!({"action": "eval", "command": "y = 1"}));
    peer.kill();
    let mut peer = Peer::start(&h, &[]);
    let result = peer.runtime(&json!({"action": "exec", "command": "echo $x; pwd"}));
    assert_eq!(exact(&result)["stdout"], "41\n/tmp\n");
    assert!(exact(&result).get("new_session").is_none());
    let value = peer.runtime(&json!({"action": "eval", "command": "41 + y"}));
    assert_eq!(exact(&value)["result"], "42");
    peer.close();
}

#[test]
fn a_client_that_disappears_leaves_its_run_alone() {
    for leave in [Peer::kill as fn(Peer), Peer::close] {
        let h = harness!();
        let mut peer = Peer::start(&h, &[]);
        peer.begin(
            "runtime",
            &json!({"action": "exec", "command": gated("gate"), "timeout_ms": 0}),
        );
        h.wait_for_file("gate.begun");
        leave(peer);
        let mut peer = Peer::start(&h, &[]);
        let call = peer.begin("runtime", &json!({"action": "exec", "run": 1}));
        std::fs::write(h.path("gate"), "go\n").unwrap();
        let done = peer.result(call);
        assert_eq!(exact(&done)["stdout"], "begun\ngo\nover\n", "{done}");
        peer.close();
    }
}

#[test]
fn a_client_that_asks_nothing_more_has_its_answers() {
    let h = harness!();
    let mut peer = Peer::start(&h, &[]);
    let call = json!({"action": "exec", "command": gated("gate"), "timeout_ms": 0});
    let call = peer.begin("runtime", &call);
    h.wait_for_file("gate.begun");
    peer.close_input();
    let told = peer.result(call);
    assert_eq!((&exact(&told)["running"], &exact(&told)["run"]), (&json!(true), &json!(1)));
    assert!(text(&told).starts_with("still running as run 1\n"), "{told}");
    peer.close();
    std::fs::write(h.path("gate"), "go\n").unwrap();
}

#[test]
fn sessions_are_kept_with_their_workspace_as_those_of_the_tool() {
    let h = harness!();
    std::fs::create_dir(h.path("other")).unwrap();
    let command = |args: &[&str]| {
        let mut command = h.command(args);
        command.env_remove("SESSILE_SESSIONS_DIR");
        command
    };
    let mut peer = Peer::spawn(command(&["mcp"]));
    peer.exec("x=here");
    peer.runtime(&json!({"action": "exec", "command": "x=there", "workspace": "other"}));
    assert_eq!(peer.exec("echo $x"), "here\n");
    peer.close();
    for (workspace, expected) in [(".", "here\n"), ("other", "there\n")] {
        let request =
            json!({"action": "exec", "command": "echo $x", "workspace": workspace}).to_string();
        let answer = sessile_testkit::Client::spawn(command(&["tool", &request]), b"").finish();
        assert_eq!(answer.json()["stdout"], expected);
        let sessions = h.path(workspace).join(".sessions");
        let args = ["end", "--all", "--sessions-dir", sessions.to_str().unwrap()];
        sessile_testkit::Client::spawn(command(&args), b"").finish().exits(0);
    }
}

#[test]
fn a_client_is_held_to_the_roots_that_were_named() {
    let h = harness!();
    for name in ["mine", "theirs"] {
        std::fs::create_dir(h.path(name)).unwrap();
    }
    let mut peer = Peer::start(&h, &["--workspace-root", "mine"]);
    let result = peer.runtime(&json!({"action": "exec", "command": "pwd"}));
    assert_eq!(exact(&result)["stdout"], format!("{}\n", h.path("mine").display()));
    let theirs = h.path("theirs");
    for workspace in [theirs.to_str().unwrap(), "../theirs", "/"] {
        let result = peer.runtime(&json!({"action": "state", "workspace": workspace}));
        assert!(text(&result).contains("outside"), "{result}");
        assert!(text(&result).contains("--workspace-root"), "{result}");
    }
    peer.close();
}

#[test]
fn calls_that_come_at_once_run_in_their_order() {
    let h = harness!();
    let mut peer = Peer::start(&h, &["--tools", "all"]);
    let started = peer.call("session_start", &json!({}));
    let session = exact(&started)["session_id"].clone();
    let workspace: Vec<u64> = (1..=8)
        .map(|n| peer.begin("runtime", &json!({"action": "exec", "command": format!("x+={n}")})))
        .collect();
    let named: Vec<u64> = (1..=8)
        .map(|n| {
            let call = json!({"session_id": session, "command": format!("x+={n}")});
            peer.begin("session_exec", &call)
        })
        .collect();
    for calls in [workspace, named] {
        for (call, run) in calls.into_iter().zip(1..) {
            assert_eq!(exact(&peer.result(call))["run"], run);
        }
    }
    assert_eq!(peer.exec("echo $x"), "12345678\n");
    peer.close();
}
