//! Sessions that a server keeps prepared.

use serde_json::{Value, json};
use sessile_testkit::{Harness, Server, harness, until};

/// A server with pools, once they are ready or are known not to be.
fn serve(h: &Harness, pools: &str, told: &str) -> Server {
    std::fs::write(h.path("conf.toml"), pools).unwrap();
    let server = h.server(&["--config", "conf.toml"]);
    let _ = server.wait_for_log(told);
    server
}

const DATA: &str = r#"
[[pool]]
name = "data"
shell = "python3"
code = "import os; x = [41]; y = os.environ['E']"
env = { E = "prepared" }
"#;

fn pooled(server: &Server) -> Vec<Value> {
    let list = server.get("/v1/sessions?status=active").is(200).json();
    let rows = list["sessions"].as_array().expect("a list").iter();
    rows.filter(|row| row["name"] == "pool data").cloned().collect()
}

#[test]
fn a_session_from_a_pool_is_prepared_and_the_callers_own() {
    let h = harness!();
    let server = serve(&h, DATA, "the pool is ready");
    let first = server.started(&json!({"from": "data", "env": {"E": "own"}}));
    let done = server.exec_at(&first, "x.append(1); print(x, y, os.environ['E'])");
    assert_eq!(done["stdout"], "[41, 1] prepared own\n", "{done}");
    assert_eq!(done["run"], 1, "{done}");
    let second = server.started(&json!({"from": "data"}));
    assert_eq!(server.prints_at(&second, "print(x)"), "[41]\n");
    assert_eq!(pooled(&server).len(), 1);
    let unknown = server.post("/v1/sessions", &json!({"from": "other"}));
    let _ = unknown.is_refused(404, "session_not_found");
}

#[test]
fn the_next_server_goes_on_with_what_was_prepared_unless_that_changed() {
    let h = harness!();
    let server = serve(&h, DATA, "the pool is ready");
    let before = pooled(&server);
    server.kill();
    let server = serve(&h, DATA, "the pool is ready");
    assert_eq!(pooled(&server)[0]["session_id"], before[0]["session_id"]);
    server.kill();
    let server = serve(&h, &DATA.replace("41", "42"), "the pool is ready");
    let after = pooled(&server);
    assert_eq!(after.len(), 1, "{after:?}");
    assert_ne!(after[0]["session_id"], before[0]["session_id"]);
    let new = server.started(&json!({"from": "data"}));
    assert_eq!(server.prints_at(&new, "print(x)"), "[42]\n");
}

#[test]
fn a_pool_that_was_killed_or_ended_is_prepared_again() {
    let h = harness!();
    let server = serve(&h, DATA, "the pool is ready");
    let id = pooled(&server)[0]["session_id"].as_str().expect("an id").to_owned();
    h.session_called(&id).keeper().kill();
    let new = server.started(&json!({"from": "data"}));
    assert_eq!(server.prints_at(&new, "print(x)"), "[41]\n");
    let id = pooled(&server)[0]["session_id"].as_str().expect("an id").to_owned();
    let _ = server.delete(&format!("/v1/sessions/{id}")).is(200);
    let new = server.started(&json!({"from": "data"}));
    assert_eq!(server.prints_at(&new, "print(x)"), "[41]\n");
}

#[test]
fn a_pool_that_cannot_be_prepared_says_why_and_leaves_nothing() {
    let h = harness!();
    let server = serve(&h, &DATA.replace("x = [41]", "no_such"), "the pool is not ready");
    let refused = server.post("/v1/sessions", &json!({"from": "data"}));
    let refused = refused.is_refused(503, "kernel_unavailable");
    assert!(refused.text().contains("no_such"), "{}", refused.text());
    assert_eq!(pooled(&server).len(), 0);
}

#[test]
fn a_pool_is_not_counted_as_a_tokens() {
    let h = harness!();
    std::fs::write(h.path("conf.toml"), DATA).unwrap();
    let server = h.server(&["--config", "conf.toml", "--max-sessions-per-token", "1"]);
    let _ = server.wait_for_log("the pool is ready");
    let made = h.sessile(&["token", "create", "guest"]).json();
    let token = made["token"].as_str().expect("a token");
    let body = json!({"from": "data"});
    let start = || server.request("POST", "/v1/sessions").token(token).json(&body).send();
    let _ = start().is(201);
    let _ = start().is_refused(429, "too_many_sessions");
}

