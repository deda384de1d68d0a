//! Forks, checkpoints and going back over HTTP, on real sessions.

use serde_json::{Value, json};
use sessile_testkit::{Gate, Server, harness, session_path};
use std::io::Read;

fn fork(server: &Server, session: &str, body: &Value) -> Value {
    server.post(&format!("{session}/fork"), body).is(201).json()
}

fn checkpoint(server: &Server, session: &str, name: &str) -> Value {
    server.post(&format!("{session}/checkpoints"), &json!({"name": name})).is(201).json()
}

fn names(server: &Server, session: &str) -> Vec<String> {
    let list = server.get(&format!("{session}/checkpoints")).is(200).json();
    let rows = list.as_array().expect("a list").iter();
    rows.map(|row| row["name"].as_str().expect("a name").to_owned()).collect()
}

#[test]
fn a_session_is_forked_and_what_could_not_be_carried_is_named() {
    let h = harness!();
    let server = h.serve();
    let original = server.started(&json!({"shell": "python3"}));
    server.exec_at(&original, "x = 1; import socket; s = socket.socket()");
    let forked = fork(&server, &original, &json!({"count": 2, "name": "branch"}));
    assert_eq!(forked["as_of_run"], 1, "{forked}");
    assert_eq!(forked["continuity"]["status"], "live");
    assert_eq!(forked["left"][0]["name"], "descriptor 3: a socket", "{forked}");
    let ids = forked["session_ids"].as_array().expect("ids");
    assert_eq!(ids.len(), 2);
    let (one, two) = (session_path(&ids[0]), session_path(&ids[1]));
    server.exec_at(&original, "x = 2");
    server.exec_at(&one, "x = 3");
    let seen = [&original, &one, &two].map(|session| server.prints_at(session, "print(x)"));
    assert_eq!(seen, ["2\n", "3\n", "1\n"]);
    let shown = server.get(&one).is(200).json();
    assert_eq!(shown["name"], "branch-1");
    assert_eq!(session_path(&shown["forked_from"]["session_id"]), original);
    assert_eq!(shown["forked_from"]["as_of_run"], 1);
    let listed = server.get("/v1/sessions").is(200).json();
    assert_eq!(listed["sessions"].as_array().expect("a list").len(), 3);
}

#[test]
fn runs_are_taken_back_one_by_one() {
    let h = harness!();
    let server = h.serve();
    let session = server.started(&json!({"auto": 3}));
    for n in 1..=3 {
        server.exec_at(&session, &format!("x={n}"));
    }
    let undone = server.post(&format!("{session}/undo"), &json!({})).is(200).json();
    assert_eq!(undone["undone"], json!([3]), "{undone}");
    assert_eq!((&undone["checkpoint"], &undone["run"]), (&json!("before-3"), &json!(4)));
    assert_eq!(server.prints_at(&session, "echo $x"), "2\n");
    let back = server.post(&format!("{session}/rewind"), &json!({"runs": 2})).is(200).json();
    assert_eq!(back["undone"], json!([2, 5]), "{back}");
    assert_eq!(server.prints_at(&session, "echo $x"), "1\n");
}

#[test]
fn a_session_goes_back_to_a_checkpoint() {
    let h = harness!();
    let server = h.serve();
    let session = server.started(&json!({}));
    server.exec_at(&session, "x=1");
    let taken = checkpoint(&server, &session, "here");
    assert_eq!((&taken["name"], &taken["as_of_run"]), (&json!("here"), &json!(1)));
    server.exec_at(&session, "x=2; exit 3");
    let body = json!({"checkpoint": "here"});
    let back = server.post(&format!("{session}/rewind"), &body).is(200).json();
    assert_eq!((&back["checkpoint"], &back["undone"]), (&json!("here"), &json!([2])), "{back}");
    assert_eq!(server.prints_at(&session, "echo $x"), "1\n");
}

#[test]
fn a_run_that_is_going_is_a_reason_to_refuse_or_to_wait() {
    let h = harness!();
    let server = h.serve();
    let session = server.started(&json!({"auto": 5}));
    server.exec_at(&session, "x=early");
    checkpoint(&server, &session, "early");
    let gate = Gate::occupy(&h, &server, &session);
    for call in ["fork", "checkpoints", "rewind", "undo"] {
        let refused = server.post(&format!("{session}/{call}"), &json!({}));
        let _ = refused.is_refused(409, "busy");
    }
    // Looking at them takes no wait.
    assert!(names(&server, &session).contains(&"early".to_owned()));
    let waiting = server.owner("POST", &format!("{session}/fork")).json(&json!({"wait": true}));
    let mut waiting = waiting.header("connection", "close").open();
    gate.open();
    let mut reply = Vec::new();
    waiting.read_to_end(&mut reply).expect("an answer");
    let reply = sessile_testkit::http::Response::parse(&reply).expect("an answer").is(201);
    let other = session_path(&reply.json()["session_ids"][0]);
    assert_eq!(server.prints_at(&other, "echo $x"), "late\n");
    assert_eq!(server.prints_at(&session, "echo $x"), "late\n");
}

