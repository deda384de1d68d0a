//! Runs with a terminal, as a model drives them.

use super::peer::Peer;
use super::server::Server;
use super::{exact, text};
use serde_json::{Value, json};
use sessile_testkit::harness;

const VIM: &str = "vim -u NONE -n note.txt";

/// The arguments of a call that is about this session.
fn with(session: &Value, mut arguments: Value) -> Value {
    arguments["session_id"] = session.clone();
    arguments
}

#[track_caller]
fn has_no_codes(result: &Value) {
    assert!(!text(result).contains('\u{1b}'), "{result}");
}

#[test]
fn a_model_edits_a_file_with_vim() {
    let h = harness!();
    let mut peer = Peer::start(&h, &["--tools", "sessions"]);
    let started = peer.call("session_start", &json!({}));
    let id = exact(&started)["session_id"].clone();
    let mut call = |tool: &str, arguments: Value| {
        let result = peer.call(tool, &with(&id, arguments));
        has_no_codes(&result);
        result
    };
    let order = json!({"command": VIM, "terminal": {"cols": 60, "rows": 12}, "timeout_ms": 0});
    let begun = call("session_exec", order);
    assert_eq!((&begun["isError"], &exact(&begun)["run"]), (&json!(false), &json!(1)));
    assert!(text(&begun).contains("session_keys"), "{begun}");
    let ready =
        call("session_screen", json!({"run": 1, "wait_for": "note.txt", "wait_ms": 40_000}));
    assert!(text(&ready).contains("60 columns, 12 rows"), "{ready}");
    let keys = json!({"run": 1, "keys": "iby a model<Esc>", "wait_for": "^by a model$"});
    let typed = call("session_keys", keys);
    assert!(text(&typed).contains("\nscreen:\nby a model\n~\n"), "{typed}");
    assert_eq!(exact(&typed)["wait"], "matched");
    let seen = call("session_screen", json!({"run": 1, "picture": true}));
    assert_eq!(
        (&seen["content"][1]["type"], &seen["content"][1]["mimeType"]),
        (&json!("image"), &json!("image/png"))
    );
    assert!(seen["content"][1]["data"].as_str().unwrap().starts_with("iVBORw0KGgo"));
    let small = call("session_resize", json!({"run": 1, "cols": 40, "rows": 5}));
    assert!(text(&small).contains("40 columns, 5 rows"), "{small}");
    let ended = call("session_keys", json!({"run": 1, "keys": ":wq<Enter>", "wait_for": "never"}));
    assert!(text(&ended).starts_with("run 1 has ended with exit code 0"), "{ended}");
    assert_eq!(std::fs::read_to_string(h.path("note.txt")).unwrap(), "by a model\n");
    // What it drew is gone, as it is for a person.
    let result = call("session_exec", json!({"run": 1}));
    assert_eq!(exact(&result)["exit_code"], 0);
    assert!(!text(&result).contains('~'), "{result}");
    let late = call("session_keys", json!({"run": 1, "keys": "x"}));
    assert!(text(&late).contains("has finished"), "{late}");
    peer.close();
}

#[test]
fn a_model_talks_to_a_prompt_over_http() {
    let h = harness!();
    let server = Server::start(&h, &["--mcp-wait", "2s"]);
    let started = server.call("session_start", &json!({}));
    let id = exact(&started)["session_id"].clone();
    assert!(id.is_string(), "{started}");
    let call = |tool: &str, arguments: Value| server.call(tool, &with(&id, arguments));
    let command = "python3 -q";
    let begun =
        call("session_exec", json!({"command": command, "terminal": true, "timeout_ms": 0}));
    assert_eq!(exact(&begun)["run"], 1, "{begun}");
    let ready = json!({"run": 1, "wait_for": ">>> $", "wait_ms": 40_000});
    while exact(&call("session_screen", ready.clone()))["wait"] != "matched" {}
    let answer = call("session_keys", json!({"run": 1, "keys": "6*7<Enter>", "wait_for": ">>> $"}));
    assert!(text(&answer).ends_with(">>> 6*7\n42\n>>>"), "{answer}");
    // A call that waits for the run itself shows the screen.
    let waits = call("session_exec", json!({"run": 1}));
    has_no_codes(&waits);
    assert!(text(&waits).contains("\nscreen:\n"), "{waits}");
    let vain = json!({"run": 1, "wait_for": "never", "wait_ms": 20});
    assert!(text(&call("session_screen", vain)).contains("has not come in time"));
    let wrong = call("session_keys", json!({"run": 1, "keys": "<Jump>"}));
    assert!(wrong["isError"] == true && text(&wrong).contains("is not a key"), "{wrong}");
    let quick = call(
        "session_exec",
        json!({"command": "print('tty')", "language": "python", "terminal": true}),
    );
    assert_eq!(
        (&exact(&quick)["exit_code"], text(&quick).lines().last()),
        (&json!(0), Some("tty"))
    );
    let none = call("session_exec", json!({"command": "1", "language": "node"}));
    let run = &exact(&none)["run"];
    let none = call("session_screen", json!({"run": run}));
    assert!(none["isError"] == true && text(&none).contains("has no terminal"), "{none}");
    let bye = call("session_keys", json!({"run": 1, "keys": "<C-d>", "wait_for": "never"}));
    assert_eq!(exact(&bye)["exit_code"], 0);
}