/// The sessions that nobody has yet.
fn copies(server: &Server) -> Vec<Value> {
    let list = server.get("/v1/sessions?status=active").is(200).json();
    let rows = list["sessions"].as_array().expect("a list").iter();
    let is_copy = |row: &&Value| row["owner"].as_str().is_some_and(|o| o.ends_with(":ready"));
    rows.filter(is_copy).cloned().collect()
}

/// Waits until so many copies are there.
fn wait_for_copies(server: &Server, count: usize) -> Vec<String> {
    let ids = until("copies that are ready", || {
        let copies = copies(server);
        (copies.len() == count).then_some(copies)
    });
    ids.iter().map(|row| row["session_id"].as_str().expect("an id").to_owned()).collect()
}

fn ready(count: usize) -> String {
    format!("{DATA}ready = {count}\n")
}

#[test]
fn copies_that_are_ready_are_given_away_and_others_are_made() {
    let h = harness!();
    let server = serve(&h, &ready(2), "the pool is ready");
    let before = wait_for_copies(&server, 2);
    let body = json!({"from": "data", "name": "mine", "idle_timeout": "77s"});
    let first = server.post("/v1/sessions", &body).is(201).json();
    let id = first["session_id"].as_str().expect("an id");
    assert!(before.iter().any(|copy| copy == id), "{first} is none of {before:?}");
    let seen = server.get(&format!("/v1/sessions/{id}")).is(200).json();
    assert_eq!((&seen["name"], &seen["idle_timeout_ms"]), (&json!("mine"), &json!(77_000)));
    assert_eq!(seen["owner"], Value::Null, "{seen}");
    let done = server.exec_at(&format!("/v1/sessions/{id}"), "x.append(1); print(x)");
    assert_eq!((&done["stdout"], &done["run"]), (&json!("[41, 1]\n"), &json!(1)));
    // What was given away is made anew.
    let after = wait_for_copies(&server, 2);
    assert!(!after.iter().any(|copy| copy == id));
    let second = server.started(&json!({"from": "data"}));
    assert_eq!(server.prints_at(&second, "print(x)"), "[41]\n");
}

#[test]
fn who_wants_more_than_a_copy_has_gets_one_that_is_made_for_it() {
    let h = harness!();
    let server = serve(&h, &ready(1), "the pool is ready");
    let before = wait_for_copies(&server, 1);
    let made = server.started(&json!({"from": "data", "env": {"E": "own"}}));
    assert!(!made.ends_with(&before[0]));
    assert_eq!(server.prints_at(&made, "print(x, os.environ['E'])"), "[41] own\n");
    assert_eq!(wait_for_copies(&server, 1), before);
}

#[test]
fn a_name_that_is_taken_costs_no_copy() {
    let h = harness!();
    let server = serve(&h, &ready(1), "the pool is ready");
    let _ = server.started(&json!({"name": "mine"}));
    let before = wait_for_copies(&server, 1);
    let refused = server.post("/v1/sessions", &json!({"from": "data", "name": "mine"}));
    let _ = refused.is(409);
    assert_eq!(wait_for_copies(&server, 1), before);
}

#[test]
fn copies_that_were_killed_with_their_pool_are_given_to_nobody() {
    let h = harness!();
    let server = serve(&h, &ready(2), "the pool is ready");
    let before = wait_for_copies(&server, 2);
    h.session_called(&before[0]).keeper().kill();
    let new = server.started(&json!({"from": "data"}));
    assert_eq!(server.prints_at(&new, "print(x)"), "[41]\n");
    assert!(!before.iter().any(|copy| new.ends_with(copy.as_str())));
    let after = wait_for_copies(&server, 2);
    assert!(after.iter().all(|copy| !before.contains(copy)));
}

