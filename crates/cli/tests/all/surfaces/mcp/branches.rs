//! Forks, checkpoints and going back, as a model does it.

use super::peer::Peer;
use super::{exact, gated, text};
use serde_json::{Value, json};
use sessile_testkit::harness;

/// A session, and calls about it.
struct Session {
    id: Value,
}

impl Session {
    fn start(peer: &mut Peer, arguments: &Value) -> Self {
        let started = peer.call("session_start", arguments);
        Self { id: exact(&started)["session_id"].clone() }
    }

    fn call(&self, peer: &mut Peer, tool: &str, mut arguments: Value) -> Value {
        arguments["session_id"] = self.id.clone();
        peer.call(tool, &arguments)
    }

    fn exec(&self, peer: &mut Peer, command: &str) -> String {
        let done = self.call(peer, "session_exec", json!({"command": command}));
        exact(&done)["stdout"].as_str().unwrap_or_default().to_owned()
    }
}

#[test]
fn a_model_tries_two_ways_from_one_point() {
    let h = harness!();
    let mut peer = Peer::start(&h, &["--tools", "sessions"]);
    let s = Session::start(&mut peer, &json!({"shell": "python3"}));
    s.exec(&mut peer, "x=1");
    let forked = s.call(&mut peer, "session_fork", json!({"count": 2, "name": "way"}));
    let ids = exact(&forked)["session_ids"].as_array().expect("ids").clone();
    assert!(text(&forked).contains(ids[1].as_str().expect("an id")), "{forked}");
    assert!(text(&forked).starts_with("new sessions with the state after run 1"), "{forked}");
    let ways: Vec<Session> = ids.into_iter().map(|id| Session { id }).collect();
    ways[0].exec(&mut peer, "x=2");
    s.exec(&mut peer, "x=3");
    let seen = [&s, &ways[0], &ways[1]].map(|session| session.exec(&mut peer, "print(x)"));
    assert_eq!(seen, ["3\n", "2\n", "1\n"]);
    let listed = peer.call("session_list", &json!({}));
    assert!(text(&listed).contains("(way-1): active"), "{listed}");
    assert!(text(&listed).contains("fork of sess_"), "{listed}");
    let again = ways[1].call(&mut peer, "session_fork", json!({}));
    let id = exact(&again)["session_ids"][0].clone();
    assert_eq!(Session { id }.exec(&mut peer, "print(x)"), "1\n");
    peer.close();
}

#[test]
fn a_model_goes_back_and_is_told_what_was_taken_back() {
    let h = harness!();
    let mut peer = Peer::start(&h, &["--tools", "sessions"]);
    let s = Session::start(&mut peer, &json!({"shell": "python3"}));
    s.exec(&mut peer, "x=1");
    let taken = s.call(&mut peer, "session_checkpoint", json!({"name": "good"}));
    assert!(text(&taken).starts_with("checkpoint \"good\" has the state after run 1"));
    let twice = s.call(&mut peer, "session_checkpoint", json!({"name": "good"}));
    assert_eq!(
        (&twice["isError"], exact(&twice)["success"].as_bool()),
        (&json!(true), Some(false))
    );
    s.exec(&mut peer, "x=2");
    s.exec(&mut peer, "exit(1)");
    let listed = s.call(&mut peer, "session_checkpoints", json!({}));
    assert_eq!(exact(&listed)["checkpoints"][0]["name"], "good");
    assert!(text(&listed).starts_with("good: after run 1, "), "{listed}");
    let back = s.call(&mut peer, "session_rewind", json!({"checkpoint": "good"}));
    assert!(
        text(&back).starts_with("back at checkpoint \"good\": runs 2, 3 are taken back"),
        "{back}"
    );
    assert_eq!(exact(&back)["undone"], json!([2, 3]));
    assert_eq!(s.exec(&mut peer, "print(x)"), "1\n");
    let jobs = s.call(&mut peer, "session_jobs", json!({}));
    assert!(text(&jobs).contains("\n4: rewind good; takes back runs 2, 3\n"), "{jobs}");
    let gone = s.call(&mut peer, "session_drop", json!({"checkpoint": "good"}));
    assert_eq!(text(&gone), "dropped: good");
    let nothing = s.call(&mut peer, "session_rewind", json!({}));
    assert!(text(&nothing).contains("no checkpoints"), "{nothing}");
    assert_eq!(
        text(&s.call(&mut peer, "session_drop", json!({"all": true}))),
        "there were no checkpoints"
    );
    peer.close();
}

#[test]
fn the_last_run_is_undone_in_a_session_with_auto() {
    let h = harness!();
    let mut peer = Peer::start(&h, &["--tools", "all"]);
    let s = Session::start(&mut peer, &json!({"shell": "python3", "auto": 2}));
    for n in 1..=3 {
        s.exec(&mut peer, &format!("x = {n}"));
    }
    let undone = s.call(&mut peer, "session_undo", json!({}));
    assert!(text(&undone).contains("run 3 is taken back"), "{undone}");
    let undone = s.call(&mut peer, "session_undo", json!({}));
    assert!(text(&undone).contains("run 2 is taken back"), "{undone}");
    let refused = s.call(&mut peer, "session_undo", json!({}));
    assert_eq!(refused["isError"], true, "only the last two are kept: {refused}");
    assert_eq!(s.exec(&mut peer, "print(x)"), "1\n");
    let refused = peer.call("session_start", &json!({"auto": 0}));
    assert!(text(&refused).contains("auto must be"), "{refused}");
    peer.close();
}