#[test]
fn checkpoints_are_named_listed_and_dropped() {
    let h = harness!();
    let server = h.serve();
    let session = server.started(&json!({"shell": "python3"}));
    assert_eq!(names(&server, &session), [""; 0]);
    server.exec_at(&session, "x = 1");
    checkpoint(&server, &session, "a/b ü");
    let plain = server.post(&format!("{session}/checkpoints"), &json!({})).is(201).json();
    assert_eq!(plain["name"], "checkpoint-1");
    assert_eq!(
        plain["kernels"],
        json!([{"language": "python", "as_of_run": 1, "carried": "live"}])
    );
    let again = server.post(&format!("{session}/checkpoints"), &json!({"name": "checkpoint-1"}));
    let _ = again.is_refused(409, "checkpoint_exists");
    assert_eq!(names(&server, &session), ["a/b ü", "checkpoint-1"]);
    let unknown = server.post(&format!("{session}/rewind"), &json!({"checkpoint": "nope"}));
    let text = unknown.is_refused(404, "checkpoint_not_found").text();
    assert!(text.contains("checkpoint-1"), "it says which there are: {text}");
    let _ =
        server.post(&format!("{session}/undo"), &json!({})).is_refused(404, "checkpoint_not_found");
    let gone = server.delete(&format!("{session}/checkpoints/nope"));
    let _ = gone.is_refused(404, "checkpoint_not_found");
    let dropped = server.delete(&format!("{session}/checkpoints/a%2Fb%20%C3%BC")).is(200).json();
    assert_eq!(dropped, json!({"dropped": ["a/b ü"]}));
    let dropped = server.delete(&format!("{session}/checkpoints")).is(200).json();
    assert_eq!(dropped, json!({"dropped": ["checkpoint-1"]}));
    assert_eq!(names(&server, &session), [""; 0]);
    let _ = server
        .post(&format!("{session}/rewind"), &json!({}))
        .is_refused(404, "checkpoint_not_found");
    let _ = server.delete(&session).is(200);
    assert_eq!(names(&server, &session), [""; 0]);
    assert_eq!(
        server.delete(&format!("{session}/checkpoints")).is(200).json()["dropped"],
        json!([])
    );
    let _ = server.post(&format!("{session}/fork"), &json!({})).is_refused(410, "session_ended");
}

#[test]
fn a_request_that_makes_no_sense_is_refused() {
    let h = harness!();
    let server = h.serve();
    let session = server.started(&json!({}));
    let wrong = [
        ("fork", json!({"count": 0})),
        ("fork", json!({"count": 1001})),
        ("fork", json!({"files": "move"})),
        ("fork", json!({"name": "a\nb"})),
        ("fork", json!({"copies": 2})),
        ("checkpoints", json!({"name": ""})),
        ("checkpoints", json!({"name": "-x"})),
        ("checkpoints", json!({"name": "x".repeat(101)})),
        ("rewind", json!({"checkpoint": "a", "runs": 1})),
        ("rewind", json!({"runs": 0})),
        ("rewind", json!({"runs": -1})),
        ("undo", json!({"runs": 2})),
    ];
    for (call, body) in wrong {
        let refused = server.post(&format!("{session}/{call}"), &body);
        assert_eq!(
            (refused.status, refused.code()),
            (400, "bad_request".to_owned()),
            "{call} {body}"
        );
    }
    for auto in [json!(0), json!(1001), json!("3"), json!({}), json!({"keep": 3, "every": 2})] {
        let refused = server.post("/v1/sessions", &json!({"auto": auto}));
        assert_eq!((refused.status, refused.code()), (400, "bad_request".to_owned()), "{auto}");
    }
    let more = server.started(&json!({"auto": {"keep": 3, "files": false}}));
    let shown = server.get(&more).is(200).json();
    assert_eq!(shown["auto"], json!({"keep": 3, "files": false}));
}

#[test]
fn the_history_and_the_events_of_a_session_tell_a_rewind_from_a_run() {
    let h = harness!();
    let server = h.serve();
    let session = server.started(&json!({"shell": "python3", "auto": 5}));
    server.exec_at(&session, "x=1");
    server.exec_at(&session, "x=2");
    let _ = server.post(&format!("{session}/undo"), &json!({})).is(200);
    server.exec_at(&session, "x=3");
    let history = server.get(&format!("{session}/history")).is(200).json();
    let kinds: Vec<&Value> =
        history.as_array().expect("a list").iter().map(|e| &e["event"]).collect();
    assert_eq!(kinds, [&json!(null), &json!(null), &json!("rewind"), &json!(null)]);
    assert_eq!(history[2]["command"], "rewind before-2");
    assert_eq!(history[2]["notes"], json!(["takes back run 2"]));
    let runs = server.get(&format!("{session}/runs")).is(200).json();
    assert_eq!((&runs[2]["event"], &runs[2]["exit_code"]), (&json!("rewind"), &json!(null)));
    let mut events =
        server.owner("GET", &format!("{session}/events")).header("Last-Event-ID", "1").events();
    let told: Vec<_> =
        events.by_ref().take(3).map(|event| (event.name, event.data["run"].clone())).collect();
    let expected = [("run", 2), ("rewind", 3), ("run", 4)];
    assert_eq!(told, expected.map(|(name, run)| (name.to_owned(), json!(run))));
}