#[test]
fn a_pool_that_is_killed_while_it_is_copied_is_prepared_again() {
    let h = harness!();
    let server = serve(&h, DATA, "the pool is ready");
    let id = pooled(&server)[0]["session_id"].as_str().expect("an id").to_owned();
    let keeper = h.session_called(&id).keeper();
    // Who asks it now waits, and then it is gone.
    let _ = keeper.signal(rustix::process::Signal::STOP);
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| server.started(&json!({"from": "data"})));
        let _ = keeper.kill();
        let new = asking.join().expect("a session");
        assert_eq!(server.prints_at(&new, "print(x)"), "[41]\n");
    });
}

#[test]
fn copies_are_nobodys_until_they_are_given_away() {
    let h = harness!();
    std::fs::write(h.path("conf.toml"), ready(1)).unwrap();
    let limits = ["--max-sessions", "3", "--max-sessions-per-token", "1"];
    let server = h.server(&[&["--config", "conf.toml"], &limits[..]].concat());
    let _ = wait_for_copies(&server, 1);
    let made = h.sessile(&["token", "create", "guest"]).json();
    let token = made["token"].as_str().expect("a token");
    let body = json!({"from": "data"});
    let start = || server.request("POST", "/v1/sessions").token(token).json(&body).send();
    let _ = server.started(&json!({}));
    // All three places are taken, one of them by the copy: who begins from it needs no
    // other. It is listed a moment before it is given away.
    let mine = until("the copy", || {
        let answer = start();
        (answer.status == 201).then(|| answer.json())
    });
    let path = sessile_testkit::session_path(&mine["session_id"]);
    assert_eq!(server.get(&path).is(200).json()["owner"], "guest");
    let _ = start().is_refused(429, "too_many_sessions");
}

#[test]
fn an_order_with_a_key_is_given_a_copy_and_a_repeated_one_the_same() {
    let h = harness!();
    let server = serve(&h, &ready(2), "the pool is ready");
    // The first of them can be given away when the second is listed.
    let before = wait_for_copies(&server, 2);
    let body = json!({"from": "data", "name": "mine"});
    let start = |server: &Server, key: &str, body: &Value| {
        let request = server.owner("POST", "/v1/sessions").header("Idempotency-Key", key);
        request.json(body).send()
    };
    let id = start(&server, "k", &body).is(201).json()["session_id"].clone();
    assert!(before.iter().any(|copy| id == **copy), "{id} is none of {before:?}");
    let done = server.exec_at(&sessile_testkit::session_path(&id), "x.append(1); print(x)");
    assert_eq!((&done["stdout"], &done["run"]), (&json!("[41, 1]\n"), &json!(1)));
    // Another copy is ready by now: a repeated order does not get it.
    let after = wait_for_copies(&server, 2);
    assert_eq!(start(&server, "k", &body).is(201).json()["session_id"], id);
    let _ = start(&server, "k", &json!({"from": "data"})).is_refused(409, "key_reused");
    let _ = start(&server, "other", &body).is(409);
    assert_eq!(wait_for_copies(&server, 2), after);
    // The next server knows it as well, and what has only a key is no session.
    server.kill();
    let server = serve(&h, &ready(1), "the pool is ready");
    assert_eq!(start(&server, "k", &body).is(201).json()["session_id"], id);
    let all = server.get("/v1/sessions?status=active").is(200).json();
    let named = all["sessions"].as_array().expect("a list").iter();
    assert_eq!(named.filter(|row| row["name"] == "mine").count(), 1, "{all}");
}

#[test]
fn orders_with_one_key_at_the_same_time_get_one_session() {
    let h = harness!();
    let server = serve(&h, &ready(2), "the pool is ready");
    let _ = wait_for_copies(&server, 2);
    let body = json!({"from": "data"});
    let start = || {
        let request = server.owner("POST", "/v1/sessions").header("Idempotency-Key", "k");
        request.json(&body).send().json()["session_id"].clone()
    };
    let ids: Vec<Value> = std::thread::scope(|scope| {
        let all: Vec<_> = (0..6).map(|_| scope.spawn(start)).collect();
        all.into_iter().map(|one| one.join().expect("an id")).collect()
    });
    assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
    // The others have put their copies back.
    let _ = wait_for_copies(&server, 2);
    let all = server.get("/v1/sessions?status=active").is(200).json();
    let rows = all["sessions"].as_array().expect("a list").iter();
    assert_eq!(rows.filter(|row| row["owner"] == Value::Null).count(), 1, "{all}");
}