#[test]
fn a_run_that_is_going_is_told_and_waited_for_only_so_long() {
    let h = harness!();
    let mut peer = Peer::start(&h, &["--tools", "sessions"]);
    let s = Session::start(&mut peer, &json!({}));
    let begun = s.call(&mut peer, "session_exec", json!({"command": gated("gate"), "wait_ms": 0}));
    assert_eq!(exact(&begun)["running"], true, "{begun}");
    h.wait_for_file("gate.begun");
    let refused = s.call(&mut peer, "session_checkpoint", json!({}));
    assert!(text(&refused).contains("run 1 is going"), "{refused}");
    let mut late = json!({"session_id": s.id, "wait": true, "name": "late"});
    late["wait_ms"] = 50.into();
    let impatient = peer.call("session_checkpoint", &late);
    assert!(text(&impatient).contains("still going"), "{impatient}");
    let waiting = peer.begin("session_checkpoint", &json!({"session_id": s.id, "wait": true}));
    std::fs::write(h.path("gate"), "").expect("a gate");
    let taken = peer.result(waiting);
    assert!(text(&taken).contains("after run 1"), "{taken}");
    peer.close();
}

#[test]
fn the_runtime_of_a_workspace_is_taken_back_and_forked_by_a_key() {
    let h = harness!();
    let mut peer = Peer::start(&h, &[]);
    let none = peer.runtime(&json!({"action": "undo"}));
    assert!(text(&none).contains("no session yet"), "{none}");
    let eval = |peer: &mut Peer, key: &str, command: &str| {
        let call = json!({"action": "eval", "command": command, "session_key": key, "auto": 5});
        exact(&peer.runtime(&call))["result"].clone()
    };
    let main = "";
    eval(&mut peer, main, "x = 1");
    let taken = json!({"action": "checkpoint", "checkpoint": "good", "session_key": main});
    let taken = peer.runtime(&taken);
    assert_eq!((&exact(&taken)["success"], &exact(&taken)["name"]), (&json!(true), &json!("good")));
    eval(&mut peer, main, "x = 2");
    let forked = json!({"action": "fork", "session_key": main, "new_key": "other"});
    let first = peer.runtime(&forked);
    assert_eq!(exact(&first)["session_key"], "other", "{first}");
    let again = peer.runtime(&forked);
    assert!(text(&again).contains("already"), "{again}");
    assert_eq!(eval(&mut peer, "other", "x"), "2");
    eval(&mut peer, "other", "x = 3");
    let undone = peer.runtime(&json!({"action": "undo", "session_key": main}));
    assert!(text(&undone).contains("run 2 is taken back"), "{undone}");
    assert_eq!(eval(&mut peer, main, "x"), "1");
    assert_eq!(eval(&mut peer, "other", "x"), "3");
    let listed = peer.runtime(&json!({"action": "checkpoints", "session_key": main}));
    assert!(text(&listed).contains("good: after run 1"), "{listed}");
    let back =
        peer.runtime(&json!({"action": "rewind", "checkpoint": "good", "session_key": main}));
    assert_eq!(exact(&back)["success"], true, "{back}");
    let history = peer.runtime(&json!({"action": "history", "session_key": main}));
    assert!(text(&history).contains("rewind good"), "{history}");
    let events = exact(&history)["history"].as_array().expect("a list").iter();
    assert_eq!(events.filter(|entry| entry["event"] == "rewind").count(), 2);
    peer.close();
}

#[test]
fn the_tools_say_what_they_destroy() {
    let h = harness!();
    let mut peer = Peer::start(&h, &["--tools", "sessions"]);
    let listed = peer.ask("tools/list", json!({}));
    let hint = |tool: &str, name: &str| {
        let tools = listed["tools"].as_array().expect("tools").iter();
        let found = tools.clone().find(|t| t["name"] == tool).expect(tool);
        found["annotations"][name].clone()
    };
    for tool in ["session_rewind", "session_undo", "session_drop"] {
        assert_eq!(hint(tool, "destructiveHint"), true, "{tool}");
    }
    for tool in ["session_fork", "session_checkpoint"] {
        assert_eq!(hint(tool, "destructiveHint"), false, "{tool}");
    }
    assert_eq!(hint("session_checkpoints", "readOnlyHint"), true);
    peer.close();
}

#[test]
fn a_model_starts_from_a_prepared_session() {
    let h = harness!();
    let mut peer = Peer::start(&h, &["--tools", "sessions"]);
    let template = Session::start(&mut peer, &json!({"shell": "python3"}));
    template.exec(&mut peer, "x = 1");
    let new = Session::start(&mut peer, &json!({"from": template.id}));
    assert_eq!(new.exec(&mut peer, "print(x)"), "1\n");
    peer.close();
}
