//! Who may call a server, over HTTP; and the command that calls it.

use serde_json::{Value, json};
use sessile_testkit::{Harness, Server, harness};

fn create(h: &Harness, args: &[&str]) -> (String, Value) {
    let made = h.sessile(&[&["token", "create"], args].concat()).json();
    (made["token"].as_str().expect("a token").to_owned(), made)
}

fn list(server: &Server, token: &str) -> u16 {
    server.request("GET", "/v1/sessions").token(token).send().status
}

#[test]
fn nobody_calls_without_a_token_that_is_known() {
    let h = harness!();
    let server = h.server(&[]);
    let refused = server.request("GET", "/v1/sessions").send().is(401);
    assert_eq!(refused.code(), "unauthorized");
    assert_eq!(refused.header("www-authenticate"), Some("Bearer"));
    let token = server.token();
    for wrong in [&token[..token.len() - 1], &format!("{token}0"), "", "sessile_", "ü"] {
        assert_eq!(list(&server, wrong), 401, "{wrong:?}");
    }
    assert_eq!(list(&server, token), 200);
    let basic =
        server.request("GET", "/v1/sessions").header("authorization", &format!("Basic {token}"));
    let _ = basic.send().is(401);
    let _ = server.request("GET", "/healthz").send().is(200);
}

#[test]
fn a_token_is_made_listed_and_revoked_while_the_server_runs() {
    let h = harness!();
    let server = h.server(&[]);
    let (token, made) = create(&h, &["ci", "--expires", "7d"]);
    assert_eq!((&made["name"], &made["expired"]), (&json!("ci"), &json!(false)));
    assert_eq!(list(&server, &token), 200);
    let listed = h.sessile(&["token", "list"]).json();
    assert_eq!(listed[0]["name"], "ci");
    assert!(!listed.to_string().contains(&token), "it is shown once");
    let again = h.sessile(&["token", "create", "ci"]).exits(1);
    assert!(again.errors().contains("revoke it first"), "{}", again.errors());
    assert_eq!(h.sessile(&["token", "revoke", "ci"]).json(), json!({"revoked": "ci"}));
    assert_eq!(list(&server, &token), 401);
    let gone = h.sessile(&["token", "revoke", "ci"]).exits(1);
    assert!(gone.errors().contains("there is no token \"ci\""), "{}", gone.errors());
}

#[test]
fn a_token_that_is_over_says_so() {
    let h = harness!();
    let server = h.server(&[]);
    let (token, _) = create(&h, &["brief", "--expires", "0"]);
    let refused = server.request("GET", "/v1/sessions").token(&token).send().is(401);
    assert!(refused.text().contains("expired"), "{}", refused.text());
    assert_eq!(h.sessile(&["token", "list"]).json()[0]["expired"], true);
}

#[test]
fn a_token_is_held_to_its_workspaces() {
    let h = harness!();
    std::fs::create_dir_all(h.path("mine")).expect("a directory");
    std::fs::create_dir_all(h.path("theirs")).expect("a directory");
    let server = h.server(&[]);
    let (token, _) = create(&h, &["mine", "--workspace", "mine"]);
    let start = |cwd: &str| {
        let body = json!({"cwd": h.path(cwd)});
        server.request("POST", "/v1/sessions").token(&token).json(&body).send()
    };
    let _ = start("mine").is(201);
    assert_eq!(start("theirs").is(403).code(), "forbidden");
    let other = server.session();
    let hidden = server.request("GET", &format!("/v1/sessions/{other}")).token(&token).send();
    assert_eq!(hidden.is(404).code(), "session_not_found");
    let missing = h.sessile(&["token", "create", "x", "--workspace", "nowhere"]).exits(1);
    assert!(missing.errors().contains("is not a directory"), "{}", missing.errors());
}

#[test]
fn tokens_made_at_once_are_all_kept() {
    let h = harness!();
    let names: Vec<String> = (0..8).map(|i| format!("t{i}")).collect();
    let clients: Vec<_> =
        names.iter().map(|name| h.begin(&["token", "create", name], b"")).collect();
    for client in clients {
        let _ = client.finish().exits(0);
    }
    let listed = h.sessile(&["token", "list"]).json();
    assert_eq!(listed.as_array().map(Vec::len), Some(8));
}

#[test]
fn the_command_line_calls_the_server_with_the_token_it_finds() {
    let h = harness!();
    let server = h.server(&[]);
    let started = h.sessile(&["api", "POST", "/v1/sessions", "{}"]).json();
    let id = started["session_id"].as_str().expect("an id");
    let order = json!({"command": "echo hello"}).to_string();
    let path = format!("/v1/sessions/{id}/exec");
    let answer = h.begin(&["api", "post", &path], order.as_bytes()).finish().json();
    assert_eq!(answer["stdout"], "hello\n");
    let events = h.sessile(&["api", "GET", &format!("/v1/sessions/{id}/runs/1/events")]).exits(0);
    assert!(events.text().contains("event: closed"), "{}", events.text());
    let refused = h.sessile(&["api", "GET", "/v1/sessions/sess_0123456789abcdef01234567"]).exits(1);
    let refused: Value = serde_json::from_slice(&refused.stdout).expect("JSON");
    assert_eq!(refused["error"]["code"], "session_not_found");
    let mut other = h.command(&["api", "GET", "/v1/sessions"]);
    other.env("SESSILE_TOKEN", "sessile_wrong");
    let output = other.output().expect("sessile");
    assert_eq!(output.status.code(), Some(1));
    drop(server);
}

#[test]
fn the_command_line_is_not_misled_by_what_a_server_left() {
    let h = harness!();
    let none = |h: &Harness| {
        let said = h.sessile(&["api", "GET", "/v1/sessions"]).exits(1).errors();
        assert!(said.contains("no server is running for"), "{said}");
    };
    none(&h);
    let server = h.server(&[]);
    let address = server.address;
    server.kill();
    let left = std::fs::read_dir(h.private_dir().join("servers")).expect("a folder").count();
    assert_eq!(left, 1, "it was killed");
    // Somebody else has the port by now, and must not be given the token.
    let other = std::net::TcpListener::bind(address).expect("the port is free");
    other.set_nonblocking(true).expect("a socket");
    none(&h);
    assert!(other.accept().is_err(), "nobody called");
}

#[test]
fn records_of_ended_sessions_stay_until_they_are_old_enough() {
    let h = harness!();
    let server = h.server(&[]);
    let id = server.session();
    assert_eq!(server.exec(&id, "echo kept")["stdout"], "kept\n");
    let _ = server.owner("DELETE", &format!("/v1/sessions/{id}")).send().is(200);
    assert_eq!(h.sessile(&["cleanup", "--older-than", "1h"]).json(), json!({"cleaned": []}));
    let history = server.owner("GET", &format!("/v1/sessions/{id}/history")).send().is(200);
    assert!(history.text().contains("echo kept"), "{}", history.text());
    let path = h.sessions_dir().join(&id).join("metadata.json");
    let text = std::fs::read_to_string(&path).expect("metadata");
    let mut metadata: Value = serde_json::from_str(&text).expect("JSON");
    metadata["ended_at"] = json!("2020-01-01T00:00:00.000Z");
    std::fs::write(&path, metadata.to_string()).expect("metadata");
    assert_eq!(h.sessile(&["cleanup", "--older-than", "7d"]).json(), json!({"cleaned": [id]}));
    let gone = server.owner("GET", &format!("/v1/sessions/{id}")).send();
    assert_eq!(gone.is(404).code(), "session_not_found");
}