#[test]
fn a_token_forks_what_it_may_use_and_no_more_than_it_may_have() {
    let h = harness!();
    for name in ["mine", "theirs"] {
        std::fs::create_dir_all(h.path(name)).expect("a directory");
    }
    let server = h.server(&["--max-sessions-per-token", "3"]);
    let made = h.sessile(&["token", "create", "mine", "--workspace", "mine"]).json();
    let token = made["token"].as_str().expect("a token");
    let post =
        |path: &str, body: &Value| server.request("POST", path).token(token).json(body).send();
    let theirs = server.started(&json!({"cwd": "theirs"}));
    for call in ["fork", "checkpoints", "rewind", "undo"] {
        let _ = post(&format!("{theirs}/{call}"), &json!({})).is_refused(404, "session_not_found");
    }
    let listed = server.request("GET", &format!("{theirs}/checkpoints")).token(token).send();
    let _ = listed.is_refused(404, "session_not_found");
    let dropped = server.request("DELETE", &format!("{theirs}/checkpoints")).token(token).send();
    let _ = dropped.is_refused(404, "session_not_found");
    let mine = session_path(
        &post("/v1/sessions", &json!({"cwd": h.path("mine")})).is(201).json()["session_id"],
    );
    let over =
        post(&format!("{mine}/fork"), &json!({"count": 3})).is_refused(429, "too_many_sessions");
    assert!(over.text().contains("there are 1"), "{}", over.text());
    let forked = post(&format!("{mine}/fork"), &json!({"count": 2})).is(201).json();
    let other = session_path(&forked["session_ids"][0]);
    let done = post(&format!("{other}/exec"), &json!({"command": "pwd"})).is(200).json();
    assert_eq!(done["stdout"], json!(format!("{}\n", h.path("mine").display())));
    // Forks count as their original does, and their forks, too.
    assert_eq!(server.get(&other).is(200).json()["owner"], "mine");
    for session in [&mine, &other] {
        let _ = post(&format!("{session}/fork"), &json!({})).is_refused(429, "too_many_sessions");
    }
    let _ = post("/v1/sessions", &json!({})).is_refused(429, "too_many_sessions");
    let _ = server.request("DELETE", &other).token(token).send().is(200);
    let _ = post(&format!("{mine}/fork"), &json!({})).is(201);
    let seen =
        server.request("GET", "/v1/sessions?status=active").token(token).send().is(200).json();
    assert_eq!(seen["sessions"].as_array().expect("a list").len(), 3);
}

#[test]
fn the_limit_of_sessions_holds_for_forks() {
    let h = harness!();
    let server = h.server(&["--max-sessions", "4"]);
    let session = server.started(&json!({}));
    let _ = server
        .post(&format!("{session}/fork"), &json!({"count": 4}))
        .is_refused(429, "too_many_sessions");
    fork(&server, &session, &json!({"count": 3}));
    let _ =
        server.post(&format!("{session}/fork"), &json!({})).is_refused(429, "too_many_sessions");
    let _ = server.post("/v1/sessions", &json!({})).is_refused(429, "too_many_sessions");
}

#[test]
fn a_session_begins_with_the_state_of_another() {
    let h = harness!();
    let server = h.serve();
    let template = server.started(&json!({"shell": "python3"}));
    server.exec_at(&template, "x = 1");
    let id = template.rsplit('/').next().expect("an id");
    let new = server.started(&json!({"from": id, "env": {"E": "own"}, "name": "new"}));
    let done = server.exec_at(&new, "import os; print(x, os.environ['E'])");
    assert_eq!((&done["stdout"], &done["run"]), (&json!("1 own\n"), &json!(1)), "{done}");
    let both = json!({"from": id, "shell": "bash"});
    let _ = server.post("/v1/sessions", &both).is_refused(400, "bad_request");
    let unknown = json!({"from": "sess_000000000000000000000000"});
    let _ = server.post("/v1/sessions", &unknown).is_refused(404, "session_not_found");
    let _ = server.post("/v1/sessions", &json!({"from": "x"})).is_refused(404, "session_not_found");
    let _ = server.delete(&template).is(200);
    let _ = server.post("/v1/sessions", &json!({"from": id})).is_refused(410, "session_ended");
}
