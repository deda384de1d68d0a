//! Sessions that a server keeps prepared.

use serde_json::{Value, json};
use sessile_testkit::{Harness, Server, harness};

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
